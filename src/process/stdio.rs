//! What a child's standard handles are: [`Stdio`], and the parent's ends of the pipes.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use super::sys;

/// What to do with a standard handle of a child.
///
/// Like [`std::process::Stdio`], it is made from what the child shall use; besides, from something borrowed
/// ([`from_borrowed`](Stdio::from_borrowed)).
///
/// ```
/// use haft::process::{Command, Stdio};
///
/// let file = std::fs::File::open("/dev/null")?;
/// let status = Command::new("cat").stdin(Stdio::from_borrowed(&file)).status()?;
/// assert!(status.success());
/// drop(file); // still ours
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stdio(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    Inherit,
    Null,
    Piped,
    Owned(OwnedFd),
    /// A standard descriptor of the parent by its number.
    Standard(RawFd),
    /// A duplicate could not be made; the launch says so.
    Failed(io::Error),
    /// A pipe or socket that went with an earlier launch.
    Spent,
}

impl Stdio {
    /// The child shares the parent's handle.
    ///
    /// On Unix, as in std, one that is closed in the parent, or has its close-on-exec flag set there, is closed in the
    /// child.
    pub fn inherit() -> Stdio {
        Stdio(Kind::Inherit)
    }

    /// The child gets the null device: reads end at once, writes vanish.
    pub fn null() -> Stdio {
        Stdio(Kind::Null)
    }

    /// A pipe is made for the launch; the parent's end is in [`Child`](crate::process::Child).
    pub fn piped() -> Stdio {
        Stdio(Kind::Piped)
    }

    /// The child gets a duplicate of `handle`, made now: closing or reusing the original later changes nothing.
    ///
    /// This cannot fail; if the duplicate cannot be made, the launch returns that error and names the stream.
    pub fn from_borrowed(handle: impl AsFd) -> Stdio {
        Stdio(match sys::duplicate(handle.as_fd()) {
            Ok(fd) => Kind::Owned(fd),
            Err(error) => Kind::Failed(error),
        })
    }
}

impl From<OwnedFd> for Stdio {
    fn from(fd: OwnedFd) -> Stdio {
        Stdio(Kind::Owned(fd))
    }
}

/// Stdio from each of these types: what it owns.
macro_rules! from_owner {
    ($($owner:ty),* $(,)?) => { $(
        impl From<$owner> for Stdio {
            fn from(owner: $owner) -> Stdio {
                OwnedFd::from(owner).into()
            }
        }
    )* };
}

from_owner!(
    File,
    PipeReader,
    PipeWriter,
    ChildStdin,
    ChildStdout,
    ChildStderr,
    std::process::ChildStdin,
    std::process::ChildStdout,
    std::process::ChildStderr,
    std::os::unix::net::UnixStream,
);

impl From<io::Stdout> for Stdio {
    fn from(_: io::Stdout) -> Stdio {
        Stdio(Kind::Standard(1))
    }
}

impl From<io::Stderr> for Stdio {
    fn from(_: io::Stderr) -> Stdio {
        Stdio(Kind::Standard(2))
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

/// The parent's end of a child's standard input.
///
/// Dropping it closes it, and the child reads to the end.
#[derive(Debug)]
pub struct ChildStdin(pub(crate) PipeWriter);

/// The parent's end of a child's standard output.
#[derive(Debug)]
pub struct ChildStdout(pub(crate) PipeReader);

/// The parent's end of a child's standard error.
#[derive(Debug)]
pub struct ChildStderr(pub(crate) PipeReader);

pipe_end!(ChildStdin, PipeWriter);
pipe_end!(ChildStdout, PipeReader);
pipe_end!(ChildStderr, PipeReader);

impl Write for ChildStdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for &ChildStdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&self.0).write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.0).flush()
    }
}

/// Reading from the parent's ends.
macro_rules! read_end {
    ($($name:ty),*) => { $(
        impl Read for $name {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.read(buf)
            }

            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.0.read_vectored(bufs)
            }

            fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
                self.0.read_to_end(buf)
            }
        }
    )* };
}

read_end!(ChildStdout, ChildStderr);
