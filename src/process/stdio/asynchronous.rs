//! The parent's ends for tasks.

use std::io;

use super::{ChildStderr, ChildStdin, ChildStdout};
use crate::pipe::{PipeReader, PipeWriter};
use crate::process::sys::Handle;

/// The end for tasks: its [`write_all_async`](PipeWriter::write_all_async) is carried by the process's engine. On Windows
/// it should be one of a [pipe](crate::process::Stdio::piped) that is [`asynchronous`](crate::process::Stdio::asynchronous).
impl From<ChildStdin> for PipeWriter {
    fn from(end: ChildStdin) -> PipeWriter {
        io::PipeWriter::from(Handle::from(end)).into()
    }
}

/// Ends that are read.
macro_rules! readers {
    ($($end:ty),*) => { $(
        /// The end for tasks: its [`read_async`](PipeReader::read_async) is carried by the process's engine. On Windows it
        /// should be one of a [pipe](crate::process::Stdio::piped) that is
        /// [`asynchronous`](crate::process::Stdio::asynchronous).
        impl From<$end> for PipeReader {
            fn from(end: $end) -> PipeReader {
                io::PipeReader::from(Handle::from(end)).into()
            }
        }
    )* };
}

readers!(ChildStdout, ChildStderr);
