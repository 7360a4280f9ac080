//! Files by handle.
//!
//! A *plain* handle's calls end before they return, one after another for all who use the handle, and each moves the
//! file position that the system keeps with it; haft names an offset in every call and never looks at that position.
//! An *overlapped* handle (`FILE_FLAG_OVERLAPPED`) has no position, and its calls may end later. The functions here
//! wait for them by an event, whose lowest bit is set so that a completion port hears nothing of it.
//!
//! A number of bytes has 32 bits in these calls, so a long one is cut to [`STEP`].
//!
//! References: NtReadFile, NtWriteFile, ReadFile, WriteFile, GetFileSizeEx, SetFileInformationByHandle, FlushFileBuffers, GetFileType,
//! NtQueryInformationFile, NtQueryVolumeInformationFile.

mod handles;
mod learn;
mod open;
mod options;
mod vectored;

pub(crate) use learn::learn;
pub(crate) use open::{OwnFlags, open};
pub(crate) use std::os::windows::io::OwnedHandle;
pub(crate) use vectored::{read_segments, read_vectored, write_segments, write_vectored};

use crate::{
    engine::Fault,
    windows::{finished, last_error},
};
use std::{
    io,
    os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle},
    ptr::{null, null_mut},
};
use windows_sys::{
    Wdk::Storage::FileSystem::{NtReadFile, NtWriteFile},
    Win32::{
        Foundation::{
            ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, ERROR_INVALID_PARAMETER, ERROR_IO_PENDING,
            ERROR_SEEK_ON_DEVICE, HANDLE, NTSTATUS, RtlNtStatusToDosError, STATUS_PENDING,
        },
        Storage::FileSystem::{
            FILE_ALLOCATION_INFO, FILE_END_OF_FILE_INFO, FileAllocationInfo, FileEndOfFileInfo,
            FlushFileBuffers, GetFileSizeEx, ReadFile, SetFileInformationByHandle, WriteFile,
        },
        System::IO::{IO_STATUS_BLOCK, OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0},
    },
    core::BOOL,
};

/// The most bytes that one call is asked to move: a multiple of every sector and page size.
pub(crate) const STEP: usize = 1 << 30;

/// An error number of the system's (`ERROR_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) u32);

impl From<Errno> for Fault {
    fn from(Errno(number): Errno) -> Fault {
        Fault::Os(number as i32)
    }
}

impl From<Errno> for io::Error {
    fn from(Errno(number): Errno) -> io::Error {
        io::Error::from_raw_os_error(number as i32)
    }
}

/// What reading a pipe comes to when somebody has written no bytes to it: nothing, and not the end. It is none of the
/// system's numbers.
pub(crate) const EMPTY: Errno = Errno(u32::MAX);

/// Whether the call ended and is to be made again.
#[inline]
pub(crate) fn is_interruption(errno: Errno) -> bool {
    errno == EMPTY
}

/// Whether a read at `offset` failed only because the one before it ended with the file. An unbuffered handle is read by
/// whole sectors: where a file ends within one, the system refuses to go on from there.
pub(crate) fn is_end(file: Opened<'_>, offset: u64, errno: Errno) -> bool {
    /// No device has a smaller one.
    const SECTOR: u64 = 512;
    file.ways.unbuffered
        && errno == Errno(ERROR_INVALID_PARAMETER)
        && (!offset.is_multiple_of(SECTOR) || size(file).is_ok_and(|(size, _)| size <= offset))
}

/// The ends of a new pipe, each overlapped if it is for async use.
pub(crate) fn pipe(async_reader: bool, async_writer: bool) -> io::Result<(OwnedHandle, OwnedHandle)> {
    crate::windows::pipe::create(async_reader, async_writer)
}

/// How calls are made on an end of a pipe that [`pipe`] made.
pub(crate) fn stream(overlapped: bool) -> Ways {
    Ways { overlapped, stream: true, ours: true, ..Ways::default() }
}

/// How calls are made on an end of a pipe that others made. Asking the system what it is might wait for ever for a read
/// that is under way on it.
pub(crate) fn foreign_stream() -> Ways {
    Ways { overlapped: true, stream: true, ..Ways::default() }
}

/// How calls are made on a handle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// Calls may end after they return. Also where it could not be found out: the way of such calls serves both.
    pub(crate) overlapped: bool,
    /// A pipe, a console or another device without offsets.
    pub(crate) stream: bool,
    /// The system's cache is left out.
    pub(crate) unbuffered: bool,
    /// haft opened it, and nobody else waits for the handle itself.
    pub(crate) ours: bool,
    /// The handle is bound to its engine's completion port.
    pub(crate) bound: bool,
    /// Nothing comes from the port for a call that ended at once.
    pub(crate) skips: bool,
}

