//! Handles made inheritable for as long as a launch takes.

use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation, TRUE,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::handles::is_inheritable;
use crate::process::inherit::Inherit;
use crate::process::plan::Source;
use crate::windows::{last_error, owned};

/// What was made inheritable; when it is dropped, each handle's flag is again as it was.
#[derive(Debug, Default)]
pub(super) struct Inheritable {
    flagged: Vec<usize>,
    /// Duplicates of the parent's standard handles: other launches use these at the same time, so their flags stay.
    duplicates: Vec<OwnedHandle>,
}

impl Inheritable {
    /// Makes a handle inheritable that this launch has to itself.
    pub(super) fn flag(&mut self, value: usize) -> Result<(), u32> {
        if is_inheritable(value) == Some(true) {
            return Ok(());
        }
        // SAFETY: the handle is the command's, which is borrowed for this launch.
        let done = unsafe { SetHandleInformation(value as HANDLE, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
        if done == 0 {
            return Err(last_error());
        }
        self.flagged.push(value);
        Ok(())
    }

    /// The value under which the child gets this; 0 for nothing.
    ///
    /// A launch by a list duplicates what is shared even if that is inheritable: the program may change its flag or
    /// close it at any time, and one handle in the list that is not inheritable fails the launch.
    pub(super) fn lend(&mut self, source: Source, inherit: Inherit) -> Result<usize, u32> {
        match source {
            Source::Missing => Ok(0),
            Source::Shared { value, inheritable: true } if inherit == Inherit::All => Ok(value),
            Source::Shared { value, .. } => {
                let duplicate = duplicate(value)?;
                let value = duplicate.as_raw_handle() as usize;
                self.duplicates.push(duplicate);
                Ok(value)
            }
            Source::Own(value) => self.flag(value).map(|()| value),
        }
    }
}

/// An inheritable duplicate.
fn duplicate(value: usize) -> Result<OwnedHandle, u32> {
    let mut copy = null_mut();
    // SAFETY: the place is this frame's; a value that is no handle any more is an error.
    unsafe {
        let here = GetCurrentProcess();
        let source = value as HANDLE;
        if DuplicateHandle(here, source, here, &raw mut copy, 0, TRUE, DUPLICATE_SAME_ACCESS) == 0 {
            return Err(last_error());
        }
        Ok(owned(copy))
    }
}

impl Drop for Inheritable {
    fn drop(&mut self) {
        for &value in &self.flagged {
            // SAFETY: as when it was set.
            unsafe { SetHandleInformation(value as HANDLE, HANDLE_FLAG_INHERIT, 0) };
        }
    }
}

/// Whether a launch that lists this handle may: it is open and inheritable now.
pub(super) fn is_lent(value: usize) -> bool {
    is_inheritable(value) == Some(true)
}
