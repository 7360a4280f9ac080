//! One handle for all, and reads that are tried from memory.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haft::engine::Engine;
use haft::fs::{File, OpenOptions};

/// What to call std's way of reading at an offset.
pub(super) const STD_READ: &str = "std   read_at";

/// What so many percent of the reads did.
pub(super) const INLINE: &str = "of the async reads were answered from memory, on the calling thread";

#[inline]
pub(super) fn std_read(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

/// The file for sync reads and for async ones: the same.
pub(super) fn open(path: &Path, engine: &Engine) -> io::Result<[File; 2]> {
    let file = OpenOptions::new().read(true).engine(engine).open(path)?;
    Ok([file.clone(), file])
}
