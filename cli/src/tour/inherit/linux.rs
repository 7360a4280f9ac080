//! A descriptor without close-on-exec.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::io::FdFlags;

/// What makes it reach children.
pub(super) const HOW: &str = "without close-on-exec";

/// What to call standard input, output and error.
pub(super) const STANDARD: [&str; 3] = ["0", "1", "2"];

/// Opens it as a C library might: without close-on-exec, which Rust's own `open` always sets.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}

/// The number that it has here, and in whatever child it reaches by itself.
pub(super) fn number(file: &File) -> usize {
    file.as_raw_fd() as usize
}
