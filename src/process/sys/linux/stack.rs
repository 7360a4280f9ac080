//! Stacks for children, kept for the next launch.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::process::error::Step;
use crate::process::sys::force;

/// Room for the child's few frames, in builds without optimisation too.
const SIZE: usize = 64 * 1024;
/// Below it, never accessible: an overflow ends the child, and does not write into the parent's memory. As large as
/// the largest page.
const GUARD: usize = 64 * 1024;

/// As many are kept as launches are likely to run at once; more are mapped and unmapped as needed.
const KEPT: usize = 64;

/// Addresses of idle mappings, 0 where there is none. Each is taken and put back by one swap, so there is no list to
/// corrupt.
static IDLE: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];

/// A mapping: the guard, and the stack above it.
#[derive(Debug)]
pub(super) struct Stack {
    mapping: usize,
}

impl Stack {
    /// One that is idle, or a new one.
    pub(super) fn take() -> Result<Stack, i32> {
        if let Some(errno) = force::failing(Step::Stack) {
            return Err(errno);
        }
        for place in from_here() {
            if place.load(Ordering::Relaxed) != 0 {
                let mapping = place.swap(0, Ordering::Acquire);
                if mapping != 0 {
                    return Ok(Stack { mapping });
                }
            }
        }
        Stack::map().map_err(|errno| errno.raw_os_error())
    }

    fn map() -> rustix::io::Result<Stack> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever the kernel likes.
        let mapping = unsafe { mmap_anonymous(ptr::null_mut(), GUARD + SIZE, access, MapFlags::PRIVATE) }?;
        // SAFETY: the lower part of our own mapping, which nothing uses.
        if let Err(errno) = unsafe { mprotect(mapping, GUARD, MprotectFlags::empty()) } {
            // SAFETY: ours, and not used yet.
            let _ = unsafe { munmap(mapping, GUARD + SIZE) };
            return Err(errno);
        }
        Ok(Stack { mapping: mapping as usize })
    }

    pub(super) fn bottom(&self) -> usize {
        self.mapping + GUARD
    }

    pub(super) fn size(&self) -> usize {
        SIZE
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        for place in from_here() {
            let swapped = place.compare_exchange(0, self.mapping, Ordering::Release, Ordering::Relaxed);
            if swapped.is_ok() {
                return;
            }
        }
        // SAFETY: ours, and no child runs on it any more.
        let _ = unsafe { munmap(self.mapping as *mut _, GUARD + SIZE) };
    }
}

/// All places, beginning at one that depends on the thread: a thread finds the stack that it used last, and threads
/// do not meet.
fn from_here() -> impl Iterator<Item = &'static AtomicUsize> {
    let local = 0u8;
    // Threads' stacks are far apart: bits above a stack's usual depth differ between them.
    let start = (&raw const local as usize >> 16).wrapping_mul(0x9e37_79b9) >> 8;
    (0..KEPT).map(move |step| &IDLE[start.wrapping_add(step) % KEPT])
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The access of the mapping of this process that holds the whole range.
    fn access(from: usize, size: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).unwrap());
            (start <= from && from + size <= end).then(|| rest[..4].to_owned())
        })
    }

    // What the child would overwrite without it is the parent's.
    #[test]
    fn below_every_stack_is_a_guard() {
        let guarded = |mapping: usize| {
            assert_eq!(access(mapping, GUARD).as_deref(), Some("---p"), "below {mapping:x}");
            assert_eq!(access(mapping + GUARD, SIZE).as_deref(), Some("rw-p"), "above {mapping:x}");
        };
        let stacks = [Stack::take().unwrap(), Stack::take().unwrap()];
        for stack in &stacks {
            assert_eq!(stack.bottom(), stack.mapping + GUARD);
            guarded(stack.mapping);
        }
        drop(stacks);
        // Those that are kept, of real launches as well.
        assert!(crate::process::Command::new("/no such program").spawn().is_err());
        let kept: Vec<usize> =
            IDLE.iter().map(|place| place.load(Ordering::Acquire)).filter(|&mapping| mapping != 0).collect();
        assert!(!kept.is_empty());
        kept.into_iter().for_each(guarded);
    }
}
