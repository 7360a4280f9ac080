//! Doing one operation, by as many system calls as it takes.

use super::{Fault, Handle, Kind, Outcome, Work, segments};
use crate::{
    force::shortened,
    fs::sys::{self, Errno},
};

/// Does `work` on the handle, step by step. Between two steps it asks whether anybody still wants it.
pub(crate) fn perform(work: &Work, handle: Option<&Handle>, abandoned: &dyn Fn() -> bool) -> Outcome {
    let handle = handle.expect("an operation on a file has one");
    let file = handle.opened();
    let answer = |result: Result<u64, Errno>| match result {
        Ok(done) => Outcome { done, fault: None },
        Err(errno) => Outcome { done: 0, fault: Some(errno.into()) },
    };
    let transfer = |step: fn(sys::Opened<'_>, Rest) -> Result<usize, Errno>| {
        let mut work = *work;
        loop {
            let moved = step(file, rest(&work));
            if let Some(outcome) = settle(&mut work, file, moved) {
                return outcome;
            }
            if abandoned() {
                return Outcome { done: work.done as u64, fault: None };
            }
        }
    };
    match work.kind {
        // SAFETY: the operation owns the rest of its buffer until it is done.
        Kind::Read => transfer(|file, rest| unsafe { sys::read(file, rest.ptr, rest.len, rest.offset) }),
        // SAFETY: as above, and it is initialised.
        Kind::Write => transfer(|file, rest| sys::write(file, unsafe { rest.bytes() }, rest.offset)),
        // SAFETY: the operation owns the list and its buffers until it is done.
        Kind::ReadVectored => unsafe { segments::perform(work, handle, abandoned, sys::read_segments) },
        // SAFETY: as above, and they are initialised.
        Kind::WriteVectored => unsafe { segments::perform(work, handle, abandoned, sys::write_segments) },
        // SAFETY: as for a read.
        Kind::Receive => transfer(|file, rest| unsafe { sys::receive(file, rest.ptr, rest.len) }),
        // SAFETY: as for a write.
        Kind::Send => transfer(|file, rest| sys::send(file, unsafe { rest.bytes() })),
        Kind::Len => answer(sys::size(file).map(|(size, _)| size)),
        Kind::SetLen => answer(sys::set_size(file, work.offset).map(|()| 0)),
        Kind::Allocate => answer(sys::allocate(file, work.offset).map(|()| 0)),
        Kind::SyncAll => answer(sys::sync_all(file).map(|()| 0)),
        Kind::SyncData => answer(sys::sync_data(file).map(|()| 0)),
    }
}

/// What is left to transfer.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    pub(super) ptr: *mut u8,
    pub(super) len: usize,
    pub(super) offset: u64,
}

impl Rest {
    /// # Safety
    /// They are initialised, and nobody changes them for as long.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// The next step of a transfer. An offset past the largest is refused by the system, or by `sys`, at the first step.
pub(super) fn rest(work: &Work) -> Rest {
    Rest {
        // SAFETY: done is at most len.
        ptr: unsafe { work.ptr.add(work.done) },
        len: shortened(work.len - work.done),
        offset: work.offset.wrapping_add(work.done as u64),
    }
}

/// Takes a step's result into account. The operation's outcome, if that was its last step.
pub(super) fn settle(work: &mut Work, file: sys::Opened<'_>, step: Result<usize, Errno>) -> Option<Outcome> {
    let fault = match step {
        // A system that does not go on.
        Ok(0)
            if work.done < work.len
                && matches!(work.kind, Kind::Write | Kind::WriteVectored | Kind::Send) =>
        {
            Some(Fault::WriteZero)
        }
        // The end of the file.
        Ok(0) => None,
        Ok(moved) => {
            work.done += moved;
            // From a pipe comes what is there.
            if work.done < work.len && work.kind != Kind::Receive {
                return None;
            }
            None
        }
        Err(errno) if sys::is_interruption(errno) => return None,
        // The step before was cut short by the end of the file.
        Err(errno)
            if work.done > 0
                && matches!(work.kind, Kind::Read | Kind::ReadVectored)
                && sys::is_end(file, work.offset.wrapping_add(work.done as u64), errno) =>
        {
            None
        }
        Err(errno) => Some(errno.into()),
    };
    Some(Outcome { done: work.done as u64, fault })
}

#[cfg(all(test, windows))]
mod tests {
    use super::*;
    use crate::fs::sys::{OwnedHandle, Ways};
    use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;

    // Windows refuses an offset within a sector, Wine takes it: so what is made of that is looked at by itself. Fails when
    // `settle` does not ask `is_end`, or `is_end` says yes to every unbuffered handle.
    #[test]
    fn an_unbuffered_file_ends_within_a_sector() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let refused = Err(Errno(ERROR_INVALID_PARAMETER));
        for (size, done, unbuffered, is_end) in [
            (5000, 5000, true, true),
            // It has grown meanwhile.
            (9000, 5000, true, true),
            // Sectors may be larger.
            (4608, 4608, true, true),
            // Whoever asked named a part of a sector.
            (9000, 4096, true, false),
            (5000, 0, true, false),
            (5000, 5000, false, false),
        ] {
            std::fs::write(&path, vec![1; size]).unwrap();
            let file = OwnedHandle::from(std::fs::File::open(&path).unwrap());
            let ways = Ways { unbuffered, ..Ways::default() };
            for kind in [Kind::Read, Kind::ReadVectored] {
                let mut work = Work { len: 16384, done, ..Work::bare(kind, 0) };
                let fault = (!is_end).then_some(Fault::Os(ERROR_INVALID_PARAMETER as i32));
                assert_eq!(
                    settle(&mut work, sys::opened(&file, ways), refused),
                    Some(Outcome { done: done as u64, fault }),
                    "{kind:?}, {done} of {size}, {unbuffered}"
                );
            }
        }
    }
}
