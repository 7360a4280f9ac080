//! A parent's memory and its open files.

use crate::Result;

/// A file that can be opened any number of times.
pub(crate) const NULL_DEVICE: &str = "NUL";

/// Nothing limits the handles of a process but its memory.
pub(crate) fn allow_files(_count: usize) -> Result<()> {
    Ok(())
}

/// Touches `length` bytes that stay for the life of the process.
pub(crate) fn touch(length: usize) -> Result<()> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(length)?;
    memory.resize(length, 1_u8);
    std::mem::forget(memory);
    Ok(())
}
