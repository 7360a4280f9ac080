//! Conversions from and to handles.

use std::os::windows::io::{
    AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, IntoRawHandle, OwnedHandle, RawHandle,
};

use super::{ChildStderr, ChildStdin, ChildStdout, Stdio};

impl FromRawHandle for Stdio {
    unsafe fn from_raw_handle(handle: RawHandle) -> Stdio {
        // SAFETY: the caller's.
        unsafe { OwnedHandle::from_raw_handle(handle) }.into()
    }
}

/// The conversions that each of the parent's ends has.
macro_rules! pipe_end {
    ($($name:ident),*) => { $(
        impl AsHandle for $name {
            fn as_handle(&self) -> BorrowedHandle<'_> {
                self.0.as_handle()
            }
        }

        impl AsRawHandle for $name {
            fn as_raw_handle(&self) -> RawHandle {
                self.0.as_handle().as_raw_handle()
            }
        }

        impl IntoRawHandle for $name {
            fn into_raw_handle(self) -> RawHandle {
                OwnedHandle::from(self).into_raw_handle()
            }
        }

        impl From<$name> for OwnedHandle {
            fn from(end: $name) -> OwnedHandle {
                end.0.into()
            }
        }

        /// Takes any handle that is read and written in order, overlapped or not.
        impl From<OwnedHandle> for $name {
            fn from(handle: OwnedHandle) -> $name {
                $name(handle.into())
            }
        }
    )* };
}

pipe_end!(ChildStdin, ChildStdout, ChildStderr);
