//! The handles that this process was given when it was made. Those keep their inherit flag, and what it has opened
//! itself has none, but for the current directory.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::FromRawHandle;

use windows_sys::Win32::Foundation::{
    GetHandleInformation, HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_TYPE_CHAR, FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType, GetFinalPathNameByHandleW,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};

/// No value is looked at from here on. The system gives out multiples of four from the lowest up, so this is room for
/// some thousand open handles in the parent.
const END: usize = 1 << 14;

/// The standard handles under 0, 1 and 2, which are no handle's values, then the others under their own.
pub(super) fn open_handles() -> io::Result<Vec<(usize, String)>> {
    // SAFETY: asks what the parent has set.
    let standard =
        [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].map(|id| unsafe { GetStdHandle(id) });
    let mut seen: Vec<_> = standard
        .iter()
        .enumerate()
        .filter(|&(_, &handle)| !handle.is_null() && handle != INVALID_HANDLE_VALUE)
        .map(|(number, &handle)| (number, about(handle).unwrap_or_else(|| "?".to_owned())))
        .collect();
    let others = (4..END).step_by(4).filter(|&value| {
        let handle = value as HANDLE;
        !standard.contains(&handle) && is_inheritable(handle)
    });
    seen.extend(others.filter_map(|value| Some((value, about(value as HANDLE)?))));
    Ok(seen)
}

/// Whether it is open, and a child of this process could inherit it.
fn is_inheritable(handle: HANDLE) -> bool {
    let mut flags = 0;
    // SAFETY: asking about any value at all is safe; the place is this frame's.
    let open = unsafe { GetHandleInformation(handle, &mut flags) } != 0;
    open && flags & HANDLE_FLAG_INHERIT != 0
}

/// What it is open on; `None` for a directory.
fn about(handle: HANDLE) -> Option<String> {
    // SAFETY: asks about a handle; one that is no file's is an answer too.
    let kind = match unsafe { GetFileType(handle) } {
        FILE_TYPE_DISK => {
            // SAFETY: it is open, stays open, and is not closed here.
            let file = ManuallyDrop::new(unsafe { File::from_raw_handle(handle) });
            if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                return None;
            }
            return Some(path(handle).unwrap_or_else(|| "file".to_owned()));
        }
        FILE_TYPE_PIPE => "pipe",
        FILE_TYPE_CHAR => "device",
        _ => "other",
    };
    Some(kind.to_owned())
}

fn path(handle: HANDLE) -> Option<String> {
    let mut path = vec![0; 1 << 15];
    // SAFETY: the place is as long as is said.
    let length = unsafe { GetFinalPathNameByHandleW(handle, path.as_mut_ptr(), path.len() as u32, 0) };
    let path = path.get(..length as usize).filter(|path| !path.is_empty())?;
    Some(OsString::from_wide(path).display().to_string())
}
