//! System calls without libc.
//!
//! The child of a launch shares the parent's memory and runs as one of its threads would, but is none: libc's
//! wrappers write `errno`, are cancellation points, and some (`setuid`) signal every thread of the parent. So the
//! child, and what the parent does with calls that libc lacks, goes through these.
//!
//! Results are the kernel's: `Err` holds the error number. Functions that take pointers are unsafe; the others act
//! on the caller's descriptors and signals only, which is the launcher's to get right.

use std::ffi::{c_char, c_long, c_void};

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;
#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "generic.rs"]
mod arch;

pub(super) use arch::{clone, clone3};

/// What `clone3` takes, in its first version (Linux 5.3).
#[repr(C)]
#[derive(Default)]
pub(super) struct CloneArgs {
    pub(super) flags: u64,
    pub(super) pidfd: u64,
    pub(super) child_tid: u64,
    pub(super) parent_tid: u64,
    pub(super) exit_signal: u64,
    pub(super) stack: u64,
    pub(super) stack_size: u64,
    pub(super) tls: u64,
}

/// What a new child runs; it never returns.
pub(super) type Entry = unsafe extern "C" fn(*mut c_void) -> !;

fn check(result: isize) -> Result<usize, i32> {
    if (-4095..0).contains(&result) { Err(-result as i32) } else { Ok(result as usize) }
}

/// # Safety
/// The arguments are what the call takes; pointers are valid for it.
unsafe fn call<const N: usize>(number: c_long, args: [usize; N]) -> Result<usize, i32> {
    let at = |index| args.get(index).copied().unwrap_or(0);
    // SAFETY: passed on to the caller. Registers that the call does not take are ignored by it.
    check(unsafe { arch::syscall(number as usize, [at(0), at(1), at(2), at(3), at(4), at(5)]) })
}

pub(super) fn close(fd: i32) -> Result<usize, i32> {
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_close, [fd as usize]) }
}

pub(super) fn close_range(first: u32, last: u32, flags: u32) -> Result<usize, i32> {
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_close_range, [first as usize, last as usize, flags as usize]) }
}

pub(super) fn unshare(flags: i32) -> Result<usize, i32> {
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_unshare, [flags as usize]) }
}

/// `new` has close-on-exec if `flags` is `O_CLOEXEC`.
pub(super) fn dup3(old: i32, new: i32, flags: i32) -> Result<usize, i32> {
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_dup3, [old as usize, new as usize, flags as usize]) }
}

pub(super) fn fcntl(fd: i32, command: i32, argument: i32) -> Result<usize, i32> {
    // SAFETY: the commands used here take no pointer.
    unsafe { call(libc::SYS_fcntl, [fd as usize, command as usize, argument as usize]) }
}

pub(super) fn kill(pid: i32, signal: i32) -> Result<usize, i32> {
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_kill, [pid as usize, signal as usize]) }
}

pub(super) fn getpid() -> i32 {
    // SAFETY: takes no argument.
    unsafe { call(libc::SYS_getpid, []) }.unwrap_or(0) as i32
}

pub(super) fn pidfd_send_signal(pidfd: i32, signal: i32) -> Result<usize, i32> {
    // SAFETY: a null siginfo is allowed.
    unsafe { call(libc::SYS_pidfd_send_signal, [pidfd as usize, signal as usize, 0, 0]) }
}

/// Whether two descriptors of this process are one open file: 0 if so.
pub(super) fn kcmp_file(pid: i32, one: i32, other: i32) -> Result<usize, i32> {
    const KCMP_FILE: usize = 0;
    // SAFETY: takes no pointer.
    unsafe { call(libc::SYS_kcmp, [pid as usize, pid as usize, KCMP_FILE, one as usize, other as usize]) }
}

/// Ends the calling task.
pub(super) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: takes no pointer.
        let _ = unsafe { call(libc::SYS_exit_group, [code as usize]) };
    }
}

/// # Safety
/// `path` points to a C string.
pub(super) unsafe fn chdir(path: *const c_char) -> Result<usize, i32> {
    // SAFETY: as the caller says.
    unsafe { call(libc::SYS_chdir, [path as usize]) }
}

