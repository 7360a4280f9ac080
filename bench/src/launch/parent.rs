//! What the parent of the launches looks like: its memory and its open files.

use std::fs::File;
use std::sync::Mutex;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Result;

/// The memory lasts as long as the process, the files change with [`Parent::hold_files`].
pub(crate) struct Parent {
    files: Mutex<Vec<File>>,
}

impl Parent {
    /// Touches `rss_mib` MiB and prepares for at most `most_files` open files.
    pub(crate) fn new(rss_mib: usize, most_files: usize) -> Result<Self> {
        touch(rss_mib << 20)?;
        if most_files > 0 {
            // Room for the files, and for the pipes and pidfds of the launches.
            let wanted = most_files as u64 + 512;
            let limit = getrlimit(Resource::Nofile);
            if limit.current.is_some_and(|current| current < wanted) {
                let new = Rlimit { current: Some(wanted), maximum: limit.maximum };
                setrlimit(Resource::Nofile, new).map_err(|error| {
                    format!("--open-files {most_files} needs RLIMIT_NOFILE {wanted}: {error}")
                })?;
            }
            super::haft::reserve()?;
        }
        Ok(Self { files: Mutex::new(Vec::new()) })
    }

    /// Opens or closes files until there are `count`, the lowest numbers staying.
    pub(crate) fn hold_files(&self, count: usize) -> Result<()> {
        let mut files = self.files.lock().map_err(|_| "the files' lock is poisoned")?;
        files.truncate(count);
        while files.len() < count {
            files.push(File::open("/dev/null")?);
        }
        Ok(())
    }
}

/// Makes `length` bytes of private memory resident in 4 KiB pages: huge ones would make a fork cheap again.
fn touch(length: usize) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    // SAFETY: a fresh anonymous mapping of its own, never unmapped, written within its bounds only.
    unsafe {
        let at = mmap_anonymous(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?;
        madvise(at, length, Advice::LinuxNoHugepage)?;
        for offset in (0..length).step_by(4096) {
            at.cast::<u8>().add(offset).write_volatile(1);
        }
    }
    Ok(())
}
