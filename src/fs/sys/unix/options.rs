//! What only Unix can be asked for when a file is opened.

use crate::fs::OpenOptions;

impl OpenOptions {
    /// The permission bits of a file that is created, before the umask; 0o666 by default. Unix.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.flags.own.mode = mode;
        self
    }

    /// Further flags for open(2); the access mode in them is ignored. Unix.
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.flags.own.custom = flags;
        self
    }
}
