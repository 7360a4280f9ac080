//! A handle with the inherit flag.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

/// What makes it reach children.
pub(super) const HOW: &str = "inheritable";

/// What to call standard input, output and error.
pub(super) const STANDARD: [&str; 3] = ["in", "out", "err"];

/// Opens it as a C library might: inheritable, which Rust's own `open` never makes it.
pub(in crate::tour) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    // SAFETY: changes a flag of an open handle.
    let done =
        unsafe { SetHandleInformation(file.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

/// The value that it has here, and in whatever child it reaches by itself.
pub(super) fn number(file: &File) -> usize {
    file.as_raw_handle() as usize
}
