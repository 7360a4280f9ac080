//! x86-64: the number in rax, arguments in rdi, rsi, rdx, r10, r8, r9; rcx and r11 are lost.

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
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            out("rcx") _,
            out("r11") _,
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
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r8",
            "call r9",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as usize => result,
            in("rdi") args as *const CloneArgs,
            in("rsi") size_of::<CloneArgs>(),
            in("r8") argument,
            in("r9") entry,
            out("rcx") _,
            out("r11") _,
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
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r9",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as usize => result,
            in("rdi") args.flags | args.exit_signal,
            in("rsi") args.stack + args.stack_size,
            in("rdx") args.pidfd,
            in("r10") 0,
            in("r8") 0,
            in("r9") entry,
            in("r12") argument,
            out("rcx") _,
            out("r11") _,
        );
    }
    super::check(result).map(|pid| pid as i32)
}