/// An open file, as calls take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened<'a> {
    handle: BorrowedHandle<'a>,
    ways: Ways,
}

impl Opened<'_> {
    /// The number that the system knows it by.
    pub(crate) fn raw(self) -> HANDLE {
        self.handle.as_raw_handle()
    }
}

#[inline]
pub(crate) fn opened(handle: &OwnedHandle, ways: Ways) -> Opened<'_> {
    Opened { handle: handle.as_handle(), ways }
}

/// As [`read`].
#[inline]
pub(crate) fn read_into(file: Opened<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    // SAFETY: the buffer is borrowed for the call.
    unsafe { read(file, buffer.as_mut_ptr(), buffer.len(), offset) }
}

/// One NtReadFile at an offset, or one ReadFile that is waited for.
///
/// # Safety
/// `ptr` is valid for writes of `len` bytes, initialised or not, and nobody else uses them meanwhile.
pub(crate) unsafe fn read(file: Opened<'_>, ptr: *mut u8, len: usize, offset: u64) -> Result<usize, Errno> {
    positioned(file, offset)?;
    read_end(if file.ways.overlapped {
        // SAFETY: the caller's; the call is waited for.
        finished(file.handle, offset, |handle, overlapped| unsafe {
            ReadFile(handle, ptr, step(len), null_mut(), overlapped)
        })
        .map_err(Errno)
    } else {
        // SAFETY: the caller's; the call ends before it returns.
        plain(offset, |status, offset| unsafe {
            let none = null_mut();
            NtReadFile(file.raw(), none, None, null(), status, ptr.cast(), step(len), offset, null())
        })
    })
}

/// One NtWriteFile at an offset, or one WriteFile that is waited for.
pub(crate) fn write(file: Opened<'_>, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
    positioned(file, offset)?;
    let (ptr, len) = (buffer.as_ptr(), step(buffer.len()));
    if file.ways.overlapped {
        // SAFETY: the buffer is borrowed for the call, which is waited for.
        let written = finished(file.handle, offset, |handle, overlapped| unsafe {
            WriteFile(handle, ptr, len, null_mut(), overlapped)
        });
        return written.map_err(Errno);
    }
    // SAFETY: the buffer is borrowed for the call, which ends before it returns.
    plain(offset, |status, offset| unsafe {
        NtWriteFile(file.raw(), null_mut(), None, null(), status, ptr.cast(), len, offset, null())
    })
}

/// One call on a plain handle, which ends before it returns. It is the system's own and not ReadFile or WriteFile: these say
/// the same by way of an `OVERLAPPED`, which Wine reports to its server each time, and costs thirty times as much there.
fn plain(
    offset: u64,
    call: impl FnOnce(*mut IO_STATUS_BLOCK, *const i64) -> NTSTATUS,
) -> Result<usize, Errno> {
    let mut block = IO_STATUS_BLOCK::default();
    // `positioned` has refused what the system would take for something else.
    let offset = offset as i64;
    let status = call(&raw mut block, &raw const offset);
    if status == STATUS_PENDING {
        // Only if the handle was not what it said. The system is going to write to this frame.
        std::process::abort();
    }
    match status {
        // SAFETY: it turns a number into another.
        ..0 => Err(Errno(unsafe { RtlNtStatusToDosError(status) })),
        0.. => Ok(block.Information),
    }
}

/// One ReadFile without an offset.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn receive(file: Opened<'_>, ptr: *mut u8, len: usize) -> Result<usize, Errno> {
    // The system would wait until there is something to read.
    if len == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's; the call is waited for.
    let result = call(file, 0, |handle, moved, overlapped| unsafe {
        ReadFile(handle, ptr, step(len), moved, overlapped)
    });
    received(result, len)
}

/// One WriteFile without an offset.
pub(crate) fn send(file: Opened<'_>, buffer: &[u8]) -> Result<usize, Errno> {
    // No bytes would reach the reader as such, and look like the end to most.
    if buffer.is_empty() {
        return Ok(0);
    }
    // SAFETY: the buffer is borrowed for the call, which is waited for.
    call(file, 0, |handle, moved, overlapped| unsafe {
        WriteFile(handle, buffer.as_ptr(), step(buffer.len()), moved, overlapped)
    })
}

/// One WriteFile at the end of the file, wherever that is when it happens.
pub(crate) fn append(file: Opened<'_>, buffer: &[u8], _: bool) -> Result<usize, Errno> {
    if file.ways.stream {
        return send(file, buffer);
    }
    // This offset means the end.
    // SAFETY: the buffer is borrowed for the call, which is waited for.
    call(file, u64::MAX, |handle, moved, overlapped| unsafe {
        WriteFile(handle, buffer.as_ptr(), step(buffer.len()), moved, overlapped)
    })
}

