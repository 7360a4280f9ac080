//! What a file is opened for, in terms that every system has, and std's rules for it.

use super::sys;
use std::io;

/// The options of an open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) asynchronous: bool,
    pub(crate) unbuffered: bool,
    pub(crate) write_through: bool,
    pub(crate) inheritable: bool,
    /// What this system alone can be asked for.
    pub(crate) own: sys::OwnFlags,
}

impl Flags {
    /// The rules are std's: what makes no sense is an error before the system is asked.
    pub(crate) fn check(&self) -> io::Result<()> {
        let writes = self.write || self.append;
        if !self.read && !writes && !self.own.names_access() {
            return senseless("a file is to be opened neither for reading nor for writing");
        }
        if !writes && (self.truncate || self.create || self.create_new) {
            return senseless("a file is to be created or truncated, but not opened for writing");
        }
        if self.append && self.truncate && !self.create_new {
            return senseless("a file is to be truncated and only appended to");
        }
        Ok(())
    }
}

pub(crate) fn senseless<T>(why: &'static str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}
