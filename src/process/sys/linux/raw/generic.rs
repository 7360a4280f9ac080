//! Other architectures: libc's `syscall` and `clone`, which touch nothing but the calling thread's `errno`; the
//! thread is suspended while the child runs on its behalf.

use std::ffi::{c_int, c_long, c_void};

use super::{CloneArgs, Entry};

/// # Safety
/// The arguments are what the call takes.
pub(super) unsafe fn syscall(number: usize, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    // SAFETY: passed on to the caller.
    let result = unsafe { libc::syscall(number as c_long, a, b, c, d, e, f) };
    if result == -1 {
        -(std::io::Error::last_os_error().raw_os_error().unwrap_or(0) as isize)
    } else {
        result as isize
    }
}

/// libc has no wrapper for it.
///
/// # Safety
/// None is needed; it is unsafe as the others are.
pub(in super::super) unsafe fn clone3(_: &CloneArgs, _: Entry, _: *mut c_void) -> Result<i32, i32> {
    Err(libc::ENOSYS)
}

/// Makes a child that runs `entry(argument)` on the stack in `args`.
///
/// # Safety
/// `args` describes a stack that nobody else uses until the child has executed or ended, and `CLONE_VM` is set
/// together with `CLONE_VFORK`.
pub(in super::super) unsafe fn clone(
    args: &CloneArgs,
    entry: Entry,
    argument: *mut c_void,
) -> Result<i32, i32> {
    let mut start = (entry, argument);
    extern "C" fn run(start: *mut c_void) -> c_int {
        // SAFETY: points to the tuple in the parent's frame, which waits for the child.
        let (entry, argument) = unsafe { *start.cast::<(Entry, *mut c_void)>() };
        // SAFETY: as the caller of `clone` says.
        unsafe { entry(argument) }
    }
    // SAFETY: as the caller says; the pidfd goes where a parent's thread number would.
    let result = unsafe {
        libc::clone(
            run,
            (args.stack + args.stack_size) as *mut c_void,
            (args.flags | args.exit_signal) as c_int,
            (&raw mut start).cast(),
            args.pidfd as *mut c_void,
        )
    };
    if result == -1 { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
}
