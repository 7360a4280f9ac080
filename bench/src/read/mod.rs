//! `read`: what one small read costs.
//!
//! A file (10,000,000 bytes) is read from its start to its end in pieces of one block (1 KiB), one after
//! another; the last read finds the end and returns 0. One operation is one read. SyncRead calls, AsyncRead
//! awaits. Every round folds every piece into a checksum, the same few nanoseconds in every peer, and
//! compares it with the file's.
//!
//! On Windows a file is opened for overlapped I/O or not: `UseAsync` says which.
//!
//! A peer is one file here, or in the folder of the system that it is for: a [`Peer`], listed in that folder's `PEERS`.

mod dotnet;
mod file;
mod haft;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod here;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod here;
mod std;
mod tally;
mod tokio_fs;
mod tokio_spawn_blocking;

use ::std::path::PathBuf;
use ::std::rc::Rc;
use ::std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::Result;
use crate::busy::Busy;
use crate::json::{self, Row};
use crate::meter::Sample;
use crate::rounds::{self, Label, Parameters};
use file::TestFile;
#[cfg(target_os = "linux")]
pub(crate) use file::make as make_file;
use tally::Tally;

/// The options of `read`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The file to read: an existing one as it is, a missing one is made and removed. Default: one beside the
    /// executable.
    #[arg(long)]
    file: Option<PathBuf>,
    /// The size of a file that is made, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 10_000_000)]
    file_size: usize,
    /// Bytes a read.
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    block: usize,
    /// haft hands every operation to its pool, as it does where the page is not cached.
    #[arg(long)]
    no_inline: bool,
    /// Other work (spinning) between two operations. It is taken off the times, not off the CPU time.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    gap: u64,
    /// Load every CPU with a spinning process meanwhile; these are not counted in the CPU time.
    #[arg(long)]
    busy: bool,
    /// Only these peers: haft, std, tokio-fs, tokio-spawn-blocking, dotnet; on Linux floor-nowait, compio, monoio; on
    /// Windows floor.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Measured rounds of every row.
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// The .NET peer's program (see bench/peers/dotnet/README.md).
    #[arg(long, value_name = "PATH")]
    dotnet: Option<PathBuf>,
    /// Write the rows to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Options {
    /// What runs without a subcommand.
    pub(crate) fn quick() -> Self {
        Self {
            file: None,
            file_size: 2_000_000,
            block: 1024,
            no_inline: false,
            gap: 0,
            busy: false,
            peers: Vec::new(),
            rounds: 30,
            dotnet: None,
            json: None,
        }
    }
}

const SYNC: &str = "SyncRead";
const ASYNC: &str = "AsyncRead";

/// The parameter that says how the handle was opened, on systems where that makes a difference: `True` or `False`.
const USE_ASYNC: &str = "UseAsync";

/// What every peer reads.
struct Job {
    path: PathBuf,
    block: usize,
    gap: Duration,
    no_inline: bool,
    /// The checksum that a round must come to.
    checksum: u64,
}

impl Job {
    /// Starts a round's measurement.
    fn tally(&self) -> Tally {
        Tally::start(self.checksum, self.gap)
    }
}

/// A buffer of one block, at the start of a page in every peer that takes one: what a copy costs depends on
/// where its two ends lie within their pages (by a fifth, seen), which must not be left to the luck of the
/// allocator.
fn buffer(block: usize) -> Vec<u8> {
    // Kept until one fits, so that no address is tried twice. Where all addresses are alike (large blocks are
    // mapped by themselves) none fits, and there is no luck in it either.
    let mut passed_over = Vec::new();
    for padding in (0..256).cycle().take(2048) {
        let buffer = vec![0; block];
        if buffer.as_ptr().addr().is_multiple_of(4096) {
            return buffer;
        }
        passed_over.push((buffer, Vec::<u8>::with_capacity(16 * padding)));
    }
    vec![0; block]
}

/// A way to read a file. It opens the file when it is made.
trait Peer {
    fn name(&self) -> &'static str;

    fn method(&self) -> &'static str {
        ASYNC
    }

    /// Which executor drives it, where there is a choice.
    fn executor(&self) -> Option<&'static str> {
        None
    }

    /// Whether the handle was opened for overlapped I/O, where there are two kinds of handle.
    fn overlapped(&self) -> bool {
        false
    }

    /// Reads the file from start to end, between [`Job::tally`] and [`Tally::finish`].
    fn round(&mut self, job: &Job) -> Result<Sample>;

    /// What there is to say after the rounds.
    fn remark(&self) -> Option<String> {
        None
    }
}

type Make = fn(&Job) -> Result<Box<dyn Peer>>;

