//! What the parent of the launches looks like: its memory and its open files.

use std::fs::File;
use std::sync::Mutex;

use crate::Result;
use crate::sys::parent::{NULL_DEVICE, allow_files, touch};

/// The memory lasts as long as the process, the files change with [`Parent::hold_files`].
pub(crate) struct Parent {
    files: Mutex<Vec<File>>,
}

impl Parent {
    /// Touches `rss_mib` MiB and prepares for at most `most_files` open files.
    pub(crate) fn new(rss_mib: usize, most_files: usize) -> Result<Self> {
        touch(rss_mib << 20)?;
        if most_files > 0 {
            allow_files(most_files)?;
        }
        Ok(Self { files: Mutex::new(Vec::new()) })
    }

    /// Opens or closes files until there are `count`, the lowest numbers staying.
    pub(crate) fn hold_files(&self, count: usize) -> Result<()> {
        let mut files = self.files.lock().map_err(|_| "the files' lock is poisoned")?;
        files.truncate(count);
        while files.len() < count {
            files.push(File::open(NULL_DEVICE)?);
        }
        Ok(())
    }
}
