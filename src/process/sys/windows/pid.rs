//! A process by its handle: to wait for and to end.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::os::windows::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windows_sys::Wdk::Foundation::{NtQueryObject, ObjectBasicInformation};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, FALSE, FILETIME, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessId, GetProcessTimes, INFINITE, OpenProcess,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, ResumeThread,
    TerminateProcess, WaitForSingleObject,
};

use super::job;
use crate::process::usage::Usage;
use crate::windows::{last_error, owned};

/// A process. While there is a handle to it, its number is nobody else's.
#[derive(Clone, Debug)]
pub(crate) struct Pid {
    process: Arc<OwnedHandle>,
    id: u32,
    /// Its first thread, while that waits to be resumed.
    thread: Option<Arc<OwnedHandle>>,
    /// The job that it and all that it launches are in, if it was launched with one.
    job: Option<Arc<OwnedHandle>>,
}

fn os(error: u32) -> io::Error {
    io::Error::from_raw_os_error(error as i32)
}

impl Pid {
    pub(super) fn new(
        process: OwnedHandle,
        id: u32,
        thread: Option<OwnedHandle>,
        job: Option<OwnedHandle>,
    ) -> Pid {
        Pid { process: Arc::new(process), id, thread: thread.map(Arc::new), job: job.map(Arc::new) }
    }

    /// Opens a process by its number.
    pub(crate) fn open(id: u32) -> io::Result<Pid> {
        let access = PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION;
        // SAFETY: it takes numbers. Who may not end a process may still wait for it.
        let process = unsafe {
            match OpenProcess(access | PROCESS_TERMINATE, FALSE, id) {
                process if process.is_null() && last_error() == ERROR_ACCESS_DENIED => {
                    OpenProcess(access, FALSE, id)
                }
                process => process,
            }
        };
        if process.is_null() {
            return Err(os(last_error()));
        }
        // SAFETY: it was opened a moment ago.
        let process = unsafe { owned(process) };
        // The system rounds a number down to one that a process may have.
        // SAFETY: the handle is open.
        if unsafe { GetProcessId(process.as_raw_handle()) } != id {
            return Err(os(ERROR_INVALID_PARAMETER));
        }
        Ok(Pid::new(process, id, None, None))
    }

    pub(crate) fn number(&self) -> u32 {
        self.id
    }

