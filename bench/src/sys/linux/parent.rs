//! A parent's memory and its limit of open files.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Result;

/// A file that can be opened any number of times.
pub(crate) const NULL_DEVICE: &str = "/dev/null";

/// Lets this process hold so many files open, and launch beside them.
pub(crate) fn allow_files(count: usize) -> Result<()> {
    // Room for the files, and for the pipes and pidfds of the launches.
    let wanted = count as u64 + 512;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let new = Rlimit { current: Some(wanted), maximum: limit.maximum };
        setrlimit(Resource::Nofile, new)
            .map_err(|error| format!("--open-files {count} needs RLIMIT_NOFILE {wanted}: {error}"))?;
    }
    // haft's low slots, while low numbers are free.
    haft::process::reserve()?;
    Ok(())
}

/// Makes `length` bytes of private memory resident in 4 KiB pages: huge ones would make a fork cheap again.
pub(crate) fn touch(length: usize) -> Result<()> {
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
