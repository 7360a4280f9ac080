//! What the program does when the tour launches it as a child.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::open_handles;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows::open_handles;

use std::io::{self, Write};

/// The hidden subcommand that prints the handles.
pub(crate) const HANDLES: &str = "child-handles";
/// The hidden subcommand that exits at once.
pub(crate) const EXIT: &str = "child-exit";

/// Prints a line for each open handle: its number, a space, and what it is open on. The standard ones are 0, 1 and 2.
pub(crate) fn print_handles() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (number, target) in open_handles()? {
        writeln!(out, "{number} {target}")?;
    }
    out.flush()
}
