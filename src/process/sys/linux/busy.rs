//! A program that somebody has open for writing cannot be executed (`ETXTBSY`): most often it was just written, and
//! the child of another launch took a copy of that descriptor over for the moment until it executes its own program.
//! Then the launch is tried again.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::process::error::Step;
use crate::process::sys::{Failure, Os};

/// Attempts at clone-to-exec in this process at this moment. Only a hint on whether waiting can help.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// The longest of the waits, each twice the one before; a quarter of a second in all.
const LONGEST: Duration = Duration::from_millis(128);

struct UnderWay;

impl UnderWay {
    fn new() -> UnderWay {
        UNDER_WAY.fetch_add(1, Relaxed);
        UnderWay
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Relaxed);
    }
}

/// Makes attempts until one ends otherwise than by a busy program: while other launches of this process are under way
/// (those that wait here are not), and once more after them, for a launch that has just ended.
pub(super) fn retried<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut pause = Duration::from_millis(1);
    let mut last = false;
    loop {
        let under_way = UnderWay::new();
        let result = attempt();
        drop(under_way);
        let busy = matches!(result, Err(Failure { step: Step::Execute, os: Os::Errno(libc::ETXTBSY), .. }));
        if !busy || last || pause > LONGEST {
            return result;
        }
        if UNDER_WAY.load(Relaxed) == 0 {
            last = true;
            continue;
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BUSY: Failure = Failure { step: Step::Execute, index: 0, os: Os::Errno(libc::ETXTBSY) };

    #[test]
    fn a_busy_program_is_tried_again_and_not_for_ever() {
        let mut attempts = 0;
        let twice = retried(|| {
            attempts += 1;
            if attempts < 2 { Err(BUSY) } else { Ok(()) }
        });
        assert_eq!((twice, attempts), (Ok(()), 2));

        attempts = 0;
        assert_eq!(
            retried(|| Err::<(), _>({
                attempts += 1;
                BUSY
            })),
            Err(BUSY)
        );
        assert!((2..=9).contains(&attempts), "{attempts} attempts");

        attempts = 0;
        let other = Failure { os: Os::Errno(libc::EACCES), ..BUSY };
        assert_eq!(
            retried(|| Err::<(), _>({
                attempts += 1;
                other
            })),
            Err(other)
        );
        assert_eq!(attempts, 1);
    }
}
