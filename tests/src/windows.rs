//! What handles this process and its children have, and what each is.

mod census;
mod look;

pub use census::{Census, handles_of};
pub use look::{Handle, is_inheritable, look, parse_handles};

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use windows_sys::Win32::Foundation::{FILETIME, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Threading::{CreateEventW, GetCurrentProcess, GetProcessTimes};

/// Sets the inherit flag: what a careless library leaves behind.
pub fn make_inheritable(of: &impl AsRawHandle) {
    // SAFETY: changes a flag of an open handle.
    let done = unsafe { SetHandleInformation(of.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    assert_ne!(done, 0, "SetHandleInformation: {}", io::Error::last_os_error());
}

/// A new event without a name, not set and reset by hand.
pub fn event() -> OwnedHandle {
    // SAFETY: neither a name nor attributes are given.
    let event = unsafe { CreateEventW(null(), 1, 0, null()) };
    assert!(!event.is_null(), "CreateEventW: {}", io::Error::last_os_error());
    // SAFETY: it was made a moment ago and is nobody else's.
    unsafe { OwnedHandle::from_raw_handle(event) }
}

/// The processor time that this process has used so far.
pub fn cpu_time() -> std::time::Duration {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the four places are this frame's.
    let done = unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, kernel, user) };
    assert_ne!(done, 0, "GetProcessTimes: {}", io::Error::last_os_error());
    let ticks = |t: &FILETIME| u64::from(t.dwHighDateTime) << 32 | u64::from(t.dwLowDateTime);
    // A tick is 100 nanoseconds.
    std::time::Duration::from_nanos((ticks(kernel) + ticks(user)) * 100)
}
