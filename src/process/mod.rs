//! Half A: launching processes that inherit exactly the handles you name.
//!
//! [`Command`], [`Child`] and [`Stdio`] carry the names, signatures and meaning of [`std::process`], so that changing
//! the import is a beginning; [`ExitStatus`] and [`Output`] are std's. Not there yet is what std has for Unix alone, in
//! its `CommandExt`: `pre_exec`, `exec`, `arg0`, `uid`, `gid`, `groups` and `process_group`. What it has for Windows are methods
//! of the types themselves, but for what is not stable there (`force_quotes`, attributes of the caller's own). What haft does differently:
//!
//! * **A child gets its standard handles and nothing else**, whatever flags the parent's descriptors have.
//!   [`Command::pass`] adds to them; [`Command::inherit`] with [`Inherit::All`] is what std does. So `make`'s
//!   jobserver, `LISTEN_FDS` and the like have to be passed.
//! * **A launch costs the same in a small program and in a large one**: nothing is copied that grows with the
//!   parent's memory, and nothing that grows with its open files (see [`reserve`]). Launches from many threads do
//!   not wait for each other.
//! * **Errors name the step and its object**: [`LaunchError::of`]. [`raw_os_error`](std::io::Error::raw_os_error) of
//!   a failed launch is `None`; the number is in [`LaunchError::errno`].
//! * **A dropped [`Child`] leaves no zombie.** Code that waits by number (`waitpid`) finds it gone; keep the `Child`.
//! * **A [`Command`] drops the pipes and sockets that it holds after a successful launch**, so that whoever reads
//!   the other end sees the end. A second launch with them is `InvalidInput`; files and devices stay.
//! * **No shell is tried** for a file that the kernel cannot execute (`ENOEXEC`), as `execvp` would.
//! * **`SystemRoot` outlives [`env_clear`](Command::env_clear)** on Windows, unless it is set or removed by name: without it
//!   most programs fail there. A variable's name with an equals sign in it, which would become another name, is
//!   `InvalidInput`.
//! * **Other ways to launch**: [`shell_open`](Command::shell_open) has the desktop open a document or an address; on
//!   Windows `user_name`, `domain` and `password` launch as another user.
//! * **An overlapped pipe as a standard handle works** on Windows: a thread carries over what passes, as in std, also for
//!   pipes of other origin.
//!
//! ```
//! use haft::process::Command;
//!
//! # #[cfg(target_os = "linux")] {
//! let secret = std::fs::File::open("/dev/null")?;
//! let mut command = Command::new("ls");
//! command.arg("/proc/self/fd");
//! assert_eq!(command.output()?.stdout, b"0\n1\n2\n3\n"); // 3 is the directory that ls reads
//!
//! // Hand one over.
//! let number = command.pass(&secret)?;
//! let listed = String::from_utf8(command.output()?.stdout).unwrap();
//! assert!(listed.lines().any(|line| line == number.to_string()));
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Systems
//! * Linux, from 4.x on; each newer facility (`clone3`, `close_range`, pidfds) has a fallback where a kernel lacks it or
//!   a sandbox refuses it.
//! * Windows, from 10 on. A child gets its standard handles and those that were passed by a list
//!   (`PROC_THREAD_ATTRIBUTE_HANDLE_LIST`). Launches that must not overlap are kept apart by a
//!   [lock](crate::room_lock) that others go through together; what is outside of haft does not know of it.

mod child;
mod command;
mod error;
mod inherit;
mod name;
mod plan;
#[cfg(windows)]
#[allow(clippy::module_inception, reason = "it is named after its type")]
mod process;
mod stdio;
mod sys;
#[cfg(windows)]
mod usage;
#[cfg(windows)]
mod wait;

pub use std::process::{ExitCode, ExitStatus, Output, Termination, abort, exit, id};

pub use child::Child;
#[cfg(windows)]
pub use command::Pass;
pub use command::{Command, CommandArgs, CommandEnvs, WindowStyle};
pub use error::{LaunchError, Object, Step, Stream};
pub use inherit::{Inherit, Passed};
#[cfg(windows)]
pub use process::Process;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout, Stdio};

#[cfg(windows)]
pub use usage::Usage;

/// Takes 64 low descriptor numbers now, so that launches stay as cheap with thousands of open files as with a few.
///
/// The first launch does it by itself where the soft `RLIMIT_NOFILE` is above 4,096. Call it early, before many
/// files are open: only numbers below 1,024 are taken. They belong to one empty `memfd`, with close-on-exec; a
/// child never sees them. Calling it again does nothing.
///
/// # Errors
/// What `memfd_create` or `fcntl` says; "too many open files" also if every number below 1,024 is in use. Launches
/// work all the same.
///
/// ```
/// haft::process::reserve()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # References
/// * [`memfd_create(2)`](https://man7.org/linux/man-pages/man2/memfd_create.2.html),
///   [`close_range(2)`](https://man7.org/linux/man-pages/man2/close_range.2.html)
pub fn reserve() -> std::io::Result<()> {
    sys::reserve()
}
