//! What `--program` means here.

use std::path::PathBuf;

/// Without the option: the headline benchmark's.
pub(crate) const DEFAULT: &str = "cmd";

/// The arguments that a program of this name is launched with.
pub(crate) fn arguments(program: &str, redirected: bool) -> &'static [&'static str] {
    match (program, redirected) {
        ("cmd", false) => &["/c", "exit"],
        ("cmd", true) => &["/c", "echo", "hello", "world"],
        _ => &[],
    }
}

/// The file that a program of this name is in.
pub(crate) fn file(program: &str) -> PathBuf {
    let file = PathBuf::from(program);
    if file.extension().is_some() { file } else { file.with_extension("exe") }
}
