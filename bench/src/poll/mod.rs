//! `poll`: how long an executor's thread is held.
//!
//! A poll is one call of `Future::poll`, from before it to after it. Three distributions:
//!
//! * **StalledWorker**: the time inside one poll of operations that go through the pool, while one of its
//!   workers is stuck in the kernel. Many operations are polled in turns with a waker that does nothing; one
//!   that is ready is replaced by a new one, one that is not after many polls is dropped and replaced. So the
//!   polls are first ones, which queue, repeated ones, which find nothing, and last ones, which take the
//!   result, as they come.
//! * **ColdFile**: a file that is not in the cache is read in random order by one task of a tokio
//!   current-thread runtime. A second task on it only yields: the time between two of its polls is how long
//!   the reader's polls, the executor and the machine keep it waiting.
//! * **NoFile**: the same second task beside one that only sleeps. What this shows is the machine's.

mod cold;
mod stalled;
mod userfault;

use std::path::PathBuf;

use clap::Args;
use comfy_table::{Cell, CellAlignment};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Result;
use crate::json::{self, Row};
use crate::table::{new_table, time};

/// The options of `poll`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Polls to measure while a worker is stalled.
    #[arg(long, default_value_t = 1_000_000)]
    polls: u64,
    /// Operations in flight meanwhile.
    #[arg(long, default_value_t = 64)]
    depth: usize,
    /// Threads of the pool, at most; 0: as many as it takes by itself.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// The size of the file, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    file_size: usize,
    /// Bytes a read.
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    block: usize,
    /// Where to make the file: a folder. Default: beside the executable.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Write the rows to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One distribution, in nanoseconds.
struct Distribution {
    method: &'static str,
    limit: Option<(&'static str, u64)>,
    /// Or why there is none.
    histogram: std::result::Result<Histogram<u64>, String>,
    remarks: Vec<String>,
}

/// A row with the quantiles beside the common fields.
#[derive(Serialize)]
struct PollRow {
    #[serde(flatten)]
    row: Row,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// A histogram that takes every time up to a minute, with three digits.
fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_max(60_000_000_000, 3)?)
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.polls == 0 || options.depth == 0 || options.block == 0 || options.file_size < options.block {
        return Err("--polls, --depth and --block start at 1, --file-size at one block".into());
    }
    options.json.as_deref().map_or(Ok(()), json::check)?;
    println!("haft-bench poll: {}", crate::machine::describe());
    let folder = match &options.folder {
        Some(folder) => tempfile::Builder::new().prefix("haft-bench-").tempdir_in(folder)?,
        None => crate::scratch_folder()?,
    };
    let path = folder.path().join("data");
    crate::read::make_file(&path, options.file_size)?;
    println!("{} is on {}", path.display(), crate::machine::file_system(&path));

    let distributions = [
        stalled::measure(options, &path)?,
        cold::measure(options, Some(&path))?,
        cold::measure(options, None)?,
    ];

    let mut table = new_table(&["Method", "Polls", "Mean", "p50", "p99", "p99.9", "Max", "Limit"]);
    for Distribution { method, limit, histogram, .. } in &distributions {
        let of = |quantile: f64| histogram.as_ref().ok().map(|h| h.value_at_quantile(quantile) as f64);
        let verdict = match (limit, of(0.999)) {
            (Some((text, limit)), Some(seen)) => {
                format!("{text}: {}", if seen <= *limit as f64 { "met" } else { "MISSED" })
            }
            _ => "-".into(),
        };
        let mut cells = vec![Cell::new(method)];
        cells.extend(
            [
                histogram.as_ref().map_or("-".into(), |h| h.len().to_string()),
                time(histogram.as_ref().ok().map(Histogram::mean)),
                time(of(0.5)),
                time(of(0.99)),
                time(of(0.999)),
                time(histogram.as_ref().ok().map(|h| h.max() as f64)),
                verdict,
            ]
            .map(|text| Cell::new(text).set_alignment(CellAlignment::Right)),
        );
        table.add_row(cells);
    }
    println!("{table}");
    for Distribution { method, histogram, remarks, .. } in &distributions {
        for remark in histogram.as_ref().err().into_iter().chain(remarks) {
            println!("{method}: {remark}");
        }
    }
    if let Some(path) = &options.json {
        let rows: Vec<PollRow> =
            distributions.iter().map(|distribution| row(distribution, options)).collect();
        json::write(path, &rows)?;
    }
    Ok(())
}

fn row(distribution: &Distribution, options: &Options) -> PollRow {
    let parameters: [(&str, Value); 5] = [
        ("polls", json!(options.polls)),
        ("depth", json!(options.depth)),
        ("threads", json!(options.threads)),
        ("file-size", json!(options.file_size)),
        ("block", json!(options.block)),
    ];
    let histogram = distribution.histogram.as_ref().ok();
    let quantile = |quantile: f64| histogram.map(|histogram| histogram.value_at_quantile(quantile));
    PollRow {
        row: Row {
            benchmark: "poll",
            method: distribution.method,
            peer: "haft",
            parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
            ops: histogram.map_or(0, Histogram::len),
            mean_ns: histogram.map(Histogram::mean),
            error_ns: None,
            stddev_ns: histogram.map(Histogram::stdev),
            median_ns: quantile(0.5).map(|ns| ns as f64),
            ratio: None,
            cpu_ns_per_op: None,
            switches_per_op: None,
            allocated_bytes_per_op: None,
            allocations_per_op: None,
            rounds_ns: Vec::new(),
            spread: None,
            apart: false,
        },
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        max_ns: histogram.map(Histogram::max),
    }
}
