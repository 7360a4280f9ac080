//! What Windows tells, or Wine in its place.

use std::ffi::{CStr, OsString, c_char};
use std::iter::once;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Storage::FileSystem::{GetVolumeInformationW, GetVolumePathNameW};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;
use windows_sys::Win32::System::Threading::GetSystemTimes;

/// The system's name and version. Wine says which Windows it plays, and is named too: figures are its own.
pub(super) fn system() -> String {
    let mut version =
        OSVERSIONINFOW { dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32, ..Default::default() };
    // SAFETY: the place is this frame's, and its size is in it.
    let windows = match unsafe { RtlGetVersion(&mut version) } {
        0 => {
            format!("Windows {}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
        }
        _ => "Windows".to_owned(),
    };
    wine().map_or(windows.clone(), |wine| format!("Wine {wine} as {windows}"))
}

/// Wine's version, if it is Wine.
fn wine() -> Option<String> {
    // SAFETY: both names end with a null; this library stays loaded.
    let function = unsafe {
        GetProcAddress(GetModuleHandleW(windows_sys::w!("ntdll.dll")), c"wine_get_version".as_ptr().cast())
    }?;
    // SAFETY: the function of this name, which Wine alone has, takes nothing and returns a string that stays.
    let version = unsafe {
        let function: extern "C" fn() -> *const c_char = std::mem::transmute(function);
        CStr::from_ptr(function())
    };
    Some(version.to_string_lossy().into_owned())
}

/// How many CPUs had work, over a moment: Windows keeps no average.
pub(super) fn busy() -> Option<f64> {
    let (idle, all) = times()?;
    thread::sleep(Duration::from_millis(100));
    let (idle_then, all_then) = times()?;
    let (idle, all) = ((idle_then - idle) as f64, (all_then - all) as f64);
    (all > 0.0).then(|| (1.0 - idle / all) * super::cpus() as f64)
}

/// The time that all CPUs had no work, and their time in all.
fn times() -> Option<(u64, u64)> {
    let [mut idle, mut kernel, mut user] = [FILETIME::default(); 3];
    // SAFETY: the places are this frame's.
    let done = unsafe { GetSystemTimes(&mut idle, &mut kernel, &mut user) };
    let ticks = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    // The kernel's time has the idle time in it.
    (done != 0).then(|| (ticks(idle), ticks(kernel) + ticks(user)))
}

/// The name of the file system that this path is on.
pub(in crate::tour) fn file_system(path: &Path) -> Option<String> {
    let path: Vec<u16> = std::path::absolute(path).ok()?.as_os_str().encode_wide().chain(once(0)).collect();
    // A volume's path is no longer than the path itself, but for a separator at its end.
    let mut volume = vec![0; path.len() + 1];
    let mut name = [0; 64];
    // SAFETY: the path and the volume end with a null, and the places are of the lengths that are given.
    let done = unsafe {
        GetVolumePathNameW(path.as_ptr(), volume.as_mut_ptr(), volume.len() as u32) != 0
            && GetVolumeInformationW(
                volume.as_ptr(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                null_mut(),
                name.as_mut_ptr(),
                name.len() as u32,
            ) != 0
    };
    let length = name.iter().position(|unit| *unit == 0)?;
    done.then(|| OsString::from_wide(&name[..length]).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        assert!(system().contains("Windows "), "{}", system());
        let busy = busy().unwrap();
        assert!((0.0..=super::super::cpus() as f64).contains(&busy), "{busy}");
        let system = file_system(&std::env::temp_dir()).unwrap();
        assert!(!system.is_empty() && system.is_ascii(), "{system}");
    }
}
