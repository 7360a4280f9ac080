//! Opening: the flags, and a path that needs no allocation.

use super::retry;
use rustix::{
    fd::{AsFd, OwnedFd},
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
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) custom: i32,
    pub(crate) mode: u32,
}

impl Flags {
    /// The rules are std's: what makes no sense is an error before the system is asked.
    fn bits(&self) -> io::Result<OFlags> {
        let senseless = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let access = match (self.read, self.write) {
            (true, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
            (false, false) => return senseless("a file is to be opened neither for reading nor for writing"),
        };
        if !self.write && (self.truncate || self.create || self.create_new) {
            return senseless("a file is to be created or truncated, but not opened for writing");
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
        Ok(access | creation | custom | OFlags::CLOEXEC)
    }
}

pub(crate) fn open(path: &Path, flags: &Flags) -> io::Result<OwnedFd> {
    let bits = flags.bits()?;
    with_terminated(path, |path| {
        Ok(retry(|| openat(CWD, path, bits, Mode::from_bits_retain(flags.mode as _)))?)
    })
}

/// What the descriptor was opened with, as far as haft has to know it: (O_DIRECT, O_APPEND).
pub(crate) fn status(fd: impl AsFd) -> (bool, bool) {
    fcntl_getfl(fd)
        .map_or((false, false), |flags| (flags.contains(OFlags::DIRECT), flags.contains(OFlags::APPEND)))
}

/// As [`status`], of a file that is to be opened with these flags.
pub(crate) fn custom_status(flags: &Flags) -> (bool, bool) {
    let custom = OFlags::from_bits_retain(flags.custom as _);
    (custom.contains(OFlags::DIRECT), custom.contains(OFlags::APPEND))
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
