//! [`Process`]: any process, child or not, by its handle.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, RawHandle};
use std::time::Duration;

use super::ExitStatus;
use super::sys::Pid;
use super::wait::Wait;

/// A process: a child of this one ([`Child::process`](crate::process::Child::process)), or another
/// ([`Process::open`]). Windows so far.
///
/// It can be cloned and used from several threads at once. While one is there, the process's number is not given to
/// another process.
///
/// ```
/// use haft::process::{Command, Process};
///
/// let mut child = Command::new("cmd").args(["/c", "exit 7"]).spawn()?;
/// let process = Process::open(child.id())?;
/// assert_eq!(process.wait()?.and_then(|status| status.code()), Some(7));
/// assert_eq!(child.wait()?.code(), Some(7));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Process {
    pid: Pid,
}

impl Process {
    pub(super) fn new(pid: Pid) -> Process {
        Process { pid }
    }

    /// Opens the process with this number.
    ///
    /// # Errors
    /// What `OpenProcess` says: `InvalidInput` where there is no such process, `PermissionDenied` where it may not be
    /// waited for.
    ///
    /// # References
    /// * [`OpenProcess`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-openprocess)
    pub fn open(id: u32) -> io::Result<Process> {
        Pid::open(id).map(Process::new)
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.pid.number()
    }

    /// Waits for the process's end and gives its status. On Windows that is known of every process; the `Option` is
    /// for systems that tell it to the parent alone.
    ///
    /// # Errors
    /// What `WaitForSingleObject` and `GetExitCodeProcess` say.
    pub fn wait(&self) -> io::Result<Option<ExitStatus>> {
        self.pid.wait().map(Some)
    }

    /// As [`wait`](Process::wait), for at most `limit`.
    ///
    /// # Errors
    /// `TimedOut` if the process still runs then; else as [`wait`](Process::wait).
    pub fn wait_timeout(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        match self.pid.wait_for(limit)? {
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the process still runs after {limit:?}"),
            )),
            ended => Ok(ended),
        }
    }

    /// As [`wait`](Process::wait), for tasks: under any executor, and without a thread of its own.
    ///
    /// # Errors
    /// As [`wait`](Process::wait); besides, what `RegisterWaitForSingleObject` says.
    pub fn wait_async(&self) -> impl Future<Output = io::Result<Option<ExitStatus>>> + Send + '_ {
        let wait = Wait::new(&self.pid);
        async { wait.await.map(Some) }
    }

    /// Ends the process at once, with the exit code 1; fine if it has ended already.
    ///
    /// # Errors
    /// `PermissionDenied` where the process may not be ended.
    ///
    /// # References
    /// * [`TerminateProcess`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-terminateprocess)
    pub fn kill(&self) -> io::Result<()> {
        self.pid.kill()
    }

    /// Ends the process and all that it has launched, if it was launched with
    /// [`kill_tree`](crate::process::Command::kill_tree).
    ///
    /// # Errors
    /// `Unsupported` if it was not.
    pub fn kill_tree(&self) -> io::Result<()> {
        kill_tree(&self.pid)
    }
}

pub(super) fn kill_tree(pid: &Pid) -> io::Result<()> {
    pid.kill_job().unwrap_or_else(|| {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the process was not launched with kill_tree(true), so what it has launched is not known",
        ))
    })
}

impl AsHandle for Process {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.pid.handle()
    }
}

impl AsRawHandle for Process {
    fn as_raw_handle(&self) -> RawHandle {
        self.pid.handle().as_raw_handle()
    }
}
