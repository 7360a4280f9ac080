//! How a file is opened.

use super::{File, flags::Flags, sys};
use crate::engine::{Engine, HandleRef, Traits, inline};
use std::{io, path::Path};

/// Options for opening a [`File`], with the names and the meaning of [`std::fs::OpenOptions`], and the
/// [engine](OpenOptions::engine) that is to carry the file's async operations.
///
/// No file that is opened passes to child processes by itself, unless it is [`inheritable`](OpenOptions::inheritable). A child process gets it by [`Command::pass`](crate::process::Command::pass), or
/// by [`Stdio::from_borrowed`](crate::process::Stdio::from_borrowed).
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("new");
/// use haft::fs::OpenOptions;
///
/// let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
/// let again = OpenOptions::new().write(true).create_new(true).open(&path);
/// assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
/// # drop(file);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) flags: Flags,
    engine: Option<Engine>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Options with nothing set; at least [`read`](OpenOptions::read) or [`write`](OpenOptions::write) is needed.
    pub fn new() -> OpenOptions {
        OpenOptions { flags: Flags::default(), engine: None }
    }

    /// Open for reading.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.flags.read = read;
        self
    }

    /// Open for writing.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.flags.write = write;
        self
    }

    /// Open for appending: every write goes to the end of the file, wherever that is by then. Writes that name an offset
    /// are refused on such a file; [`File::append`] is for it.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.flags.append = append;
        self
    }

    /// Cut an existing file to length 0. Needs [`write`](OpenOptions::write).
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.flags.truncate = truncate;
        self
    }

    /// Create the file if it does not exist. Needs [`write`](OpenOptions::write).
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.flags.create = create;
        self
    }

    /// Create the file, and fail if it exists. Needs [`write`](OpenOptions::write).
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.flags.create_new = create_new;
        self
    }

    /// Let the system carry the file's async operations on by itself, without a thread for each
    /// (`FILE_FLAG_OVERLAPPED` on Windows). The async methods work on every file. Without this, on Windows, they go to
    /// the engine's threads, and the system does them one at a time for each file; with this, a program that turns the
    /// file into [`std::fs::File`] or gives it to a child process gets a handle that many programs cannot use. Elsewhere
    /// it changes nothing.
    pub fn asynchronous(&mut self, asynchronous: bool) -> &mut OpenOptions {
        self.flags.asynchronous = asynchronous;
        self
    }

    /// Leave the system's cache out (`O_DIRECT` on Linux, `FILE_FLAG_NO_BUFFERING` on Windows). Offset, length and address
    /// of every transfer must be multiples of what the device asks for, its sector size as a rule; else it is
    /// `InvalidInput`.
    pub fn unbuffered(&mut self, unbuffered: bool) -> &mut OpenOptions {
        self.flags.unbuffered = unbuffered;
        self
    }

    /// A write ends when its data is on the device (`O_DSYNC` on Linux, `FILE_FLAG_WRITE_THROUGH` on Windows).
    pub fn write_through(&mut self, write_through: bool) -> &mut OpenOptions {
        self.flags.write_through = write_through;
        self
    }

    /// Let every child process that is launched by other means than haft's inherit the handle: without `O_CLOEXEC` on
    /// Linux, with `bInheritHandle` on Windows. Off by default, and best left so.
    pub fn inheritable(&mut self, inheritable: bool) -> &mut OpenOptions {
        self.flags.inheritable = inheritable;
        self
    }

    /// The engine that carries this file's async operations; [`Engine::default`] if none is named.
    pub fn engine(&mut self, engine: &Engine) -> &mut OpenOptions {
        self.engine = Some(engine.clone());
        self
    }

    /// Opens `path`.
    ///
    /// # Errors
    /// What open(2) reports, as [`std::fs::OpenOptions::open`] does; `InvalidInput` for options that contradict
    /// each other and for a path with a NUL byte.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.flags.check()?;
        let handle = sys::open(path.as_ref(), &self.flags)?;
        let traits = sys::learn(&handle, Some(&self.flags)).into();
        let lease = self.engine.as_ref().unwrap_or_else(|| Engine::process()).lease();
        Ok(File { handle: HandleRef::new(lease, handle, traits) })
    }
}

/// What haft has to know of a file before it is used.
pub(crate) struct Known {
    /// Reading it means waiting for the device.
    pub(crate) direct: bool,
    /// Every write goes to its end.
    pub(crate) appends: bool,
    pub(crate) ways: sys::Ways,
}

impl From<Known> for Traits {
    fn from(Known { direct, appends, ways }: Known) -> Traits {
        Traits { inline: if direct { inline::NEVER } else { 0 }, appends, ways }
    }
}
