//! Signal dispositions in the child, and a mask for our own threads.

use super::raw;

/// The highest signal of every architecture but MIPS.
const LAST: i32 = 64;

/// Gives every signal that has a handler its default effect; what is ignored stays so.
///
/// What `CLONE_CLEAR_SIGHAND` does in one call. Without it a handler of the parent could run in the child's last
/// moment, with the mask restored and the program not yet executed, in the parent's memory.
pub(super) fn clear_handlers() -> Result<(), i32> {
    for signal in 1..=LAST {
        if let Ok(handler) = raw::signal_handler(signal)
            && handler != libc::SIG_DFL
            && handler != libc::SIG_IGN
        {
            raw::default_signal(signal)?;
        }
    }
    Ok(())
}

/// Runs `start` with signals blocked, so that a thread it starts has them blocked from its first instruction.
///
/// libc's own functions leave out the real-time signals that libc sends to every thread (for `setuid`, for
/// example): a thread of ours that blocked them would hang whoever sends them.
pub(super) fn blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros is a value of this type.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: both sets are ours.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let result = start();
    // SAFETY: the set was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}
