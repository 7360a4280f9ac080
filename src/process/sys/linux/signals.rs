//! Signal dispositions in the child.

use super::raw;

/// The highest signal of every architecture but MIPS.
const LAST: i32 = 64;

/// Gives every signal that has a handler its default effect; what is ignored stays so.
///
/// What `CLONE_CLEAR_SIGHAND` does in one call. Without it a handler of the parent could run in the child's last
/// moment, with the mask restored and the program not yet executed, in the parent's memory.
pub(super) fn clear_handlers() -> Result<(), i32> {
    for signal in 1..=LAST {
        if let Ok(handler) = raw::signal_handler(signal)
            && handler != libc::SIG_DFL
            && handler != libc::SIG_IGN
        {
            raw::default_signal(signal)?;
        }
    }
    Ok(())
}
