//! What handles this process and its children have, and what each is.

mod census;
mod look;

pub use census::{Census, handles_of, own_handles};
pub use look::{Handle, is_inheritable, look, parse_handles};

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use windows_sys::Win32::Foundation::{FILETIME, HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Threading::{
    CreateEventW, GetCurrentProcess, GetProcessTimes, OpenProcess, PROCESS_TERMINATE, TerminateProcess,
    WaitForSingleObject,
};

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

/// Whether an event is set, a process has ended, …: whatever a wait for the handle would be waiting for.
pub fn is_signaled(handle: &impl AsRawHandle) -> bool {
    // SAFETY: does not wait; a handle that cannot be waited for is an error.
    unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

/// What `make` gives, under a value that no small process has a handle of: a child in which it is open has inherited it.
pub fn high<T>(make: impl FnOnce() -> T) -> T {
    let _below: Vec<_> = (0..1000).map(|_| event()).collect();
    make()
}

/// Whether this is Wine, for what it does not do.
pub fn under_wine() -> bool {
    // SAFETY: the names are terminated; the library is in every process.
    unsafe {
        let library = GetModuleHandleA(c"ntdll.dll".as_ptr().cast());
        GetProcAddress(library, c"wine_get_version".as_ptr().cast()).is_some()
    }
}

/// Ends a process by its number: one that this process has started, or a child of such a one.
pub fn kill(process: u32) {
    // SAFETY: opens by number, and gives the handle to its owner.
    let opened = unsafe {
        let handle = OpenProcess(PROCESS_TERMINATE, 0, process);
        (!handle.is_null()).then(|| OwnedHandle::from_raw_handle(handle))
    };
    if let Some(process) = opened {
        // SAFETY: the handle is open.
        unsafe { TerminateProcess(process.as_raw_handle(), 1) };
    }
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
