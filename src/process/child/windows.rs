//! What Windows adds to a child.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, IntoRawHandle, OwnedHandle, RawHandle};

use super::Child;
use crate::process::ExitStatus;
use crate::process::process::{Process, kill_tree};
use crate::process::sys::Pid;
use crate::process::usage::Usage;
use crate::process::wait::Wait;

/// The process. There is nothing to reap: it goes with the last handle to it.
#[derive(Debug)]
pub(super) struct Reaper {
    pid: Pid,
}

impl Reaper {
    pub(super) fn new(pid: Pid) -> Reaper {
        Reaper { pid }
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.number()
    }

    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        self.pid.wait()
    }

    pub(super) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.pid.try_wait()
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        self.pid.kill()
    }
}

impl Child {
    fn pid(&self) -> &Pid {
        &self.reaper.pid
    }

    /// The process, to share with other threads and tasks.
    pub fn process(&self) -> Process {
        Process::new(self.pid().clone())
    }

    /// As [`wait`](Child::wait), for tasks: under any executor, and without a thread of its own. The child's standard
    /// input is closed at once.
    ///
    /// # Errors
    /// As [`wait`](Child::wait); besides, what `RegisterWaitForSingleObject` says.
    ///
    /// # References
    /// * [`RegisterWaitForSingleObject`](https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-registerwaitforsingleobject)
    pub fn wait_async(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send + '_ {
        drop(self.stdin.take());
        Wait::new(self.pid())
    }

    /// Waits for the child's end, and gives its status and what it has used.
    ///
    /// # Errors
    /// As [`wait`](Child::wait); besides, what `GetProcessTimes` and `GetProcessMemoryInfo` say.
    pub fn wait_with_usage(&mut self) -> io::Result<(ExitStatus, Usage)> {
        let status = self.wait()?;
        Ok((status, self.pid().usage()?))
    }

    /// Lets a child run that was [launched suspended](crate::process::Command::spawn_suspended).
    ///
    /// # Errors
    /// `InvalidInput` if it was not, or runs already; what `ResumeThread` says.
    pub fn resume(&mut self) -> io::Result<()> {
        let resumed = self.reaper.pid.resume()?;
        if resumed {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the child is not one that waits to be resumed"))
    }

    /// Ends the child and all that it has launched, if it was launched with
    /// [`kill_tree`](crate::process::Command::kill_tree).
    ///
    /// # Errors
    /// `Unsupported` if it was not.
    ///
    /// # References
    /// * [`TerminateJobObject`](https://learn.microsoft.com/windows/win32/api/jobapi2/nf-jobapi2-terminatejobobject)
    pub fn kill_tree(&mut self) -> io::Result<()> {
        kill_tree(self.pid())
    }
}

impl AsHandle for Child {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.pid().handle()
    }
}

impl AsRawHandle for Child {
    fn as_raw_handle(&self) -> RawHandle {
        self.as_handle().as_raw_handle()
    }
}

impl IntoRawHandle for Child {
    fn into_raw_handle(self) -> RawHandle {
        OwnedHandle::from(self).into_raw_handle()
    }
}

impl From<Child> for OwnedHandle {
    fn from(child: Child) -> OwnedHandle {
        child.reaper.pid.into_handle()
    }
}
