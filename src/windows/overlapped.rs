//! One call on a handle that was opened for overlapped I/O, and its end.

use super::{last_error, owned};
use std::{
    os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle},
    ptr::null,
};
use windows_sys::{
    Wdk::Storage::FileSystem::{
        FILE_INFORMATION_CLASS, FILE_SYNCHRONOUS_IO_ALERT, FILE_SYNCHRONOUS_IO_NONALERT, FileModeInformation,
        NtQueryInformationFile,
    },
    Win32::{
        Foundation::{ERROR_IO_PENDING, HANDLE, TRUE},
        System::{
            IO::{GetOverlappedResult, IO_STATUS_BLOCK, OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0},
            Threading::CreateEventW,
        },
    },
    core::BOOL,
};

thread_local! {
    /// The event that this thread's calls wait for: one at a time, so one is enough.
    static EVENT: Option<OwnedHandle> = event().ok();
}

/// An event that is reset by hand; every overlapped call resets it as it begins.
fn event() -> Result<OwnedHandle, u32> {
    // SAFETY: no name and no attributes are given.
    let event = unsafe { CreateEventW(null(), TRUE, 0, null()) };
    // SAFETY: the event was made a moment ago.
    if event.is_null() { Err(last_error()) } else { Ok(unsafe { owned(event) }) }
}

/// Makes an overlapped call at `offset` and waits for its end; gives the number of bytes, or the error.
///
/// The event's lowest bit is set, so that a completion port which the handle may be bound to gets no packet.
///
/// # References
/// * [`GetQueuedCompletionStatus`](https://learn.microsoft.com/windows/win32/api/ioapiset/nf-ioapiset-getqueuedcompletionstatus),
///   its remarks on the event's low-order bit
pub(crate) fn finished(
    handle: BorrowedHandle<'_>,
    offset: u64,
    call: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
) -> Result<usize, u32> {
    let mut call = Some(call);
    let mut with = |event: &OwnedHandle| {
        let call = call.take().expect("only one event is tried");
        finished_with(handle, event.as_raw_handle(), offset, call)
    };
    // While the thread ends its event may be gone already.
    match EVENT.try_with(|event| event.as_ref().map(&mut with)) {
        Ok(Some(result)) => result,
        _ => with(&event()?),
    }
}

fn finished_with(
    handle: BorrowedHandle<'_>,
    event: HANDLE,
    offset: u64,
    call: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
) -> Result<usize, u32> {
    let mut overlapped = OVERLAPPED {
        Internal: 0,
        InternalHigh: 0,
        Anonymous: OVERLAPPED_0 {
            Anonymous: OVERLAPPED_0_0 { Offset: offset as u32, OffsetHigh: (offset >> 32) as u32 },
        },
        hEvent: (event as usize | 1) as HANDLE,
    };
    let handle = handle.as_raw_handle();
    if call(handle, &raw mut overlapped) == 0 {
        let error = last_error();
        if error != ERROR_IO_PENDING {
            return Err(error);
        }
    }
    let mut moved = 0;
    // SAFETY: the call began with this structure, which stays in place until the wait is over.
    if unsafe { GetOverlappedResult(handle, &raw const overlapped, &raw mut moved, TRUE) } == 0 {
        return Err(last_error());
    }
    Ok(moved as usize)
}

/// Whether a handle was opened for overlapped I/O: then the system does not wait in its calls. So counts a handle that
/// cannot be asked, such as one of a console, as one that does.
pub(crate) fn is_overlapped(handle: BorrowedHandle<'_>) -> bool {
    query(handle, FileModeInformation).is_some_and(|mode| !is_synchronous(mode))
}

/// Whether calls end before they return on a handle of this mode.
///
/// # References
/// * [`FILE_MODE_INFORMATION`](https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_mode_information)
pub(crate) fn is_synchronous(mode: u32) -> bool {
    mode & (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT) != 0
}

/// What the system knows of a handle, where that is a single number. On a handle whose calls wait for their end the
/// question may wait too, for one that is under way.
pub(crate) fn query(handle: BorrowedHandle<'_>, class: FILE_INFORMATION_CLASS) -> Option<u32> {
    let mut answer = 0_u32;
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: the places are this frame's, and the second has the size that is told. The call ends before it returns.
    let result = unsafe {
        NtQueryInformationFile(
            handle.as_raw_handle(),
            &raw mut status,
            (&raw mut answer).cast(),
            size_of_val(&answer) as u32,
            class,
        )
    };
    (result >= 0).then_some(answer)
}