/// # Safety
/// `path` points to a C string.
pub(super) unsafe fn open(path: *const c_char, flags: i32) -> Result<usize, i32> {
    // SAFETY: as the caller says.
    unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path as usize, flags as usize, 0]) }
}

pub(super) fn getdents64(fd: i32, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: the kernel writes at most the buffer's length.
    unsafe { call(libc::SYS_getdents64, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len()]) }
}

/// # Safety
/// `path` points to a C string, `argv` and `envp` to arrays of such that end with null.
pub(super) unsafe fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> Result<usize, i32> {
    // SAFETY: as the caller says.
    unsafe { call(libc::SYS_execve, [path as usize, argv as usize, envp as usize]) }
}

/// The kernel's signal set: 64 signals everywhere but on MIPS.
pub(super) type SignalSet = u64;

/// Sets the calling thread's mask and gives the one before.
pub(super) fn set_signal_mask(set: SignalSet) -> Result<SignalSet, i32> {
    let mut before: SignalSet = 0;
    let (new, old) = (&raw const set as usize, &raw mut before as usize);
    // SAFETY: both point to sets of the size that is given.
    unsafe {
        call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, old, size_of::<SignalSet>()])
    }?;
    Ok(before)
}

/// The kernel's `struct sigaction`, which is not libc's. No flag is ever set here, so no restorer is needed.
#[repr(C)]
#[derive(Default)]
struct SignalAction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: SignalSet,
}

/// What a signal does: the handler's address, `SIG_DFL` or `SIG_IGN`.
pub(super) fn signal_handler(signal: i32) -> Result<usize, i32> {
    let mut action = SignalAction::default();
    let into = &raw mut action as usize;
    // SAFETY: the kernel writes one action.
    unsafe { call(libc::SYS_rt_sigaction, [signal as usize, 0, into, size_of::<SignalSet>()]) }?;
    Ok(action.handler)
}

/// Gives a signal its default effect.
pub(super) fn default_signal(signal: i32) -> Result<usize, i32> {
    let action = SignalAction::default();
    let from = &raw const action as usize;
    // SAFETY: the kernel reads one action, and `SIG_DFL` installs no code.
    unsafe { call(libc::SYS_rt_sigaction, [signal as usize, from, 0, size_of::<SignalSet>()]) }
}

/// What `waitid` found: nothing (`None`), or how a child ended.
pub(super) fn waitid(kind: libc::idtype_t, id: i32, flags: i32) -> Result<Option<Ended>, i32> {
    // SAFETY: all zeros is a value of this structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let into = &raw mut info as usize;
    // SAFETY: the kernel writes one siginfo; no rusage is asked for.
    unsafe { call(libc::SYS_waitid, [kind as usize, id as usize, into, flags as usize, 0]) }?;
    // SAFETY: the kernel filled the fields of SIGCHLD, or left zeros.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok((pid != 0).then_some(Ended { code: info.si_code, status }))
}

/// How a child ended, as `waitid` puts it.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// `CLD_EXITED`, `CLD_KILLED` or `CLD_DUMPED`.
    pub(super) code: i32,
    /// The exit code or the signal.
    pub(super) status: i32,
}

impl Ended {
    /// As `wait(2)` encodes it.
    pub(super) fn wait_status(self) -> i32 {
        match self.code {
            libc::CLD_EXITED => (self.status & 0xff) << 8,
            libc::CLD_DUMPED => self.status | 0x80,
            _ => self.status,
        }
    }
}

/// The exit status of a process that was reaped by others, if the kernel (from 6.15) still has it.
pub(super) fn pidfd_exit_status(pidfd: i32) -> Option<i32> {
    /// The first version of `struct pidfd_info`; its mask, and its exit code behind eleven identifiers.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        identifiers: [u32; 11],
        exit_code: i32,
    }
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    const PIDFD_GET_INFO: usize = 3 << 30 | size_of::<Info>() << 16 | 0xff << 8 | 11;
    let mut info = Info { mask: PIDFD_INFO_EXIT, ..Info::default() };
    let into = &raw mut info as usize;
    // SAFETY: the request's number holds the structure's size; the kernel writes no more.
    unsafe { call(libc::SYS_ioctl, [pidfd as usize, PIDFD_GET_INFO, into]) }.ok()?;
    (info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}
