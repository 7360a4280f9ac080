//! The system calls on files, one function each, with the same names on every system.

#[cfg(target_os = "linux")]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(any(target_os = "linux", windows)))]
compile_error!("haft::fs has no backend for this system yet; build without the feature `fs`");
