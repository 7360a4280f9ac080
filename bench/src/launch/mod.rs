//! `launch`: what it costs to start a process, wait for it and, with redirection, read what it wrote.
//!
//! One operation is one launch. A round starts `count` processes from `threads` threads (as many as there are
//! processes, if that is fewer; a single process is started by the calling thread), and does so again until
//! it has started 16. LaunchStandard leaves the standard handles alone; LaunchWithRedirection takes standard
//! output through a pipe, reads it to its end and then waits. The threads live across rounds, so that only
//! launches are measured.
//!
//! A peer is one file here, or in the folder of the system that it is for: a [`Peer`], listed in that folder's `PEERS`.

mod crew;
mod dotnet;
mod haft;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod here;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod here;
mod parent;
mod std;
mod tokio;

use ::std::io;
use ::std::path::PathBuf;
use ::std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use crate::Result;
use crate::claims::Claim;
use crate::json::{self, Row};
use crate::meter::{Meter, Sample};
use crate::rounds::{self, Label, Parameters};
use crate::sys::program;
use crate::tiny::Tiny;
use crate::usage::Whose;
use crew::Crew;
use parent::Parent;

/// The options of `launch`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Processes a round.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 256])]
    count: Vec<usize>,
    /// Threads (tasks for tokio) that launch at the same time.
    #[arg(long, default_value_t = 16)]
    threads: usize,
    /// The program to launch: a path, a name looked up in PATH, or `tiny`, the smallest program, which exits at
    /// once. On Windows `cmd` stands for `cmd.exe /c exit`, redirected `cmd.exe /c echo hello world`.
    #[arg(long, default_value = program::DEFAULT)]
    program: String,
    /// Private 4 KiB pages that the parent has touched, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    rss: usize,
    /// Files that the parent holds open. Several numbers, as in 0,10000, are measured beside one another.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [0])]
    open_files: Vec<usize>,
    /// Only these peers: haft, std, tokio, dotnet, floor; on Linux duct, on Windows haft-inherit-all.
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
            count: vec![1, 16, 256],
            threads: 16,
            program: program::DEFAULT.into(),
            rss: 0,
            open_files: vec![0],
            peers: Vec::new(),
            rounds: 30,
            dotnet: None,
            json: None,
        }
    }
}

/// The two methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Standard,
    Redirection,
}

impl Method {
    const ALL: [Self; 2] = [Self::Standard, Self::Redirection];

    fn name(self) -> &'static str {
        match self {
            Self::Standard => "LaunchStandard",
            Self::Redirection => "LaunchWithRedirection",
        }
    }
}

/// One round's work.
struct Job {
    method: Method,
    program: PathBuf,
    arguments: &'static [&'static str],
    count: usize,
    threads: usize,
    crew: Arc<Crew>,
}

impl Job {
    fn redirects(&self) -> bool {
        self.method == Method::Redirection
    }

    /// All launches of the round by `launch`, shared by the crew's threads.
    fn share(self: &Arc<Self>, launch: fn(&Job) -> io::Result<()>) -> io::Result<()> {
        self.crew.share(self, launch)
    }
}

/// A way to launch processes.
trait Peer {
    fn name(&self) -> &'static str;

    /// Launches and waits for all processes of a round.
    fn round(&self, job: &Arc<Job>) -> io::Result<()>;
}

type Make = fn() -> Result<Box<dyn Peer>>;

/// A child that did not exit with 0 was not launched as meant.
fn succeeded(status: ::std::process::ExitStatus) -> io::Result<()> {
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the child ended with {status}"))) }
}

/// Reads to the end, into a buffer that costs nothing.
fn drain(mut from: impl io::Read) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while from.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Launches a round at least: a smaller `count` is launched several times over, each time when the last has
/// ended, or one stray interrupt would be the round.
const LEAST: usize = 16;

struct PeerRow {
    peer: Arc<dyn Peer>,
    job: Arc<Job>,
    open_files: usize,
    parent: Arc<Parent>,
    parameters: Parameters,
}

impl rounds::Row for PeerRow {
    fn label(&self) -> Label {
        Label { method: self.job.method.name(), peer: self.peer.name(), parameters: self.parameters.clone() }
    }

    fn group(&self) -> usize {
        self.open_files
    }

    fn prepare(&mut self) -> Result<()> {
        self.parent.hold_files(self.open_files)
    }

    fn round(&mut self) -> Result<Sample> {
        let times = LEAST.div_ceil(self.job.count);
        let meter = Meter::start(Whose::ProcessAndChildren);
        for _ in 0..times {
            self.peer.round(&self.job)?;
        }
        Ok(meter.stop((times * self.job.count) as u64, ::std::time::Duration::ZERO))
    }
}

