//! Files by descriptor. Linux for now; what only Linux has is [`read_nowait`] and [`is_in_memory`].
//!
//! References: open(2), pread(2), preadv2(2), fstat(2), ftruncate(2), fsync(2), statfs(2), fcntl(2).

mod open;

pub(crate) use open::{Flags, custom_status, open, status};

use crate::engine::Fault;
use rustix::{
    fd::BorrowedFd,
    fs::{FileType, fstat, fstatfs, ftruncate},
    io::{Errno, ReadWriteFlags},
};
use std::{io::IoSliceMut, mem::MaybeUninit};

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault::Os(errno.raw_os_error())
    }
}

/// One pread(2).
#[inline]
pub(crate) fn read_into(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::pread(fd, buffer, offset)
}

/// One pread(2).
///
/// # Safety
/// `ptr` is valid for writes of `len` bytes, initialised or not, and nobody else uses them meanwhile.
#[inline]
pub(crate) unsafe fn read(fd: BorrowedFd<'_>, ptr: *mut u8, len: usize, offset: u64) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    let buffer = unsafe { std::slice::from_raw_parts_mut(ptr.cast::<MaybeUninit<u8>>(), len) };
    rustix::io::pread(fd, buffer, offset).map(|(read, _)| read.len())
}

/// One pwrite(2).
#[inline]
pub(crate) fn write(fd: BorrowedFd<'_>, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::pwrite(fd, buffer, offset)
}

/// One preadv2(2) that brings only what needs no waiting.
///
/// # Safety
/// As for [`read`].
#[inline]
pub(crate) unsafe fn read_nowait(
    fd: BorrowedFd<'_>,
    ptr: *mut u8,
    len: usize,
    offset: u64,
) -> Result<usize, Errno> {
    // SAFETY: the caller's. The kernel only writes to the memory, so it may be uninitialised; nothing here
    // reads it.
    let buffer = unsafe { std::slice::from_raw_parts_mut(ptr, len) };
    rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
}

/// The file's size, and whether it is a regular one, so that the size is the truth.
pub(crate) fn size(fd: BorrowedFd<'_>) -> Result<(u64, bool), Errno> {
    let stat = fstat(fd)?;
    Ok((stat.st_size as u64, FileType::from_raw_mode(stat.st_mode).is_file()))
}

/// Whether this is a regular file of a file system that keeps files in memory alone, so that reading never waits. A
/// device in such a file system (/dev) may.
pub(crate) fn is_in_memory(fd: BorrowedFd<'_>) -> bool {
    /// `TMPFS_MAGIC` of <linux/magic.h>.
    const TMPFS: i64 = 0x0102_1994;
    #[allow(clippy::unnecessary_cast)] // its type differs between architectures
    let in_tmpfs = fstatfs(fd).is_ok_and(|fs| fs.f_type as i64 == TMPFS);
    in_tmpfs && size(fd).is_ok_and(|(_, regular)| regular)
}

pub(crate) fn set_size(fd: BorrowedFd<'_>, size: u64) -> Result<(), Errno> {
    // The C library's type is signed, and a negative length is an invalid one.
    if i64::try_from(size).is_err() {
        return Err(Errno::INVAL);
    }
    retry(|| ftruncate(fd, size))
}

pub(crate) fn sync_all(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    retry(|| rustix::fs::fsync(fd))
}

pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    retry(|| rustix::fs::fdatasync(fd))
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
