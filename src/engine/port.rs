//! The one place that picks how the system carries operations on by itself, if it does.

#[cfg(windows)]
pub(super) use super::iocp::{AT_ONCE, InFlight, Port, in_flight};
#[cfg(not(any(windows, all(test, loom))))]
pub(super) use super::no_port::{AT_ONCE, InFlight, Port, in_flight};
#[cfg(all(test, loom))]
pub(super) use super::scripted::{AT_ONCE, InFlight, Port, in_flight};

use crate::fs::sys::Errno;

/// What became of a step that was begun.
#[cfg_attr(not(any(windows, all(test, loom))), allow(dead_code, reason = "nothing is begun"))]
pub(super) enum Begun {
    /// It ended at once, and nobody will be told.
    Ended(Result<usize, Errno>),
    /// Its end will be told, or has been.
    Pending,
}
