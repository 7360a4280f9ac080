//! haft.
#![warn(rust_2018_idioms)]
#[cfg(feature = "fs")]
pub mod engine;
#[cfg(any(feature = "fs", feature = "process"))]
mod force;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "process")]
pub mod process;
#[cfg(any(feature = "fs", feature = "process"))]
#[cfg_attr(not(feature = "fs"), allow(dead_code, unused_imports))]
mod sync;
