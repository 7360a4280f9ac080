//! Where a step stands that the system carries on by itself, between the thread that began it and the thread that hears
//! of its end. The end may be heard of before the call that began the step has returned, and whoever comes second of
//! the two goes on with the operation: until then the other may still look at the cell.
//!
//! | bit | meaning |
//! |---|---|
//! | `DIRECT` | the system carries this operation |
//! | `ISSUED` | the call that began the step has returned |
//! | `ARRIVED` | the step's end has been heard of |
//! | `CANCELLED` | the future goes away: no further step begins |

use crate::sync::atomic::{AtomicU32, Ordering::*, fence};

const DIRECT: u32 = 1;
const ISSUED: u32 = 1 << 1;
const ARRIVED: u32 = 1 << 2;
const CANCELLED: u32 = 1 << 3;

pub(crate) struct Course(AtomicU32);

impl Course {
    pub(super) fn new() -> Course {
        Course(AtomicU32::new(0))
    }

    /// The system does not carry this operation, or no longer. Called by who has the cell alone.
    pub(super) fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// The system carries this operation. Called by who has the cell alone.
    pub(super) fn enter(&self) {
        self.0.store(DIRECT, Relaxed);
    }

    pub(super) fn is_direct(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// A step is about to begin.
    pub(super) fn begin(&self) {
        self.0.fetch_and(!(ISSUED | ARRIVED), Relaxed);
    }

    /// The call that began a step has returned. Whether its end has been heard of: then the caller goes on.
    pub(super) fn issued(&self) -> bool {
        self.0.fetch_or(ISSUED, AcqRel) & ARRIVED != 0
    }

    /// A step's end is heard of. Whether the call that began it has returned: then the caller goes on.
    #[cfg_attr(not(any(windows, all(test, loom))), allow(dead_code, reason = "nothing is begun"))]
    pub(super) fn arrived(&self) -> bool {
        self.0.fetch_or(ARRIVED, AcqRel) & ISSUED != 0
    }

    /// No further step is to begin. The caller then cancels the one that is under way, if there is one. Of this and of
    /// [`is_cancelled_by_now`](Course::is_cancelled_by_now) after a step has begun, one sees the other.
    pub(super) fn cancel(&self) {
        self.0.fetch_or(CANCELLED, Relaxed);
        fence(SeqCst);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed) & CANCELLED != 0
    }

    /// After a step has begun: whether it was too late for who cancelled to find it.
    pub(super) fn is_cancelled_by_now(&self) -> bool {
        fence(SeqCst);
        self.is_cancelled()
    }
}
