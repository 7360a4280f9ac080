//! The systems under half A. Each backend is a folder with the same function names; the one `cfg` is here.
//!
//! What a backend gives:
//! * `launch(&Plan) -> Result<Launched, Failure>`: makes the child and returns once it runs the program;
//! * `Pid`: a child of ours, to observe, reap and signal;
//! * `watch(Pid)`: reaps a child that nobody waits for any more;
//! * `reserve()`: takes what keeps launching flat in the number of open files;
//! * `null(Use)`, `pipe(Use)`, `duplicate(handle)`: handles for a child that no other child gets;
//! * `has_other_end(handle)`, `same_file(handle, handle)`: what a handle is;
//! * `drain_both(…)`: reads two pipes at once.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Launched, Pid, Seen, Use, drain_both, duplicate, has_other_end, launch, null, pipe, reserve, same_file,
    watch,
};

#[cfg(not(target_os = "linux"))]
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

/// The system's reason for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Os {
    /// A call was refused with this number.
    Errno(i32),
    /// The child died of this signal before it executed the program.
    Killed(i32),
}
