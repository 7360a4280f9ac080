//! How a child is launched on Windows.
//!
//! `CreateProcessW` makes the process and loads the program in one call. Which handles the child gets is decided by
//! two things: each has to be inheritable at that moment, and, where there is a list
//! (`PROC_THREAD_ATTRIBUTE_HANDLE_LIST`), it has to be in it. A handle that is inheritable for the sake of one launch is
//! seen by every other launch of this process that inherits without a list. So each launch is in a *room* of
//! [`START`]: those with a list together, those that inherit all and make nothing inheritable together, and one that
//! inherits all and makes something inheritable alone.
//!
//! The protocol; the numbers are those of [`Step`]. Before it, [`Stdio`](Step::Stdio) (1) and
//! [`Resolve`](Step::Resolve) (2) have made the handles, none of them inheritable, and the plan.
//!
//! ```text
//!     enter the room
//! 11  Inheritable    standard handles and those that are passed
//! 12  Job            those that the command asks for
//! 13  Attributes     the list of the handles, the list of the jobs
//! 14  Execute        CreateProcessW
//!     each handle's flag as it was
//!     leave the room
//! ```
//!
//! * With nothing to pass there is no list, and `bInheritHandles` is `FALSE`: an empty list is an error on Windows, and
//!   means "everything" to Wine. The other rules for a list are [`HandleList`](crate::process::plan)'s.
//! * `STARTF_USESTDHANDLES` is set if any standard handle is there.
//! * A child of another user is made by another call, which takes no attributes: `logon.rs` of this folder.
//!
//! # References
//! * [`CreateProcessW`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw),
//!   [`UpdateProcThreadAttribute`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-updateprocthreadattribute)

use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, FALSE, HANDLE, TRUE};
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, EXTENDED_STARTUPINFO_PRESENT,
    PROCESS_INFORMATION, STARTF_USESHOWWINDOW, STARTF_USESTDHANDLES, STARTUPINFOEXW, STARTUPINFOW,
};

use super::attributes::Attributes;
use super::inheritable::{Inheritable, is_lent};
use super::pid::Pid;
use super::{job, logon};
use crate::process::error::Step;
use crate::process::inherit::Inherit;
use crate::process::plan::Plan;
use crate::process::sys::{Failure, Os, force};
use crate::room_lock::RoomLock;
use crate::windows::{last_error, owned};

/// The order of launches that must not overlap.
pub(super) static START: RoomLock = RoomLock::new();

/// A child that runs its program, or waits to be resumed.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: Pid,
}

/// Launches by the protocol of this chapter.
pub(crate) fn launch(plan: &Plan) -> Result<Launched, Failure> {
    let fail = |step, index| move |error: u32| Failure { step, index, os: Os::Errno(error as i32) };
    let injected = |step| match force::failing(step) {
        None => Ok(()),
        Some(errno) => Err(fail(step, 0)(errno as u32)),
    };

    let _room = START.enter(plan.room());

    let mut lent = Inheritable::default();
    let mut streams = [0; 3];
    injected(Step::Inheritable)?;
    // Before any duplicate is made, which could take the value of one that was closed.
    for (index, &value) in plan.passed.iter().enumerate() {
        lent.flag(value).map_err(fail(Step::Inheritable, 3 + index))?;
    }
    for (index, (value, source)) in streams.iter_mut().zip(plan.streams).enumerate() {
        *value = lent.lend(source, plan.inherit).map_err(fail(Step::Inheritable, index))?;
    }

    injected(Step::Job)?;
    let tree = if plan.kill_tree { Some(job::new().map_err(fail(Step::Job, 0))?) } else { None };
    let mut jobs: Vec<HANDLE> = Vec::new();
    if plan.kill_on_parent_exit {
        jobs.push(job::of_this_process().map_err(fail(Step::Job, 0))?.as_raw_handle());
    }
    jobs.extend(tree.as_ref().map(AsRawHandle::as_raw_handle));

    injected(Step::Attributes)?;
    // Values that were made inheritable a moment ago are no flaw.
    let list = plan.handle_list(streams).map_err(|_| fail(Step::Attributes, 0)(ERROR_INVALID_HANDLE))?;
    if cfg!(debug_assertions)
        && let Some(list) = &list
    {
        list.assert_valid(&streams, is_lent);
    }
    let handles: Vec<HANDLE> =
        list.iter().flat_map(|list| list.values()).map(|&value| value as HANDLE).collect();
    let inherits = plan.inherit == Inherit::All || !handles.is_empty();

    injected(Step::Execute)?;
    let (process, thread, id) = match &plan.logon {
        Some(user) => logon::create(plan, user, &startup(plan, streams), &jobs)
            .map_err(|(step, error)| fail(step, 0)(error))?,
        None => {
            let mut attributes = Attributes::new(&handles, &jobs).map_err(fail(Step::Attributes, 0))?;
            create(plan, streams, inherits, &mut attributes).map_err(fail(Step::Execute, 0))?
        }
    };
    let thread = plan.suspended.then_some(thread);
    Ok(Launched { pid: Pid::new(process, id, thread, tree) })
}

/// The standard handles, and how the first window is to be shown.
fn startup(plan: &Plan, streams: [usize; 3]) -> STARTUPINFOW {
    let mut startup = STARTUPINFOW { cb: size_of::<STARTUPINFOW>() as u32, ..STARTUPINFOW::default() };
    if streams.iter().any(|&value| value != 0) {
        startup.dwFlags |= STARTF_USESTDHANDLES;
        [startup.hStdInput, startup.hStdOutput, startup.hStdError] = streams.map(|value| value as HANDLE);
    }
    if let Some(window) = plan.window {
        startup.dwFlags |= STARTF_USESHOWWINDOW;
        startup.wShowWindow = window;
    }
    startup
}

fn create(
    plan: &Plan,
    streams: [usize; 3],
    inherits: bool,
    attributes: &mut Attributes<'_>,
) -> Result<(OwnedHandle, OwnedHandle, u32), u32> {
    let mut startup = STARTUPINFOEXW { StartupInfo: startup(plan, streams), ..STARTUPINFOEXW::default() };
    startup.StartupInfo.cb = size_of_val(&startup) as u32;
    startup.lpAttributeList = attributes.as_ptr();
    let flags = plan.flags
        | EXTENDED_STARTUPINFO_PRESENT
        | CREATE_UNICODE_ENVIRONMENT
        | if plan.suspended { CREATE_SUSPENDED } else { 0 };
    // The call may write to it.
    let mut command_line = plan.command_line.clone();
    let optional = |block: &Option<Vec<u16>>| block.as_ref().map_or(null(), |block| block.as_ptr());
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: the strings are terminated; the attributes and what they list outlive the call; the places are this
    // frame's.
    let done = unsafe {
        CreateProcessW(
            plan.application.as_ptr(),
            command_line.as_mut_ptr(),
            null(),
            null(),
            if inherits { TRUE } else { FALSE },
            flags,
            optional(&plan.environment).cast(),
            optional(&plan.directory),
            (&raw const startup).cast(),
            &raw mut made,
        )
    };
    if done == 0 {
        return Err(last_error());
    }
    // SAFETY: the call made both.
    Ok(unsafe { (owned(made.hProcess), owned(made.hThread), made.dwProcessId) })
}
