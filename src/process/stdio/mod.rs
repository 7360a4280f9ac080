//! What a child's standard handles are: [`Stdio`], and the parent's ends of the pipes.

#[cfg(feature = "fs")]
mod asynchronous;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use super::error::Stream;
use super::sys::{self, AsHandle, Handle, ReadEnd, WriteEnd};

/// What to do with a standard handle of a child.
///
/// Like [`std::process::Stdio`], it is made from what the child shall use; besides, from something borrowed
/// ([`from_borrowed`](Stdio::from_borrowed)).
///
/// ```
/// use haft::process::{Command, Stdio};
///
/// # if cfg!(windows) { return Ok(()) } // there the programs have other names
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
    Piped {
        /// The parent's end is for async calls.
        asynchronous: bool,
    },
    Owned(Handle),
    /// A standard handle of the parent, whatever the stream.
    Standard(Stream),
    /// A duplicate could not be made; the launch says so.
    Failed(io::Error),
    /// A pipe or socket that went with an earlier launch.
    Spent,
}

impl Stdio {
    /// The child shares the parent's handle.
    ///
    /// On Unix, as in std, one that is closed in the parent, or has its close-on-exec flag set there, is closed in the
    /// child. On Windows the child has none where the parent has none, or one that is closed by now; whether it is
    /// inheritable in the parent makes no difference.
    pub fn inherit() -> Stdio {
        Stdio(Kind::Inherit)
    }

    /// The child gets the null device: reads end at once, writes vanish.
    pub fn null() -> Stdio {
        Stdio(Kind::Null)
    }

    /// A pipe is made for the launch; the parent's end is in [`Child`](crate::process::Child).
    pub fn piped() -> Stdio {
        Stdio(Kind::Piped { asynchronous: false })
    }

    /// Makes the parent's end of a [pipe](Stdio::piped) one for async calls, or for sync ones (the default).
    ///
    /// [`pipe::PipeReader::from`](crate::pipe::PipeReader) and [`pipe::PipeWriter::from`](crate::pipe::PipeWriter) make an
    /// end for tasks of what the [`Child`](crate::process::Child) has.
    ///
    /// On Windows an end that async calls can use well is another kind of pipe; it serves sync calls as well, a little
    /// slower. On Unix every pipe serves both, and with anything but a pipe, nothing changes.
    ///
    /// ```
    /// # fn block_on<F: Future>(f: F) -> F::Output {
    /// #     let mut f = std::pin::pin!(f);
    /// #     loop {
    /// #         let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// #         if let std::task::Poll::Ready(out) = f.as_mut().poll(&mut cx) { return out }
    /// #     }
    /// # }
    /// # #[cfg(feature = "fs")]
    /// # block_on(async {
    /// use haft::pipe::PipeReader;
    /// use haft::process::{Command, Stdio};
    ///
    /// let mut command = Command::new(if cfg!(windows) { "cmd" } else { "sh" });
    /// command.args([if cfg!(windows) { "/c" } else { "-c" }, "echo hello"]);
    /// let mut child = command.stdout(Stdio::piped().asynchronous(true)).spawn()?;
    /// let stdout: PipeReader = child.stdout.take().unwrap().into();
    /// let (read, text) = stdout.read_async(vec![0; 64]).await?;
    /// assert_eq!(text[..read].trim_ascii_end(), b"hello");
    /// # child.wait()?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn asynchronous(mut self, asynchronous: bool) -> Stdio {
        if let Kind::Piped { asynchronous: set } = &mut self.0 {
            *set = asynchronous;
        }
        self
    }

    /// The child gets a duplicate of `handle`, made now: closing or reusing the original later changes nothing.
    ///
    /// This cannot fail; if the duplicate cannot be made, the launch returns that error and names the stream.
    pub fn from_borrowed(handle: impl AsHandle) -> Stdio {
        Stdio(match sys::duplicate(handle) {
            Ok(handle) => Kind::Owned(handle),
            Err(error) => Kind::Failed(error),
        })
    }
}

impl From<Handle> for Stdio {
    fn from(handle: Handle) -> Stdio {
        Stdio(Kind::Owned(handle))
    }
}

/// Stdio from each of these types: what it owns.
macro_rules! from_owner {
    ($($owner:ty),* $(,)?) => { $(
        impl From<$owner> for Stdio {
            fn from(owner: $owner) -> Stdio {
                Handle::from(owner).into()
            }
        }
    )* };
}

from_owner!(
    std::fs::File,
    io::PipeReader,
    io::PipeWriter,
    ChildStdin,
    ChildStdout,
    ChildStderr,
    std::process::ChildStdin,
    std::process::ChildStdout,
    std::process::ChildStderr,
);

impl From<io::Stdout> for Stdio {
    fn from(_: io::Stdout) -> Stdio {
        Stdio(Kind::Standard(Stream::Stdout))
    }
}

impl From<io::Stderr> for Stdio {
    fn from(_: io::Stderr) -> Stdio {
        Stdio(Kind::Standard(Stream::Stderr))
    }
}

/// The parent's end of a child's standard input.
///
/// Dropping it closes it, and the child reads to the end.
#[derive(Debug)]
pub struct ChildStdin(pub(crate) WriteEnd);

/// The parent's end of a child's standard output.
#[derive(Debug)]
pub struct ChildStdout(pub(crate) ReadEnd);

/// The parent's end of a child's standard error.
#[derive(Debug)]
pub struct ChildStderr(pub(crate) ReadEnd);

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
