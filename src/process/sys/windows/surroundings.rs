//! What this process brings to a launch.

use std::ffi::OsString;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

use windows_sys::Win32::Storage::FileSystem::{GetFileAttributesW, INVALID_FILE_ATTRIBUTES};
use windows_sys::Win32::System::SystemInformation::{GetSystemDirectoryW, GetWindowsDirectoryW};

use crate::process::plan::{Parent, Source};
use crate::windows::path::{SHORT, unlimited};

/// This process, with these as the sources of the child's standard handles.
pub(crate) fn parent(streams: [Source; 3]) -> Parent {
    let [application, system, windows] = directories();
    Parent {
        streams,
        application,
        system,
        windows,
        path: || std::env::var_os("PATH"),
        variables: std::env::vars_os,
        exists,
        absolute: |path| std::path::absolute(path),
        any_length,
    }
}

/// The directories of this program, of the system and of Windows, which stay as they are.
fn directories() -> [&'static [u16]; 3] {
    static DIRECTORIES: OnceLock<[Vec<u16>; 3]> = OnceLock::new();
    let directories = DIRECTORIES.get_or_init(|| {
        let program = std::env::current_exe().ok();
        let application = program.and_then(|path| Some(path.parent()?.as_os_str().encode_wide().collect()));
        // SAFETY: the place is as long as it is said to be.
        let system = grown(|place, length| unsafe { GetSystemDirectoryW(place, length) });
        // SAFETY: as above.
        let windows = grown(|place, length| unsafe { GetWindowsDirectoryW(place, length) });
        [application.unwrap_or_default(), system, windows]
    });
    directories.each_ref().map(|directory| &**directory)
}

/// A string from a call that says how much room it needs. Empty if the call fails.
fn grown(call: impl Fn(*mut u16, u32) -> u32) -> Vec<u16> {
    let mut room = vec![0; 260];
    loop {
        let length = call(room.as_mut_ptr(), room.len() as u32) as usize;
        if length < room.len() {
            room.truncate(length);
            return room;
        }
        room.resize(length + 1, 0);
    }
}

/// A directory counts, as it does for std: it ends the search, and `CreateProcessW` says what is wrong with it.
fn exists(path: &[u16]) -> bool {
    // SAFETY: the path is terminated.
    unsafe { GetFileAttributesW(any_length(path).as_ptr()) != INVALID_FILE_ATTRIBUTES }
}

fn any_length(path: &[u16]) -> Vec<u16> {
    if path.len() <= SHORT {
        return path.to_vec();
    }
    let text = OsString::from_wide(&path[..path.len() - 1]);
    // A path that cannot be made absolute is refused by the call that it is for.
    unlimited(text.as_ref()).unwrap_or_else(|_| path.to_vec())
}
