//! [`Child`]: a launched process.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io::{self, Read};

use super::stdio::{ChildStderr, ChildStdin, ChildStdout};
use super::sys::{self, Launched};
use super::{ExitStatus, Output};

#[cfg(unix)]
use unix::Reaper;
#[cfg(windows)]
use windows::Reaper;

/// A child process, from [`Command::spawn`](crate::process::Command::spawn).
///
/// As in std, dropping it does not end the process. Unlike there it is not left as a zombie either: when it ends,
/// it is reaped. (Windows has no zombies.)
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
        Child { stdin, stdout, stderr, reaper: Reaper::new(launched.pid) }
    }

    /// The process's identifier. Once the child is waited for, the system may give it to another.
    pub fn id(&self) -> u32 {
        self.reaper.id()
    }

    /// Closes the child's standard input, waits for the child's end and gives its status.
    ///
    /// Asked again, it gives the same status. `SIGCHLD` is not touched, and no other child is waited for.
    ///
    /// # Errors
    /// On Unix other code in this process that waits for any child may have taken the status. Linux 6.15 and later
    /// still tell it; before, the error says so. On Windows, what the system says.
    ///
    /// # References
    /// * [`waitid(2)`](https://man7.org/linux/man-pages/man2/waitid.2.html)
    /// * [`WaitForSingleObject`](https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-waitforsingleobject),
    ///   [`GetExitCodeProcess`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getexitcodeprocess)
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

    /// Ends the child at once, with `SIGKILL`, or on Windows with the exit code 1; fine if it has ended already. It still
    /// is to be waited for.
    ///
    /// No other process that got the child's number can be met.
    ///
    /// # Errors
    /// The system may forbid it, for example for a child that became another user.
    ///
    /// # References
    /// * [`pidfd_send_signal(2)`](https://man7.org/linux/man-pages/man2/pidfd_send_signal.2.html)
    /// * [`TerminateProcess`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-terminateprocess)
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
    /// # if cfg!(windows) { return Ok(()) } // there the programs have other names
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
