//! `preadv2` with `RWF_NOWAIT`. The rules, each from a measurement or a report:
//!
//! * A count of 0 or a short one is never believed: the kernels 5.9 and 5.10 return 0 after the first page,
//!   and a range that is cached in part stops at a page. It is the end of the file only if the file's size,
//!   asked afresh, says so. Else the rest goes to a carrier.
//! * ext4 and its like take the flag. A file system that refuses it is asked what it is, once for each handle
//!   (a hint for each device would cost the same system call that it saves): tmpfs waits for no device, and a
//!   plain `pread` answers; on all others (overlayfs) reads go to a carrier.
//! * Never on an `O_DIRECT` handle, where the flag does not keep the call from waiting for the device.
//! * A miss is not free: it may allocate, and read ahead. So after misses in a row attempts are left out
//!   (see `Backoff`).

use super::{Attempt, NEVER, spend};
use crate::{
    engine::{Block, Handle, Lease, Outcome, Work, count},
    force::{self, Lack},
    fs::sys::{self, Errno},
};
use std::sync::atomic::Ordering::Relaxed;

/// Try with `RWF_NOWAIT`.
const NOWAIT: u8 = 0;
/// Reads never wait for a device: read plainly.
const PLAIN: u8 = 1;
const PAGE: usize = 4096;

/// Tries to do the whole of a read that has not begun.
#[inline(always)]
pub(crate) fn attempt(handle: &Handle, lease: &Lease, block: Option<&Block>, work: &mut Work) -> Attempt {
    let method = handle.inline.load(Relaxed);
    // Offsets past the largest are left to the carrier's pread, which refuses them: preadv2 takes -1 for the
    // descriptor's cursor, and what it says of the others is no word on the file system.
    let end = work.offset.saturating_add(work.len as u64);
    if method == NEVER || lease.inline_limit < work.len.max(1) || end > i64::MAX as u64 {
        return Attempt::HandOn;
    }
    if !spend(block, work.len) {
        return Attempt::Yield;
    }
    if !handle.misses.is_due() {
        return Attempt::HandOn;
    }
    let result = match method {
        // SAFETY: the buffer is the operation's, and the operation is the caller's.
        PLAIN => unsafe { sys::read(handle.opened(), work.ptr, work.len, work.offset) },
        _ if force::lacks(Lack::Nowait) => Err(Errno::OPNOTSUPP),
        // preadv2 of nothing succeeds where pread tells a directory or a handle that is not open for reading.
        // SAFETY: as above.
        _ if work.len == 0 => unsafe { sys::read(handle.opened(), work.ptr, 0, work.offset) },
        _ if force::lacks(Lack::TrueNowait) && work.offset >= PAGE as u64 => Ok(0),
        _ => {
            let lies = force::lacks(Lack::TrueNowait);
            let len = if lies { work.len.min(PAGE - work.offset as usize) } else { work.len };
            // SAFETY: as above.
            unsafe { sys::read_nowait(handle.opened(), work.ptr, len, work.offset) }
        }
    };
    match result {
        Ok(read) if read == work.len => {
            handle.misses.paid();
            if let Some(block) = block {
                count(&block.inline_hits);
            }
            Attempt::Done(Outcome { done: read as u64, fault: None })
        }
        other => unusual(handle, block, work, other),
    }
}

#[cold]
fn unusual(handle: &Handle, block: Option<&Block>, work: &mut Work, result: Result<usize, Errno>) -> Attempt {
    match result {
        Ok(read) => {
            let end = work.offset.saturating_add(read as u64);
            let at_end = sys::size(handle.opened()).is_ok_and(|(size, regular)| regular && end >= size);
            if at_end {
                block.inspect(|block| count(&block.inline_hits));
                return Attempt::Done(Outcome { done: read as u64, fault: None });
            }
            work.done = read;
            block.inspect(|block| count(&block.inline_partials));
        }
        // Some kernels before 4.14 say INVAL for a flag they do not know.
        Err(Errno::AGAIN | Errno::INVAL) => {
            handle.misses.was_vain();
            block.inspect(|block| count(&block.inline_misses));
        }
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) if handle.inline.load(Relaxed) == NOWAIT => {
            block.inspect(|block| count(&block.inline_unsupported));
            let method = if sys::is_in_memory(handle.opened()) { PLAIN } else { NEVER };
            handle.inline.store(method, Relaxed);
            if method == PLAIN {
                return attempt_again(handle, block, work);
            }
        }
        // Anything else a carrier meets again, and reports.
        Err(_) => {}
    }
    Attempt::HandOn
}

/// The first read of a file that turned out to be in memory.
fn attempt_again(handle: &Handle, block: Option<&Block>, work: &mut Work) -> Attempt {
    // SAFETY: the buffer is the operation's, and the operation is the caller's.
    match unsafe { sys::read(handle.opened(), work.ptr, work.len, work.offset) } {
        Ok(read) if read == work.len => {
            block.inspect(|block| count(&block.inline_hits));
            Attempt::Done(Outcome { done: read as u64, fault: None })
        }
        other => unusual(handle, block, work, other),
    }
}
