//! Handles that a launch needs in the parent. None is inheritable but within a launch.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{
    AsHandle, AsRawHandle, AsRawSocket, BorrowedHandle, BorrowedSocket, OwnedHandle, OwnedSocket,
};
use std::ptr::{self, null_mut};

use windows_sys::Wdk::Foundation::{NtQueryObject, ObjectTypeInformation};
use windows_sys::Win32::Foundation::{
    GENERIC_READ, GENERIC_WRITE, GetHandleInformation, HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE,
    UNICODE_STRING,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TYPE_PIPE, GetFileType, OPEN_EXISTING,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};

use crate::process::error::Stream;
use crate::process::plan::Source;
use crate::process::sys::Use;
use crate::windows::{owned, pipe as pipes};

/// The null device.
pub(crate) fn null(child: Use) -> io::Result<OwnedHandle> {
    let name: Vec<u16> = r"\\.\NUL".encode_utf16().chain([0]).collect();
    let access = match child {
        Use::Reads => GENERIC_READ,
        Use::Writes => GENERIC_WRITE,
    };
    // SAFETY: the name is terminated; no attributes are given.
    let handle = unsafe {
        CreateFileW(
            name.as_ptr(),
            access,
            FILE_SHARE_READ | FILE_SHARE_WRITE,
            ptr::null(),
            OPEN_EXISTING,
            0,
            null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened a moment ago.
    Ok(unsafe { owned(handle) })
}

/// A pipe: the child's end, for calls that wait, and the parent's end, overlapped if asked for.
///
/// A child's end that is overlapped would break most programs: they read and write without an `OVERLAPPED`.
pub(crate) fn pipe(child: Use, overlapped: bool) -> io::Result<(OwnedHandle, OwnedHandle)> {
    Ok(match child {
        Use::Reads => pipes::create(false, overlapped)?,
        Use::Writes => {
            let (reader, writer) = pipes::create(overlapped, false)?;
            (writer, reader)
        }
    })
}

/// A duplicate that is not inheritable.
pub(crate) fn duplicate(handle: impl AsHandle) -> io::Result<OwnedHandle> {
    handle.as_handle().try_clone_to_owned()
}

/// A duplicate of a socket that is not inheritable; made by `WSADuplicateSocketW`, as layered providers need it.
pub(crate) fn duplicate_socket(socket: BorrowedSocket<'_>) -> io::Result<OwnedSocket> {
    socket.try_clone_to_owned()
}

/// A duplicate for a child, which closes as its kind is closed.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "a sealed trait that is public has it in its signature")]
pub enum Duplicate {
    Handle(OwnedHandle),
    Socket(OwnedSocket),
}

impl Duplicate {
    pub(crate) fn value(&self) -> usize {
        match self {
            Duplicate::Handle(handle) => handle.as_raw_handle() as usize,
            Duplicate::Socket(socket) => socket.as_raw_socket() as usize,
        }
    }

    pub(crate) fn has_other_end(&self) -> bool {
        match self {
            Duplicate::Handle(handle) => has_other_end(handle),
            Duplicate::Socket(_) => true,
        }
    }
}

/// Whether somebody may wait for the other end of it: a command that keeps such a thing open after the launch keeps
/// that somebody waiting.
pub(crate) fn has_other_end(handle: impl AsHandle) -> bool {
    // SAFETY: the handle is borrowed, so it is open.
    unsafe { GetFileType(handle.as_handle().as_raw_handle()) == FILE_TYPE_PIPE }
}

/// Whether it is an I/O completion port, which works in the process alone that made it.
pub(crate) fn is_completion_port(handle: BorrowedHandle<'_>) -> bool {
    // A PUBLIC_OBJECT_TYPE_INFORMATION begins with the type's name, whose characters follow the structure.
    let mut room = [0_u64; 128];
    // SAFETY: the room is as long as it says, and aligned for pointers.
    let status = unsafe {
        NtQueryObject(
            handle.as_raw_handle(),
            ObjectTypeInformation,
            room.as_mut_ptr().cast::<c_void>(),
            size_of_val(&room) as u32,
            null_mut(),
        )
    };
    if status < 0 {
        return false;
    }
    // SAFETY: the call filled it in; the name's characters are in the room or elsewhere in this process.
    let name = unsafe {
        let name = &*room.as_ptr().cast::<UNICODE_STRING>();
        if name.Buffer.is_null() {
            return false;
        }
        std::slice::from_raw_parts(name.Buffer, usize::from(name.Length) / 2)
    };
    name.iter().copied().eq("IoCompletion".encode_utf16())
}

/// Whether a child launched at this moment with everything would get it; `None` if it is not open.
pub(super) fn is_inheritable(value: usize) -> Option<bool> {
    let mut flags = 0;
    // SAFETY: it only looks; a value that is no handle is an error.
    let open = unsafe { GetHandleInformation(value as HANDLE, &raw mut flags) } != 0;
    open.then_some(flags & HANDLE_FLAG_INHERIT != 0)
}

/// Where a child's standard handle comes from that is to be the parent's.
///
/// A parent without one (a program with windows, a service), or with one that is closed by now, gives none on.
pub(crate) fn standard(stream: Stream) -> Source {
    let which = match stream {
        Stream::Stdin => STD_INPUT_HANDLE,
        Stream::Stdout => STD_OUTPUT_HANDLE,
        Stream::Stderr => STD_ERROR_HANDLE,
    };
    // SAFETY: it reads a value of this process.
    let value = unsafe { GetStdHandle(which) };
    if value.is_null() || value == INVALID_HANDLE_VALUE {
        return Source::Missing;
    }
    match is_inheritable(value as usize) {
        Some(inheritable) => Source::Shared { value: value as usize, inheritable },
        None => Source::Missing,
    }
}

pub(crate) fn source(handle: &OwnedHandle) -> Source {
    Source::Own(handle.as_raw_handle() as usize)
}
