//! The room lock as its users have it. Its rules are tested and modelled beside its source.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use haft::room_lock::{Entry, RoomLock};
use haft_tests::{isolated, watchdog};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, with every allocation counted.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counter is a static.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Fails if each who waits is boxed. A round without contention and one in which everybody waits, both of which the
/// threads have been through before.
#[test]
fn neither_entering_nor_waiting_allocates() {
    static LOCK: RoomLock = RoomLock::new();
    isolated!({
        watchdog!();
        let before = ALLOCATIONS.load(SeqCst);
        drop(black_box(Box::new(1_u64)));
        assert!(ALLOCATIONS.load(SeqCst) > before, "the counter counts");

        let kinds = [Entry::Room(0), Entry::Room(1), Entry::Alone, Entry::Room(0)];
        let turn = Barrier::new(kinds.len() + 1);
        thread::scope(|scope| {
            for kind in kinds {
                let turn = &turn;
                scope.spawn(move || {
                    for _ in 0..2 {
                        turn.wait();
                        for _ in 0..100 {
                            let _inside = LOCK.enter(kind);
                            thread::yield_now();
                        }
                        turn.wait();
                    }
                });
            }
            // Somebody inside at the beginning makes all of them wait.
            let round = || {
                let alone = LOCK.enter(Entry::Alone);
                turn.wait();
                thread::sleep(Duration::from_millis(50));
                drop(alone);
                turn.wait();
            };
            round();
            let before = ALLOCATIONS.load(SeqCst);
            round();
            assert_eq!(ALLOCATIONS.load(SeqCst) - before, 0);
        });
    });
}
