//! What one handle value of this process refers to.

use std::ffi::OsString;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStringExt;
use std::ptr::null_mut;
use std::str::FromStr;
use windows_sys::Wdk::Foundation::{NtQueryObject, ObjectTypeInformation};
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_MODE_INFORMATION, FILE_SYNCHRONOUS_IO_ALERT, FILE_SYNCHRONOUS_IO_NONALERT, FileModeInformation,
    NtQueryInformationFile,
};
use windows_sys::Win32::Foundation::{GetHandleInformation, HANDLE, HANDLE_FLAG_INHERIT, UNICODE_STRING};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_TYPE_CHAR, FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType, GetFinalPathNameByHandleW,
};
use windows_sys::Win32::System::IO::{IO_STATUS_BLOCK, IO_STATUS_BLOCK_0};
use windows_sys::Win32::System::Threading::{GetProcessId, GetThreadId};

/// An open handle, as `kid handles` prints it: `VALUE KIND inherit|- ABOUT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Its number.
    pub value: usize,
    /// The kernel's name for what it refers to: `File`, `Event`, `Process`, …
    pub kind: String,
    /// Whether the next child could inherit it.
    pub inheritable: bool,
    /// Of a file `disk`, `pipe`, `char` or `unknown`, then `sync` or `overlapped`, then the final path where it has
    /// one; of a process or a thread its number; else nothing.
    pub about: String,
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inherit = if self.inheritable { "inherit" } else { "-" };
        write!(f, "{} {} {inherit} {}", self.value, self.kind, self.about)
    }
}

impl FromStr for Handle {
    type Err = String;

    fn from_str(line: &str) -> Result<Handle, String> {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().ok_or_else(|| format!("not a line of kid handles: {line:?}"));
        Ok(Handle {
            value: part()?.parse().map_err(|e| format!("{line:?}: {e}"))?,
            kind: part()?.to_owned(),
            inheritable: part()? == "inherit",
            about: part()?.to_owned(),
        })
    }
}

/// Reads what `kid handles` printed: each value with what it refers to in the child, or `None` where it is not open.
pub fn parse_handles(text: &str) -> Vec<(usize, Option<Handle>)> {
    text.lines()
        .map(|line| match line.strip_suffix(" none") {
            Some(value) => (value.parse().expect("a number"), None),
            None => {
                let handle: Handle = line.parse().unwrap_or_else(|why| panic!("{why}"));
                (handle.value, Some(handle))
            }
        })
        .collect()
}

/// What `value` refers to in this process; `None` where no handle of that value is open. The values that stand for the
/// own process or thread are nobody's handles.
pub fn look(value: usize) -> Option<Handle> {
    if (value as isize) < 0 {
        return None;
    }
    let inheritable = is_inheritable(value)?;
    let kind = kind(value as HANDLE)?;
    let about = match kind.as_str() {
        "File" => about_file(value as HANDLE),
        // SAFETY: asks for a number; a handle without the right to ask gives 0.
        "Process" => unsafe { GetProcessId(value as HANDLE) }.to_string(),
        // SAFETY: as above.
        "Thread" => unsafe { GetThreadId(value as HANDLE) }.to_string(),
        _ => String::new(),
    };
    Some(Handle { value, kind, inheritable, about })
}

/// Whether the inherit flag of a handle value is set; `None` where no handle of that value is open.
pub fn is_inheritable(value: usize) -> Option<bool> {
    let mut flags = 0;
    // SAFETY: asking about any value at all is safe; the place is this frame's.
    let open = unsafe { GetHandleInformation(value as HANDLE, &mut flags) } != 0;
    open.then_some(flags & HANDLE_FLAG_INHERIT != 0)
}

