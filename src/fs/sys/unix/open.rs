//! Opening: the flags, and a path that needs no allocation.

use super::{Ways, retry};
use crate::fs::{flags::Flags, open_options::Known};
use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, fcntl_getfl, openat},
};
use std::{
    ffi::{CStr, CString},
    io,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt,
    path::Path,
};

/// Paths up to this length are terminated on the stack.
const ON_STACK: usize = 384;

/// The options of an open that Unix alone has.
#[derive(Clone, Debug)]
pub(crate) struct OwnFlags {
    pub(crate) custom: i32,
    pub(crate) mode: u32,
}

impl Default for OwnFlags {
    fn default() -> OwnFlags {
        OwnFlags { custom: 0, mode: 0o666 }
    }
}

impl OwnFlags {
    /// Whether the access is named in place of reading and writing.
    pub(crate) fn names_access(&self) -> bool {
        false
    }
}

/// Options that have been [checked](Flags::check), as open(2) takes them. There is nothing to ask the system for on behalf of
/// async operations: every descriptor takes them.
fn bits(flags: &Flags) -> OFlags {
    let access = match (flags.read, flags.write || flags.append) {
        (true, true) => OFlags::RDWR,
        (true, false) => OFlags::RDONLY,
        (false, _) => OFlags::WRONLY,
    };
    let creation = match (flags.create, flags.truncate, flags.create_new) {
        (_, _, true) => OFlags::CREATE | OFlags::EXCL,
        (true, false, false) => OFlags::CREATE,
        (false, true, false) => OFlags::TRUNC,
        (true, true, false) => OFlags::CREATE | OFlags::TRUNC,
        (false, false, false) => OFlags::empty(),
    };
    // The access mode is ours alone, as std has it.
    let custom = OFlags::from_bits_retain(flags.own.custom as _) - OFlags::ACCMODE;
    let on = |flag, bits| if flag { bits } else { OFlags::empty() };
    access
        | creation
        | custom
        | on(flags.append, OFlags::APPEND)
        | on(flags.unbuffered, OFlags::DIRECT)
        | on(flags.write_through, OFlags::DSYNC)
        | on(!flags.inheritable, OFlags::CLOEXEC)
}

pub(crate) fn open(path: &Path, flags: &Flags) -> io::Result<OwnedFd> {
    let (bits, mode) = (bits(flags), Mode::from_bits_retain(flags.own.mode as _));
    with_terminated(path, |path| Ok(retry(|| openat(CWD, path, bits, mode))?))
}

/// What haft has to know of a file: from the flags that it was opened with, or, if another opened it, from the
/// descriptor.
pub(crate) fn learn(fd: &OwnedFd, flags: Option<&Flags>) -> Known {
    let status = match flags {
        Some(flags) => bits(flags),
        None => fcntl_getfl(fd).unwrap_or(OFlags::empty()),
    };
    Known {
        direct: status.contains(OFlags::DIRECT),
        appends: status.contains(OFlags::APPEND),
        ways: Ways::default(),
    }
}

fn with_terminated<T>(path: &Path, f: impl FnOnce(&CStr) -> io::Result<T>) -> io::Result<T> {
    let bytes = path.as_os_str().as_bytes();
    let nul = |_| io::Error::new(io::ErrorKind::InvalidInput, "the path contains a NUL byte");
    if bytes.len() >= ON_STACK {
        return f(&CString::new(bytes).map_err(|error| nul(error.nul_position()))?);
    }
    let mut room = [const { MaybeUninit::<u8>::uninit() }; ON_STACK];
    for (place, byte) in room.iter_mut().zip(bytes.iter().chain(&[0])) {
        place.write(*byte);
    }
    // SAFETY: the loop has written bytes.len() + 1 of them.
    let terminated = unsafe { std::slice::from_raw_parts(room.as_ptr().cast::<u8>(), bytes.len() + 1) };
    f(CStr::from_bytes_with_nul(terminated).map_err(|_| nul(0))?)
}
