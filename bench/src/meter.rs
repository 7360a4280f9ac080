//! One round's measurement: time, processor time, context switches and allocations between two points.

use std::time::{Duration, Instant};

use crate::alloc::Allocated;
use crate::usage::{Usage, Whose};

/// What one round of one row cost, all operations together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ops: u64,
    pub(crate) wall_ns: f64,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) switches: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) allocations: u64,
}

/// A running measurement. The clock is read last at the start and first at the end.
pub(crate) struct Meter {
    whose: Whose,
    allocated: Allocated,
    usage: Usage,
    begun: Instant,
}

impl Meter {
    pub(crate) fn start(whose: Whose) -> Self {
        let usage = Usage::so_far(whose);
        let allocated = Allocated::so_far();
        Self { whose, allocated, usage, begun: Instant::now() }
    }

    /// Ends the measurement of `ops` operations; `idle` is time within it that belongs to none of them.
    pub(crate) fn stop(self, ops: u64, idle: Duration) -> Sample {
        let wall = self.begun.elapsed().saturating_sub(idle);
        let allocated = Allocated::so_far();
        let usage = Usage::so_far(self.whose).since(self.usage);
        Sample {
            ops,
            wall_ns: wall.as_nanos() as f64,
            cpu_ns: usage.cpu_ns,
            switches: usage.switches,
            bytes: allocated.bytes - self.allocated.bytes,
            allocations: allocated.allocations - self.allocated.allocations,
        }
    }
}
