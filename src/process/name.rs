//! The name of an environment variable, compared as the system does it.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};

/// A variable's name. Its order is the system's: byte by byte on Unix, without regard to case on Windows.
#[derive(Clone)]
pub(crate) struct Name(OsString);

impl Name {
    pub(crate) fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// Whether the child gets this variable of the parent's even where it gets none else.
    pub(crate) fn outlives_clear(&self) -> bool {
        cfg!(windows) && *self == Name::from(OsStr::new("SystemRoot"))
    }
}

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Name {
        Name(name.to_owned())
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(unix)]
impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(windows)]
impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        use crate::windows::wide;
        super::plan::environment::compare_names(&wide(&self.0), &wide(&other.0))
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
