//! Reusable slots: made once, recycled for ever, freed with the engine.
//!
//! The idle ones are a stack whose head is one word, an index and a tag. The tag changes with every move, so
//! that a head which went and came back in the meantime (ABA) is not mistaken for one that stayed; a stack of
//! pointers has no room for it. Every change of the head is a read-modify-write, so whoever pops a slot sees
//! everything that was done before *any* earlier push, and one Acquire is enough.

use crate::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*},
    lock,
};
use std::ptr::{NonNull, null_mut};

/// What a slab holds.
pub(crate) trait Slot: Sized {
    /// A new idle slot, which keeps its index.
    fn new(index: u32) -> Self;
    fn index(&self) -> u32;
    /// Where the slab keeps the index of the next idle slot. This takes a pointer, for it is also asked of
    /// slots that another thread has just taken, and whose other parts that thread may be writing.
    ///
    /// # Safety
    /// The slot is alive.
    unsafe fn next_idle<'a>(slot: NonNull<Self>) -> &'a AtomicU32;
}

/// The first segment's slots; each further segment has as many as all before it together.
#[cfg(not(loom))]
const FIRST: u32 = 32;
#[cfg(loom)]
const FIRST: u32 = 2;
const SEGMENTS: usize = 26;
/// The index that ends the stack.
const NONE: u32 = u32::MAX;

pub(crate) struct Slab<T> {
    segments: [AtomicPtr<T>; SEGMENTS],
    /// tag << 32 | index.
    idle: AtomicU64,
    /// How many segments there are.
    grown: Mutex<usize>,
}

// SAFETY: the slab hands out pointers; what is done with a slot is its user's promise.
unsafe impl<T: Send + Sync> Sync for Slab<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Slab<T> {}

impl<T: Slot> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab {
            segments: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            idle: AtomicU64::new(u64::from(NONE)),
            grown: Mutex::new(0),
        }
    }

    /// An idle slot, made if there is none. It is the caller's until [`give`](Slab::give).
    pub(crate) fn take(&self) -> NonNull<T> {
        self.take_idle().unwrap_or_else(|| self.grow())
    }

    fn take_idle(&self) -> Option<NonNull<T>> {
        let mut head = self.idle.load(Acquire);
        loop {
            let index = head as u32;
            if index == NONE {
                return None;
            }
            let slot = self.at(index);
            // SAFETY: slots live as long as the slab. Another thread may have taken this one meanwhile and
            // use it; its link is atomic, and the tag makes the exchange fail.
            let next = unsafe { T::next_idle(slot) }.load(Relaxed);
            match self.idle.compare_exchange_weak(head, retag(head, next), Relaxed, Acquire) {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }

    /// Makes `slot` idle again.
    ///
    /// # Safety
    /// It came from this slab's `take`, and the caller gives up every use of it.
    pub(crate) unsafe fn give(&self, slot: NonNull<T>) {
        // SAFETY: slots live as long as the slab, and this one is the caller's.
        let (index, next) = unsafe { (slot.as_ref().index(), T::next_idle(slot)) };
        let mut head = self.idle.load(Relaxed);
        loop {
            next.store(head as u32, Relaxed);
            match self.idle.compare_exchange_weak(head, retag(head, index), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// How many slots there are, idle or not.
    pub(crate) fn made(&self) -> usize {
        match *lock(&self.grown) {
            0 => 0,
            segments => (FIRST as usize) << (segments - 1),
        }
    }

    /// Whether this is the address of one of its slots.
    #[cfg_attr(not(windows), allow(dead_code, reason = "only there others may name an address"))]
    pub(crate) fn holds(&self, slot: *mut T) -> bool {
        // Only addresses are compared. Who asks has heard of the slot by way of the system, which orders all that was
        // before.
        let segments = self.segments.iter().map(|base| base.load(Relaxed)).enumerate();
        for (n, base) in segments.take_while(|(_, base)| !base.is_null()) {
            let count = if n == 0 { FIRST } else { FIRST << (n - 1) } as usize;
            let offset = (slot as usize).wrapping_sub(base as usize);
            if offset < count * size_of::<T>() {
                return offset.is_multiple_of(size_of::<T>());
            }
        }
        false
    }

    fn at(&self, index: u32) -> NonNull<T> {
        let segment = if index < FIRST { 0 } else { (index / FIRST).ilog2() as usize + 1 };
        let first = if segment == 0 { 0 } else { FIRST << (segment - 1) };
        // The index came through `idle`, and the segment was stored before the push that put it there.
        let base = self.segments[segment].load(Relaxed);
        // SAFETY: the segment holds at least index - first + 1 slots.
        unsafe { NonNull::new_unchecked(base.add((index - first) as usize)) }
    }

    #[cold]
    fn grow(&self) -> NonNull<T> {
        let mut segments = lock(&self.grown);
        if let Some(slot) = self.take_idle() {
            return slot;
        }
        let (first, count) = match *segments {
            0 => (0, FIRST),
            n => (FIRST << (n - 1), FIRST << (n - 1)),
        };
        // Segment 26 would begin at slot 2^30. Memory ends long before.
        let made: Box<[T]> = (first..first + count).map(T::new).collect();
        let base = Box::into_raw(made).cast::<T>();
        self.segments[*segments].store(base, Relaxed);
        *segments += 1;
        for index in (first + 1..first + count).rev() {
            // SAFETY: the slot was made just now and nobody has it.
            unsafe { self.give(self.at(index)) };
        }
        self.at(first)
    }
}

impl<T> Drop for Slab<T> {
    fn drop(&mut self) {
        let segments = *lock(&self.grown);
        for n in 0..segments {
            let count = if n == 0 { FIRST } else { FIRST << (n - 1) } as usize;
            let base = self.segments[n].load(Relaxed);
            // SAFETY: `grow` made this segment as a boxed slice of that length, and nobody else frees it.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(base, count)) });
        }
    }
}

fn retag(head: u64, index: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(index)
}
