//! [`Usage`]: what a process has used.

use std::time::Duration;

/// What a process has used of the machine, from [`Child::wait_with_usage`](crate::process::Child::wait_with_usage).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the system, for the program.
    pub system: Duration,
    /// The most memory that it had at one time, in bytes.
    pub peak_memory: u64,
}
