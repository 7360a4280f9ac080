//! How values get from many threads to one that may not run yet.
//!
//! A list that is pushed to and emptied with one compare-exchange or swap each, and a word that says whose thread
//! takes from it. No lock, so that a fork at any moment leaves nothing locked in the child process; there the word
//! names another process, and a thread is started anew. What wakes the thread may get lost; then, too, one is started
//! anew.

use std::ptr;

use crate::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

pub(super) struct Handover<T, B: 'static> {
    /// The value pushed last.
    head: AtomicPtr<Node<T>>,
    /// The process whose taker runs; its negative while one is being started there; 0 if there is none.
    owner: AtomicI32,
    /// What wakes the taker. Valid once `owner` says that it runs; another may take its place.
    bell: AtomicPtr<B>,
}

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// What whoever has pushed is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knock<B: 'static> {
    /// The taker runs and may sleep: ring this bell. If that cannot be, say [`lost`](Handover::lost).
    Wake(&'static B),
    /// There is no taker, and it is up to the caller to start one or say [`not_started`](Handover::not_started).
    Start,
    /// A taker is being started and has not looked yet.
    Leave,
}

impl<T: Send, B: Sync> Handover<T, B> {
    pub(super) fn new() -> Handover<T, B> {
        Handover {
            head: AtomicPtr::new(ptr::null_mut()),
            owner: AtomicI32::new(0),
            bell: AtomicPtr::new(ptr::null_mut()),
        }
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
    ///
    /// By the same reasoning whoever is to start a taker acquires nothing here. A push that came before the owner's
    /// word was put back to 0 also comes before the new taker's swap; else it would have acquired that this one had
    /// already seen the 0.
    pub(super) fn knock(&self, me: i32) -> Knock<B> {
        let owner = self.owner.load(Ordering::Acquire);
        if owner == me {
            return Knock::Wake(self.bell());
        }
        if owner == -me {
            return Knock::Leave;
        }
        match self.owner.compare_exchange(owner, -me, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => Knock::Start,
            Err(now) if now == me => Knock::Wake(self.bell()),
            Err(_) => Knock::Leave,
        }
    }

    /// The owner's word orders this after the first bell; acquire is for one that took its place since.
    fn bell(&self) -> &'static B {
        // SAFETY: a taker runs, so that `runs` has stored one, and bells are for ever.
        unsafe { &*self.bell.load(Ordering::Acquire) }
    }

    /// The taker runs; it calls this before it first takes.
    pub(super) fn runs(&self, me: i32, bell: &'static B) {
        self.bell.store(ptr::from_ref(bell).cast_mut(), Ordering::Release);
        self.owner.store(me, Ordering::Release);
    }

    /// The taker could not be started; the next that knocks tries again.
    pub(super) fn not_started(&self) {
        self.owner.store(0, Ordering::Relaxed);
    }

