//! What a reader of the figures has to know about the machine.

use std::ffi::{CStr, OsStr, c_char};
use std::os::windows::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Storage::FileSystem::{GetVolumeInformationW, GetVolumePathNameW};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;
use windows_sys::core::w;

/// One line: the system and its CPUs; under Wine the load as well, which Windows does not tell.
pub(crate) fn describe() -> String {
    // SAFETY: zeroes are a value of a structure of integers.
    let mut version: OSVERSIONINFOW = unsafe { std::mem::zeroed() };
    version.dwOSVersionInfoSize = size_of::<OSVERSIONINFOW>() as u32;
    // SAFETY: the structure is this frame's and says its size.
    let told = unsafe { RtlGetVersion(&raw mut version) } == 0;
    let mut system = match told {
        true => {
            let OSVERSIONINFOW { dwMajorVersion, dwMinorVersion, dwBuildNumber, .. } = version;
            format!("Windows {dwMajorVersion}.{dwMinorVersion}.{dwBuildNumber}")
        }
        false => "Windows".into(),
    };
    let mut load = String::new();
    if let Some(wine) = wine() {
        system = format!("Wine {wine} as {system}");
        load = host_load();
    }
    let cpus = super::cpus::allowed_cpus().len();
    format!("{system} on {}, {cpus} CPUs{load}", std::env::consts::ARCH)
}

/// Wine's version; `None` on Windows.
fn wine() -> Option<String> {
    // SAFETY: the library is in every process; where it has the function, that takes nothing and gives a string that
    // stays.
    unsafe {
        let address = GetProcAddress(GetModuleHandleW(w!("ntdll.dll")), c"wine_get_version".as_ptr().cast())?;
        let version = std::mem::transmute::<
            unsafe extern "system" fn() -> isize,
            unsafe extern "C" fn() -> *const c_char,
        >(address);
        Some(CStr::from_ptr(version()).to_string_lossy().into_owned())
    }
}

/// The load of the Linux machine underneath.
fn host_load() -> String {
    let load = std::fs::read_to_string(r"Z:\proc\loadavg").unwrap_or_default();
    match load.split(' ').next() {
        Some(load) if !load.is_empty() => format!(", load {load} over the last minute"),
        _ => String::new(),
    }
}

/// The type of the file system that `path` is on ("NTFS"), or "?".
pub(crate) fn file_system(path: &Path) -> String {
    of_volume(path).unwrap_or_else(|| "?".into())
}

fn of_volume(path: &Path) -> Option<String> {
    let path: Vec<u16> = OsStr::new(path).encode_wide().chain([0]).collect();
    let mut volume = [0; 1024];
    let mut kind = [0; 64];
    // SAFETY: the strings end with a NUL and the places are as long as is said.
    let told = unsafe {
        GetVolumePathNameW(path.as_ptr(), volume.as_mut_ptr(), volume.len() as u32) != 0
            && GetVolumeInformationW(
                volume.as_ptr(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                null_mut(),
                kind.as_mut_ptr(),
                kind.len() as u32,
            ) != 0
    };
    let length = kind.iter().position(|&unit| unit == 0)?;
    told.then(|| String::from_utf16_lossy(&kind[..length]))
}
