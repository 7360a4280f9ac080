//! What the program does when the tour launches it as a child.

use std::fs;
use std::io::{self, Write};

/// The hidden subcommand that prints the descriptors.
pub(crate) const DESCRIPTORS: &str = "child-descriptors";
/// The hidden subcommand that exits at once.
pub(crate) const EXIT: &str = "child-exit";

const FOLDER: &str = "/proc/self/fd";

/// Prints a line for each open descriptor: its number, a space, and what it is open on.
pub(crate) fn print_descriptors() -> io::Result<()> {
    let explain =
        |error: io::Error| io::Error::new(error.kind(), format!("{FOLDER} cannot be read: {error}"));
    let mut numbers = Vec::new();
    for entry in fs::read_dir(FOLDER).map_err(explain)? {
        numbers
            .extend(entry.map_err(explain)?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    numbers.sort_unstable();
    let mut out = io::stdout().lock();
    for number in numbers {
        // One of them was the folder itself, which is closed by now.
        if let Ok(target) = fs::read_link(format!("{FOLDER}/{number}")) {
            writeln!(out, "{number} {}", target.display())?;
        }
    }
    out.flush()
}
