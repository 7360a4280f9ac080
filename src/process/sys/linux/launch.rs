//! How a child is launched on Linux.
//!
//! The child is made by one `clone` that shares the parent's memory and suspends the calling thread until the child
//! has executed its program or ended (`CLONE_VM | CLONE_VFORK`). So nothing of the parent is copied, whatever its
//! size, and the child can report by writing to the parent's frame. It is always the calling thread that clones:
//! capabilities, seccomp filters, Landlock rules, namespaces, nice value and affinity belong to threads, and the
//! child of another thread would escape its caller's.
//!
//! The protocol; the numbers are those of [`Step`]. Before it, [`Stdio`](Step::Stdio) (1) and
//! [`Resolve`](Step::Resolve) (2) have made the descriptors and the plan.
//!
//! ```text
//! parent                                                   child
//! 3  Stack             a guarded stack from the pool
//!                      high sources into low slots
//!                      all signals blocked
//! 4  Clone             (suspended)                         5  Unshare            its own descriptor table
//!                                                          6  Signals            handlers and SIGPIPE to default
//!                                                          7  WorkingDirectory
//!                                                          8  CloseDescriptors   what the moves might need
//!                                                          9  MoveDescriptors    lift, then place
//!                                                          8  CloseDescriptors   all but the targets
//!                                                          10 SignalMask         the caller's
//!                                                          14 Execute            each candidate
//!                      signal mask restored
//!                      slots put back
//!                      report read; was it executed?
//! ```
//!
//! * The child stores each step before it takes it, so that a child that dies in one tells which.
//! * The table. `CLONE_FILES` shares the parent's table and the child's very first call is
//!   `close_range(n, ~0, CLOSE_RANGE_UNSHARE)`, n being one above the highest source: only what is below n is ever
//!   copied, so that a launch costs the same with 10 open files and with 10,000. Until it has returned, nothing may
//!   be opened, moved, flagged or closed: that would happen to the parent. Sources above [`LOW`] are brought down
//!   first (see `slots`); where that cannot be, the table is copied by the clone.
//! * Closing is real, not by close-on-exec: the kernel resumes the parent inside `execve` *before* it closes those,
//!   and then "spawn returned" would not mean that nothing else is open in the child.
//! * The exit signal is 0, so that a child that fails sends no `SIGCHLD` and no other waiter takes it; `execve` sets
//!   it to `SIGCHLD`. By this the kernel tells whether the program was executed: `waitid` with `__WCLONE` sees only
//!   children whose exit signal is another than `SIGCHLD`. That it died is not inferred from anything else.

use std::ffi::c_char;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

use super::child::{self, Task};
use super::handles::off_standard;
use super::pid::Pid;
use super::slots::{self, LOW};
use super::stack::Stack;
use super::{busy, raw, watcher};
use crate::process::error::Step;
use crate::process::inherit::Inherit;
use crate::process::plan::{Plan, Strings};
use crate::process::sys::force::{self, Lack};
use crate::process::sys::{Failure, Os};

/// A child that runs its program.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: Pid,
}

/// Set once the kernel or a sandbox has refused `clone3` where `clone` worked.
static NO_CLONE3: AtomicBool = AtomicBool::new(false);
/// Set once a child was refused `close_range` as if it were absent.
static NO_CLOSE_RANGE: AtomicBool = AtomicBool::new(false);

const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;

/// Launches by the protocol of this chapter.
pub(crate) fn launch(plan: &Plan<'_>) -> Result<Launched, Failure> {
    watcher::start_if_needed();
    slots::reserve_if_worthwhile();
    busy::retried(|| {
        let mut shared = true;
        match attempt(plan, &mut shared) {
            // The child could not leave the parent's table. It has touched nothing of it; it gets a copy instead.
            Err(Failure { step: Step::Unshare, os: Os::Errno(_), .. }) if shared => attempt(plan, &mut false),
            result => result,
        }
    })
}

