//! Which handles a child gets besides its three standard ones.

use std::fmt;
#[cfg(unix)]
use std::os::fd::RawFd;

/// Which of the parent's handles a child gets.
///
/// ```
/// use haft::process::{Command, Inherit};
///
/// // As std does it: whatever is inheritable reaches the child.
/// # if cfg!(windows) { return Ok(()) } // there the programs have other names
/// let status = Command::new("true").inherit(Inherit::All).status()?;
/// assert!(status.success());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// The standard handles and those that were [passed](crate::process::Command::pass), whatever flags the
    /// parent's others have. The default.
    #[default]
    Named,
    /// Besides, every handle that is inheritable: on Unix each descriptor without the close-on-exec flag, on Windows each
    /// handle with `HANDLE_FLAG_INHERIT`. What other threads have open at that moment is a matter of luck, but what
    /// haft makes inheritable for another launch is not among it.
    All,
}

/// A handle that was [passed](crate::process::Command::pass) to a child, as the child will see it.
///
/// It displays as the number to put on the child's command line or in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    #[cfg(unix)]
    pub(crate) number: RawFd,
    #[cfg(windows)]
    pub(crate) value: usize,
}

impl Passed {
    /// The number of the descriptor in the child.
    #[cfg(unix)]
    pub fn number(self) -> RawFd {
        self.number
    }

    /// The value of the handle, or socket, in the child.
    #[cfg(windows)]
    pub fn value(self) -> usize {
        self.value
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(unix)]
        return self.number.fmt(f);
        #[cfg(windows)]
        return self.value.fmt(f);
    }
}
