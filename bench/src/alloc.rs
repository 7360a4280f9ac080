//! The counting allocator: every allocation of the process, whoever makes it.
//!
//! Two relaxed counters stand in front of the system's allocator. They cost a few nanoseconds an allocation,
//! in every peer alike; an operation that allocates nothing pays nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

fn count(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
}

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches two
// statics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps alloc's contract, which is System's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as for alloc.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: `at` came from System through one of these methods.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from System through one of these methods.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What has been allocated since the process began. Freed memory is not taken off; a reallocation counts as
/// one allocation of the new size.
#[derive(Clone, Copy)]
pub(crate) struct Allocated {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

impl Allocated {
    pub(crate) fn so_far() -> Self {
        Self { allocations: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_an_allocation_and_its_bytes() {
        let before = Allocated::so_far();
        let held = std::hint::black_box(vec![0_u8; 12_345]);
        let after = Allocated::so_far();
        // Other tests allocate beside this one: at least ours is there.
        assert!(after.allocations > before.allocations);
        assert!(after.bytes - before.bytes >= held.len() as u64);
    }
}
