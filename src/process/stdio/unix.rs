//! Conversions from and to descriptors.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use super::{ChildStderr, ChildStdin, ChildStdout, Stdio};

impl From<std::os::unix::net::UnixStream> for Stdio {
    fn from(socket: std::os::unix::net::UnixStream) -> Stdio {
        OwnedFd::from(socket).into()
    }
}

/// The conversions that each of the parent's ends has.
macro_rules! pipe_end {
    ($name:ident, $inner:ident) => {
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.0.as_raw_fd()
            }
        }

        impl IntoRawFd for $name {
            fn into_raw_fd(self) -> RawFd {
                self.0.into_raw_fd()
            }
        }

        impl From<$name> for OwnedFd {
            fn from(end: $name) -> OwnedFd {
                end.0.into()
            }
        }

        /// Takes any descriptor; reads and writes go to it as they are.
        impl From<OwnedFd> for $name {
            fn from(fd: OwnedFd) -> $name {
                $name($inner::from(fd))
            }
        }
    };
}

pipe_end!(ChildStdin, PipeWriter);
pipe_end!(ChildStdout, PipeReader);
pipe_end!(ChildStderr, PipeReader);
