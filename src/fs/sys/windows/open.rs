//! Opening: the flags, and a path as the system takes it.

use super::set_end;
use crate::{
    fs::flags::{Flags, senseless},
    windows::{
        last_error, owned,
        path::{SHORT, unlimited},
    },
};
use std::{
    io,
    mem::MaybeUninit,
    os::windows::{
        ffi::OsStrExt,
        io::{AsHandle, OwnedHandle},
    },
    path::Path,
    ptr::{null, null_mut},
};
use windows_sys::Win32::{
    Foundation::{ERROR_ALREADY_EXISTS, GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE},
    Security::SECURITY_ATTRIBUTES,
    Storage::FileSystem::{
        CREATE_NEW, CreateFileW, FILE_APPEND_DATA, FILE_FLAG_DELETE_ON_CLOSE, FILE_FLAG_NO_BUFFERING,
        FILE_FLAG_OPEN_REPARSE_POINT, FILE_FLAG_OVERLAPPED, FILE_FLAG_WRITE_THROUGH, FILE_GENERIC_WRITE,
        FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_WRITE_DATA, OPEN_ALWAYS, OPEN_EXISTING,
        SECURITY_SQOS_PRESENT, TRUNCATE_EXISTING,
    },
};

/// Paths up to this length are terminated on the stack.
const ON_STACK: usize = 384;

/// The options of an open that Windows alone has.
#[derive(Clone, Debug)]
pub(crate) struct OwnFlags {
    pub(crate) delete_on_close: bool,
    pub(crate) access: Option<u32>,
    pub(crate) share: u32,
    pub(crate) custom: u32,
    pub(crate) attributes: u32,
    pub(crate) security_qos: u32,
}

impl Default for OwnFlags {
    fn default() -> OwnFlags {
        OwnFlags {
            delete_on_close: false,
            access: None,
            share: FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            custom: 0,
            attributes: 0,
            security_qos: 0,
        }
    }
}

impl OwnFlags {
    /// Whether the access is named in place of reading and writing.
    pub(crate) fn names_access(&self) -> bool {
        self.access.is_some()
    }

    pub(super) fn set_security_qos(&mut self, flags: u32) {
        self.security_qos = flags | SECURITY_SQOS_PRESENT;
    }
}

/// What CreateFileW takes of options that have been checked.
impl Flags {
    fn access(&self) -> u32 {
        if let Some(access) = self.own.access {
            return access;
        }
        let read = if self.read { GENERIC_READ } else { 0 };
        read | match (self.write, self.append) {
            (_, true) => FILE_GENERIC_WRITE & !FILE_WRITE_DATA,
            (true, false) => GENERIC_WRITE,
            (false, false) => 0,
        }
    }

    fn disposition(&self) -> u32 {
        match (self.create, self.truncate, self.create_new) {
            (_, _, true) => CREATE_NEW,
            // One that is there is truncated afterwards: CREATE_ALWAYS fails on hidden files and replaces attributes.
            (true, _, false) => OPEN_ALWAYS,
            (false, true, false) => TRUNCATE_EXISTING,
            (false, false, false) => OPEN_EXISTING,
        }
    }

    fn bits(&self) -> u32 {
        let on = |flag, bit| if flag { bit } else { 0 };
        self.own.custom
            | self.own.attributes
            | self.own.security_qos
            // A new file is never made where a link points to.
            | on(self.create_new, FILE_FLAG_OPEN_REPARSE_POINT)
            | on(self.asynchronous, FILE_FLAG_OVERLAPPED)
            | on(self.unbuffered, FILE_FLAG_NO_BUFFERING)
            | on(self.write_through, FILE_FLAG_WRITE_THROUGH)
            | on(self.own.delete_on_close, FILE_FLAG_DELETE_ON_CLOSE)
    }

    pub(super) fn is_overlapped(&self) -> bool {
        self.bits() & FILE_FLAG_OVERLAPPED != 0
    }

    pub(super) fn is_unbuffered(&self) -> bool {
        self.bits() & FILE_FLAG_NO_BUFFERING != 0
    }

    /// Whether all that can be done is to append. The right to write stands for it only in its specific form.
    pub(super) fn appends(&self) -> bool {
        self.access() & (GENERIC_WRITE | FILE_WRITE_DATA | FILE_APPEND_DATA) == FILE_APPEND_DATA
    }
}

pub(crate) fn open(path: &Path, flags: &Flags) -> io::Result<OwnedHandle> {
    let disposition = flags.disposition();
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: null_mut(),
        bInheritHandle: 1,
    };
    let (file, existed) = with_terminated(path, |path| {
        // SAFETY: the path is terminated; the attributes are this frame's.
        let handle = unsafe {
            CreateFileW(
                path.as_ptr(),
                flags.access(),
                flags.own.share,
                if flags.inheritable { &raw const attributes } else { null() },
                disposition,
                flags.bits(),
                null_mut(),
            )
        };
        if handle == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        let existed = last_error() == ERROR_ALREADY_EXISTS;
        // SAFETY: the call made it.
        Ok((unsafe { owned(handle) }, existed))
    })?;
    if disposition == OPEN_ALWAYS && flags.truncate && existed {
        set_end(file.as_handle(), 0)?;
    }
    Ok(file)
}

fn with_terminated<T>(path: &Path, f: impl FnOnce(&[u16]) -> io::Result<T>) -> io::Result<T> {
    let mut room = [const { MaybeUninit::<u16>::uninit() }; ON_STACK];
    let mut len = 0;
    for unit in path.as_os_str().encode_wide() {
        if unit == 0 {
            return senseless("the path contains a NUL");
        }
        if len < SHORT {
            room[len].write(unit);
        }
        len += 1;
    }
    if len >= SHORT {
        return f(&unlimited(path)?);
    }
    room[len].write(0);
    // SAFETY: that many were written.
    f(unsafe { std::slice::from_raw_parts(room.as_ptr().cast::<u16>(), len + 1) })
}
