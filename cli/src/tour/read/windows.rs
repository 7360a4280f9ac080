//! A plain handle for sync reads, and an overlapped one for async reads.

use std::io;
use std::os::windows::fs::FileExt;
use std::path::Path;

use haft::engine::Engine;
use haft::fs::{File, OpenOptions};

/// What to call std's way of reading at an offset.
pub(super) const STD_READ: &str = "std   seek_read";

/// What so many percent of the reads did.
pub(super) const INLINE: &str = "of the async reads, on an overlapped handle, ended within the call";

#[inline]
pub(super) fn std_read(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

/// The file for sync reads and the one for async reads.
pub(super) fn open(path: &Path, engine: &Engine) -> io::Result<[File; 2]> {
    let mut options = OpenOptions::new();
    options.read(true).engine(engine);
    Ok([options.open(path)?, options.asynchronous(true).open(path)?])
}
