//! What both halves need of Windows: calls on overlapped handles that are waited for on the spot, and pipes.

mod overlapped;
pub(crate) mod path;
pub(crate) mod pipe;

#[cfg_attr(
    not(all(feature = "process", feature = "fs")),
    allow(unused_imports, reason = "each half has its own")
)]
pub(crate) use overlapped::{finished, is_overlapped, is_synchronous, query};

use std::os::windows::io::{FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{GetLastError, HANDLE};

/// The calling thread's last error.
pub(crate) fn last_error() -> u32 {
    // SAFETY: it reads a number of the calling thread's.
    unsafe { GetLastError() }
}

/// Takes over a handle that a call has just made.
///
/// # Safety
/// It is open and nobody else's.
pub(crate) unsafe fn owned(handle: HANDLE) -> OwnedHandle {
    // SAFETY: the caller's.
    unsafe { OwnedHandle::from_raw_handle(handle) }
}

/// A string in UTF-16, without a NUL at its end.
pub(crate) fn wide(string: &std::ffi::OsStr) -> Vec<u16> {
    use std::os::windows::ffi::OsStrExt;
    string.encode_wide().collect()
}
