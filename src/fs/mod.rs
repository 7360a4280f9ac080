//! Random-access file I/O, sync and async on one handle.
//!
//! A [`File`] reads and writes at offsets that the caller names; it has no cursor, so any number of threads and
//! tasks use one `File`, or its clones, at the same time. Each method comes twice. The sync one borrows a
//! buffer and is one system call, as in std's `FileExt`. The async one takes the buffer by
//! value, because the system may still write to it when the future is dropped, and gives it back with the
//! result. Any executor can drive it, or none.
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
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("table");
//! use haft::fs::File;
//!
//! let file = File::options().read(true).write(true).create(true).open(path)?;
//! file.write_all_at(b"0123456789", 0)?;
//!
//! let mut four = [0; 4];
//! file.read_exact_at(&mut four, 2)?;
//! assert_eq!(&four, b"2345");
//!
//! let (read, buffer) = file.read_at_async(vec![0; 4], 8).await?;
//! assert_eq!(&buffer[..read], b"89");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # What an async operation costs
//!
//! No allocation: the object that stands for an operation is reused (a buffer *type* of more than 64 bytes,
//! not its contents, is boxed while queued). A small read is first tried on the calling thread, from the page
//! cache alone, and most reads of cached files end there at the cost of the system call. What would wait is
//! handed to the [engine](crate::engine).
//!
//! # Dropping a future
//!
//! Nothing is lost and nothing dangles, in any state. An operation that still waits in the queue never
//! happens. One that runs ends its current system call and starts no other; the buffer is kept until then, and
//! so is the descriptor, even if the `File` is dropped. What a dropped write had already written stays written.

mod buf;
mod error;
mod file;
pub(crate) mod flags;
pub(crate) mod futures;
pub(crate) mod open_options;
pub(crate) mod sys;
mod vectored;

pub use buf::{IoBuf, IoBufMut, Slice, Spare};
pub use error::OpError;
pub use file::File;
pub use futures::{
    Allocate, Len, ReadAt, ReadExactAt, ReadVectoredAt, SetLen, SyncAll, SyncData, WriteAllAt, WriteAt,
    WriteVectoredAt,
};
pub use open_options::OpenOptions;
pub use vectored::Buffers;
