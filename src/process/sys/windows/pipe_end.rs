//! The parent's end of a pipe to a child.

use std::io::{self, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::core::BOOL;

use super::relay::is_pipe;
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
        loop {
            // SAFETY: the caller's; `call` has ended when it returns.
            let moved = self.call(|handle, moved, overlapped| unsafe {
                ReadFile(handle, into, step(room), moved, overlapped)
            });
            if let Some(read) = settled(moved, room, || is_pipe(&self.handle)) {
                return read.map_err(|error| io::Error::from_raw_os_error(error as i32));
            }
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

/// What a read comes to. `None`: somebody has written no bytes to the pipe, which is not its end, and the read is to be
/// made again. Of a file or a socket no bytes are the end.
fn settled(
    moved: Result<usize, u32>,
    room: usize,
    is_pipe: impl FnOnce() -> bool,
) -> Option<Result<usize, u32>> {
    match moved {
        // The writers are gone.
        Err(ERROR_BROKEN_PIPE | ERROR_HANDLE_EOF) => Some(Ok(0)),
        Ok(0) if room > 0 && is_pipe() => None,
        moved => Some(moved),
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
        // No bytes would reach the reader as such, and look like the end to most.
        if buf.is_empty() {
            return Ok(0);
        }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // Wine hands no empty write on, Windows does, so the rule itself is looked at. Fails when `settled` takes no bytes for
    // a pipe's end.
    #[test]
    fn an_empty_write_is_not_the_end() {
        let pipe = || true;
        assert_eq!(settled(Ok(0), 4, pipe), None);
        assert_eq!(settled(Ok(0), 0, pipe), Some(Ok(0)));
        assert_eq!(settled(Ok(3), 4, pipe), Some(Ok(3)));
        assert_eq!(settled(Err(ERROR_BROKEN_PIPE), 4, pipe), Some(Ok(0)));
        assert_eq!(settled(Ok(0), 4, || false), Some(Ok(0)));
        // A file that was put in a pipe's place ends.
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let end = std::io::Seek::seek(&mut &file, io::SeekFrom::End(0)).unwrap();
        assert_ne!(end, 0);
        assert_eq!(PipeEnd::from(OwnedHandle::from(file)).read(&mut [0; 4]).unwrap(), 0);
    }
}
