//! What only Windows can be asked for when a file is opened. The names and meanings are those of
//! [`std::os::windows::fs::OpenOptionsExt`].

use crate::fs::OpenOptions;

impl OpenOptions {
    /// The rights to the file (`dwDesiredAccess` of CreateFileW), in place of those that
    /// [`read`](OpenOptions::read), [`write`](OpenOptions::write) and [`append`](OpenOptions::append) stand for.
    /// Windows.
    pub fn access_mode(&mut self, access: u32) -> &mut OpenOptions {
        self.flags.own.access = Some(access);
        self
    }

    /// What others may do with the file while it is open (`dwShareMode`): read, write and delete it, if not set.
    /// Windows.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("mine");
    /// use haft::fs::{File, OpenOptions};
    ///
    /// let mine = OpenOptions::new().write(true).create(true).share_mode(0).open(&path)?;
    /// assert!(File::open(&path).is_err());
    /// # Ok(()) }
    /// ```
    pub fn share_mode(&mut self, share: u32) -> &mut OpenOptions {
        self.flags.own.share = share;
        self
    }

    /// Further `FILE_FLAG_…` values (`dwFlagsAndAttributes`). Windows.
    pub fn custom_flags(&mut self, flags: u32) -> &mut OpenOptions {
        self.flags.own.custom = flags;
        self
    }

    /// The `FILE_ATTRIBUTE_…` values of a file that is created (`dwFlagsAndAttributes`). Windows.
    pub fn attributes(&mut self, attributes: u32) -> &mut OpenOptions {
        self.flags.own.attributes = attributes;
        self
    }

    /// How far the server of a pipe that is opened may act as this process: `SECURITY_…` values, to which
    /// `SECURITY_SQOS_PRESENT` is added. Windows.
    pub fn security_qos_flags(&mut self, flags: u32) -> &mut OpenOptions {
        self.flags.own.set_security_qos(flags);
        self
    }

    /// Delete the file when the last handle to it is closed; nobody can open it from then on
    /// (`FILE_FLAG_DELETE_ON_CLOSE`). Windows.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("scratch");
    /// use haft::fs::OpenOptions;
    ///
    /// drop(OpenOptions::new().write(true).create(true).delete_on_close(true).open(&path)?);
    /// assert!(!path.exists());
    /// # Ok(()) }
    /// ```
    pub fn delete_on_close(&mut self, delete: bool) -> &mut OpenOptions {
        self.flags.own.delete_on_close = delete;
        self
    }
}
