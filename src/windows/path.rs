//! Paths of any length.

use std::{
    io,
    os::windows::ffi::OsStrExt,
    path::{self, Path},
};

/// Paths of fewer units are taken as they are. The system's limit for a directory that is to be created.
pub(crate) const SHORT: usize = 248;

/// A long path, absolute and with the prefix after which the system takes it as it is.
///
/// # References
/// * [Maximum path length limitation](https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation)
#[cold]
pub(crate) fn unlimited(path: &Path) -> io::Result<Vec<u16>> {
    let as_it_is = |path: &Path| path.as_os_str().encode_wide().chain([0]).collect();
    let is = |path: &Path, prefix: &str| path.as_os_str().as_encoded_bytes().starts_with(prefix.as_bytes());
    if is(path, r"\\?\") || is(path, r"\??\") {
        return Ok(as_it_is(path));
    }
    let path = path::absolute(path)?;
    if is(&path, r"\\?\") || is(&path, r"\\.\") {
        return Ok(as_it_is(&path));
    }
    // A server and its share, or a drive.
    let (prefix, skipped) = if is(&path, r"\\") { (r"\\?\UNC\", 2) } else { (r"\\?\", 0) };
    Ok(prefix.encode_utf16().chain(path.as_os_str().encode_wide().skip(skipped)).chain([0]).collect())
}
