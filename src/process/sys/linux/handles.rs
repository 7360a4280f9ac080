//! Descriptors that a launch needs in the parent. All have close-on-exec, and none is 0, 1 or 2.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{FileType, Mode, OFlags, fstat};

use crate::process::error::Stream;
use crate::process::sys::Use;

/// The parent's descriptor that becomes one of the child's.
pub(crate) type Source = RawFd;

pub(crate) fn standard(stream: Stream) -> Source {
    stream as Source
}

pub(crate) fn source(fd: &OwnedFd) -> Source {
    fd.as_raw_fd()
}

/// The null device.
pub(crate) fn null(child: Use) -> io::Result<OwnedFd> {
    let access = match child {
        Use::Reads => OFlags::RDONLY,
        Use::Writes => OFlags::WRONLY,
    };
    off_standard(rustix::fs::open(c"/dev/null", access | OFlags::CLOEXEC, Mode::empty())?)
}

/// A pipe: the child's end and the parent's end. One kind serves sync and async calls.
pub(crate) fn pipe(child: Use, _overlapped: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    let reader = off_standard(reader.into())?;
    let writer = off_standard(writer.into())?;
    Ok(match child {
        Use::Reads => (reader, writer),
        Use::Writes => (writer, reader),
    })
}

/// Whether an end was made for overlapped calls: there is no such thing here.
#[cfg(feature = "fs")]
pub(crate) fn is_overlapped<End>(_: &End) -> bool {
    false
}

/// A duplicate with close-on-exec that is none of 0, 1 and 2: where a standard descriptor of the parent is closed,
/// a new one would take its number and be inherited under it.
pub(crate) fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// Moves a descriptor that we made off the standard numbers.
pub(super) fn off_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { duplicate(&fd) }
}

/// Whether somebody may wait for the other end of it: a command that keeps such a thing open after the launch keeps
/// that somebody waiting.
pub(crate) fn has_other_end(fd: impl AsFd) -> bool {
    fstat(fd)
        .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket))
}

/// Which file is open under a number: device and inode.
pub(super) type Identity = (u64, u64);

/// `None` where nothing is.
pub(super) fn identity(number: RawFd) -> Option<Identity> {
    // SAFETY: only asked about within this call; where the number is closed, the call says so.
    let stat = fstat(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the types differ between architectures")]
    Some((stat.st_dev as u64, stat.st_ino as u64))
}