fn parameters(options: &Options, count: usize, open_files: usize) -> Parameters {
    let entries: [(&str, Value); 5] = [
        ("count", json!(count)),
        ("threads", json!(options.threads)),
        ("program", json!(options.program)),
        ("rss", json!(options.rss)),
        ("open-files", json!(open_files)),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let names: Vec<&str> = here::PEERS.iter().map(|peer| peer.0).chain(["dotnet"]).collect();
    crate::check_peers(&options.peers, &names)?;
    if options.count.contains(&0) || options.threads == 0 || options.rounds == 0 {
        return Err("--count, --threads and --rounds start at 1".into());
    }
    let tiny = if options.program == "tiny" { Some(Tiny::build()?) } else { None };
    let program = match &tiny {
        Some(tiny) => tiny.path(),
        None => find(&options.program)?,
    };
    options.json.as_deref().map_or(Ok(()), json::check)?;
    println!("haft-bench launch: {}", crate::machine::describe());
    let mut notes = Vec::new();
    let parent = Arc::new(Parent::new(options.rss, options.open_files.iter().copied().max().unwrap_or(0))?);
    let crew = Arc::new(Crew::new(options.threads.min(options.count.iter().copied().max().unwrap_or(1)))?);

    let mut peers: Vec<Arc<dyn Peer>> = Vec::new();
    for (name, make) in here::PEERS {
        if crate::chosen(&options.peers, name) {
            peers.push(make()?.into());
        }
    }
    let mut rows: Vec<Box<dyn rounds::Row>> = Vec::new();
    let mut dotnet = dotnet::Dotnet::new(options, &program, &mut notes)?;
    for &open_files in &options.open_files {
        for &count in &options.count {
            for method in Method::ALL {
                let parameters = parameters(options, count, open_files);
                let threads = options.threads.min(count);
                let (program, crew) = (program.clone(), Arc::clone(&crew));
                let arguments = program::arguments(&options.program, method == Method::Redirection);
                let job = Arc::new(Job { method, program, arguments, count, threads, crew });
                for peer in &peers {
                    rows.push(Box::new(PeerRow {
                        peer: Arc::clone(peer),
                        job: Arc::clone(&job),
                        open_files,
                        parent: Arc::clone(&parent),
                        parameters: parameters.clone(),
                    }));
                }
            }
        }
    }

    let measured = rounds::run(rows, options.rounds, &mut notes, |turn, bar| dotnet.turn(turn, bar))?;
    let mut rows: Vec<Row> = measured.into_iter().map(|measured| Row::of("launch", measured)).collect();
    rows.extend(dotnet.rows(options, &mut notes));
    rows.sort_by_key(|row| {
        let number = |name: &str| row.parameters.get(name).and_then(Value::as_u64);
        (row.method, number("open-files"), number("count"))
    });
    json::fill_ratios(&mut rows, |row, base| {
        let same = |name: &str| row.parameters.get(name) == base.parameters.get(name);
        base.peer == "haft" && row.method == base.method && same("count") && same("open-files")
    });

    crate::table::print(&rows);
    crate::table::print_claims(&claims(&rows));
    for note in &notes {
        println!("{note}");
    }
    if let Some(path) = &options.json {
        json::write(path, &rows)?;
    }
    crate::check_rows(&rows)
}

/// The program as a path: every peer is given the same, so that no peer's search of PATH is measured.
fn find(program: &str) -> Result<PathBuf> {
    if program.contains(::std::path::is_separator) {
        return Ok(crate::existing(program.as_ref()).map_err(|error| format!("--program {error}"))?);
    }
    let file = program::file(program);
    let path = ::std::env::var_os("PATH").unwrap_or_default();
    ::std::env::split_paths(&path)
        .map(|folder| folder.join(&file))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("--program {program}: not found in PATH").into())
}

/// What the launch figures have to show: at 256 processes, and with many open files.
fn claims(rows: &[Row]) -> Vec<Claim> {
    let find = |method: Method, peer: &str, count: u64, open: u64| {
        rows.iter().find(|row| {
            let number = |name: &str| row.parameters.get(name).and_then(Value::as_u64);
            row.method == method.name()
                && row.peer == peer
                && number("count") == Some(count)
                && number("open-files") == Some(open)
        })
    };
    let mut claims = Vec::new();
    for method in Method::ALL {
        for (peer, limit) in here::limits(method == Method::Redirection) {
            let ours = find(method, "haft", 256, 0);
            let figure = format!("haft {} × 256 over {peer}", method.name());
            claims.extend(Claim::time(figure, ours, limit, find(method, peer, 256, 0)));
        }
        let figure = format!("haft {} × 256 with 10000 open files over without", method.name());
        let (with, without) = (find(method, "haft", 256, 10_000), find(method, "haft", 256, 0));
        claims.extend(Claim::time(figure, with, 1.25, without));
    }
    claims
}
