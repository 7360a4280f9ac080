//! haft-bench: the headline benchmarks of haft beside its peers, interleaved round by round in one run.
//!
//! `launch` starts processes, `read` reads a file in small pieces, `poll` looks at how long a poll takes when
//! the operating system does not answer, `lock` at the lock around the start of a process. Without a
//! subcommand: a quick pass of `launch` and `read`.

mod alloc;
mod block_on;
mod busy;
mod claims;
mod dotnet;
mod json;
mod launch;
mod lock;
mod meter;
#[cfg(target_os = "linux")]
mod poll;
mod read;
mod rounds;
mod stats;
mod sys;
mod table;
mod usage;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use sys::{cpus, machine, tiny};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(name = "haft-bench", about = "The headline benchmarks of haft beside its peers", version)]
struct Arguments {
    /// Without one: a quick pass of launch and read, in under a minute.
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Launch processes: LaunchStandard and LaunchWithRedirection.
    Launch(launch::Options),
    /// Read a file in small pieces, one after another: SyncRead and AsyncRead.
    Read(read::Options),
    /// How long one poll takes while a worker is stalled, and what a cold file does to other tasks.
    #[cfg(target_os = "linux")]
    Poll(poll::Options),
    /// The lock around the start of a process: entries per second, and the longest wait in turns.
    Lock(lock::Options),
    /// Spin on one CPU until the parent ends (what --busy starts).
    #[command(hide = true)]
    Spin {
        #[arg(long)]
        cpu: usize,
        #[arg(long)]
        parent: u32,
    },
}

fn main() -> ExitCode {
    let run = match Arguments::parse().benchmark {
        None => launch::run(&launch::Options::quick()).and_then(|()| {
            println!();
            read::run(&read::Options::quick())
        }),
        Some(Benchmark::Launch(options)) => launch::run(&options),
        Some(Benchmark::Read(options)) => read::run(&options),
        #[cfg(target_os = "linux")]
        Some(Benchmark::Poll(options)) => poll::run(&options),
        Some(Benchmark::Lock(options)) => lock::run(&options),
        Some(Benchmark::Spin { cpu, parent }) => cpus::spin(cpu, parent),
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("haft-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A folder for the files of one run, beside the executable: that is a disk and may execute, which the
/// system's folder for temporary files often is not and may not.
fn scratch_folder() -> Result<tempfile::TempDir> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let named = tempfile::Builder::new().prefix("haft-bench-").to_owned();
    match beside.map(|folder| named.tempdir_in(folder)) {
        Some(Ok(folder)) => Ok(folder),
        _ => Ok(named.tempdir()?),
    }
}

/// The path of a file that is there, whatever the working directory. Not the canonical one: on Windows many programs
/// cannot use that.
fn existing(path: &Path) -> std::result::Result<PathBuf, String> {
    let there = path.metadata().and_then(|_| std::path::absolute(path));
    there.map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether `--peers` (empty: all of them) names `peer`.
fn chosen(peers: &[String], peer: &str) -> bool {
    peers.is_empty() || peers.iter().any(|name| name == peer)
}

/// The names that `--peers` takes for a benchmark.
fn check_peers(peers: &[String], known: &[&str]) -> Result<()> {
    match peers.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => Err(format!("--peers: no peer {unknown:?}; there are {}", known.join(", ")).into()),
    }
}

/// A run that measured nothing did not work.
fn check_rows(rows: &[json::Row]) -> Result<()> {
    if rows.is_empty() { Err("nothing could be measured".into()) } else { Ok(()) }
}
