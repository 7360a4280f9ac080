//! The place where the poller of an operation leaves its waker and the completer takes it from.
//!
//! One poller and its takers (the completer, and the future that goes away) meet here without a lock. The state word:
//!
//! | bits | meaning |
//! |---|---|
//! | `IDLE` | nobody touches the waker |
//! | `REGISTERING` | the poller is writing it |
//! | `TAKING` | the taker is reading it, or came while the poller was writing and left the wake-up to it |
//!
//! A poller that has registered must look at the operation's state once more before it sleeps: the taker may
//! have come before the waker was there.

use crate::sync::{
    UnsafeCell,
    atomic::{AtomicUsize, Ordering::*},
};
use std::task::Waker;

const IDLE: usize = 0;
const REGISTERING: usize = 1;
const TAKING: usize = 2;

pub(crate) struct WakerSlot {
    state: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is touched only by the one thread that moved `state` from IDLE, as the module says.
unsafe impl Sync for WakerSlot {}
// SAFETY: a Waker is Send, and nothing here is tied to a thread.
unsafe impl Send for WakerSlot {}

impl WakerSlot {
    pub(crate) fn new() -> WakerSlot {
        WakerSlot { state: AtomicUsize::new(IDLE), waker: UnsafeCell::new(None) }
    }

    /// Leaves `waker` for the taker. Called by one thread at a time, the one that polls.
    ///
    /// If the taker is here at this moment, `waker` is woken instead.
    pub(crate) fn register(&self, waker: &Waker) {
        // Foreign code, which may panic, before the state is touched.
        let waker = waker.clone();
        if self.state.compare_exchange(IDLE, REGISTERING, Acquire, Acquire).is_err() {
            // Only the taker can be here: it takes what an earlier poll left, so this poll must be told.
            waker.wake();
            return;
        }
        // SAFETY: REGISTERING keeps the taker out.
        let old = self.waker.with_mut(|slot| unsafe { (*slot).replace(waker) });
        if self.state.compare_exchange(REGISTERING, IDLE, Release, Relaxed).is_err() {
            // The taker came meanwhile and left. Wake in its stead; the poll that follows sees what the taker did,
            // as its own registration reads what follows the taker's mark.
            // SAFETY: the state is REGISTERING | TAKING; the taker does not touch the waker then.
            let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
            self.state.swap(IDLE, Release);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        drop(old);
    }

    /// Whether nothing is registered. For models, where nobody else is here.
    #[cfg(all(test, loom))]
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: the caller is alone with the slot.
        self.waker.with(|slot| unsafe { (*slot).is_none() })
    }

    /// Takes what was registered. `None` when nothing was, when another takes it at this moment, or when a
    /// registration is under way: that one then wakes its waker itself.
    pub(crate) fn take(&self) -> Option<Waker> {
        if self.state.fetch_or(TAKING, AcqRel) != IDLE {
            return None;
        }
        // SAFETY: the state was IDLE and is TAKING, which keeps the poller out.
        let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
        // A read-modify-write, though a store would do: loom places a store after another thread's read-modify-
        // write that it in truth comes before.
        self.state.swap(IDLE, Release);
        waker
    }
}
