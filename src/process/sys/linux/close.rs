//! Closing in the child what it was not given.

use std::sync::atomic::Ordering::Relaxed;

use super::child::Task;
use super::raw;
use crate::process::plan::Gap;

/// Gives the child a table of its own, without what is above every source where that can be.
///
/// Nothing else may touch descriptors before this has succeeded: the table is the parent's.
pub(super) fn unshare(task: &Task<'_>) -> Result<(), i32> {
    if close_range(task, Gap { first: task.descriptors.above, last: u32::MAX }, libc::CLOSE_RANGE_UNSHARE) {
        task.closed_above.store(true, Relaxed);
    } else {
        // The whole table; the gaps are closed in it.
        raw::unshare(libc::CLONE_FILES)?;
    }
    // The clone put the child's own pidfd into the table while it was shared, at the lowest free number: that of a
    // standard handle, if one is closed, which the child would then inherit.
    let pidfd = task.pidfd.load(Relaxed);
    if (0..3).contains(&pidfd) {
        let _ = raw::close(pidfd);
    }
    Ok(())
}

/// Whether the kernel did it. Refused once, for whatever reason, it is not asked again in this launch.
fn close_range(task: &Task<'_>, gap: Gap, flags: u32) -> bool {
    let result = raw::close_range(gap.first, gap.last, flags);
    if let Err(errno) = result {
        task.no_close_range.store(true, Relaxed);
        // Absent, or refused by a sandbox, which is the same to us. Other reasons (no memory, say) may pass.
        if matches!(errno, libc::ENOSYS | libc::EPERM | libc::EINVAL) {
            task.close_range_is_missing.store(true, Relaxed);
        }
    }
    result.is_ok()
}

/// Closes these ranges of numbers.
pub(super) fn gaps(task: &Task<'_>, gaps: &[Gap]) -> Result<(), i32> {
    // What is above every source went with `unshare`, unless a lift was put there since.
    let closed_from = match task.closed_above.load(Relaxed) && task.lifted.is_empty() {
        true => task.descriptors.above,
        false => u32::MAX,
    };
    let mut left = gaps.iter().filter(|gap| gap.first < closed_from);
    if !task.no_close_range.load(Relaxed) && left.all(|gap| close_range(task, *gap, 0)) {
        return Ok(());
    }
    walk(gaps)
}

/// Closes them by the list of open descriptors in `/proc`: never by a loop to the limit, which takes seconds.
fn walk(gaps: &[Gap]) -> Result<(), i32> {
    let Some(lowest) = gaps.first() else { return Ok(()) };
    // Makes room for the directory where the table is full.
    let _ = raw::close(lowest.first as i32);
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: a C string.
    let directory = unsafe { raw::open(c"/proc/self/fd".as_ptr(), flags) }? as i32;
    let mut buffer = [0; 1024];
    loop {
        // The position in this directory is the number itself, so closing while reading skips nothing.
        let filled = raw::getdents64(directory, &mut buffer)?;
        let Some(mut entries) = buffer.get(..filled).filter(|entries| !entries.is_empty()) else { break };
        while let Some((number, rest)) = entry(entries) {
            entries = rest;
            if let Some(number) = number
                && number != directory
                && gaps.iter().any(|gap| (gap.first..=gap.last).contains(&(number as u32)))
            {
                let _ = raw::close(number);
            }
        }
    }
    raw::close(directory).map(drop)
}

/// The first entry of `struct linux_dirent64`s as a number, if it is one, and the entries after it.
fn entry(entries: &[u8]) -> Option<(Option<i32>, &[u8])> {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let length = u16::from_ne_bytes([*entries.get(LENGTH)?, *entries.get(LENGTH + 1)?]);
    let name = entries.get(NAME..length.into())?;
    let mut number: Option<i32> = None;
    for &byte in name.iter().take_while(|&&byte| byte != 0) {
        if !byte.is_ascii_digit() {
            number = None;
            break;
        }
        number = Some(number.unwrap_or(0).wrapping_mul(10).wrapping_add((byte - b'0').into()));
    }
    Some((number, entries.get(length.into()..)?))
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn entries_are_numbers_or_not() {
        let mut bytes = Vec::new();
        for (name, length) in [(&b".."[..], 24u16), (b"17", 24), (b"123456", 32)] {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 16]);
            bytes.extend_from_slice(&length.to_ne_bytes());
            bytes.push(4);
            bytes.extend_from_slice(name);
            bytes.resize(start + usize::from(length), 0);
        }
        let mut rest = &bytes[..];
        let mut numbers = Vec::new();
        while let Some((number, next)) = entry(rest) {
            numbers.push(number);
            rest = next;
        }
        assert_eq!(numbers, [None, Some(17), Some(123456)]);
    }
}
