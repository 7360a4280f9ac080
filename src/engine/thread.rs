//! Starting a worker: a thread that no signal of the program ever interrupts.

use crate::force::{self, Lack};
use std::{io, mem::MaybeUninit};

/// Starts a worker with every signal blocked, so that handlers run on the program's own threads and no
/// system call of an operation ends early for them. The C library keeps its own two signals (32 and 33)
/// deliverable: setuid() and thread cancellation need every thread to answer.
#[cfg(not(loom))]
pub(crate) fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    if force::lacks(Lack::Threads) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises `all`, pthread_sigmask reads it and writes `before`. A new thread
    // inherits the mask, so it is set here and not in the thread, where a signal could come first.
    let masked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = std::thread::Builder::new().name("haft-io".into()).spawn(body);
    if masked {
        // SAFETY: `before` was written above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    started.map(drop)
}

/// Models start their workers themselves.
#[cfg(loom)]
pub(crate) fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let _ = (body, MaybeUninit::<()>::uninit(), force::lacks(Lack::Threads));
    Err(io::ErrorKind::Unsupported.into())
}
