//! Threads of haft's own: ones that no signal of the program ever interrupts.

use std::{io, thread::Builder};

/// Starts a thread with every signal blocked, so that handlers run on the program's own threads and none of its system
/// calls ends early for them. The C library keeps its own two signals (32 and 33) deliverable: setuid() and the
/// cancelling of threads need every thread to answer.
#[cfg(unix)]
pub(crate) fn start(thread: Builder, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: sigfillset initialises `all`, pthread_sigmask reads it and writes `before`. A new thread inherits the
    // mask, so it is set here and not in the thread, where a signal could come first.
    let masked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = thread.spawn(body);
    if masked {
        // SAFETY: `before` was written above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    started.map(drop)
}

/// Starts a thread. Windows has no signals that could interrupt it.
#[cfg(windows)]
pub(crate) fn start(thread: Builder, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread.spawn(body).map(drop)
}