    /// This bell does not wake the taker any more. Whether it is up to the caller to start a taker, as by
    /// [`Knock::Start`]; if not, others have seen it too, and the caller is to knock again.
    pub(super) fn lost(&self, me: i32, bell: &'static B) -> bool {
        if self.owner.compare_exchange(me, -me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // Acquired is the bell of the taker that ran just now.
        let lost = ptr::eq(self.bell.load(Ordering::Relaxed), bell);
        if !lost {
            // Another has taken its place. Who left its push to a taker being started is served by the caller's next
            // knock. A swap, so that who reads it still acquires the bell.
            self.owner.swap(me, Ordering::Relaxed);
        }
        lost
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
        let handover: Handover<i32, i32> = Handover::new();
        assert_eq!(handover.knock(1), Knock::Start);
        assert_eq!(handover.knock(1), Knock::Leave);
        handover.runs(1, &7);
        assert_eq!(handover.knock(1), Knock::Wake(&7));
        // In the child process, whether the fork came while the parent's ran or while it was being started.
        assert_eq!(handover.knock(2), Knock::Start);
        assert_eq!(handover.knock(3), Knock::Start);
        handover.not_started();
        assert_eq!(handover.knock(3), Knock::Start);
    }

    #[test]
    fn a_lost_bell_is_replaced_once() {
        static BELLS: [i32; 2] = [7, 8];
        let handover: Handover<i32, i32> = Handover::new();
        assert_eq!(handover.knock(1), Knock::Start);
        handover.runs(1, &BELLS[0]);
        assert!(handover.lost(1, &BELLS[0]));
        assert!(!handover.lost(1, &BELLS[0]));
        assert_eq!(handover.knock(1), Knock::Leave);
        handover.runs(1, &BELLS[1]);
        assert!(!handover.lost(1, &BELLS[0]));
        assert_eq!(handover.knock(1), Knock::Wake(&BELLS[1]));
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread::{self, JoinHandle};

    use super::{Handover, Knock};
    use crate::sync::UnsafeCell;
    use crate::sync::atomic::{AtomicBool, Ordering};

    /// It is leaked, as the watcher's. One that was lost rings nothing.
    struct Bell {
        /// loom checks that whoever rings has seen it made.
        made: UnsafeCell<bool>,
        rings: Option<(Mutex<bool>, Condvar)>,
    }

    // SAFETY: loom checks the cell.
    unsafe impl Sync for Bell {}

    fn bell(rings: bool) -> &'static Bell {
        let rings = rings.then(|| (Mutex::new(false), Condvar::new()));
        let bell = Box::leak(Box::new(Bell { made: UnsafeCell::new(false), rings }));
        // SAFETY: nobody else has it yet.
        bell.made.with_mut(|made| unsafe { *made = true });
        bell
    }

    type Shared = Arc<Handover<UnsafeCell<i32>, Bell>>;

    /// Takes until it has all `wanted`, and sleeps whenever it has taken and the bell has not rung.
    fn taker(handover: Shared, wanted: usize) -> JoinHandle<i32> {
        thread::spawn(move || {
            let bell = bell(true);
            handover.runs(1, bell);
            let mut sum = 0;
            let mut count = 0;
            loop {
                handover.take_all(|value: UnsafeCell<i32>| {
                    // SAFETY: ours; loom checks that the push made it so.
                    sum += value.with(|value| unsafe { *value });
                    count += 1;
                });
                if count == wanted {
                    return sum;
                }
                let (lock, rung) = bell.rings.as_ref().unwrap();
                let mut ringing = lock.lock().unwrap();
                while !*ringing {
                    ringing = rung.wait(ringing).unwrap();
                }
                *ringing = false;
            }
        })
    }

    /// What whoever has pushed does: true if it is to start a taker.
    fn knock(handover: &Shared) -> bool {
        loop {
            match handover.knock(1) {
                Knock::Leave => return false,
                Knock::Start => return true,
                Knock::Wake(bell) => {
                    // SAFETY: loom checks that it was made before.
                    assert!(bell.made.with(|made| unsafe { *made }));
                    if let Some(rings) = &bell.rings {
                        *rings.0.lock().unwrap() = true;
                        rings.1.notify_one();
                        return false;
                    }
                    if handover.lost(1, bell) {
                        return true;
                    }
                }
            }
        }
    }

    /// Two drop a child each; whoever is told to starts the taker, which gets both children.
    fn two_drops(handover: &Shared) {
        let drops: Vec<_> = (0..2)
            .map(|number| {
                let handover = handover.clone();
                thread::spawn(move || {
                    handover.push(UnsafeCell::new(number));
                    knock(&handover).then(|| taker(handover, 2))
                })
            })
            .collect();
        let takers: Vec<_> = drops.into_iter().filter_map(|drop| drop.join().unwrap()).collect();
        let sums: Vec<i32> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(sums, [1]);
    }

    #[test]
    fn nothing_that_was_pushed_is_forgotten() {
        loom::model(|| two_drops(&Arc::new(Handover::new())));
    }

    /// The taker's bell is lost: one of the two starts another.
    #[test]
    fn nothing_is_forgotten_when_the_bell_is_lost() {
        loom::model(|| {
            let handover: Shared = Arc::new(Handover::new());
            handover.runs(1, bell(false));
            two_drops(&handover);
        });
    }

    /// The first taker cannot be started; what is in the list then stays for the one that can.
    #[test]
    fn nothing_is_forgotten_when_no_taker_can_be_started() {
        loom::model(|| {
            let handover: Shared = Arc::new(Handover::new());
            let failed = Arc::new(AtomicBool::new(false));
            let drops: Vec<_> = (0..2)
                .map(|number| {
                    let (handover, failed) = (handover.clone(), failed.clone());
                    thread::spawn(move || {
                        handover.push(UnsafeCell::new(number));
                        if !knock(&handover) {
                            return None;
                        }
                        if failed.swap(true, Ordering::Relaxed) {
                            return Some(taker(handover, 2));
                        }
                        let mut running = Vec::new();
                        handover.take_all(|value| running.push(value));
                        running.into_iter().for_each(|value| handover.push(value));
                        handover.not_started();
                        None
                    })
                })
                .collect();
            let mut takers: Vec<_> = drops.into_iter().filter_map(|drop| drop.join().unwrap()).collect();
            // The next launch.
            if takers.is_empty() && knock(&handover) {
                takers.push(taker(handover, 2));
            }
            let sums: Vec<i32> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
            assert_eq!(sums, [1]);
        });
    }
}
