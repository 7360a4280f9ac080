//! Where a step stands that the system carries on by itself, between the thread that began it and the thread that hears
//! of its end. The end may be heard of before the call that began the step has returned, and whoever comes second of
//! the two goes on with the operation: until then the other may still look at the cell.
//!
//! The system may have noted the end by the time the call returns, and tell of it later. Then the thread that made the call
//! ends the operation, and who hears of it has only the cell to let go.
//!
//! | bit | meaning |
//! |---|---|
//! | `DIRECT` | the system carries this operation |
//! | `ISSUED` | the call that began the step has returned |
//! | `ARRIVED` | the step's end has been heard of |
//! | `CANCELLED` | the future goes away: no further step begins |
//! | `ENDED` | the operation was ended by the thread that made the call |

use crate::sync::atomic::{AtomicU32, Ordering::*, fence};

const DIRECT: u32 = 1;
const ISSUED: u32 = 1 << 1;
const ARRIVED: u32 = 1 << 2;
const CANCELLED: u32 = 1 << 3;
const ENDED: u32 = 1 << 4;

/// A step's end is heard of. What that means to who hears of it.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(any(windows, all(test, loom))), allow(dead_code, reason = "nothing is begun"))]
pub(super) enum Arrival {
    /// The call that began the step has not returned. Its caller goes on.
    First,
    /// It is for this thread to go on.
    Second,
    /// The operation has ended: only the cell is to be let go.
    Late,
}

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

    /// The call that began a step has returned, and its caller has ended the operation. Whether the step's end has been
    /// heard of: then the caller lets the cell go, and else who hears of it, after all that the caller did.
    pub(super) fn issued_and_ended(&self) -> bool {
        self.0.fetch_or(ISSUED | ENDED, Release) & ARRIVED != 0
    }

    /// A step's end is heard of.
    #[cfg_attr(not(any(windows, all(test, loom))), allow(dead_code, reason = "nothing is begun"))]
    pub(super) fn arrived(&self) -> Arrival {
        match self.0.fetch_or(ARRIVED, AcqRel) & (ISSUED | ENDED) {
            0 => Arrival::First,
            ISSUED => Arrival::Second,
            _ => Arrival::Late,
        }
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
