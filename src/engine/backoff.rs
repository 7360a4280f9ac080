//! Leaving out attempts that have not paid of late.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// After n vain attempts in a row, 2^n - 1 are left out, up to 63; one that pays ends this.
///
/// Only a hint: threads that share one may disturb each other's counts, and nothing depends on them.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    left_out: AtomicU32,
    vain: AtomicU8,
}

const MOST: u8 = 6;

impl Backoff {
    pub(crate) const fn new() -> Backoff {
        Backoff { left_out: AtomicU32::new(0), vain: AtomicU8::new(0) }
    }

    /// Whether to attempt now. If not, that is one left out.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left_out.load(Relaxed);
        if left > 0 {
            self.left_out.store(left - 1, Relaxed);
        }
        left == 0
    }

    #[inline]
    pub(crate) fn paid(&self) {
        if self.vain.load(Relaxed) > 0 {
            self.reset();
        }
    }

    pub(crate) fn was_vain(&self) {
        let vain = (self.vain.load(Relaxed) + 1).min(MOST);
        self.vain.store(vain, Relaxed);
        self.left_out.store((1 << vain) - 1, Relaxed);
    }

    /// As new.
    pub(crate) fn reset(&self) {
        self.vain.store(0, Relaxed);
        self.left_out.store(0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_until_one_pays() {
        let backoff = Backoff::new();
        let left_out = || (0..).take_while(|_| !backoff.is_due()).count();
        let mut seen = Vec::new();
        for _ in 0..8 {
            backoff.was_vain();
            seen.push(left_out());
        }
        assert_eq!(seen, [1, 3, 7, 15, 31, 63, 63, 63]);
        backoff.paid();
        assert_eq!(left_out(), 0);
        backoff.was_vain();
        assert_eq!(left_out(), 1);
    }
}