/// The kernel's name for the type of object.
pub(super) fn kind(handle: HANDLE) -> Option<String> {
    // The answer begins with a string that points behind itself.
    let mut answer = [0_u64; 64];
    let size = size_of_val(&answer) as u32;
    // SAFETY: the place is this frame's and of the size that is given.
    let status =
        unsafe { NtQueryObject(handle, ObjectTypeInformation, answer.as_mut_ptr().cast(), size, null_mut()) };
    if status != 0 {
        return None;
    }
    // SAFETY: the call has filled in the string and the text that it points to, within the answer.
    let name = unsafe {
        let name: UNICODE_STRING = answer.as_ptr().cast::<UNICODE_STRING>().read();
        std::slice::from_raw_parts(name.Buffer, name.Length as usize / 2)
    };
    Some(String::from_utf16_lossy(name))
}

fn about_file(handle: HANDLE) -> String {
    // SAFETY: asks about an open file.
    let class = match unsafe { GetFileType(handle) } {
        FILE_TYPE_DISK => "disk",
        FILE_TYPE_PIPE => "pipe",
        FILE_TYPE_CHAR => "char",
        _ => "unknown",
    };
    let mode = match mode(handle) {
        None => "?",
        Some(mode) if mode & (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT) != 0 => "sync",
        Some(_) => "overlapped",
    };
    let path = if class == "disk" { path(handle) } else { None };
    path.map_or_else(|| format!("{class} {mode}"), |path| format!("{class} {mode} {}", path.display()))
}

/// The options that a file was opened with, as far as the system tells.
fn mode(handle: HANDLE) -> Option<u32> {
    let mut block = IO_STATUS_BLOCK { Anonymous: IO_STATUS_BLOCK_0 { Status: 0 }, Information: 0 };
    let mut answer = MaybeUninit::<FILE_MODE_INFORMATION>::zeroed();
    let size = size_of::<FILE_MODE_INFORMATION>() as u32;
    // SAFETY: both places are this frame's, the second of the size that is given; zeroes are a value of it.
    let (status, answer) = unsafe {
        let at = answer.as_mut_ptr().cast();
        let status = NtQueryInformationFile(handle, &mut block, at, size, FileModeInformation);
        (status, answer.assume_init())
    };
    (status == 0).then_some(answer.Mode)
}

fn path(handle: HANDLE) -> Option<OsString> {
    let mut path = vec![0; 1024];
    loop {
        // SAFETY: the place is as long as is said.
        let length = unsafe { GetFinalPathNameByHandleW(handle, path.as_mut_ptr(), path.len() as u32, 0) };
        match length as usize {
            0 => return None,
            length if length < path.len() => return Some(OsString::from_wide(&path[..length])),
            length => path.resize(length + 1, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::windows::io::AsRawHandle;

    #[test]
    fn a_handle_is_told_from_a_number() {
        let event = crate::event();
        let value = event.as_raw_handle() as usize;
        crate::make_inheritable(&event);
        let seen = look(value).expect("it is open");
        assert_eq!((seen.kind.as_str(), seen.inheritable, seen.about.as_str()), ("Event", true, ""));
        assert_eq!(parse_handles(&format!("{seen}\n8 none\n")), [(value, Some(seen)), (8, None)]);
        drop(event);
        assert!(look(usize::MAX).is_none() && look(0).is_none());
        // A value that is not a multiple of four in its upper bits is never given out this high.
        assert!(look(0x7fff_fff0).is_none());
    }

    #[test]
    fn a_file_has_its_path_and_its_mode() {
        use std::os::windows::fs::OpenOptionsExt;
        use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OVERLAPPED;
        let file = tempfile::NamedTempFile::new().expect("a file");
        let seen = look(file.as_file().as_raw_handle() as usize).expect("it is open");
        let name = file.path().file_name().expect("a name").to_str().expect("text");
        assert!(seen.about.starts_with("disk sync ") && seen.about.ends_with(name), "{seen}");
        assert_eq!((seen.kind.as_str(), seen.inheritable), ("File", false));
        let overlapped = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(FILE_FLAG_OVERLAPPED)
            .open(file.path())
            .expect("it opens again");
        let seen = look(overlapped.as_raw_handle() as usize).expect("it is open");
        assert!(seen.about.starts_with("disk overlapped "), "{seen}");
        let (read, _write) = std::io::pipe().expect("a pipe");
        let seen = look(read.as_raw_handle() as usize).expect("it is open");
        assert_eq!(seen.about, "pipe sync");
    }
}
