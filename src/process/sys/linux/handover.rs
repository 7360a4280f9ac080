//! How values get from many threads to one that may not run yet.
//!
//! A list that is pushed to and emptied with one compare-exchange or swap each, and a word that says whose thread
//! takes from it. No lock, so that a fork at any moment leaves nothing locked in the child process; there the word
//! names another process, and a thread is started anew.

use std::ptr;

use crate::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

pub(super) struct Handover<T> {
    /// The value pushed last.
    head: AtomicPtr<Node<T>>,
    /// The process whose taker runs; its negative while one is being started there; 0 if there is none.
    owner: AtomicI32,
    /// What wakes the taker. Valid once `owner` says that it runs.
    bell: AtomicI32,
}

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// What whoever has pushed is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knock {
    /// The taker runs and may sleep: ring this bell.
    Wake(i32),
    /// There is no taker, and it is up to the caller to start one or say [`not_started`](Handover::not_started).
    Start,
    /// A taker is being started and has not looked yet.
    Leave,
}

impl<T: Send> Handover<T> {
    pub(super) fn new() -> Handover<T> {
        Handover { head: AtomicPtr::new(ptr::null_mut()), owner: AtomicI32::new(0), bell: AtomicI32::new(-1) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Adds a value; [`knock`](Handover::knock) comes next.
    pub(super) fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: ours until the exchange succeeds.
            unsafe { (*node).next = head };
            // Release hands the node over. Acquire is for `knock`.
            match self.head.compare_exchange_weak(head, node, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Tells what is to be done so that what was pushed gets taken, in the process `me`.
    ///
    /// It can be left to a taker that is being started: that one has not emptied the list yet. Had it, the push
    /// would have come after its swap, would have acquired what it did before, and this would see that it runs.
    pub(super) fn knock(&self, me: i32) -> Knock {
        let owner = self.owner.load(Ordering::Acquire);
        if owner == me {
            return Knock::Wake(self.bell.load(Ordering::Relaxed));
        }
        if owner == -me {
            return Knock::Leave;
        }
        match self.owner.compare_exchange(owner, -me, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => Knock::Start,
            Err(now) if now == me => Knock::Wake(self.bell.load(Ordering::Relaxed)),
            Err(_) => Knock::Leave,
        }
    }

    /// The taker runs; it calls this before it first takes.
    pub(super) fn runs(&self, me: i32, bell: i32) {
        self.bell.store(bell, Ordering::Relaxed);
        self.owner.store(me, Ordering::Release);
    }

    /// The taker could not be started; the next that knocks tries again.
    pub(super) fn not_started(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Takes everything; the last pushed comes first.
    pub(super) fn take_all(&self, mut each: impl FnMut(T)) {
        // Acquire takes the nodes over, release is for `knock`.
        let mut node = self.head.swap(ptr::null_mut(), Ordering::AcqRel);
        while !node.is_null() {
            // SAFETY: the swap made the whole chain ours, and each was a box.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.next;
            each(owned.value);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_fork_starts_its_own_taker() {
        let handover: Handover<i32> = Handover::new();
        assert_eq!(handover.knock(1), Knock::Start);
        assert_eq!(handover.knock(1), Knock::Leave);
        handover.runs(1, 7);
        assert_eq!(handover.knock(1), Knock::Wake(7));
        // In the child process, whether the fork came while the parent's ran or while it was being started.
        assert_eq!(handover.knock(2), Knock::Start);
        assert_eq!(handover.knock(3), Knock::Start);
        handover.not_started();
        assert_eq!(handover.knock(3), Knock::Start);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::{Handover, Knock};
    use crate::sync::UnsafeCell;

    /// Two drop a child at once. Whoever is told to starts the taker; it gets both children, though it sleeps
    /// whenever it has taken and the bell has not rung.
    #[test]
    fn nothing_that_was_pushed_is_forgotten() {
        loom::model(|| {
            let handover = Arc::new(Handover::new());
            let bell = Arc::new((Mutex::new(false), Condvar::new()));
            let drops: Vec<_> = (0..2)
                .map(|number| {
                    let (handover, bell) = (handover.clone(), bell.clone());
                    thread::spawn(move || {
                        handover.push(UnsafeCell::new(number));
                        match handover.knock(1) {
                            Knock::Leave => None,
                            Knock::Wake(number) => {
                                assert_eq!(number, 7);
                                *bell.0.lock().unwrap() = true;
                                bell.1.notify_one();
                                None
                            }
                            Knock::Start => Some(thread::spawn(move || {
                                handover.runs(1, 7);
                                let mut sum = 0;
                                let mut count = 0;
                                loop {
                                    handover.take_all(|value: UnsafeCell<i32>| {
                                        // SAFETY: ours; loom checks that the push made it so.
                                        sum += value.with(|value| unsafe { *value });
                                        count += 1;
                                    });
                                    if count == 2 {
                                        return sum;
                                    }
                                    let mut rung = bell.0.lock().unwrap();
                                    while !*rung {
                                        rung = bell.1.wait(rung).unwrap();
                                    }
                                    *rung = false;
                                }
                            })),
                        }
                    })
                })
                .collect();
            let takers: Vec<_> = drops.into_iter().filter_map(|drop| drop.join().unwrap()).collect();
            let sums: Vec<i32> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
            assert_eq!(sums, [1]);
        });
    }
}
