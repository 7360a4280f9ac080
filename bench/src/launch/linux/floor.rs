//! Peer `floor`: the least that a correct launch can cost here.
//!
//! 1. The environment is copied (`vars_os`, as a launcher must that runs beside `setenv` of other threads).
//! 2. With redirection: `pipe2`.
//! 3. All signals are blocked, so that no handler of the parent runs on the child's stack and memory.
//! 4. `clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)` on a stack of its own.
//! 5. The child: standard output, `SIGPIPE` back to its default, `close_range` over all but the standard
//!    handles, the signal mask as it was, `execve`. If that fails it stores the error in the shared memory
//!    and exits.
//! 6. The mask is put back, the pipe is read to its end, `waitid(P_PIDFD)`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::super::{Job, Peer, drain};

pub(crate) struct Floor;

impl Peer for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(launch)
    }
}

/// What the child needs, prepared before it exists.
struct Order {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    /// The descriptor that becomes standard output, or -1.
    stdout: c_int,
    mask: libc::sigset_t,
    /// Written by the child when it could not become the program.
    error: c_int,
}

const STACK: usize = 64 << 10;

#[repr(align(64))]
struct Stack(#[expect(dead_code, reason = "memory for the child")] [u8; STACK]);

thread_local! {
    // One child of a thread runs at a time: vfork holds the thread until the child has left this memory.
    static CHILD_STACK: RefCell<Box<MaybeUninit<Stack>>> = RefCell::new(Box::new_uninit());
}

fn launch(job: &Job) -> io::Result<()> {
    let program = CString::new(job.program.as_os_str().as_bytes())?;
    let arguments: Vec<CString> =
        job.arguments.iter().map(|argument| CString::new(*argument)).collect::<Result<_, _>>()?;
    let arguments: Vec<*const c_char> = [program.as_ptr()]
        .into_iter()
        .chain(arguments.iter().map(|argument| argument.as_ptr()))
        .chain([ptr::null()])
        .collect();
    let variables = environment()?;
    let pointers: Vec<*const c_char> =
        variables.iter().map(|entry| entry.as_ptr()).chain([ptr::null()]).collect();
    let (reader, writer) = match job.redirects() {
        true => pipe_with(PipeFlags::CLOEXEC).map(|(reader, writer)| (Some(reader), Some(writer)))?,
        false => (None, None),
    };
    let mut order = Order {
        program: program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: pointers.as_ptr(),
        stdout: writer.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        // SAFETY: a sigset_t is integers; the mask is filled in before it is used.
        mask: unsafe { MaybeUninit::zeroed().assume_init() },
        error: 0,
    };
    let pidfd = clone(&mut order)?;
    drop(writer);
    if let Some(reader) = reader {
        drain(File::from(reader))?;
    }
    let status = waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(&pidfd)), WaitIdOptions::EXITED)?
        .ok_or_else(|| io::Error::other("waitid returned without a child"))?;
    if order.error != 0 {
        return Err(io::Error::from_raw_os_error(order.error));
    }
    match status.exit_status() {
        Some(0) => Ok(()),
        _ => Err(io::Error::other(format!("the child ended with {:?}", status.exit_status()))),
    }
}

/// `NAME=VALUE` strings, copied under the environment's lock.
fn environment() -> io::Result<Vec<CString>> {
    std::env::vars_os()
        .map(|(name, value)| {
            let mut entry = name.into_vec();
            entry.reserve_exact(value.len() + 2);
            entry.push(b'=');
            entry.extend_from_slice(value.as_bytes());
            Ok(CString::new(entry)?)
        })
        .collect()
}

/// Starts the child; returns when it has become the program or has ended.
fn clone(order: &mut Order) -> io::Result<OwnedFd> {
    CHILD_STACK.with_borrow_mut(|stack| {
        let mut pidfd: c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        // SAFETY: the sets are this frame's. The stack is this thread's and no other child's, its top is
        // aligned, and with CLONE_VFORK this frame, which the child reads and writes through `order`,
        // outlives the child's use of it. The child calls only async-signal-safe functions that keep no state
        // of the parent's.
        unsafe {
            let mut all = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), &raw mut order.mask);
            let top = stack.as_mut_ptr().add(1).cast::<c_void>();
            let mask = order.mask;
            let pid = libc::clone(child, top, flags, ptr::from_mut(order).cast(), &raw mut pidfd);
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
            if pid == -1 { Err(error) } else { Ok(OwnedFd::from_raw_fd(pidfd)) }
        }
    })
}

/// The child, in the parent's memory until `execve`.
extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: the parent is suspended, so `order` is this function's alone; nothing here allocates, locks or
    // unwinds.
    unsafe {
        let order = &mut *order.cast::<Order>();
        if order.stdout != -1 && libc::dup2(order.stdout, 1) == -1 {
            order.error = *libc::__errno_location();
            return 127;
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const order.mask, ptr::null_mut());
        libc::execve(order.program, order.arguments, order.environment);
        order.error = *libc::__errno_location();
        127
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Method, crew::Crew};

    #[test]
    fn a_missing_program_is_an_error_and_true_is_not() {
        let crew = Arc::new(Crew::new(1).expect("a crew"));
        for (program, method, wanted) in [
            ("/bin/true", Method::Standard, None),
            ("/bin/echo", Method::Redirection, None),
            ("/nonexistent", Method::Standard, Some(io::ErrorKind::NotFound)),
        ] {
            let job = Job {
                method,
                program: program.into(),
                arguments: &[],
                count: 1,
                threads: 1,
                crew: Arc::clone(&crew),
            };
            assert_eq!(launch(&job).err().map(|error| error.kind()), wanted, "{program}");
        }
    }
}
