//! Files and pipes as the descriptors that they are.

use crate::{
    engine::Engine,
    fs::File,
    pipe::{PipeReader, PipeWriter},
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Carried by the process's engine; see [`Engine::adopt`] for another.
impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> File {
        Engine::process().adopt(fd)
    }
}

macro_rules! descriptors {
    ($($name:ident)*) => {$(
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.handle.owned().as_fd()
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.handle.owned().as_raw_fd()
            }
        }
    )*};
}

descriptors! { File PipeReader PipeWriter }