/// Refuses what cannot be done at an offset. The largest ones mean "at the end" and "where the last call ended" to the
/// system.
pub(crate) fn positioned(file: Opened<'_>, offset: u64) -> Result<(), Errno> {
    if file.ways.stream {
        return Err(Errno(ERROR_SEEK_ON_DEVICE));
    }
    if i64::try_from(offset).is_err() {
        return Err(Errno(ERROR_INVALID_PARAMETER));
    }
    Ok(())
}

/// A length as the system takes it.
pub(crate) fn step(len: usize) -> u32 {
    len.min(STEP) as u32
}

/// The end of a file, and of a pipe, is no error.
pub(crate) fn read_end(result: Result<usize, Errno>) -> Result<usize, Errno> {
    match result {
        Err(Errno(ERROR_HANDLE_EOF | ERROR_BROKEN_PIPE)) => Ok(0),
        other => other,
    }
}

/// As [`read_end`], of a pipe into which others may write no bytes.
pub(crate) fn received(result: Result<usize, Errno>, len: usize) -> Result<usize, Errno> {
    match result {
        Ok(0) if len > 0 => Err(EMPTY),
        other => read_end(other),
    }
}

pub(crate) fn overlapped_at(offset: u64) -> OVERLAPPED {
    OVERLAPPED {
        Internal: 0,
        InternalHigh: 0,
        Anonymous: OVERLAPPED_0 {
            Anonymous: OVERLAPPED_0_0 { Offset: offset as u32, OffsetHigh: (offset >> 32) as u32 },
        },
        hEvent: null_mut(),
    }
}

/// Makes one call and sees it end.
#[inline]
fn call(
    file: Opened<'_>,
    offset: u64,
    call: impl FnOnce(HANDLE, *mut u32, *mut OVERLAPPED) -> BOOL,
) -> Result<usize, Errno> {
    if file.ways.overlapped {
        let begin = |handle, overlapped| call(handle, null_mut(), overlapped);
        return finished(file.handle, offset, begin).map_err(Errno);
    }
    let mut overlapped = overlapped_at(offset);
    let mut moved = 0;
    if call(file.raw(), &raw mut moved, &raw mut overlapped) != 0 {
        return Ok(moved as usize);
    }
    let error = last_error();
    if error == ERROR_IO_PENDING {
        // Only if the handle was not what it said. The system is going to write to this frame.
        std::process::abort();
    }
    Err(Errno(error))
}

/// The file's size. That it is the truth need not be known here.
pub(crate) fn size(file: Opened<'_>) -> Result<(u64, bool), Errno> {
    let mut size = 0;
    // SAFETY: the place is this frame's.
    done(unsafe { GetFileSizeEx(file.raw(), &raw mut size) })?;
    Ok((size as u64, false))
}

pub(crate) fn set_size(file: Opened<'_>, size: u64) -> Result<(), Errno> {
    let Ok(size) = i64::try_from(size) else { return Err(Errno(ERROR_INVALID_PARAMETER)) };
    set_end(file.handle, size)
}

/// Makes the file `size` bytes long.
fn set_end(handle: BorrowedHandle<'_>, size: i64) -> Result<(), Errno> {
    let end = FILE_END_OF_FILE_INFO { EndOfFile: size };
    // SAFETY: the structure is of the class that is named, with its length.
    done(unsafe {
        SetFileInformationByHandle(
            handle.as_raw_handle(),
            FileEndOfFileInfo,
            (&raw const end).cast(),
            size_of::<FILE_END_OF_FILE_INFO>() as u32,
        )
    })
}

/// Room for `len` bytes. Less than the file has would cut it.
pub(crate) fn allocate(file: Opened<'_>, len: u64) -> Result<(), Errno> {
    if len <= size(file)?.0 {
        return Ok(());
    }
    let Ok(len) = i64::try_from(len) else { return Err(Errno(ERROR_INVALID_PARAMETER)) };
    let room = FILE_ALLOCATION_INFO { AllocationSize: len };
    // SAFETY: the structure is of the class that is named, with its length.
    done(unsafe {
        SetFileInformationByHandle(
            file.raw(),
            FileAllocationInfo,
            (&raw const room).cast(),
            size_of::<FILE_ALLOCATION_INFO>() as u32,
        )
    })
}

pub(crate) fn sync_all(file: Opened<'_>) -> Result<(), Errno> {
    // SAFETY: the handle is open.
    done(unsafe { FlushFileBuffers(file.raw()) })
}

/// There is no lesser call that every file system has.
pub(crate) fn sync_data(file: Opened<'_>) -> Result<(), Errno> {
    sync_all(file)
}

fn done(result: BOOL) -> Result<(), Errno> {
    if result == 0 { Err(Errno(last_error())) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
