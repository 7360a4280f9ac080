//! Peer `dotnet`: `System.IO.RandomAccess`, in a program of its own that runs before, between and after the
//! rounds.
//!
//! The program reads through a handle opened without and with `FileOptions.Asynchronous`. Where that makes a difference
//! to haft as well each of the two has its row, else the better of them counts. It makes no checksum.

use indicatif::ProgressBar;
use serde_json::json;

use super::file::TestFile;
use super::{ASYNC, Options, SYNC, USE_ASYNC, here};
use crate::Result;
use crate::dotnet::{Program, repetitions};
use crate::json::Row;
use crate::rounds::{Parameters, Turn};
use crate::stats;

/// One method through one handle mode.
struct Case {
    method: &'static str,
    handle: &'static str,
    nanoseconds: Vec<f64>,
    allocated_bytes: Option<f64>,
}

pub(crate) struct Dotnet {
    program: Option<Program>,
    path: String,
    ops: u64,
    parameters: Parameters,
    repetitions: u64,
    cases: Vec<Case>,
}

impl Dotnet {
    pub(crate) fn new(
        options: &Options,
        file: &TestFile,
        parameters: &Parameters,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let mut program = None;
        if crate::chosen(&options.peers, "dotnet") {
            match &options.dotnet {
                None => notes.push("left out: dotnet: name its program with --dotnet".into()),
                Some(_) if options.block != 1024 || options.gap != 0 => {
                    notes.push("left out: dotnet: its program reads 1 KiB without a gap".into());
                }
                Some(path) => program = Some(Program::new(path)?),
            }
        }
        Ok(Self {
            program,
            path: crate::existing(file.path())?.display().to_string(),
            // The last one finds the end.
            ops: file.size().div_ceil(1024) + 1,
            parameters: parameters.clone(),
            repetitions: 0,
            cases: Vec::new(),
        })
    }

    pub(crate) fn turn(&mut self, turn: Turn, bar: &ProgressBar) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        bar.set_message("dotnet");
        let run =
            |repetitions: u64| program.run(&["read".into(), self.path.clone(), repetitions.to_string()]);
        if turn == Turn::Before {
            // A repetition reads the file once each way, through one handle mode after the other.
            let quickest = run(5)?
                .iter()
                .map(|line| Ok(line.number("sync_ms")? + line.number("async_ms")?))
                .collect::<Result<Vec<f64>>>()?
                .into_iter()
                .fold(f64::INFINITY, f64::min);
            self.repetitions = repetitions(quickest);
        }
        for line in run(self.repetitions)? {
            let handle = if line.text("useAsync")? == "True" { "Asynchronous" } else { "None" };
            let allocated = line.number("allocated")? / self.ops as f64;
            for (method, ms, allocated) in
                [(SYNC, line.number("sync_ms")?, None), (ASYNC, line.number("async_ms")?, Some(allocated))]
            {
                let nanoseconds = ms * 1e6 / self.ops as f64;
                match self.cases.iter_mut().find(|case| case.method == method && case.handle == handle) {
                    Some(case) => {
                        case.nanoseconds.push(nanoseconds);
                        case.allocated_bytes = allocated;
                    }
                    None => self.cases.push(Case {
                        method,
                        handle,
                        nanoseconds: vec![nanoseconds],
                        allocated_bytes: allocated,
                    }),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn rows(mut self) -> Vec<Row> {
        self.cases.sort_by(|one, other| {
            let median = |case: &Case| stats::median(&case.nanoseconds).unwrap_or(f64::INFINITY);
            median(one).total_cmp(&median(other))
        });
        let mut seen = Vec::new();
        self.cases.retain(|case| {
            let first = !seen.contains(&case.method);
            seen.push(case.method);
            first || here::TWO_KINDS_OF_HANDLE
        });
        self.cases
            .iter()
            .map(|case| {
                let mut parameters = self.parameters.clone();
                if here::TWO_KINDS_OF_HANDLE {
                    let overlapped = if case.handle == "None" { "False" } else { "True" };
                    parameters.insert(USE_ASYNC.into(), json!(overlapped));
                } else {
                    parameters.insert("handle".into(), json!(case.handle));
                }
                Row {
                    benchmark: "read",
                    method: case.method,
                    peer: "dotnet",
                    parameters,
                    ops: self.ops,
                    mean_ns: None,
                    error_ns: None,
                    stddev_ns: None,
                    median_ns: stats::median(&case.nanoseconds),
                    ratio: None,
                    cpu_ns_per_op: None,
                    switches_per_op: None,
                    allocated_bytes_per_op: case.allocated_bytes,
                    allocations_per_op: None,
                    rounds_ns: case.nanoseconds.clone(),
                    spread: None,
                    apart: true,
                }
            })
            .collect()
    }
}
