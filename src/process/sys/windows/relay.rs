//! An overlapped pipe as a standard handle of a child.
//!
//! Programs read and write their standard handles without an `OVERLAPPED`, which such a pipe does not take. So the child
//! gets a pipe of its own, and a thread carries over what passes. The parent's ends of std's children are of that kind, and
//! so are those that were asked for with `asynchronous`.

use std::io::{self, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use windows_sys::Win32::Foundation::ERROR_ACCESS_DENIED;
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Pipes::GetNamedPipeInfo;

use super::handles;
use super::pipe_end::PipeEnd;
use crate::process::sys::Use;
use crate::thread;
use crate::windows::{is_overlapped, last_error};

/// A thread that waits for the launch. If that fails, it touches nothing.
#[derive(Debug)]
pub(crate) struct Relay(Sender<()>);

impl Relay {
    /// The child is there: carry over.
    pub(crate) fn begin(self) {
        // It is not there only if it has panicked.
        let _ = self.0.send(());
    }
}

/// What the child gets in place of `handle`, if it cannot get that.
pub(crate) fn relay(child: Use, handle: &OwnedHandle) -> io::Result<Option<(OwnedHandle, Relay)>> {
    if !is_pipe(handle) || !is_overlapped(handle.as_handle()) {
        return Ok(None);
    }
    let given = PipeEnd::from(handle.try_clone()?);
    let (theirs, ours) = handles::pipe(child, false)?;
    let ours = PipeEnd::from(ours);
    let (begin, begun) = channel();
    thread::start(Builder::new().name("haft-relay".into()), move || {
        if begun.recv().is_ok() {
            // An end that goes away is told on by closing the other, which ends this thread.
            let _ = match child {
                Use::Reads => carry(given, ours),
                Use::Writes => carry(ours, given),
            };
        }
    })?;
    Ok(Some((theirs, Relay(begin))))
}

/// Carries over until one of them ends.
fn carry(mut from: PipeEnd, mut into: PipeEnd) -> io::Result<()> {
    let mut room = vec![0; 64 * 1024];
    loop {
        match from.read(&mut room)? {
            0 => return Ok(()),
            read => into.write_all(&room[..read])?,
        }
    }
}

/// Whether it is a pipe, and not a socket, which looks like one.
///
/// The system tells only who may read attributes. The end that made a pipe to write to it, as std's `ChildStdin` is, may
/// not; a socket may, and has none.
pub(super) fn is_pipe(handle: &OwnedHandle) -> bool {
    let handle = handle.as_raw_handle();
    // SAFETY: the handle is open, and nothing is asked for but what it is.
    unsafe {
        GetNamedPipeInfo(handle, null_mut(), null_mut(), null_mut(), null_mut()) != 0
            || (last_error() == ERROR_ACCESS_DENIED && GetFileType(handle) == FILE_TYPE_PIPE)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::ManuallyDrop;
    use std::os::windows::io::AsRawSocket;

    use windows_sys::Win32::Foundation::{DuplicateHandle, FALSE};
    use windows_sys::Win32::Storage::FileSystem::{FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA, SYNCHRONIZE};
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    use super::*;
    use crate::windows::{owned, pipe};

    /// A duplicate with these rights alone.
    fn with_rights(handle: &OwnedHandle, rights: u32) -> OwnedHandle {
        let mut copy = null_mut();
        // SAFETY: the handle is open, and the place this frame's.
        unsafe {
            let here = GetCurrentProcess();
            let done = DuplicateHandle(here, handle.as_raw_handle(), here, &raw mut copy, rights, FALSE, 0);
            assert_ne!(done, 0);
            owned(copy)
        }
    }

    // Fails without ERROR_ACCESS_DENIED in `is_pipe`: Windows gives the end that CreateNamedPipeW makes to write no right
    // to read attributes, and Wine does.
    #[test]
    fn a_pipe_is_one_also_for_who_may_only_write() {
        for overlapped in [false, true] {
            let (reader, writer) = pipe::create(overlapped, overlapped).unwrap();
            let narrow = with_rights(&writer, FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE);
            assert!(is_pipe(&reader) && is_pipe(&writer) && is_pipe(&narrow), "{overlapped}");
            assert_eq!(relay(Use::Writes, &narrow).unwrap().is_some(), overlapped);
        }
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: the system's own sockets are handles, and this one stays the listener's to close.
        let handle = ManuallyDrop::new(unsafe { owned(socket.as_raw_socket() as usize as _) });
        assert!(!is_pipe(&handle));
        assert!(!is_pipe(&std::fs::File::open(std::env::current_exe().unwrap()).unwrap().into()));
    }
}
