//! Making pipes, each end for calls that wait or for overlapped ones.

use super::{last_error, owned};
use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    io,
    os::windows::io::OwnedHandle,
    ptr::{null, null_mut},
};
use windows_sys::Win32::{
    Foundation::{ERROR_ACCESS_DENIED, ERROR_PIPE_BUSY, GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE},
    Storage::FileSystem::{
        CreateFileW, FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, OPEN_EXISTING, PIPE_ACCESS_INBOUND,
        PIPE_ACCESS_OUTBOUND,
    },
    System::Pipes::{
        CreateNamedPipeW, CreatePipe, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE,
        PIPE_WAIT,
    },
};

/// The size that is asked for of a pipe with an overlapped end, as Linux gives by default.
const CAPACITY: u32 = 64 * 1024;

/// Another process may guess a name; so often that no guess succeeds is this tried.
const ATTEMPTS: u32 = 16;

/// The read end and the write end of a new pipe, none of them inheritable; each is overlapped if asked for.
///
/// A pipe with two ends for calls that wait is an anonymous one. The system has none with overlapped ends, so that is a
/// named pipe with a name that nobody can know before.
pub(crate) fn create(
    overlapped_read: bool,
    overlapped_write: bool,
) -> io::Result<(OwnedHandle, OwnedHandle)> {
    if !overlapped_read && !overlapped_write {
        let (mut read, mut write) = (null_mut(), null_mut());
        // SAFETY: both places are this frame's; no attributes are given.
        if unsafe { CreatePipe(&raw mut read, &raw mut write, null(), 0) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call made them.
        return Ok(unsafe { (owned(read), owned(write)) });
    }
    let mut attempt = 1;
    loop {
        match named(overlapped_read, overlapped_write) {
            Err(ERROR_ACCESS_DENIED | ERROR_PIPE_BUSY) if attempt < ATTEMPTS => attempt += 1,
            made => return made.map_err(|error| io::Error::from_raw_os_error(error as i32)),
        }
    }
}

fn named(overlapped_read: bool, overlapped_write: bool) -> Result<(OwnedHandle, OwnedHandle), u32> {
    let name: Vec<u16> = name().encode_utf16().chain([0]).collect();
    // The server's end is an overlapped one.
    let server_reads = overlapped_read;
    let access = if server_reads { PIPE_ACCESS_INBOUND } else { PIPE_ACCESS_OUTBOUND };
    // SAFETY: the name is terminated; no attributes are given.
    let server = unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            access | FILE_FLAG_FIRST_PIPE_INSTANCE | FILE_FLAG_OVERLAPPED,
            PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
            1,
            CAPACITY,
            CAPACITY,
            0,
            null(),
        )
    };
    if server == INVALID_HANDLE_VALUE {
        return Err(last_error());
    }
    // SAFETY: it was made a moment ago.
    let server = unsafe { owned(server) };
    let both = overlapped_read && overlapped_write;
    // SAFETY: as above.
    let client = unsafe {
        CreateFileW(
            name.as_ptr(),
            if server_reads { GENERIC_WRITE } else { GENERIC_READ },
            0,
            null(),
            OPEN_EXISTING,
            if both { FILE_FLAG_OVERLAPPED } else { 0 },
            null_mut(),
        )
    };
    if client == INVALID_HANDLE_VALUE {
        return Err(last_error());
    }
    // SAFETY: as above.
    let client = unsafe { owned(client) };
    Ok(if server_reads { (server, client) } else { (client, server) })
}

/// A name that no other pipe has, and nobody can guess.
fn name() -> String {
    // The hasher's keys are random, and another pair at every call.
    let random = || RandomState::new().build_hasher().finish();
    format!(r"\\.\pipe\haft.{}.{:016x}{:016x}", std::process::id(), random(), random())
}
