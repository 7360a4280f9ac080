//! What `--program` means here.

use std::path::PathBuf;

/// Without the option.
pub(crate) const DEFAULT: &str = "tiny";

/// The arguments that a program of this name is launched with.
pub(crate) fn arguments(_program: &str, _redirected: bool) -> &'static [&'static str] {
    &[]
}

/// The file that a program of this name is in.
pub(crate) fn file(program: &str) -> PathBuf {
    program.into()
}
