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

use windows_sys::Win32::System::Pipes::GetNamedPipeInfo;

use super::handles;
use super::pipe_end::PipeEnd;
use crate::process::sys::Use;
use crate::thread;
use crate::windows::is_overlapped;

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
    let mut room = vec![0; 16 * 1024];
    loop {
        match from.read(&mut room)? {
            0 => return Ok(()),
            read => into.write_all(&room[..read])?,
        }
    }
}

/// Whether it is a pipe, and not a socket, which looks like one.
fn is_pipe(handle: &OwnedHandle) -> bool {
    // SAFETY: the handle is open, and nothing is asked for but whether it is one.
    unsafe { GetNamedPipeInfo(handle.as_raw_handle(), null_mut(), null_mut(), null_mut(), null_mut()) != 0 }
}
