//! Which handles a child gets besides its three standard ones.

use std::fmt;
use std::os::fd::RawFd;

/// Which of the parent's handles a child gets.
///
/// ```
/// use haft::process::{Command, Inherit};
///
/// // As std does it: whatever is not marked close-on-exec reaches the child.
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
    /// Besides, every handle that is inheritable: on Unix each descriptor without the close-on-exec flag. What
    /// other threads have open at that moment is a matter of luck.
    All,
}

/// A handle that was [passed](crate::process::Command::pass) to a child, as the child will see it.
///
/// It displays as the number to put on the child's command line or in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    pub(crate) number: RawFd,
}

impl Passed {
    /// The number of the descriptor in the child.
    pub fn number(self) -> RawFd {
        self.number
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
