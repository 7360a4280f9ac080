//! Low numbers kept free for launches that hand out high descriptors.
//!
//! A child whose table is shared first copies it up to the highest source (see `launch`). In a program with 10,000
//! open files a new pipe's number is above 10,000, and the copy is what the sharing was to avoid. So up to 64 low
//! numbers are held by a placeholder; a launch claims as many as it has high sources, duplicates the sources into
//! them for the length of the clone, and puts the placeholder back.
//!
//! A program that closes "everything" and opens its own files may get our numbers. Before a slot is written to, it
//! must still hold the placeholder, and before it is restored, still our source; otherwise it is the program's, is
//! left alone, and is never used again.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;

use super::handles::{Identity, identity};
use super::raw;
use super::slot_map::SlotMap;
use crate::process::plan::Descriptors;
use crate::process::sys::force::{self, Lack};

/// Sources below this number are cheap to share as they are: the table's smallest size holds them.
pub(super) const LOW: u32 = 256;
/// A slot at or above this number is not worth having.
const HIGHEST: RawFd = 1024;
/// As many as the map has bits.
const COUNT: usize = SlotMap::MOST;
/// With a limit of no more than this, the table is small, and nobody wants 64 numbers gone.
const WORTHWHILE: u64 = 4096;

/// The reserved numbers.
struct Slots {
    /// The placeholder's own descriptor.
    holder: RawFd,
    identity: Identity,
    numbers: Vec<RawFd>,
    free: SlotMap,
}

/// Never freed: launches read it without a lock.
static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(ptr::null_mut());
static RESERVING: Mutex<()> = Mutex::new(());
static TRIED: AtomicBool = AtomicBool::new(false);

fn slots() -> Option<&'static Slots> {
    // SAFETY: null, or a leaked box.
    unsafe { SLOTS.load(Ordering::Acquire).as_ref() }
}

/// Takes the slots, once. `Err` if none can be had.
pub(crate) fn reserve() -> io::Result<()> {
    let _one_at_a_time = RESERVING.lock();
    if slots().is_some() {
        return Ok(());
    }
    TRIED.store(true, Ordering::Relaxed);
    let made = memfd_create(c"haft: low descriptor numbers", MemfdFlags::CLOEXEC)?;
    // Off the standard numbers, where they are closed.
    let holder = if made.as_raw_fd() < 3 { fcntl_dupfd_cloexec(&made, 3)? } else { made };
    let mut kept = Vec::with_capacity(COUNT);
    while kept.len() < COUNT {
        match fcntl_dupfd_cloexec(&holder, 3) {
            Ok(slot) if slot.as_raw_fd() < HIGHEST => kept.push(slot),
            _ if !kept.is_empty() => break,
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::EMFILE)),
            Err(errno) => return Err(errno.into()),
        }
    }
    let identity = identity(holder.as_raw_fd()).ok_or(io::ErrorKind::Other)?;
    let free = SlotMap::new(kept.len());
    let numbers = kept.into_iter().map(IntoRawFd::into_raw_fd).collect();
    let slots = Slots { holder: holder.into_raw_fd(), identity, numbers, free };
    SLOTS.store(Box::into_raw(Box::new(slots)), Ordering::Release);
    Ok(())
}

/// At the first launch of a program that may open many files.
pub(super) fn reserve_if_worthwhile() {
    if TRIED.load(Ordering::Relaxed) || force::lacks(Lack::Slots) {
        return;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours. A sandbox may refuse the call; then the limit stays 0, as not worthwhile.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if limit.rlim_cur > WORTHWHILE {
        TRIED.store(true, Ordering::Relaxed);
        // Without slots launches cost more; nothing else changes.
        let _ = reserve();
    }
}

/// Slots that hold sources of a launch; dropping it puts the placeholders back.
pub(super) struct Claim {
    slots: &'static Slots,
    placed: Vec<Placed>,
}

struct Placed {
    bit: u64,
    slot: RawFd,
    /// What was put there.
    identity: Identity,
}

/// Brings sources of [`LOW`] and above down, and gives the descriptors as they are then, good for as long as the claim
/// is kept. `None` if there are not enough slots.
pub(super) fn lower(descriptors: &Descriptors) -> Option<(Descriptors, Claim)> {
    if force::lacks(Lack::Slots) {
        return None;
    }
    let slots = slots()?;
    let mut high: Vec<RawFd> =
        descriptors.pairs.iter().map(|pair| pair.0).filter(|&source| source as u32 >= LOW).collect();
    high.sort_unstable();
    high.dedup();
    let claimed = slots.free.claim(high.len())?;

    let mut placed = Vec::with_capacity(high.len());
    let mut unused = claimed;
    for &source in &high {
        let bit = unused & unused.wrapping_neg();
        match slots.place(source, bit) {
            Ok(one) => {
                unused &= !bit;
                placed.push(one);
            }
            Err(usable) => {
                // The others go back as they are; this one only if it is still ours.
                slots.free.give_back(unused & !bit | if usable { bit } else { 0 });
                placed.into_iter().for_each(|one| slots.restore(&one));
                return None;
            }
        }
    }
    let lowered = |source: RawFd| match high.binary_search(&source) {
        Ok(index) => placed[index].slot,
        Err(_) => source,
    };
    let pairs = descriptors.pairs.iter().map(|&(source, target)| (lowered(source), target)).collect();
    Some((Descriptors::new(pairs, descriptors.inherit), Claim { slots, placed }))
}

impl Slots {
    /// Puts a source into a claimed slot. `Err` tells whether the slot is still usable.
    fn place(&self, source: RawFd, bit: u64) -> Result<Placed, bool> {
        let slot = self.numbers[bit.trailing_zeros() as usize];
        if identity(slot) != Some(self.identity) {
            return Err(false);
        }
        let Some(identity) = identity(source) else { return Err(true) };
        match dup3(source, slot) {
            Ok(_) => Ok(Placed { bit, slot, identity }),
            Err(_) => Err(true),
        }
    }

    fn restore(&self, placed: &Placed) {
        if identity(placed.slot) != Some(placed.identity) {
            return;
        }
        if identity(self.holder) == Some(self.identity) && dup3(self.holder, placed.slot).is_ok() {
            self.free.give_back(placed.bit);
        } else {
            // No placeholder any more: at least the source is not kept open.
            let _ = raw::close(placed.slot);
        }
    }
}

/// Another thread that is just opening a file may have the number half-taken (`EBUSY`).
fn dup3(old: RawFd, new: RawFd) -> Result<usize, i32> {
    loop {
        match raw::dup3(old, new, libc::O_CLOEXEC) {
            Err(libc::EBUSY | libc::EINTR) => {}
            result => return result,
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for placed in &self.placed {
            self.slots.restore(placed);
        }
    }
}
