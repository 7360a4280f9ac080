//! AArch64: the number in x8, arguments in x0 to x5.

use std::arch::asm;
use std::ffi::c_void;

use super::{CloneArgs, Entry};

/// # Safety
/// The arguments are what the call takes.
#[inline]
pub(super) unsafe fn syscall(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller answers for the arguments; memory is taken as read and written.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Makes a child that runs `entry(argument)` on the stack in `args`.
///
/// # Safety
/// `args` describes a stack that nobody else uses until the child has executed or ended, and `CLONE_VM` is set
/// together with `CLONE_VFORK`.
pub(in super::super) unsafe fn clone3(
    args: &CloneArgs,
    entry: Entry,
    argument: *mut c_void,
) -> Result<i32, i32> {
    let result: isize;
    // SAFETY: the parent continues after the block with all registers as they were. The child has its own stack,
    // whose end is aligned to 16, and never leaves `entry`.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x9",
            "blr x10",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone3 as usize,
            inlateout("x0") args as *const CloneArgs => result,
            in("x1") size_of::<CloneArgs>(),
            in("x9") argument,
            in("x10") entry,
        );
    }
    super::check(result).map(|pid| pid as i32)
}

/// As [`clone3`], by the older call.
///
/// # Safety
/// As [`clone3`].
pub(in super::super) unsafe fn clone(
    args: &CloneArgs,
    entry: Entry,
    argument: *mut c_void,
) -> Result<i32, i32> {
    let result: isize;
    // SAFETY: as in `clone3`. The pidfd goes where a parent's thread number would.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x9",
            "blr x10",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone as usize,
            inlateout("x0") args.flags | args.exit_signal => result,
            in("x1") args.stack + args.stack_size,
            in("x2") args.pidfd,
            in("x3") 0,
            in("x4") 0,
            in("x9") argument,
            in("x10") entry,
        );
    }
    super::check(result).map(|pid| pid as i32)
}
