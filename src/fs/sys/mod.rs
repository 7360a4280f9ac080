//! The system calls on files, one function each, with the same names on every system.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(not(unix))]
compile_error!("haft::fs has no backend for this system yet; build without the feature `fs`");
