//! The parent's end of a pipe to a child.

use std::io::{self, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::core::BOOL;

use crate::windows::{self, finished, last_error};

/// A handle that is read from or written to in order, overlapped or not.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    handle: OwnedHandle,
    overlapped: bool,
}

impl PipeEnd {
    pub(super) fn is_overlapped(&self) -> bool {
        self.overlapped
    }

    /// # Safety
    /// `into` is good for writes of `room` bytes.
    pub(super) unsafe fn read_raw(&self, into: *mut u8, room: usize) -> io::Result<usize> {
        // SAFETY: the caller's; `call` has ended when it returns.
        let moved = self.call(|handle, moved, overlapped| unsafe {
            ReadFile(handle, into, step(room), moved, overlapped)
        });
        match moved {
            // The writers are gone.
            Err(ERROR_BROKEN_PIPE | ERROR_HANDLE_EOF) => Ok(0),
            moved => moved.map_err(|error| io::Error::from_raw_os_error(error as i32)),
        }
    }

    fn call(&self, call: impl FnOnce(HANDLE, *mut u32, *mut OVERLAPPED) -> BOOL) -> Result<usize, u32> {
        if self.overlapped {
            return finished(self.handle.as_handle(), 0, |handle, overlapped| {
                call(handle, null_mut(), overlapped)
            });
        }
        let mut moved = 0;
        if call(self.handle.as_raw_handle(), &raw mut moved, null_mut()) == 0 {
            return Err(last_error());
        }
        Ok(moved as usize)
    }
}

/// Whether an end was made for overlapped calls.
#[cfg(feature = "fs")]
pub(crate) fn is_overlapped(end: &PipeEnd) -> bool {
    end.overlapped
}

/// How many bytes one call can be asked for.
fn step(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl From<OwnedHandle> for PipeEnd {
    fn from(handle: OwnedHandle) -> PipeEnd {
        let overlapped = windows::is_overlapped(handle.as_handle());
        PipeEnd { handle, overlapped }
    }
}

impl From<PipeEnd> for OwnedHandle {
    fn from(end: PipeEnd) -> OwnedHandle {
        end.handle
    }
}

impl AsHandle for PipeEnd {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.handle.as_handle()
    }
}

impl Read for &PipeEnd {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the slice is borrowed for the call.
        unsafe { self.read_raw(buf.as_mut_ptr(), buf.len()) }
    }
}

impl Write for &PipeEnd {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        // SAFETY: the slice is borrowed for the call, which has ended when `call` returns.
        self.call(|handle, moved, overlapped| unsafe {
            WriteFile(handle, buf.as_ptr(), step(buf.len()), moved, overlapped)
        })
        .map_err(|error| io::Error::from_raw_os_error(error as i32))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for PipeEnd {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for PipeEnd {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
