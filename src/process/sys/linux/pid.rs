//! A child of ours: to observe, reap and signal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::raw::{self, Ended};

/// The kernel's `__WALL`: children with any exit signal.
const ANY: i32 = libc::__WALL;
/// The kernel's `__WCLONE`: children whose exit signal is not `SIGCHLD`.
const NOT_EXECUTED: i32 = libc::__WCLONE;

/// A child by its number and, where the kernel has them, its pidfd.
#[derive(Debug)]
pub(crate) struct Pid {
    number: i32,
    fd: Option<OwnedFd>,
}

/// How often a child that is stopped under this process's own tracing is looked at.
const TICK: Duration = Duration::from_millis(10);

/// What a look at a child found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    Running,
    /// It has ended; if the look was to reap it, it is reaped.
    Ended(ExitStatus),
    /// Somebody else has reaped it, and its status is not to be had.
    Gone,
}

impl Pid {
    pub(super) fn new(number: i32, fd: Option<OwnedFd>) -> Pid {
        Pid { number, fd }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number as u32
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// The number of its pidfd is another file's by now: it is not closed, and the child is known by its own number.
    pub(super) fn forget_fd(&mut self) {
        let _ = self.fd.take().map(IntoRawFd::into_raw_fd);
    }

    fn wait(&self, flags: i32) -> Result<Option<Ended>, i32> {
        let (kind, id) = match &self.fd {
            Some(fd) => (libc::P_PIDFD, fd.as_raw_fd()),
            None => (libc::P_PID, self.number),
        };
        loop {
            match raw::waitid(kind, id, flags | libc::WEXITED) {
                Err(libc::EINTR) => {}
                result => return result,
            }
        }
    }

    /// Blocks until the child has ended, and reaps it.
    pub(crate) fn wait_and_reap(&self) -> io::Result<Seen> {
        loop {
            let observed = self.wait(ANY | libc::WNOWAIT);
            if let Ok(Some(Ended { code: libc::CLD_TRAPPED | libc::CLD_STOPPED, .. })) = observed {
                // This process also traces the child, and is told of a stop: look again when it may have ended.
                std::thread::sleep(TICK);
                continue;
            }
            return self.reap();
        }
    }

    /// Reaps the child if it has ended.
    ///
    /// It is observed first: reaping at once would also take a stop of a child that this process traces, for an end,
    /// and away from the tracer.
    pub(crate) fn reap(&self) -> io::Result<Seen> {
        let mut seen = self.wait(ANY | libc::WNOHANG | libc::WNOWAIT);
        if let Ok(Some(Ended { code: libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED, .. })) = seen {
            seen = self.wait(ANY | libc::WNOHANG);
        } else if let Ok(Some(_)) = seen {
            return Ok(Seen::Running);
        }
        match seen {
            Ok(None) => Ok(Seen::Running),
            Ok(Some(ended)) => Ok(Seen::Ended(ExitStatus::from_raw(ended.wait_status()))),
            Err(libc::ECHILD) => Ok(self.status_after_reaping().map_or(Seen::Gone, Seen::Ended)),
            Err(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn status_after_reaping(&self) -> Option<ExitStatus> {
        raw::pidfd_exit_status(self.fd.as_ref()?.as_raw_fd()).map(ExitStatus::from_raw)
    }

    /// Kills the child. Fine if it has ended.
    ///
    /// The caller has it to itself and has not reaped it, so that its number is still its own.
    pub(crate) fn kill(&self) -> io::Result<()> {
        if let Some(fd) = &self.fd {
            match raw::pidfd_send_signal(fd.as_raw_fd(), libc::SIGKILL) {
                Ok(_) | Err(libc::ESRCH) => return Ok(()),
                // Refused by a sandbox, perhaps.
                Err(_) => {}
            }
        }
        // Others may have reaped it, and the number may be anyone's.
        if let Err(libc::ECHILD) = self.wait(libc::WNOHANG | libc::WNOWAIT | ANY) {
            return Ok(());
        }
        match raw::kill(self.number, libc::SIGKILL) {
            Ok(_) | Err(libc::ESRCH) => Ok(()),
            Err(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Reaps a child that has reported a failure and is about to exit.
    pub(super) fn reap_failed(&self) {
        // Before 5.4 a pidfd cannot be waited for.
        if let Err(libc::EINVAL) = self.wait(ANY) {
            let _ = raw::waitid(libc::P_PID, self.number, libc::WEXITED | ANY);
        }
    }

    /// The signal that ended the child before it executed its program, in which case it is reaped; `None` if the
    /// program was executed, whatever has become of it since.
    ///
    /// Asked once, right after the clone.
    pub(super) fn died_before_exec(&mut self) -> Option<i32> {
        let look = libc::WNOWAIT | NOT_EXECUTED;
        let mut seen = self.wait(look | libc::WNOHANG);
        if let Err(libc::EINVAL) = seen {
            // Linux 5.2 and 5.3 have pidfds that cannot be waited for.
            self.fd = None;
            seen = self.wait(look | libc::WNOHANG);
        }
        if let Ok(None) = seen {
            // Not executed, and yet the parent was resumed: it is dying.
            seen = self.wait(look);
        }
        let ended = seen.ok()??;
        let _ = self.wait(NOT_EXECUTED);
        Some(ended.status)
    }
}
