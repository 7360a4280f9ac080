//! What runs in the child, from the clone to the execution of the program.
//!
//! It shares the parent's memory and runs while the thread that launched it is suspended, on a stack of its own, with
//! all signals blocked. Everything it needs was prepared: it allocates nothing, takes no lock, touches no
//! thread-local, makes no call of libc's, and cannot panic. All that it writes is in [`Task`] and on its stack.
//!
//! To the letter: where memory is filled or copied, the compiler may put in libc's `memset` or `memcpy`, which touch
//! that memory and nothing else. And where `raw` has no instructions of ours for an architecture (`raw/generic.rs`),
//! each system call is libc's `syscall`, which writes `errno`: a thread-local, of the thread that is suspended
//! meanwhile, and nothing that anybody reads after it.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

use super::{close, raw, signals};
use crate::process::error::Step;
use crate::process::plan::{Descriptors, Move};

/// What the parent hands to the child, and what it reads when the child is done. It stands in the parent's frame.
///
/// The parent's reads come after its system call returned, which orders them after the child's writes.
pub(super) struct Task<'a> {
    /// The step that the child is in.
    pub(super) step: AtomicU8,
    /// The pair or the candidate that it is at.
    pub(super) index: AtomicUsize,
    /// Why it failed; 0 if it did not.
    pub(super) errno: AtomicI32,
    /// Whether `close_range` is not to be used; the child sets it when it is refused, for whatever reason.
    pub(super) no_close_range: AtomicBool,
    /// It was refused as it will be every time.
    pub(super) close_range_is_missing: AtomicBool,
    /// The child's table came without what is above every source.
    pub(super) closed_above: AtomicBool,
    /// The descriptor table is still the parent's.
    pub(super) shares_table: bool,
    /// The clone did not reset handlers.
    pub(super) clear_handlers: AtomicBool,
    pub(super) mask: raw::SignalSet,
    /// Where the kernel puts the pidfd, before the child runs.
    pub(super) pidfd: AtomicI32,
    /// A C string, or null.
    pub(super) directory: *const c_char,
    pub(super) descriptors: &'a Descriptors,
    /// Where lifts note their numbers: one for each.
    pub(super) lifted: &'a [AtomicI32],
    /// These three end with null.
    pub(super) candidates: *const *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) envp: *const *const c_char,
    #[cfg(haft_test)]
    pub(super) failing: Option<(Step, i32)>,
}

impl Task<'_> {
    /// Tells the parent where the child is, before it does anything there.
    fn begin(&self, step: Step) -> Result<(), i32> {
        self.index.store(0, Relaxed);
        self.step.store(step as u8, Relaxed);
        #[cfg(haft_test)]
        if let Some((failing, errno)) = self.failing
            && failing as u8 == step as u8
        {
            if errno < 0 {
                let _ = raw::kill(raw::getpid(), errno.wrapping_neg());
            }
            return Err(errno);
        }
        Ok(())
    }
}

