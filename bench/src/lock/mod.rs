//! `lock`: what the lock around the start of a process costs, and how long it makes anybody wait.
//!
//! Where a handle has to be inheritable for a moment, a launch that inherits everything must not run beside one that
//! names what it inherits. 16 threads go through a lock that sees to it, with a sleep in place of the launch:
//!
//! * **Isolated**: every launch names what it inherits, and all may be inside at once.
//! * **Mixed**: most do; some inherit everything, and a few of these make something inheritable.
//! * **Uncontended**: one thread, nothing to do inside.
//!
//! A wait is counted in turns: how many others entered between an arrival and its entry. An overlap is an entry that
//! found a launch inside which must not be beside it.

mod crowd;
mod mix;
mod peers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use comfy_table::{Cell, CellAlignment};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Result;
use crate::claims::Claim;
use crate::json::{self, Row};
use crate::meter::Sample;
use crate::rounds::{self, Label, Parameters};
use crate::stats;
use crate::table::{new_table, print_claims, time};
use crowd::{Job, Seen};
use mix::Mix;
use peers::Peer;

/// The options of `lock`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Threads that go through the lock.
    #[arg(long, default_value_t = 16)]
    threads: usize,
    /// Entries a round, all threads together.
    #[arg(long, default_value_t = 1600)]
    entries: u64,
    /// What each does inside: it sleeps, so many microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 100)]
    work: u64,
    /// The percentages of Mixed: isolated, inherit all, inherit all and redirect.
    #[arg(long, value_delimiter = ',', default_values_t = [90, 8, 2])]
    mix: Vec<u64>,
    /// Only these peers: haft, mutex, rwlock, rwlock-unlock-fair, pull-request-unlock-fair, pull-request-fair.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Measured rounds of every row.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Write the rows to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const ISOLATED: &str = "Isolated";
const MIXED: &str = "Mixed";
const UNCONTENDED: &str = "Uncontended";

/// Entries of a round of `Uncontended`.
const UNCONTENDED_ENTRIES: u64 = 200_000;

struct PeerRow {
    method: &'static str,
    peer: Arc<dyn Peer>,
    parameters: Parameters,
    /// None: uncontended.
    job: Option<Job>,
    /// Every round's, those of the warm-up included.
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl rounds::Row for PeerRow {
    fn label(&self) -> Label {
        Label { method: self.method, peer: self.peer.name(), parameters: self.parameters.clone() }
    }

    fn round(&mut self) -> Result<Sample> {
        let Some(job) = &self.job else {
            return Ok(crowd::uncontended(&*self.peer, UNCONTENDED_ENTRIES));
        };
        let (sample, seen) = crowd::round(&*self.peer, job);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        Ok(sample)
    }
}

/// A row with what was seen from inside beside the common fields.
#[derive(Serialize)]
struct LockRow {
    #[serde(flatten)]
    row: Row,
    /// The longest wait of each round.
    longest_wait_turns: Vec<u64>,
    /// In all rounds.
    overlaps: Option<u64>,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    crate::check_peers(&options.peers, &peers::NAMES)?;
    if options.threads == 0 || options.entries == 0 || options.rounds == 0 {
        return Err("--threads, --entries and --rounds start at 1".into());
    }
    let mix = Mix::new(&options.mix).ok_or("--mix is three percentages that add up to 100")?;
    options.json.as_deref().map_or(Ok(()), json::check)?;
    println!("haft-bench lock: {}", crate::machine::describe());
    println!(
        "{} threads, {} entries a round, each sleeps {} µs inside; Mixed is {mix}",
        options.threads, options.entries, options.work
    );