struct PeerRow {
    peer: Box<dyn Peer>,
    job: Rc<Job>,
    parameters: Parameters,
    /// Where the remark goes when the rounds are over.
    remarks: Rc<::std::cell::RefCell<Vec<String>>>,
}

impl rounds::Row for PeerRow {
    fn label(&self) -> Label {
        let mut parameters = self.parameters.clone();
        if let Some(executor) = self.peer.executor() {
            parameters.insert("executor".into(), json!(executor));
        }
        if here::TWO_KINDS_OF_HANDLE {
            parameters.insert(USE_ASYNC.into(), json!(if self.peer.overlapped() { "True" } else { "False" }));
        }
        Label { method: self.peer.method(), peer: self.peer.name(), parameters }
    }

    fn round(&mut self) -> Result<Sample> {
        self.peer.round(&self.job)
    }
}

impl Drop for PeerRow {
    fn drop(&mut self) {
        self.remarks.borrow_mut().extend(self.peer.remark());
    }
}

fn parameters(options: &Options, size: u64) -> Parameters {
    let entries: [(&str, Value); 6] = [
        ("file", json!(options.file.as_ref().map(|path| path.display().to_string()))),
        ("file-size", json!(size)),
        ("block", json!(options.block)),
        ("no-inline", json!(options.no_inline)),
        ("gap", json!(options.gap)),
        ("busy", json!(options.busy)),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let names: Vec<&str> = here::PEERS.iter().map(|peer| peer.0).chain(["dotnet"]).collect();
    crate::check_peers(&options.peers, &names)?;
    if options.block == 0 || options.rounds == 0 || options.file_size == 0 {
        return Err("--block, --file-size and --rounds start at 1".into());
    }
    options.json.as_deref().map_or(Ok(()), json::check)?;
    println!("haft-bench read: {}", crate::machine::describe());
    let file = TestFile::provide(options.file.as_deref(), options.file_size)?;
    let checksum = file.checksum(options.block)?;
    println!("{} is on {}", file.path().display(), crate::machine::file_system(file.path()));

    let job = Rc::new(Job {
        path: file.path().to_owned(),
        block: options.block,
        gap: Duration::from_micros(options.gap),
        no_inline: options.no_inline,
        checksum,
    });
    let parameters = parameters(options, file.size());
    let mut notes = Vec::new();
    let remarks = Rc::default();
    let mut dotnet = dotnet::Dotnet::new(options, &file, &parameters, &mut notes)?;
    let mut rows: Vec<Box<dyn rounds::Row>> = Vec::new();
    for &(name, make) in here::PEERS {
        if !crate::chosen(&options.peers, name) {
            continue;
        }
        match make(&job) {
            Ok(peer) => rows.push(Box::new(PeerRow {
                peer,
                job: Rc::clone(&job),
                parameters: parameters.clone(),
                remarks: Rc::clone(&remarks),
            })),
            Err(error) => notes.push(format!("left out: {name}: {error}")),
        }
    }

    let busy = options.busy.then(Busy::start).transpose()?;
    let measured = rounds::run(rows, options.rounds, &mut notes, |turn, bar| dotnet.turn(turn, bar))?;
    drop(busy);

    let mut rows: Vec<Row> = measured.into_iter().map(|measured| Row::of("read", measured)).collect();
    rows.extend(dotnet.rows());
    rows.sort_by_key(|row| row.method == ASYNC);
    json::fill_ratios(&mut rows, |row, base| {
        let executor = base.parameters.get("executor").and_then(Value::as_str);
        let same_handle = row.parameters.get(USE_ASYNC) == base.parameters.get(USE_ASYNC);
        base.peer == "haft"
            && row.method == base.method
            && same_handle
            && matches!(executor, None | Some("block_on"))
    });

    crate::table::print(&rows);
    crate::table::print_claims(&here::claims(&rows, options));
    println!(
        "The checksum is part of every operation but dotnet's: {:.0} ns for {} bytes.",
        tally::cost(options.block),
        options.block
    );
    for note in remarks.borrow().iter().chain(&notes) {
        println!("{note}");
    }
    if let Some(path) = &options.json {
        json::write(path, &rows)?;
    }
    crate::check_rows(&rows)
}

#[cfg(test)]
mod tests {
    #[test]
    fn buffers_begin_with_a_page() {
        for block in [64, 512, 1024, 4096] {
            let buffers = [(); 5].map(|()| super::buffer(block));
            for buffer in buffers {
                assert_eq!(buffer.len(), block);
                assert!(buffer.as_ptr().addr().is_multiple_of(4096), "{block}: {:p}", buffer.as_ptr());
            }
        }
    }
}
