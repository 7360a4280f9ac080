//! The last step of a launch as another user: `CreateProcessWithLogonW` in the place of `CreateProcessW`.
//!
//! It takes no list of attributes. What is inheritable at that moment is inherited, so it is in the rooms of
//! launches that inherit everything; and a child that is to be in a job is made suspended, put into it, and then let go.

use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_CALL_NOT_IMPLEMENTED, HANDLE, SetLastError};
use windows_sys::Win32::System::JobObjects::AssignProcessToJobObject;
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessWithLogonW, PROCESS_INFORMATION, ResumeThread,
    STARTUPINFOW, TerminateProcess,
};

use crate::process::error::Step;
use crate::process::plan::Plan;
use crate::process::plan::logon::Logon;
use crate::windows::{last_error, owned};

/// Makes the child, in these jobs. It runs, unless it is to be suspended.
pub(super) fn create(
    plan: &Plan,
    logon: &Logon,
    startup: &STARTUPINFOW,
    jobs: &[HANDLE],
) -> Result<(OwnedHandle, OwnedHandle, u32), (Step, u32)> {
    let suspended = plan.suspended || !jobs.is_empty();
    let flags = plan.flags | CREATE_UNICODE_ENVIRONMENT | if suspended { CREATE_SUSPENDED } else { 0 };
    // The call may write to it.
    let mut command_line = plan.command_line.clone();
    let optional = |block: &Option<Vec<u16>>| block.as_ref().map_or(null(), |block| block.as_ptr());
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: it sets a number of the calling thread's, which stays where there is no more of the call than its name
    // (Wine). The strings are terminated, and the places this frame's or the caller's.
    let done = unsafe {
        SetLastError(ERROR_CALL_NOT_IMPLEMENTED);
        CreateProcessWithLogonW(
            logon.user.as_ptr(),
            optional(&logon.domain),
            logon.password.terminated().as_ptr(),
            logon.flags,
            plan.application.as_ptr(),
            command_line.as_mut_ptr(),
            flags,
            optional(&plan.environment).cast(),
            optional(&plan.directory),
            startup,
            &raw mut made,
        )
    };
    if done == 0 {
        return Err((Step::Execute, last_error()));
    }
    // SAFETY: the call made both.
    let (process, thread) = unsafe { (owned(made.hProcess), owned(made.hThread)) };
    settle(&process, &thread, jobs, suspended && !plan.suspended)?;
    Ok((process, thread, made.dwProcessId))
}

/// Puts a process that does not run yet into its jobs, and lets it go. If that fails, the process is ended.
fn settle(
    process: &OwnedHandle,
    thread: &OwnedHandle,
    jobs: &[HANDLE],
    resume: bool,
) -> Result<(), (Step, u32)> {
    let mut result = Ok(());
    for &job in jobs {
        // SAFETY: both handles are open.
        if unsafe { AssignProcessToJobObject(job, process.as_raw_handle()) } == 0 {
            result = result.and(Err((Step::Job, last_error())));
        }
    }
    // SAFETY: the handle is open.
    if result.is_ok() && resume && unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
        result = Err((Step::Execute, last_error()));
    }
    if result.is_err() {
        // SAFETY: the handle is open.
        unsafe { TerminateProcess(process.as_raw_handle(), 1) };
    }
    result
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::null_mut;
    use std::time::Duration;

    use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, FALSE};
    use windows_sys::Win32::System::JobObjects::IsProcessInJob;
    use windows_sys::Win32::System::Threading::CreateProcessW;

    use super::super::job;
    use super::super::pid::Pid;
    use super::*;

    /// A process that does not run yet, made by the call that works without a user's password.
    fn suspended() -> (OwnedHandle, OwnedHandle, u32) {
        let mut line: Vec<u16> = "cmd /c exit 7".encode_utf16().chain([0]).collect();
        let startup = STARTUPINFOW { cb: size_of::<STARTUPINFOW>() as u32, ..STARTUPINFOW::default() };
        let mut made = PROCESS_INFORMATION::default();
        // SAFETY: the line is terminated, and the places are this frame's.
        unsafe {
            let done = CreateProcessW(
                null(),
                line.as_mut_ptr(),
                null(),
                null(),
                FALSE,
                CREATE_SUSPENDED,
                null(),
                null(),
                &raw const startup,
                &raw mut made,
            );
            assert_ne!(done, 0);
            (owned(made.hProcess), owned(made.hThread), made.dwProcessId)
        }
    }

    /// What it ends with, if it ends.
    fn code(pid: &Pid) -> Option<i32> {
        pid.wait_for(Duration::from_secs(20)).unwrap().expect("it ends").code()
    }

    // Fails without the call of AssignProcessToJobObject, or of ResumeThread.
    #[test]
    fn a_child_is_in_its_jobs_before_it_runs() {
        let job = job::new().unwrap();
        let (process, thread, id) = suspended();
        assert_eq!(settle(&process, &thread, &[job.as_raw_handle()], true), Ok(()));
        let mut inside = FALSE;
        // SAFETY: the handles are open, and the place is this frame's.
        unsafe { IsProcessInJob(process.as_raw_handle(), job.as_raw_handle(), &raw mut inside) };
        assert_ne!(inside, FALSE);
        assert_eq!(code(&Pid::new(process, id, None, None)), Some(7));

        let (process, thread, id) = suspended();
        assert_eq!(settle(&process, &thread, &[], false), Ok(()));
        let mut pid = Pid::new(process, id, Some(thread), None);
        assert_eq!(pid.try_wait().unwrap(), None);
        assert!(pid.resume().unwrap());
        assert_eq!(code(&pid), Some(7));
    }

    // Fails without the call of TerminateProcess: the child would stay as it is for ever.
    #[test]
    fn a_child_that_cannot_be_put_into_its_job_is_ended() {
        let (process, thread, id) = suspended();
        let result = settle(&process, &thread, &[null_mut()], true);
        assert_eq!(result, Err((Step::Job, ERROR_INVALID_HANDLE)));
        assert_eq!(code(&Pid::new(process, id, None, None)), Some(1));
    }
}