/// The child's first and last function.
///
/// # Safety
/// `task` points to a [`Task`] whose pointers are what they say and stay valid until the child is done.
pub(super) unsafe extern "C" fn run(task: *mut c_void) -> ! {
    // SAFETY: as the caller says; the parent does not touch it meanwhile.
    let task = unsafe { &*task.cast_const().cast::<Task<'_>>() };
    // SAFETY: as the caller says.
    let Err(errno) = unsafe { steps(task) };
    task.errno.store(errno, Relaxed);
    raw::exit(127)
}

/// # Safety
/// As [`run`].
unsafe fn steps(task: &Task<'_>) -> Result<std::convert::Infallible, i32> {
    task.begin(Step::Unshare)?;
    if task.shares_table {
        close::unshare(task)?;
    }

    task.begin(Step::Signals)?;
    if task.clear_handlers.load(Relaxed) {
        signals::clear_handlers()?;
    }
    // Rust's runtime ignores it in the parent, and what is ignored stays so in a program that expects to die of it.
    raw::default_signal(libc::SIGPIPE)?;

    task.begin(Step::WorkingDirectory)?;
    if !task.directory.is_null() {
        // SAFETY: a C string, by the contract of `run`.
        unsafe { raw::chdir(task.directory) }?;
    }

    task.begin(Step::CloseDescriptors)?;
    close::gaps(task, &task.descriptors.close_before)?;

    task.begin(Step::MoveDescriptors)?;
    move_descriptors(task)?;

    task.begin(Step::CloseDescriptors)?;
    close::gaps(task, &task.descriptors.close_after)?;

    task.begin(Step::SignalMask)?;
    raw::set_signal_mask(task.mask)?;

    task.begin(Step::Execute)?;
    // SAFETY: by the contract of `run`.
    Err(unsafe { execute(task) })
}

fn move_descriptors(task: &Task<'_>) -> Result<(), i32> {
    let mut free = task.lifted.iter();
    for &step in &task.descriptors.moves {
        task.index.store(step.pair(), Relaxed);
        match step {
            Move::Lift { source, .. } => {
                let number = lift(source, &task.descriptors.targets)?;
                if let Some(place) = free.next() {
                    place.store(number, Relaxed);
                }
            }
            Move::Place { source, target, .. } => {
                raw::dup3(source, target, 0)?;
            }
            Move::PlaceLifted { lift, target, .. } => {
                let number = task.lifted.get(lift).map_or(-1, |place| place.load(Relaxed));
                raw::dup3(number, target, 0)?;
            }
            Move::Keep { number, .. } if number < 3 => keep_standard(number)?,
            Move::Keep { number, .. } => drop(raw::fcntl(number, libc::F_SETFD, 0)?),
        }
    }
    Ok(())
}

/// Leaves a standard handle of the parent as it is: closed, if it is closed there or has close-on-exec, as in std. The
/// latter is most often somebody's new descriptor (a pipe, a pidfd, a file), which got the number of a closed standard
/// handle: no program means that by its standard input.
fn keep_standard(number: i32) -> Result<(), i32> {
    match raw::fcntl(number, libc::F_GETFD, 0) {
        Err(libc::EBADF) => Ok(()),
        Ok(flags) if flags & libc::FD_CLOEXEC as usize != 0 => raw::close(number).map(drop),
        result => result.map(drop),
    }
}

/// Duplicates to the lowest free number that is no target, with close-on-exec.
fn lift(source: i32, targets: &[i32]) -> Result<i32, i32> {
    let mut from = 3;
    loop {
        let number = raw::fcntl(source, libc::F_DUPFD_CLOEXEC, from)? as i32;
        if !targets.contains(&number) {
            return Ok(number);
        }
        raw::close(number)?;
        from = number.wrapping_add(1);
    }
}

/// Executes the first candidate that can be, by the rules of `execvp(3)`, and otherwise says why not.
///
/// # Safety
/// As [`run`].
unsafe fn execute(task: &Task<'_>) -> i32 {
    let mut denied = None;
    let mut last = libc::ENOENT;
    for index in 0.. {
        // SAFETY: the array ends with null, which ends the loop.
        let path = unsafe { *task.candidates.wrapping_add(index) };
        if path.is_null() {
            break;
        }
        task.index.store(index, Relaxed);
        // SAFETY: by the contract of `run`.
        let Err(errno) = (unsafe { raw::execve(path, task.argv, task.envp) }) else { continue };
        last = errno;
        match errno {
            libc::EACCES => denied = denied.or(Some(index)),
            libc::ENOENT | libc::ESTALE | libc::ENOTDIR | libc::ENODEV | libc::ETIMEDOUT => {}
            _ => return errno,
        }
    }
    match denied {
        None => last,
        Some(index) => {
            task.index.store(index, Relaxed);
            libc::EACCES
        }
    }
}
