//! The peers on Windows.

mod claims;
mod floor;

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;

pub(super) use claims::claims;

use super::{Make, haft, haft::Executor, std as std_peer, tokio_fs, tokio_spawn_blocking};

/// For overlapped I/O, and not.
pub(super) const TWO_KINDS_OF_HANDLE: bool = true;

/// In the order of the table, under the names that `--peers` takes.
pub(super) const PEERS: &[(&str, Make)] = &[
    ("haft", |job| Ok(Box::new(haft::Sync::new(job, false)?))),
    ("haft", |job| Ok(Box::new(haft::Sync::new(job, true)?))),
    ("std", |job| Ok(Box::new(std_peer::Std::new(job)?))),
    ("floor", |job| Ok(Box::new(floor::Floor::new(job, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::BlockOn, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::BlockOn, true)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioCurrent, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioCurrent, true)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioMulti, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioMulti, true)?))),
    ("floor", |job| Ok(Box::new(floor::Floor::new(job, true)?))),
    ("tokio-fs", |job| Ok(Box::new(tokio_fs::TokioFs::new(job)?))),
    ("tokio-spawn-blocking", |job| Ok(Box::new(tokio_spawn_blocking::TokioSpawnBlocking::new(job)?))),
];

/// How haft opens the file.
pub(super) fn options(overlapped: bool) -> ::haft::fs::OpenOptions {
    let mut options = ::haft::fs::OpenOptions::new();
    options.read(true).asynchronous(overlapped);
    options
}

/// std's positioned read.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}