/// Launches once, with the parent's table shared at first if `share` says so and it can be; `share` then tells
/// whether it was.
fn attempt(plan: &Plan<'_>, share: &mut bool) -> Result<Launched, Failure> {
    let fail = |step, index, os| Failure { step, index, os };
    let stack = Stack::take().map_err(|errno| fail(Step::Stack, 0, Os::Errno(errno)))?;

    let no_close_range = NO_CLOSE_RANGE.load(Relaxed) || force::lacks(Lack::CloseRange);
    let may_share =
        *share && plan.descriptors.inherit == Inherit::Named && !no_close_range && !force::lacks(Lack::Files);
    let lowered =
        if may_share && plan.descriptors.above > LOW { slots::lower(&plan.descriptors) } else { None };
    let (lowered, claim) = lowered.unzip();
    let descriptors = lowered.as_ref().unwrap_or(&plan.descriptors);
    let shares_table = may_share && (claim.is_some() || descriptors.above <= LOW);
    *share = shares_table;

    let [argv, envp, candidates] = [&plan.argv, &*plan.environment, &plan.candidates];
    let mut pointers = Vec::with_capacity(argv.len() + envp.len() + candidates.len() + 3);
    let starts = [argv, envp, candidates].map(|strings| push(&mut pointers, strings));
    let [argv, envp, candidates] = starts.map(|start| &raw const pointers[start]);
    let lifted: Vec<AtomicI32> = (0..descriptors.lifts).map(|_| AtomicI32::new(-1)).collect();

    let mut task = Task {
        step: AtomicU8::new(Step::Clone as u8),
        index: AtomicUsize::new(0),
        errno: AtomicI32::new(0),
        no_close_range: AtomicBool::new(no_close_range),
        close_range_is_missing: AtomicBool::new(false),
        closed_above: AtomicBool::new(false),
        shares_table,
        clear_handlers: AtomicBool::new(false),
        mask: 0,
        pidfd: AtomicI32::new(-1),
        directory: plan.directory.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
        descriptors,
        lifted: &lifted,
        candidates,
        argv,
        envp,
        #[cfg(haft_test)]
        failing: Step::ALL.into_iter().find_map(|step| Some((step, force::failing(step)?))),
    };

    // Every signal: a handler that ran in the child would run in the parent's memory. This cannot fail: the
    // arguments are right.
    task.mask = raw::set_signal_mask(!0).map_err(|errno| fail(Step::Clone, 0, Os::Errno(errno)))?;
    let cloned = clone(&stack, &task);
    let _ = raw::set_signal_mask(task.mask);
    drop(claim);
    drop(stack);

    if task.close_range_is_missing.load(Relaxed) {
        NO_CLOSE_RANGE.store(true, Relaxed);
    }
    let mut pid = cloned.map_err(|errno| fail(Step::Clone, 0, Os::Errno(errno)))?;
    let step = || {
        let number = task.step.load(Relaxed);
        Step::ALL.into_iter().find(|step| *step as u8 == number).unwrap_or(Step::Clone)
    };
    match task.errno.load(Relaxed) {
        0 => match pid.died_before_exec() {
            None => Ok(Launched { pid }),
            Some(signal) => Err(fail(step(), task.index.load(Relaxed), Os::Killed(signal))),
        },
        errno => {
            pid.reap_failed();
            Err(fail(step(), task.index.load(Relaxed), Os::Errno(errno)))
        }
    }
}

/// Appends pointers to these strings and the null that ends them, and gives the index of the first.
fn push(pointers: &mut Vec<*const c_char>, strings: &Strings) -> usize {
    let start = pointers.len();
    let bytes = strings.bytes();
    pointers.extend(strings.starts().iter().map(|&at| (&raw const bytes[at]).cast::<c_char>()));
    pointers.push(ptr::null());
    start
}

/// Makes the child and waits until it has executed the program or ended.
fn clone(stack: &Stack, task: &Task<'_>) -> Result<Pid, i32> {
    let mut flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    if task.shares_table {
        flags |= libc::CLONE_FILES as u64;
    }
    if !force::lacks(Lack::Pidfd) {
        flags |= libc::CLONE_PIDFD as u64;
    }
    let mut args = raw::CloneArgs {
        flags: flags | CLONE_CLEAR_SIGHAND,
        pidfd: task.pidfd.as_ptr() as u64,
        exit_signal: 0,
        stack: stack.bottom() as u64,
        stack_size: stack.size() as u64,
        ..raw::CloneArgs::default()
    };

    if let Some(errno) = force::failing(Step::Clone) {
        return Err(errno);
    }
    if !NO_CLONE3.load(Relaxed) && !force::lacks(Lack::Clone3) {
        // SAFETY: the stack is this launch's alone until the child is done, memory is shared with the parent
        // suspended, and the task outlives the child's use of it.
        let number = unsafe { raw::clone3(&args, child::run, (&raw const *task).cast_mut().cast()) };
        match number {
            // These clone has as well.
            Err(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => {
                return number.map(|number| pid(number, task));
            }
            // Absent, without CLONE_CLEAR_SIGHAND (before 5.5), or refused by a sandbox, with whatever number.
            Err(_) => {}
            number => return number.map(|number| pid(number, task)),
        }
    }
    args.flags = flags;
    task.clear_handlers.store(true, Relaxed);
    // SAFETY: as above.
    let number = unsafe { raw::clone(&args, child::run, (&raw const *task).cast_mut().cast()) }?;
    NO_CLONE3.store(true, Relaxed);
    Ok(pid(number, task))
}

/// The pidfd's place is untouched where the kernel does not know the flag.
fn pid(number: i32, task: &Task<'_>) -> Pid {
    let pidfd = task.pidfd.load(Relaxed);
    // SAFETY: the kernel has just made it for us.
    let fd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    // Where a standard descriptor is closed in the parent, the pidfd may have its number, and the next child would
    // inherit it.
    Pid::new(number, fd.and_then(|fd| off_standard(fd).ok()))
}
