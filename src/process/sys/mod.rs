//! The systems under half A. Each backend is a folder with the same function names; the one `cfg` is here.
//!
//! What a backend gives:
//! * `launch(&Plan) -> Result<Launched, Failure>`: makes the child and returns once it runs the program;
//! * `explain(&Command, &Plan, Failure)`: the error of a failed launch, with its object;
//! * `Pid`: a child of ours, to observe and end;
//! * on Unix `Seen`, what a look at one found, and `watch(Pid)`: reaps a child that nobody waits for any more;
//! * on Windows `shell_execute(Execution)`: a launch by the shell, and `explain_shell_execute(&Command, error)`;
//! * on Windows `on_exit(&Pid, …)`: tells when it has ended;
//! * `reserve()`: takes what keeps launching flat in the number of open files;
//! * `Handle`, `AsHandle`: what the system's handles are in std;
//! * `null(Use)`, `pipe(Use, overlapped)`, `duplicate(handle)`: handles for a child that no other child gets;
//! * `Source`, `standard(Stream)`, `source(&Handle)`: where a standard handle of the child comes from;
//! * `has_other_end(handle)`: what a handle is;
//! * `ReadEnd`, `WriteEnd`: the parent's ends of pipes; `is_overlapped(&end)`; `drain_both(…)`: reads two of them at once.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(any(target_os = "linux", windows)))]
compile_error!(
    "haft::process has no backend for this system yet; build with `--no-default-features --features fs`"
);

pub(crate) mod force;

use super::error::Step;

/// What a launcher reports: the step, the element that it was at (a candidate, a descriptor), and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) index: usize,
    pub(crate) os: Os,
}

/// Which way a child uses a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Reads,
    Writes,
}

/// The system's reason for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Os {
    /// A call was refused with this number.
    Errno(i32),
    /// The child died of this signal before it executed the program.
    #[cfg(unix)]
    Killed(i32),
}
