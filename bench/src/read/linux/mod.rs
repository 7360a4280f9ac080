//! The peers on Linux.

mod claims;
mod compio;
mod floor_nowait;
mod monoio;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(super) use claims::claims;

use super::{Make, haft, haft::Executor, std as std_peer, tokio_fs, tokio_spawn_blocking};

/// One kind serves the sync and the async methods alike.
pub(super) const TWO_KINDS_OF_HANDLE: bool = false;

/// In the order of the table, under the names that `--peers` takes.
pub(super) const PEERS: &[(&str, Make)] = &[
    ("haft", |job| Ok(Box::new(haft::Sync::new(job, false)?))),
    ("std", |job| Ok(Box::new(std_peer::Std::new(job)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::BlockOn, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioCurrent, false)?))),
    ("haft", |job| Ok(Box::new(haft::Async::new(job, Executor::TokioMulti, false)?))),
    ("floor-nowait", |job| Ok(Box::new(floor_nowait::FloorNowait::new(job)?))),
    ("tokio-fs", |job| Ok(Box::new(tokio_fs::TokioFs::new(job)?))),
    ("tokio-spawn-blocking", |job| Ok(Box::new(tokio_spawn_blocking::TokioSpawnBlocking::new(job)?))),
    ("compio", |job| Ok(Box::new(compio::Compio::new(job)?))),
    ("monoio", |job| Ok(Box::new(monoio::Monoio::new(job)?))),
];

/// How haft opens the file.
pub(super) fn options(_overlapped: bool) -> ::haft::fs::OpenOptions {
    let mut options = ::haft::fs::OpenOptions::new();
    options.read(true);
    options
}

/// std's positioned read.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}