    let job = |mix| {
        let work = Duration::from_micros(options.work);
        Job { threads: options.threads, entries: options.entries, work, mix }
    };
    let methods = [(ISOLATED, Some(job(Mix::ISOLATED))), (MIXED, Some(job(mix))), (UNCONTENDED, None)];
    let peers = peers::all().map(Arc::<dyn Peer>::from);
    let mut rows: Vec<Box<dyn rounds::Row>> = Vec::new();
    let mut seen = Vec::new();
    for (method, job) in methods {
        for peer in peers.iter().filter(|peer| crate::chosen(&options.peers, peer.name())) {
            let (peer, parameters) = (Arc::clone(peer), parameters(options, job));
            seen.push(Arc::default());
            let seen = Arc::clone(&seen[seen.len() - 1]);
            rows.push(Box::new(PeerRow { method, peer, parameters, job, seen }));
        }
    }
    let measured = rounds::run(rows, options.rounds, &mut Vec::new(), |_, _| Ok(()))?;
    let mut rows: Vec<Row> = measured.into_iter().map(|measured| Row::of("lock", measured)).collect();
    json::fill_ratios(&mut rows, |row, base| base.peer == "haft" && base.method == row.method);
    let claims = claims(&rows);
    let rows: Vec<LockRow> =
        rows.into_iter().zip(&seen).map(|(row, seen)| with_seen(row, seen, options.rounds)).collect();

    print(&rows);
    print_claims(&claims);
    if let Some(path) = &options.json {
        json::write(path, &rows)?;
    }
    if rows.is_empty() { Err("nothing could be measured".into()) } else { Ok(()) }
}

fn parameters(options: &Options, job: Option<Job>) -> Parameters {
    let entries: [(&str, Value); 4] = match job {
        Some(job) => [
            ("threads", json!(job.threads)),
            ("entries", json!(job.entries)),
            ("work", json!(options.work)),
            ("mix", json!(job.mix.to_string())),
        ],
        None => [
            ("threads", json!(1)),
            ("entries", json!(UNCONTENDED_ENTRIES)),
            ("work", json!(0)),
            ("mix", json!(Mix::ISOLATED.to_string())),
        ],
    };
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The row with what its measured rounds have seen: the last ones.
fn with_seen(row: Row, seen: &Mutex<Vec<Seen>>, rounds: usize) -> LockRow {
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = &seen[seen.len().saturating_sub(rounds)..];
    LockRow {
        row,
        longest_wait_turns: measured.iter().map(|seen| seen.longest_wait).collect(),
        overlaps: (!measured.is_empty()).then(|| measured.iter().map(|seen| seen.overlaps).sum()),
    }
}

fn print(rows: &[LockRow]) {
    let mut table = new_table(&[
        "Method",
        "Peer",
        "Entries/s",
        "Median",
        "Ratio (quartiles)",
        "CPU/op",
        "Switches/op",
        "Allocs/op",
        "Longest wait, turns: median round",
        "worst",
        "Overlaps",
    ]);
    for LockRow { row, longest_wait_turns, overlaps } in rows {
        let figure = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
        let waits: Vec<f64> = longest_wait_turns.iter().map(|&turns| turns as f64).collect();
        let mut cells = vec![Cell::new(row.method), Cell::new(row.peer)];
        cells.extend(
            [
                row.median_ns.map_or("-".into(), |ns| format!("{:.0}", 1e9 / ns)),
                time(row.median_ns),
                row.spread.map_or("-".into(), |ratio| {
                    format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high)
                }),
                time(row.cpu_ns_per_op),
                figure(row.switches_per_op),
                figure(row.allocations_per_op),
                stats::median(&waits).map_or("-".into(), |turns| format!("{turns:.0}")),
                longest_wait_turns.iter().max().map_or("-".into(), u64::to_string),
                overlaps.map_or("-".into(), |overlaps| overlaps.to_string()),
            ]
            .map(|text| Cell::new(text).set_alignment(CellAlignment::Right)),
        );
        table.add_row(cells);
    }
    println!("{table}");
}

/// What the figures have to show.
fn claims(rows: &[Row]) -> Vec<Claim> {
    let find = |method: &str, peer: &str| rows.iter().find(|row| row.method == method && row.peer == peer);
    let ours = find(ISOLATED, "haft");
    let figure = "haft Isolated over mutex (a quarter: 4 × its entries/s)";
    let allocations = |method| find(method, "haft").and_then(|row| row.allocations_per_op);
    [
        Claim::time(figure, ours, 0.25, find(ISOLATED, "mutex")),
        Claim::plain("allocations an entry, haft Isolated", allocations(ISOLATED), 0.0),
        Claim::plain("allocations an entry, haft Mixed", allocations(MIXED), 0.0),
    ]
    .into_iter()
    .flatten()
    .collect()
}
