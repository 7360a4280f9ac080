//! The error of an operation that had a buffer.

use crate::engine::Fault;
use std::{error::Error, fmt, io};

/// Why an async operation failed, how far it had come, and the buffer, which is never lost.
///
/// It turns into an [`io::Error`] by `?`, which drops the buffer.
///
/// ```
/// # fn block_on<F: Future>(f: F) -> F::Output {
/// #     let mut f = std::pin::pin!(f);
/// #     loop {
/// #         let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// #         if let std::task::Poll::Ready(out) = f.as_mut().poll(&mut cx) { return out }
/// #     }
/// # }
/// # block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("short");
/// # std::fs::write(&path, b"abc")?;
/// let file = haft::fs::File::open(path)?;
/// let (error, done, buffer) = file.read_exact_at_async(vec![0; 5], 0).await.unwrap_err().into_parts();
/// assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
/// assert_eq!(&buffer[..done], b"abc");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct OpError<B> {
    pub(super) error: io::Error,
    pub(super) done: usize,
    pub(super) buffer: B,
}

impl<B> OpError<B> {
    /// The error, the number of bytes transferred before it, and the buffer.
    pub fn into_parts(self) -> (io::Error, usize, B) {
        (self.error, self.done, self.buffer)
    }

    /// The error alone.
    pub fn error(&self) -> &io::Error {
        &self.error
    }

    /// The kind of the error.
    pub fn kind(&self) -> io::ErrorKind {
        self.error.kind()
    }

    /// How many bytes were transferred before the error.
    pub fn done(&self) -> usize {
        self.done
    }
}

impl<B> fmt::Debug for OpError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpError")
            .field("error", &self.error)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<B> fmt::Display for OpError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.done {
            0 => self.error.fmt(f),
            done => write!(f, "{} (after {done} bytes)", self.error),
        }
    }
}

impl<B> Error for OpError<B> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl<B> From<OpError<B>> for io::Error {
    fn from(error: OpError<B>) -> io::Error {
        error.error
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> io::Error {
        match fault {
            Fault::Os(errno) => io::Error::from_raw_os_error(errno),
            Fault::WriteZero => {
                io::Error::new(io::ErrorKind::WriteZero, "the system accepted none of the bytes to write")
            }
            Fault::Appends => io::Error::new(
                io::ErrorKind::InvalidInput,
                "a positioned write on a file opened with O_APPEND: the system would append and ignore the offset",
            ),
        }
    }
}

pub(super) fn unexpected_end() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file ended before the buffer was full")
}

#[cold]
pub(super) fn appended_in_part(written: usize, len: usize) -> io::Error {
    let message = format!("the system appended {written} of {len} bytes");
    io::Error::new(io::ErrorKind::WriteZero, message)
}
