//! Many handles that children of std inherit.

use std::fs::File;
use std::io;
use std::path::Path;

use super::super::inherit;
use super::super::screen::{Absent, grouped};
use super::{MANY, Program};

/// What there are many of.
pub(super) const MORE: &str = "inheritable handles";

/// The smallest program that every Windows has. One that is put together here might be taken for malicious.
pub(super) fn smallest(_: &Path) -> Option<(Program, String)> {
    Some((Program { path: "cmd.exe".into(), args: &["/c", "exit"] }, "cmd.exe /c exit".to_owned()))
}

/// Does it with many inheritable handles open.
pub(super) fn with_more<T>(measure: impl FnOnce() -> T) -> Result<T, Absent> {
    let opened: io::Result<Vec<File>> = (0..MANY).map(|_| inherit::open(Path::new("NUL"))).collect();
    opened.map(|_files| measure()).map_err(|error| format!("{} handles: {error}", grouped(MANY)))
}
