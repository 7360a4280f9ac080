//! A launch resolved to pure data: nothing here calls the system, so all of it is tested as data, the plans for Windows
//! on every system.

#[cfg(unix)]
mod unix;
#[cfg(any(windows, test))]
#[cfg_attr(not(windows), allow(dead_code))]
pub(crate) mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
