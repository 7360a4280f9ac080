//! haft-bench: the headline benchmarks of haft beside its peers, interleaved round by round in one run.
//!
//! `launch` starts processes, `read` reads a file in small pieces, `poll` looks at how long a poll takes when
//! the operating system does not answer. Without a subcommand: a quick pass of `launch` and `read`.

#[cfg(not(target_os = "linux"))]
compile_error!("haft-bench runs on Linux so far");

mod alloc;
mod block_on;
mod busy;
mod claims;
mod dotnet;
mod json;
mod launch;
mod machine;
mod meter;
mod poll;
mod read;
mod rounds;
mod stats;
mod table;
mod tiny;
mod usage;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Poll(poll::Options),
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
        Some(Benchmark::Poll(options)) => poll::run(&options),
        Some(Benchmark::Spin { cpu, parent }) => busy::spin(cpu, parent),
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
