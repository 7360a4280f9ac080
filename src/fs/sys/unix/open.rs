//! Opening: the flags, and a path that needs no allocation.

use super::{Ways, retry};
use crate::fs::open_options::Known;
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

/// The options of an open, as the system takes them.
#[derive(Clone, Debug)]
pub(crate) struct Flags {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    /// Every handle takes async operations; there is nothing to ask the system for.
    pub(crate) asynchronous: bool,
    pub(crate) unbuffered: bool,
    pub(crate) write_through: bool,
    pub(crate) inheritable: bool,
    pub(crate) custom: i32,
    pub(crate) mode: u32,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            asynchronous: false,
            unbuffered: false,
            write_through: false,
            inheritable: false,
            custom: 0,
            mode: 0o666,
        }
    }
}

impl Flags {
    /// The rules are std's: what makes no sense is an error before the system is asked.
    fn bits(&self) -> io::Result<OFlags> {
        let senseless = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let access = match (self.read, self.write, self.append) {
            (true, false, false) => OFlags::RDONLY,
            (false, true, false) => OFlags::WRONLY,
            (true, true, false) => OFlags::RDWR,
            (false, _, true) => OFlags::WRONLY | OFlags::APPEND,
            (true, _, true) => OFlags::RDWR | OFlags::APPEND,
            (false, false, false) => {
                return senseless("a file is to be opened neither for reading nor for writing");
            }
        };
        if !self.write && !self.append && (self.truncate || self.create || self.create_new) {
            return senseless("a file is to be created or truncated, but not opened for writing");
        }
        if self.append && self.truncate && !self.create_new {
            return senseless("a file is to be truncated and only appended to");
        }
        let creation = match (self.create, self.truncate, self.create_new) {
            (_, _, true) => OFlags::CREATE | OFlags::EXCL,
            (true, false, false) => OFlags::CREATE,
            (false, true, false) => OFlags::TRUNC,
            (true, true, false) => OFlags::CREATE | OFlags::TRUNC,
            (false, false, false) => OFlags::empty(),
        };
        // The access mode is ours alone, as std has it.
        let custom = OFlags::from_bits_retain(self.custom as _) - OFlags::ACCMODE;
        let on = |flag, bits| if flag { bits } else { OFlags::empty() };
        Ok(access
            | creation
            | custom
            | on(self.unbuffered, OFlags::DIRECT)
            | on(self.write_through, OFlags::DSYNC)
            | on(!self.inheritable, OFlags::CLOEXEC))
    }
}

pub(crate) fn open(path: &Path, flags: &Flags) -> io::Result<OwnedFd> {
    let bits = flags.bits()?;
    with_terminated(path, |path| {
        Ok(retry(|| openat(CWD, path, bits, Mode::from_bits_retain(flags.mode as _)))?)
    })
}

/// What haft has to know of a file: from the flags that it was opened with, or, if another opened it, from the
/// descriptor.
pub(crate) fn learn(fd: &OwnedFd, flags: Option<&Flags>) -> Known {
    let status = match flags {
        Some(flags) => flags.bits().unwrap_or(OFlags::empty()),
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
