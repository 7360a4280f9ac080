//! The system calls on files, one function each, with the same names on every system.

#[cfg(target_os = "linux")]
mod unix;
#[cfg(target_os = "linux")]
pub(crate) use unix::*;

#[cfg(not(target_os = "linux"))]
compile_error!("haft::fs has no backend for this system yet; build without the feature `fs`");
