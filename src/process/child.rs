//! [`Child`]: a launched process.

use std::io::{self, Read};
use std::mem;

use super::stdio::{ChildStderr, ChildStdin, ChildStdout};
use super::sys::{self, Launched, Pid, Seen};
use super::{ExitStatus, Output};

/// A child process, from [`Command::spawn`](crate::process::Command::spawn).
///
/// As in std, dropping it does not end the process. Unlike there it is not left as a zombie either: when it ends,
/// it is reaped.
#[derive(Debug)]
pub struct Child {
    /// The parent's end of the child's standard input, if it is a pipe.
    pub stdin: Option<ChildStdin>,
    /// The parent's end of the child's standard output, if it is a pipe.
    pub stdout: Option<ChildStdout>,
    /// The parent's end of the child's standard error, if it is a pipe.
    pub stderr: Option<ChildStderr>,
    reaper: Reaper,
}

impl Child {
    pub(crate) fn new(
        launched: Launched,
        stdin: Option<ChildStdin>,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
    ) -> Child {
        let id = launched.pid.number();
        Child { stdin, stdout, stderr, reaper: Reaper { state: State::Unreaped(launched.pid), id } }
    }

    /// The process's identifier. Once the child is waited for, the system may give it to another.
    pub fn id(&self) -> u32 {
        self.reaper.id
    }

    /// Closes the child's standard input, waits for the child's end and gives its status.
    ///
    /// Asked again, it gives the same status. `SIGCHLD` is not touched, and no other child is waited for.
    ///
    /// # Errors
    /// Other code in this process that waits for any child may have taken the status. Linux 6.15 and later still
    /// tell it; before, the error says so.
    ///
    /// # References
    /// * [`waitid(2)`](https://man7.org/linux/man-pages/man2/waitid.2.html)
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.reaper.wait()
    }

    /// Gives the child's status if it has ended, without waiting.
    ///
    /// # Errors
    /// As [`wait`](Child::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reaper.try_wait()
    }

    /// Ends the child at once with `SIGKILL`; fine if it has ended already. It still is to be waited for.
    ///
    /// The signal cannot reach another process that got the child's number.
    ///
    /// # Errors
    /// The system may forbid it, for example for a child that became another user.
    ///
    /// # References
    /// * [`pidfd_send_signal(2)`](https://man7.org/linux/man-pages/man2/pidfd_send_signal.2.html)
    pub fn kill(&mut self) -> io::Result<()> {
        self.reaper.kill()
    }

    /// Closes the child's standard input, reads what is piped of its outputs to the end, waits, and gives all.
    ///
    /// # Errors
    /// As [`wait`](Child::wait); besides, what reading says.
    ///
    /// ```
    /// use haft::process::{Command, Stdio};
    ///
    /// let child = Command::new("sh").args(["-c", "echo out; echo err >&2"])
    ///     .stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    /// let output = child.wait_with_output()?;
    /// assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        match (self.stdout.take(), self.stderr.take()) {
            (None, None) => {}
            (Some(mut out), None) => drop(out.read_to_end(&mut stdout)?),
            (None, Some(mut err)) => drop(err.read_to_end(&mut stderr)?),
            (Some(out), Some(err)) => sys::drain_both((out.0, &mut stdout), (err.0, &mut stderr))?,
        }
        Ok(Output { status: self.wait()?, stdout, stderr })
    }
}

/// The one place where a child is reaped and signalled.
///
/// Both take it exclusively, so that a signal by number never meets a child that was just reaped, whose number may be
/// another process's.
#[derive(Debug)]
struct Reaper {
    state: State,
    id: u32,
}

#[derive(Debug)]
enum State {
    Unreaped(Pid),
    /// The pidfd is closed.
    Reaped(ExitStatus),
    /// By others, or handed to the watcher.
    Gone,
}

impl Reaper {
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let seen = match &self.state {
            State::Unreaped(pid) => pid.wait_and_reap()?,
            State::Reaped(status) => Seen::Ended(*status),
            State::Gone => Seen::Gone,
        };
        self.record(seen)?.ok_or_else(gone)
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let seen = match &self.state {
            State::Unreaped(pid) => pid.reap()?,
            State::Reaped(status) => Seen::Ended(*status),
            State::Gone => Seen::Gone,
        };
        self.record(seen)
    }

    fn record(&mut self, seen: Seen) -> io::Result<Option<ExitStatus>> {
        match seen {
            Seen::Running => Ok(None),
            Seen::Ended(status) => {
                self.state = State::Reaped(status);
                Ok(Some(status))
            }
            Seen::Gone => {
                self.state = State::Gone;
                Err(gone())
            }
        }
    }

    fn kill(&mut self) -> io::Result<()> {
        match &self.state {
            State::Unreaped(pid) => pid.kill(),
            State::Reaped(_) | State::Gone => Ok(()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other(
        "the child was reaped by other code in this process (something that waits for any child, or SIGCHLD set to \
         be ignored): its exit status is lost",
    )
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let State::Unreaped(pid) = mem::replace(&mut self.state, State::Gone)
            && matches!(pid.reap(), Ok(Seen::Running))
        {
            sys::watch(pid);
        }
    }
}
