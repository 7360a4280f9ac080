//! Which of the low numbers are free for a launch to claim.

use crate::sync::atomic::{AtomicU64, Ordering};

/// One bit a slot, set while it is free.
pub(super) struct SlotMap(AtomicU64);

impl SlotMap {
    pub(super) const MOST: usize = u64::BITS as usize;

    /// `count` slots, all free; between 1 and [`MOST`](SlotMap::MOST).
    pub(super) fn new(count: usize) -> SlotMap {
        SlotMap(AtomicU64::new(u64::MAX >> (SlotMap::MOST - count)))
    }

    /// Takes the lowest `count` free slots together, or none. Never waits for others to give theirs back.
    pub(super) fn claim(&self, count: usize) -> Option<u64> {
        let mut free = self.0.load(Ordering::Relaxed);
        loop {
            let claimed = lowest(free, count)?;
            // Acquire pairs with the release of `give_back`: what was done to the slot until then is done.
            match self.0.compare_exchange_weak(free, free & !claimed, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(claimed),
                Err(now) => free = now,
            }
        }
    }

    /// Frees claimed slots. One that is not given back is never claimed again.
    pub(super) fn give_back(&self, slots: u64) {
        self.0.fetch_or(slots, Ordering::Release);
    }
}

/// The lowest `count` bits that are set, if there are as many.
fn lowest(bits: u64, count: usize) -> Option<u64> {
    let mut rest = bits;
    for _ in 0..count {
        if rest == 0 {
            return None;
        }
        rest &= rest - 1;
    }
    Some(bits & !rest)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn claims_are_the_lowest_free_and_all_or_none() {
        let free = SlotMap(AtomicU64::new(0b1011_0110));
        assert_eq!(free.claim(2), Some(0b110));
        assert_eq!(free.claim(4), None);
        assert_eq!(free.claim(3), Some(0b1011_0000));
        assert_eq!(free.claim(1), None);
        free.give_back(0b100);
        assert_eq!(free.claim(1), Some(0b100));
        assert_eq!(SlotMap::new(64).claim(64), Some(u64::MAX));
        assert_eq!(SlotMap::new(3).claim(4), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::SlotMap;
    use crate::sync::UnsafeCell;

    /// Three launches over two slots: whoever holds a slot has it alone, and sees what the one before did to it.
    #[test]
    fn a_claimed_slot_is_held_alone() {
        loom::model(|| {
            let map = Arc::new(SlotMap::new(2));
            let slots = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let launches: Vec<_> = (0..2)
                .map(|_| {
                    let (map, slots) = (map.clone(), slots.clone());
                    move || {
                        let Some(bit) = map.claim(1) else { return false };
                        // SAFETY: claimed; loom checks that nobody else is here.
                        slots[bit.trailing_zeros() as usize].with_mut(|slot| unsafe { *slot += 1 });
                        map.give_back(bit);
                        true
                    }
                })
                .collect();
            let threads: Vec<_> = launches.into_iter().map(thread::spawn).collect();
            let both = map.claim(2);
            if let Some(bits) = both {
                for slot in &*slots {
                    // SAFETY: as above.
                    slot.with_mut(|slot| unsafe { *slot += 1 });
                }
                map.give_back(bits);
            }
            let mut done = if both.is_some() { 2 } else { 0 };
            for thread in threads {
                done += i32::from(thread.join().unwrap());
            }
            // SAFETY: all are joined.
            let count: i32 = slots.iter().map(|slot| slot.with(|slot| unsafe { *slot })).sum();
            assert_eq!(count, done);
            assert_eq!(map.claim(2), Some(0b11));
        });
    }
}
