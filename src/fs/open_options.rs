//! How a file is opened.

use super::{File, sys};
use crate::engine::{Engine, HandleRef, Traits, inline};
use std::{io, path::Path};

/// Options for opening a [`File`], with the names and the meaning of [`std::fs::OpenOptions`], and the
/// [engine](OpenOptions::engine) that is to carry the file's async operations.
///
/// Every file is opened with `O_CLOEXEC`. A child process gets it by [`Command::pass`](crate::process::Command::pass), or
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
    flags: sys::Flags,
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
        OpenOptions {
            flags: sys::Flags {
                read: false,
                write: false,
                truncate: false,
                create: false,
                create_new: false,
                custom: 0,
                mode: 0o666,
            },
            engine: None,
        }
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

    /// The permission bits of a file that is created, before the umask; 0o666 by default. Unix.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.flags.mode = mode;
        self
    }

    /// Further flags for open(2); the access mode in them is ignored. Unix.
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.flags.custom = flags;
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
        let fd = sys::open(path.as_ref(), &self.flags)?;
        let traits = traits(sys::custom_status(&self.flags));
        let handle = match &self.engine {
            Some(engine) => HandleRef::new(engine.lease(), fd, traits),
            None => HandleRef::new(Engine::process().lease(), fd, traits),
        };
        Ok(File { handle })
    }
}

/// From whether a handle is direct and whether it appends.
pub(super) fn traits((direct, appends): (bool, bool)) -> Traits {
    Traits { inline: if direct { inline::NEVER } else { 0 }, appends }
}
