//! Pipes, each end for sync use, for async use, or both.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! let (mut reader, mut writer) = haft::pipe::pipe()?;
//! writer.write_all(b"through")?;
//! drop(writer);
//! let mut text = String::new();
//! reader.read_to_string(&mut text)?;
//! assert_eq!(text, "through");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! An end that is made for it, by a [`Builder`], is read and written by futures too. They own their buffers, as those
//! of [`fs`](crate::fs) do, run under any executor, and allocate nothing in steady state:
//!
//! ```
//! # fn block_on<F: Future>(f: F) -> F::Output {
//! #     let mut f = std::pin::pin!(f);
//! #     loop {
//! #         let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! #         if let std::task::Poll::Ready(out) = f.as_mut().poll(&mut cx) { return out }
//! #     }
//! # }
//! # block_on(async {
//! use std::io::Write;
//!
//! let (reader, mut writer) = haft::pipe::Builder::new().async_reader(true).build()?;
//! writer.write_all(b"some")?;
//! let (read, buffer) = reader.read_async(vec![0; 16]).await?;
//! assert_eq!(&buffer[..read], b"some");
//! drop(writer);
//! let (read, _) = reader.read_async(buffer).await?;
//! assert_eq!(read, 0);
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # What an async operation costs
//!
//! On Windows an end made for async use is an overlapped one, bound to the engine's completion port: an operation that
//! has to wait costs no thread, and dropping its future cancels it. On Linux, for now, an operation that waits occupies
//! a thread of the engine until the other side does something, even after its future is dropped: give such pipes an
//! [engine](Builder::engine) of their own, or read them by std's means.
//!
//! No end passes to child processes by itself. One that is given to a child should be made for sync use: on Windows most
//! programs cannot use an overlapped handle as their standard input or output.

pub use crate::fs::futures::{ReadSome, WriteAll};

use crate::{
    engine::{Engine, HandleRef, Kind, Traits},
    fs::{
        IoBuf, IoBufMut,
        futures::Operation,
        sys::{self, OwnedHandle, Ways},
    },
};
use std::{fmt, io};

/// A pipe with both ends for sync use, as [`std::io::pipe`] makes.
///
/// # Errors
/// What pipe2(2), or CreatePipe, reports.
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    Builder::new().build()
}

/// How a pipe is made. See the [module](self) for an example.
#[derive(Clone, Debug, Default)]
#[must_use = "it makes a pipe only when built"]
pub struct Builder {
    async_reader: bool,
    async_writer: bool,
    engine: Option<Engine>,
}

impl Builder {
    /// Both ends for sync use.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Make the read end for async use. Sync reads work on it all the same.
    pub fn async_reader(mut self, asynchronous: bool) -> Builder {
        self.async_reader = asynchronous;
        self
    }

    /// Make the write end for async use. Sync writes work on it all the same.
    pub fn async_writer(mut self, asynchronous: bool) -> Builder {
        self.async_writer = asynchronous;
        self
    }

    /// The engine that carries the async operations of both ends; [`Engine::default`] if none is named.
    pub fn engine(mut self, engine: &Engine) -> Builder {
        self.engine = Some(engine.clone());
        self
    }

    /// Makes the pipe.
    ///
    /// # Errors
    /// What the system reports.
    ///
    /// # References
    /// pipe2(2) with O_CLOEXEC on Unix. CreatePipe on Windows, or, with an end for async use, CreateNamedPipeW with a
    /// random name and CreateFileW.
    pub fn build(self) -> io::Result<(PipeReader, PipeWriter)> {
        let engine = self.engine.as_ref().unwrap_or_else(|| Engine::process());
        let (reader, writer) = sys::pipe(self.async_reader, self.async_writer)?;
        let reader = PipeReader { handle: end(engine, reader, sys::stream(self.async_reader)) };
        let writer = PipeWriter { handle: end(engine, writer, sys::stream(self.async_writer)) };
        Ok((reader, writer))
    }
}

