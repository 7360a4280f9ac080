//! The descriptors, as the kernel lists them.

use std::fs;
use std::io;

const FOLDER: &str = "/proc/self/fd";

pub(super) fn open_handles() -> io::Result<Vec<(usize, String)>> {
    let explain =
        |error: io::Error| io::Error::new(error.kind(), format!("{FOLDER} cannot be read: {error}"));
    let mut numbers = Vec::new();
    for entry in fs::read_dir(FOLDER).map_err(explain)? {
        numbers
            .extend(entry.map_err(explain)?.file_name().to_str().and_then(|name| name.parse::<usize>().ok()));
    }
    numbers.sort_unstable();
    // One of them was the folder itself, which is closed by now.
    let seen =
        |number| Some((number, fs::read_link(format!("{FOLDER}/{number}")).ok()?.display().to_string()));
    Ok(numbers.into_iter().filter_map(seen).collect())
}
