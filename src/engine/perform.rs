//! Doing one operation, by as many system calls as it takes.

use super::{Fault, Handle, Kind, Outcome, Work};
use crate::{force::shortened, fs::sys};
use rustix::io::Errno;

/// Does `work` on the handle, step by step. Between two steps it asks whether anybody still wants it.
pub(crate) fn perform(work: &Work, handle: Option<&Handle>, abandoned: &dyn Fn() -> bool) -> Outcome {
    let fd = handle.expect("an operation on a file has one").as_fd();
    let answer = |result: Result<u64, Errno>| match result {
        Ok(done) => Outcome { done, fault: None },
        Err(errno) => Outcome { done: 0, fault: Some(errno.into()) },
    };
    match work.kind {
        Kind::Read => transfer(work, abandoned, Ends::AtNothing, |ptr, len, offset| {
            // SAFETY: the operation owns the rest of its buffer until it is done.
            unsafe { sys::read(fd, ptr, len, offset) }
        }),
        Kind::Write => transfer(work, abandoned, Ends::Never, |ptr, len, offset| {
            // SAFETY: the operation owns its initialised buffer until it is done.
            sys::write(fd, unsafe { std::slice::from_raw_parts(ptr, len) }, offset)
        }),
        Kind::Len => answer(sys::size(fd).map(|(size, _)| size)),
        Kind::SetLen => answer(sys::set_size(fd, work.offset).map(|()| 0)),
        Kind::SyncAll => answer(sys::sync_all(fd).map(|()| 0)),
        Kind::SyncData => answer(sys::sync_data(fd).map(|()| 0)),
    }
}

/// What a step that moved nothing means.
enum Ends {
    /// The end of the file.
    AtNothing,
    /// A system that does not go on.
    Never,
}

fn transfer(
    work: &Work,
    abandoned: &dyn Fn() -> bool,
    ends: Ends,
    mut step: impl FnMut(*mut u8, usize, u64) -> Result<usize, Errno>,
) -> Outcome {
    let mut done = work.done;
    let ended = |done: usize, fault| Outcome { done: done as u64, fault };
    loop {
        // SAFETY: done is at most len. An offset past the largest is refused by the system at the first step.
        let ptr = unsafe { work.ptr.add(done) };
        match step(ptr, shortened(work.len - done), work.offset.wrapping_add(done as u64)) {
            Ok(0) if done < work.len => {
                return ended(done, matches!(ends, Ends::Never).then_some(Fault::WriteZero));
            }
            Ok(moved) => done += moved,
            Err(Errno::INTR) => {}
            Err(errno) => return ended(done, Some(errno.into())),
        }
        if done == work.len || abandoned() {
            return ended(done, None);
        }
    }
}
