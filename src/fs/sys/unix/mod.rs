//! Files by descriptor. Linux for now; what only Linux has is [`read_nowait`] and [`is_in_memory`].
//!
//! References: open(2), pread(2), preadv2(2), fstat(2), ftruncate(2), fsync(2), statfs(2), fcntl(2).

mod handles;
mod open;
mod options;

pub(crate) use open::{OwnFlags, learn, open};
/// An open file, as calls take it; a file that is owned; the system's error number.
pub(crate) use rustix::{
    fd::{BorrowedFd as Opened, OwnedFd as OwnedHandle},
    io::Errno,
};

use crate::engine::{Fault, Segment};
use rustix::{
    fd::AsFd,
    fs::{FallocateFlags, FileType, fallocate, fstat, fstatfs, ftruncate},
    io::ReadWriteFlags,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
};

/// How calls are made on a file: there is one way only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways(());

#[inline(always)]
pub(crate) fn opened(handle: &OwnedHandle, _: Ways) -> Opened<'_> {
    handle.as_fd()
}

/// The ends of a new pipe, with O_CLOEXEC. Every end takes sync and async operations.
pub(crate) fn pipe(_: bool, _: bool) -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// How calls are made on an end of a pipe that [`pipe`] made.
pub(crate) fn stream(_: bool) -> Ways {
    Ways(())
}

/// How calls are made on an end of a pipe that others made.
pub(crate) fn foreign_stream() -> Ways {
    Ways(())
}

/// Whether a signal ended the call before it did anything.
#[inline]
pub(crate) fn is_interruption(errno: Errno) -> bool {
    errno == Errno::INTR
}

/// Whether a read failed only because the one before it ended with the file: the kernel says 0 then.
#[inline(always)]
pub(crate) fn is_end(_: Opened<'_>, _: u64, _: Errno) -> bool {
    false
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault::Os(errno.raw_os_error())
    }
}

/// One pread(2).
#[inline]
pub(crate) fn read_into(file: Opened<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::pread(file, buffer, offset)
}

/// One pread(2).
///
/// # Safety
/// `ptr` is valid for writes of `len` bytes, initialised or not, and nobody else uses them meanwhile.
#[inline]
pub(crate) unsafe fn read(file: Opened<'_>, ptr: *mut u8, len: usize, offset: u64) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    let buffer = unsafe { std::slice::from_raw_parts_mut(ptr.cast::<MaybeUninit<u8>>(), len) };
    rustix::io::pread(file, buffer, offset).map(|(read, _)| read.len())
}

/// One pwrite(2).
#[inline]
pub(crate) fn write(file: Opened<'_>, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::pwrite(file, buffer, offset)
}

/// One preadv(2), of as many buffers as it takes: rustix leaves out those above `IOV_MAX`.
pub(crate) fn read_vectored(
    file: Opened<'_>,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> Result<usize, Errno> {
    rustix::io::preadv(file, buffers, offset)
}

/// One pwritev(2), as above.
pub(crate) fn write_vectored(file: Opened<'_>, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize, Errno> {
    rustix::io::pwritev(file, buffers, offset)
}

/// One preadv(2).
///
/// # Safety
/// Each buffer is valid for writes, initialised or not, and nobody else uses it meanwhile.
pub(crate) unsafe fn read_segments(file: Opened<'_>, list: &[Segment], offset: u64) -> Result<usize, Errno> {
    // SAFETY: IoSliceMut has the layout of iovec, and so has a segment. The kernel only writes to the buffers, and the
    // list is not changed.
    let buffers = unsafe { std::slice::from_raw_parts_mut(list.as_ptr().cast_mut().cast(), list.len()) };
    rustix::io::preadv(file, buffers, offset)
}

/// One pwritev(2).
///
/// # Safety
/// Each buffer is initialised, and nobody changes it meanwhile.
pub(crate) unsafe fn write_segments(file: Opened<'_>, list: &[Segment], offset: u64) -> Result<usize, Errno> {
    // SAFETY: IoSlice has the layout of iovec, and so has a segment.
    let buffers: &[IoSlice<'_>] = unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), list.len()) };
    write_vectored(file, buffers, offset)
}

/// One read(2).
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn receive(file: Opened<'_>, ptr: *mut u8, len: usize) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    let buffer = unsafe { std::slice::from_raw_parts_mut(ptr.cast::<MaybeUninit<u8>>(), len) };
    rustix::io::read(file, buffer).map(|(read, _)| read.len())
}

/// One write(2).
pub(crate) fn send(file: Opened<'_>, buffer: &[u8]) -> Result<usize, Errno> {
    rustix::io::write(file, buffer)
}

/// One write to the end of the file, wherever that is when it happens: pwritev2(2) with RWF_APPEND, or write(2) if
/// every write goes there.
pub(crate) fn append(file: Opened<'_>, buffer: &[u8], appends: bool) -> Result<usize, Errno> {
    if appends {
        return rustix::io::write(file, buffer);
    }
    rustix::io::pwritev2(file, &[IoSlice::new(buffer)], 0, ReadWriteFlags::APPEND)
}

/// One preadv2(2) that brings only what needs no waiting.
///
/// # Safety
/// As for [`read`].
#[inline]
pub(crate) unsafe fn read_nowait(
    file: Opened<'_>,
    ptr: *mut u8,
    len: usize,
    offset: u64,
) -> Result<usize, Errno> {
    // SAFETY: the caller's. The kernel only writes to the memory, so it may be uninitialised; nothing here
    // reads it.
    let buffer = unsafe { std::slice::from_raw_parts_mut(ptr, len) };
    rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
}

/// The file's size, and whether it is a regular one, so that the size is the truth.
pub(crate) fn size(file: Opened<'_>) -> Result<(u64, bool), Errno> {
    let stat = fstat(file)?;
    Ok((stat.st_size as u64, FileType::from_raw_mode(stat.st_mode).is_file()))
}

/// Whether this is a regular file of a file system that keeps files in memory alone, so that reading never waits. A
/// device in such a file system (/dev) may.
pub(crate) fn is_in_memory(file: Opened<'_>) -> bool {
    /// `TMPFS_MAGIC` of <linux/magic.h>.
    const TMPFS: i64 = 0x0102_1994;
    #[allow(clippy::unnecessary_cast)] // its type differs between architectures
    let in_tmpfs = fstatfs(file).is_ok_and(|fs| fs.f_type as i64 == TMPFS);
    in_tmpfs && size(file).is_ok_and(|(_, regular)| regular)
}

pub(crate) fn set_size(file: Opened<'_>, size: u64) -> Result<(), Errno> {
    // The C library's type is signed, and a negative length is an invalid one.
    if i64::try_from(size).is_err() {
        return Err(Errno::INVAL);
    }
    retry(|| ftruncate(file, size))
}

/// Room for `len` bytes; the file's length stays.
pub(crate) fn allocate(file: Opened<'_>, len: u64) -> Result<(), Errno> {
    // The system refuses to set nothing aside.
    if len == 0 {
        return Ok(());
    }
    retry(|| fallocate(file, FallocateFlags::KEEP_SIZE, 0, len))
}

pub(crate) fn sync_all(file: Opened<'_>) -> Result<(), Errno> {
    retry(|| rustix::fs::fsync(file))
}

pub(crate) fn sync_data(file: Opened<'_>) -> Result<(), Errno> {
    retry(|| rustix::fs::fdatasync(file))
}

/// Calls again while a signal interrupts, as std does for these calls.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
