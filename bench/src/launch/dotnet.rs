//! Peer `dotnet`: `System.Diagnostics.Process`, in a program of its own that runs before, between and after
//! the rounds.
//!
//! `dotnet` is the default, `dotnet-none` (beside it) has `InheritedHandles = []`. The program starts its
//! threads anew in every round, or uses `Parallel.For`: both are tried first and the quicker is measured. Before .NET 11
//! there is no `InheritedHandles`, and `dotnet-none` is left out.

use std::path::Path;

use indicatif::ProgressBar;
use serde_json::json;

use super::{Method, Options, parameters};
use crate::Result;
use crate::dotnet::{Program, repetitions, trial};
use crate::json::Row;
use crate::rounds::Turn;
use crate::stats;
use crate::sys::program;

/// One row of the peer: how the program is called, and its medians so far.
struct Case {
    peer: &'static str,
    method: Method,
    mode: &'static str,
    arguments: &'static [&'static str],
    count: usize,
    open_files: usize,
    /// The program's THREADS: 0 is `Parallel.For`.
    threads: usize,
    repetitions: u64,
    medians_ns: Vec<f64>,
}

pub(crate) struct Dotnet {
    program: Option<Program>,
    rss: usize,
    child: String,
    cases: Vec<Case>,
    left_out: Vec<String>,
}

impl Dotnet {
    pub(crate) fn new(options: &Options, child: &Path, notes: &mut Vec<String>) -> Result<Self> {
        let mut cases = Vec::new();
        let program = match &options.dotnet {
            Some(path) if crate::chosen(&options.peers, "dotnet") => Some(Program::new(path)?),
            _ => {
                if crate::chosen(&options.peers, "dotnet") {
                    notes.push("left out: dotnet: name its program with --dotnet".into());
                }
                None
            }
        };
        if program.is_some() {
            for &open_files in &options.open_files {
                for &count in &options.count {
                    for (peer, method, mode) in [
                        ("dotnet", Method::Standard, "standard"),
                        ("dotnet", Method::Redirection, "redirect"),
                        ("dotnet-none", Method::Standard, "standard-none"),
                        ("dotnet-none", Method::Redirection, "redirect-none"),
                    ] {
                        let medians_ns = Vec::new();
                        let threads = options.threads.min(count);
                        let repetitions = 0;
                        cases.push(Case {
                            peer,
                            method,
                            mode,
                            arguments: program::arguments(&options.program, method == Method::Redirection),
                            count,
                            open_files,
                            threads,
                            repetitions,
                            medians_ns,
                        });
                    }
                }
            }
        }
        Ok(Self {
            program,
            rss: options.rss,
            child: child.display().to_string(),
            cases,
            left_out: Vec::new(),
        })
    }

    pub(crate) fn turn(&mut self, turn: Turn, bar: &ProgressBar) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        let (child, left_out, rss) = (&self.child, &mut self.left_out, self.rss);
        let mut version = String::new();
        let mut measure = |case: &mut Case| {
            if case.peer == "dotnet-none" && major(&version).is_some_and(|major| major < 11) {
                return Err(format!(".NET {version} cannot inherit nothing").into());
            }
            let program = program.with_parent(case.open_files, rss);
            let mut run = |threads: usize, repetitions: u64| -> Result<f64> {
                bar.set_message(format!("{} {} × {}", case.method.name(), case.peer, case.count));
                let (count, threads, repetitions) =
                    (case.count.to_string(), threads.to_string(), repetitions.to_string());
                let mut words =
                    vec!["launch".into(), case.mode.into(), count, threads, repetitions, child.clone()];
                words.extend(case.arguments.iter().map(|argument| String::from(*argument)));
                let lines = program.run(&words)?;
                let line = lines.first().ok_or("the .NET peer printed nothing")?;
                version.clone_from(&line.version);
                line.number("ms")
            };
            if turn == Turn::Before {
                let trial = trial(run(0, 1)?);
                let (loops, threads) = (run(0, trial)?, run(case.threads, trial)?);
                if loops < threads {
                    case.threads = 0;
                }
                case.repetitions = repetitions(loops.min(threads));
            }
            let ms = run(case.threads, case.repetitions)?;
            case.medians_ns.push(ms * 1e6 / case.count as f64);
            Ok(())
        };
        let mut result = Ok(());
        self.cases.retain_mut(|case| match measure(case) {
            Ok(()) => true,
            Err(error) if turn == Turn::Before => {
                left_out.push(format!(
                    "left out: {} {} × {}: {error}",
                    case.method.name(),
                    case.peer,
                    case.count
                ));
                false
            }
            Err(error) => {
                result = Err(error);
                true
            }
        });
        result
    }

    pub(crate) fn rows(self, options: &Options, notes: &mut Vec<String>) -> Vec<Row> {
        notes.extend(self.left_out);
        let row = |case: Case| {
            let mut parameters = parameters(options, case.count, case.open_files);
            parameters.insert("mode".into(), json!(case.mode));
            parameters.insert("by".into(), json!(if case.threads == 0 { "Parallel.For" } else { "threads" }));
            Row {
                benchmark: "launch",
                method: case.method.name(),
                peer: case.peer,
                parameters,
                ops: case.count as u64,
                mean_ns: None,
                error_ns: None,
                stddev_ns: None,
                median_ns: stats::median(&case.medians_ns),
                ratio: None,
                cpu_ns_per_op: None,
                switches_per_op: None,
                allocated_bytes_per_op: None,
                allocations_per_op: None,
                rounds_ns: case.medians_ns,
                spread: None,
                apart: true,
            }
        };
        self.cases.into_iter().map(row).collect()
    }
}

/// `None` if it is not known yet.
fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