    pub(crate) fn handle(&self) -> BorrowedHandle<'_> {
        self.process.as_handle()
    }

    /// The handle, for whoever takes the process over.
    ///
    /// # Panics
    /// If others share it, and there is no memory for a duplicate.
    pub(crate) fn into_handle(self) -> OwnedHandle {
        Arc::try_unwrap(self.process).unwrap_or_else(|shared| {
            // A duplicate with the same rights; without memory for one there is nothing left to give.
            shared.try_clone().expect("a handle of this process can be duplicated")
        })
    }

    /// Waits at most that long; false if it still runs then.
    fn has_ended(&self, milliseconds: u32) -> io::Result<bool> {
        // SAFETY: the handle is open.
        match unsafe { WaitForSingleObject(self.process.as_raw_handle(), milliseconds) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(os(last_error())),
        }
    }

    fn status(&self) -> io::Result<ExitStatus> {
        let mut code = 0;
        // SAFETY: the handle is open and the place this frame's.
        if unsafe { GetExitCodeProcess(self.process.as_raw_handle(), &raw mut code) } == 0 {
            return Err(os(last_error()));
        }
        Ok(ExitStatus::from_raw(code))
    }

    /// Blocks until the process has ended.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        self.has_ended(INFINITE)?;
        self.status()
    }

    /// The status if it has ended. That is asked of the handle: 259, which the system gives as the code of a process
    /// that runs, is also a code that a process may end with.
    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.has_ended(0)?.then(|| self.status()).transpose()
    }

    /// As [`wait`](Pid::wait), for at most that long.
    pub(crate) fn wait_for(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let end = Instant::now().checked_add(limit);
        loop {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            // Rounded up, so that the last wait is not a row of empty ones; no number says "for ever" but INFINITE.
            let milliseconds = left.as_nanos().div_ceil(1_000_000).min(u128::from(INFINITE - 1)) as u32;
            if self.has_ended(milliseconds)? {
                return self.status().map(Some);
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Ends the process; fine if it has ended.
    pub(crate) fn kill(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        if unsafe { TerminateProcess(self.process.as_raw_handle(), 1) } != 0 {
            return Ok(());
        }
        let error = last_error();
        // So says the system of a process that is ending or has ended, whatever the right to end it.
        let ends = error == ERROR_ACCESS_DENIED && (self.may_be_ended() || self.has_ended(0)?);
        if ends { Ok(()) } else { Err(os(error)) }
    }

    /// Whether the handle has the right to end the process.
    fn may_be_ended(&self) -> bool {
        // A PUBLIC_OBJECT_BASIC_INFORMATION: attributes, the access that was granted, and twelve numbers more.
        let mut information = [0_u32; 14];
        // SAFETY: the handle is open, and the place this frame's and as long as it says.
        let status = unsafe {
            NtQueryObject(
                self.process.as_raw_handle(),
                ObjectBasicInformation,
                information.as_mut_ptr().cast(),
                size_of_val(&information) as u32,
                std::ptr::null_mut(),
            )
        };
        status >= 0 && information[1] & PROCESS_TERMINATE != 0
    }

    /// Ends the process and all in its job; `None` if it was not launched with one.
    pub(crate) fn kill_job(&self) -> Option<io::Result<()>> {
        Some(job::terminate(self.job.as_deref()?).map_err(os))
    }

    /// Lets a process run that was launched suspended; false if it was not, or runs already.
    pub(crate) fn resume(&mut self) -> io::Result<bool> {
        let Some(thread) = &self.thread else { return Ok(false) };
        // SAFETY: the handle is open.
        if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
            return Err(os(last_error()));
        }
        self.thread = None;
        Ok(true)
    }

    /// What the process has used, so far or in all.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let handle = self.process.as_raw_handle();
        let none = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let (mut created, mut exited, mut system, mut user) = (none, none, none, none);
        let mut memory = PROCESS_MEMORY_COUNTERS::default();
        // SAFETY: the handle is open, and the places are this frame's and as long as they say.
        unsafe {
            if GetProcessTimes(handle, &raw mut created, &raw mut exited, &raw mut system, &raw mut user) == 0
                || GetProcessMemoryInfo(handle, &raw mut memory, size_of_val(&memory) as u32) == 0
            {
                return Err(os(last_error()));
            }
        }
        let time = |time: FILETIME| {
            let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
            Duration::from_micros(ticks / 10) + Duration::from_nanos(ticks % 10 * 100)
        };
        Ok(Usage { user: time(user), system: time(system), peak_memory: memory.PeakWorkingSetSize as u64 })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // go#67641, rust#112423. Windows says ERROR_ACCESS_DENIED of every process that has ended; Wine only, as here, where
    // the handle has not the right. Fails when `kill` takes that for an error without a look at the process.
    #[test]
    fn who_has_ended_need_not_be_killed() {
        let mut command = std::process::Command::new("cmd");
        command.args(["/c", "set /p x="]).stdin(std::process::Stdio::piped());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        // SAFETY: it takes numbers; the handle is this function's.
        let process = unsafe {
            owned(OpenProcess(PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, child.id()))
        };
        let pid = Pid::new(process, child.id(), None, None);
        assert_eq!(pid.kill().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(pid.try_wait().unwrap().is_none());
        child.wait().unwrap();
        pid.kill().unwrap();
    }

    // Fails when `may_be_ended` looks at another right, or says yes of every handle.
    #[test]
    fn whether_a_process_may_be_ended_is_the_handles_to_say() {
        let me = std::process::id();
        assert!(Pid::open(me).unwrap().may_be_ended());
        // SAFETY: it takes numbers; the handle is this function's.
        let process = unsafe { owned(OpenProcess(PROCESS_SYNCHRONIZE, FALSE, me)) };
        assert!(!Pid::new(process, me, None, None).may_be_ended());
    }

    // Fails when `open` does not compare the number that it was given with the one that it got.
    #[test]
    fn a_number_that_is_no_processes_opens_none() {
        let me = std::process::id();
        for number in [me + 1, me + 2, me + 3] {
            assert!(Pid::open(number).is_err(), "{number}");
        }
    }
}
