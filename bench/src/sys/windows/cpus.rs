//! The CPUs that this process may use, and keeping one of them busy.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::WAIT_TIMEOUT;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessAffinityMask, OpenProcess, PROCESS_SYNCHRONIZE, SetProcessAffinityMask,
    WaitForSingleObject,
};

use crate::Result;

/// The CPUs of this process's group that it may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let (mut own, mut all) = (0_usize, 0_usize);
    // SAFETY: both places are this frame's; the handle stands for this process.
    if unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut all) } == 0 {
        return Vec::new();
    }
    (0..usize::BITS as usize).filter(|&cpu| own & (1 << cpu) != 0).collect()
}

/// What a spinning process does, until its parent has ended.
pub(crate) fn spin(cpu: usize, parent: u32) -> Result<()> {
    // SAFETY: opens by number.
    let parent = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, parent) };
    if parent.is_null() {
        // It has ended.
        return Ok(());
    }
    // SAFETY: it was opened a moment ago, for this function alone.
    let parent = unsafe { OwnedHandle::from_raw_handle(parent) };
    // SAFETY: the handle stands for this process.
    if unsafe { SetProcessAffinityMask(GetCurrentProcess(), 1 << cpu) } == 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the handle is open.
    while unsafe { WaitForSingleObject(parent.as_raw_handle(), 0) } == WAIT_TIMEOUT {
        for _ in 0..10_000_000 {
            std::hint::spin_loop();
        }
    }
    Ok(())
}
