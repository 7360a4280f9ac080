//! Tells a process from the one that it was forked from.
//!
//! Their numbers may be the same: a process that is number 1 of its namespace and forks into a new one has a child that
//! is number 1 too. So a page that the kernel wipes in a forked child holds a number that grows with each fork.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::raw;

/// The beginning of the page; null until it is first needed. Never unmapped.
static MARK: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
/// Not wiped, so that a forked child takes none of its ancestors' numbers.
static NEXT: AtomicI32 = AtomicI32::new(1);

/// At least as large as what is used of the page; the kernel rounds it up.
const SIZE: usize = size_of::<AtomicI32>();

/// This process's number among its ancestors, above 0. Where the kernel wipes nothing (before 4.14), that of the system.
pub(super) fn here() -> i32 {
    let Some(mark) = mark() else { return raw::getpid() };
    match mark.load(Ordering::Relaxed) {
        0 => {
            let new = NEXT.fetch_add(1, Ordering::Relaxed);
            match mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => new,
                Err(others) => others,
            }
        }
        number => number,
    }
}

fn mark() -> Option<&'static AtomicI32> {
    let mut mark = MARK.load(Ordering::Acquire);
    if mark.is_null() {
        let new = map()?;
        mark = match MARK.compare_exchange(mark, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(others) => {
                // SAFETY: ours, and nobody has seen it.
                let _ = unsafe { munmap(new.cast(), SIZE) };
                others
            }
        };
    }
    // SAFETY: a mapping of zeros, which is a value, and for ever.
    Some(unsafe { &*mark })
}

fn map() -> Option<*mut AtomicI32> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping wherever the kernel likes.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), SIZE, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: changes what a fork does with our own mapping.
    if unsafe { madvise(page, SIZE, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: ours, and nobody has seen it.
        let _ = unsafe { munmap(page, SIZE) };
        return None;
    }
    Some(page.cast())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::here;

    #[test]
    fn a_forked_child_has_another() {
        let ours = here();
        assert!(ours > 0);
        assert_eq!(here(), ours);
        // SAFETY: the child calls nothing that could wait for a lock of another thread.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let theirs = here();
            let right = theirs > 0 && theirs != ours && here() == theirs;
            // SAFETY: ends the child.
            unsafe { libc::_exit(if right { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(here(), ours);
    }
}
