//! Processor time, from `GetProcessTimes`. Windows tells neither the switches of a process nor, once they have ended, the
//! time of its children.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

use crate::usage::{Usage, Whose};

pub(crate) fn so_far(whose: Whose) -> Usage {
    let cpu_ns = match whose {
        Whose::Process => Some(own()),
        Whose::ProcessAndChildren => None,
    };
    Usage { cpu_ns, switches: None }
}

fn own() -> u64 {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the four places are this frame's; the handle stands for this process.
    let done = unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, kernel, user) };
    assert_ne!(done, 0, "a process may ask for its own times");
    // In units of 100 ns.
    let ns = |time: &FILETIME| (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) * 100;
    ns(kernel) + ns(user)
}
