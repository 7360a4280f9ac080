//! Files and pipes as the handles that they are.

use crate::{
    engine::Engine,
    fs::File,
    pipe::{PipeReader, PipeWriter},
};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle, RawHandle};

/// Carried by the process's engine; see [`Engine::adopt`] for another.
impl From<OwnedHandle> for File {
    fn from(handle: OwnedHandle) -> File {
        Engine::process().adopt(handle)
    }
}

macro_rules! handles {
    ($($name:ident)*) => {$(
        impl AsHandle for $name {
            fn as_handle(&self) -> BorrowedHandle<'_> {
                self.handle.owned().as_handle()
            }
        }

        impl AsRawHandle for $name {
            fn as_raw_handle(&self) -> RawHandle {
                self.handle.owned().as_raw_handle()
            }
        }
    )*};
}

handles! { File PipeReader PipeWriter }
