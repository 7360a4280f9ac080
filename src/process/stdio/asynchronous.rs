//! The parent's ends for tasks.

use super::{ChildStderr, ChildStdin, ChildStdout};
use crate::pipe::{PipeReader, PipeWriter};
use crate::process::sys::{Handle, is_overlapped};

/// The end for tasks: its [`write_all_async`](PipeWriter::write_all_async) is carried by the process's engine. On Windows
/// it should be one of a [pipe](crate::process::Stdio::piped) that is [`asynchronous`](crate::process::Stdio::asynchronous).
impl From<ChildStdin> for PipeWriter {
    fn from(end: ChildStdin) -> PipeWriter {
        let overlapped = is_overlapped(&end.0);
        PipeWriter::of_a_child(Handle::from(end), overlapped)
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
                let overlapped = is_overlapped(&end.0);
                PipeReader::of_a_child(Handle::from(end), overlapped)
            }
        }
    )* };
}

readers!(ChildStdout, ChildStderr);
