//! The attempt to read on the calling thread, from memory alone.
//!
//! A task whose operations all end at once never waits, and would keep its executor to itself. So now and then one
//! yields before it is tried: after [`BUDGET`] of up to a page, fewer of larger ones.

#[cfg(not(target_os = "linux"))]
mod never;
#[cfg(target_os = "linux")]
mod nowait;

#[cfg(not(target_os = "linux"))]
pub(crate) use never::attempt;
#[cfg(target_os = "linux")]
pub(crate) use nowait::attempt;

use super::{Block, Outcome};
use std::sync::atomic::Ordering::Relaxed;

/// Do not try, in the terms of [`Traits::inline`](super::Traits).
pub(crate) const NEVER: u8 = 2;

/// Work on the calling thread between two yields: an operation costs 1, and 1 more for every page. At 0.3 µs a hit
/// that is about 80 µs.
const BUDGET: u32 = 256;
const PAGE: usize = 4096;

/// How an attempt went.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux attempts"))]
pub(crate) enum Attempt {
    /// The operation is done.
    Done(Outcome),
    /// The task has had its share: wake it, and try at the next poll.
    Yield,
    /// A carrier has to do it, or what is left of it.
    HandOn,
}

/// Takes an operation of `len` bytes off the calling thread's share; false once the share is used up, and then it is
/// given a new one.
#[inline(always)]
pub(crate) fn spend(block: Option<&Block>, len: usize) -> bool {
    if let Some(block) = block {
        let spent = block.spent.load(Relaxed);
        if spent >= BUDGET {
            block.spent.store(0, Relaxed);
            return false;
        }
        block.spent.store(spent + 1 + (len / PAGE) as u32, Relaxed);
    }
    true
}
