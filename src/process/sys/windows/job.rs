//! Jobs: what ends with the parent, and what ends together.

use std::ffi::c_void;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null;
use std::sync::OnceLock;

use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, SetInformationJobObject, TerminateJobObject,
};

use crate::windows::{last_error, owned};

/// A job without limits that is not inheritable.
pub(super) fn new() -> Result<OwnedHandle, u32> {
    // SAFETY: no name and no attributes are given.
    let job = unsafe { CreateJobObjectW(null(), null()) };
    // SAFETY: the job was made a moment ago.
    if job.is_null() { Err(last_error()) } else { Ok(unsafe { owned(job) }) }
}

/// The job whose processes end with this one: it is never closed but by the end of this process, and then the system
/// ends all that is in it.
pub(super) fn of_this_process() -> Result<&'static OwnedHandle, u32> {
    static JOB: OnceLock<OwnedHandle> = OnceLock::new();
    if let Some(job) = JOB.get() {
        return Ok(job);
    }
    let job = new()?;
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    // SAFETY: the structure is of the class that is named, and as long.
    let set = unsafe {
        SetInformationJobObject(
            job.as_raw_handle(),
            JobObjectExtendedLimitInformation,
            (&raw const limits).cast::<c_void>(),
            size_of_val(&limits) as u32,
        )
    };
    if set == 0 {
        return Err(last_error());
    }
    // Of two threads one keeps its job; nothing is in the other's yet.
    Ok(JOB.get_or_init(|| job))
}

/// Ends every process of a job.
pub(super) fn terminate(job: &OwnedHandle) -> Result<(), u32> {
    // SAFETY: the job is open.
    if unsafe { TerminateJobObject(job.as_raw_handle(), 1) } == 0 { Err(last_error()) } else { Ok(()) }
}
