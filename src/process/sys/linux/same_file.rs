//! Whether two descriptors are one open file.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::raw;
use crate::process::sys::force::{self, Lack};

/// Asks the kernel; where it or a sandbox refuses, two descriptors of the same inode with the same flags count as
/// one.
pub(crate) fn same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    if !force::lacks(Lack::Kcmp)
        && let Ok(order) = raw::kcmp_file(raw::getpid(), one.as_raw_fd(), other.as_raw_fd())
    {
        return order == 0;
    }
    let identity = |fd| {
        let stat = rustix::fs::fstat(fd)?;
        rustix::io::Result::Ok((stat.st_dev, stat.st_ino, rustix::fs::fcntl_getfl(fd)?))
    };
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}