/// The end of a pipe that haft made, or that was made for haft.
fn end(engine: &Engine, handle: OwnedHandle, ways: Ways) -> HandleRef {
    HandleRef::new(engine.lease(), handle, Traits { ways, ..Traits::default() })
}

/// The end of a pipe from which what was written to the other is read. It is closed when it is dropped, and no
/// operation is under way.
pub struct PipeReader {
    pub(crate) handle: HandleRef,
}

/// The end of a pipe to which is written. The reader sees the end of the pipe when this end, and every duplicate of it,
/// is closed.
pub struct PipeWriter {
    pub(crate) handle: HandleRef,
}

impl PipeReader {
    /// The parent's end of a pipe from a child.
    #[cfg(feature = "process")]
    pub(crate) fn of_a_child(end: OwnedHandle, asynchronous: bool) -> PipeReader {
        PipeReader { handle: self::end(Engine::process(), end, sys::stream(asynchronous)) }
    }

    /// Waits until there is something to read, and reads at most as much as fits. 0 bytes mean that every writer is
    /// gone.
    ///
    /// # Errors
    /// What the system reports; the [`OpError`](crate::fs::OpError) has the buffer.
    ///
    /// # References
    /// read(2); an overlapped ReadFile.
    #[inline]
    pub fn read_async<B: IoBufMut>(&self, buffer: B) -> ReadSome<'_, B> {
        ReadSome(Operation::new(&self.handle, Kind::Receive, 0, buffer))
    }

    /// The same end as std's type, which std's and haft's `Stdio` take.
    ///
    /// # Errors
    /// Gives `self` back while operations are under way.
    pub fn try_into_std(self) -> Result<io::PipeReader, PipeReader> {
        self.handle.into_owned().map(io::PipeReader::from).map_err(|handle| PipeReader { handle })
    }
}

impl PipeWriter {
    /// The parent's end of a pipe to a child.
    #[cfg(feature = "process")]
    pub(crate) fn of_a_child(end: OwnedHandle, asynchronous: bool) -> PipeWriter {
        PipeWriter { handle: self::end(Engine::process(), end, sys::stream(asynchronous)) }
    }

    /// Writes all of `buffer`, and gives it back.
    ///
    /// # Errors
    /// `BrokenPipe` if the reader is gone; else what the system reports. The [`OpError`](crate::fs::OpError) has the
    /// buffer and how much was written.
    ///
    /// # References
    /// write(2); an overlapped WriteFile.
    #[inline]
    pub fn write_all_async<B: IoBuf>(&self, buffer: B) -> WriteAll<'_, B> {
        WriteAll(Operation::new(&self.handle, Kind::Send, 0, buffer))
    }

    /// The same end as std's type, which std's and haft's `Stdio` take.
    ///
    /// # Errors
    /// Gives `self` back while operations are under way.
    pub fn try_into_std(self) -> Result<io::PipeWriter, PipeWriter> {
        self.handle.into_owned().map(io::PipeWriter::from).map_err(|handle| PipeWriter { handle })
    }
}

/// Carried by the process's engine.
impl From<io::PipeReader> for PipeReader {
    fn from(reader: io::PipeReader) -> PipeReader {
        PipeReader { handle: end(Engine::process(), reader.into(), sys::foreign_stream()) }
    }
}

/// Carried by the process's engine.
impl From<io::PipeWriter> for PipeWriter {
    fn from(writer: io::PipeWriter) -> PipeWriter {
        PipeWriter { handle: end(Engine::process(), writer.into(), sys::foreign_stream()) }
    }
}

/// Reads what is there, and waits if nothing is. 0 bytes mean that every writer is gone.
impl io::Read for &PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // SAFETY: the buffer is borrowed for the call.
            match unsafe { sys::receive(self.handle.opened(), buffer.as_mut_ptr(), buffer.len()) } {
                Err(errno) if sys::is_interruption(errno) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl io::Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl io::Write for &PipeWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(sys::send(self.handle.opened(), buffer)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Write for PipeWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for PipeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeReader").field("handle", self.handle.owned()).finish()
    }
}

impl fmt::Debug for PipeWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeWriter").field("handle", self.handle.owned()).finish()
    }
}
