//! One round's bookkeeping: where the next read goes, the checksum so far, the gap, the measurement.

use std::time::{Duration, Instant};

use crate::Result;
use crate::meter::{Meter, Sample};
use crate::usage::Whose;

/// A round in progress. Made where the loop runs, so that starting a task is not measured.
pub(crate) struct Tally {
    meter: Meter,
    wanted: u64,
    sum: u64,
    offset: u64,
    ops: u64,
    gap: Duration,
    idle: Duration,
}

impl Tally {
    pub(crate) fn start(wanted: u64, gap: Duration) -> Self {
        let meter = Meter::start(Whose::Process);
        Self { meter, wanted, sum: 0, offset: 0, ops: 0, gap, idle: Duration::ZERO }
    }

    /// Where the next read begins.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes what one read returned. False at the end of the file.
    #[inline]
    pub(crate) fn piece(&mut self, piece: &[u8]) -> bool {
        self.ops += 1;
        self.offset += piece.len() as u64;
        self.sum = fold(self.sum, piece);
        if !self.gap.is_zero() {
            self.spin();
        }
        !piece.is_empty()
    }

    /// The other work between two operations; what it really took is taken off the round.
    #[cold]
    fn spin(&mut self) {
        let begun = Instant::now();
        loop {
            let passed = begun.elapsed();
            if passed >= self.gap {
                self.idle += passed;
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Ends the round.
    pub(crate) fn finish(self) -> Result<Sample> {
        let sample = self.meter.stop(self.ops, self.idle);
        if self.sum == self.wanted {
            Ok(sample)
        } else {
            Err(format!(
                "the checksum of {} bytes is {:#x} and not {:#x}",
                self.offset, self.sum, self.wanted
            )
            .into())
        }
    }
}

/// Adds one piece to a checksum: the sum of its 64-bit words, bound to its place among the pieces. A piece
/// that is missing, repeated, short or out of order changes the result; an empty one does not.
#[inline]
pub(crate) fn fold(sum: u64, piece: &[u8]) -> u64 {
    if piece.is_empty() {
        return sum;
    }
    let (words, rest) = piece.as_chunks::<8>();
    let mut own = words.iter().fold(0_u64, |own, word| own.wrapping_add(u64::from_le_bytes(*word)));
    for (place, byte) in rest.iter().enumerate() {
        own = own.wrapping_add(u64::from(*byte) << (8 * place));
    }
    (sum.rotate_left(9) ^ own).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(piece.len() as u64)
}

/// What the checksum of one block costs, in nanoseconds.
pub(crate) fn cost(block: usize) -> f64 {
    const TIMES: u32 = 20_000;
    let piece = vec![1_u8; block];
    let begun = Instant::now();
    let mut sum = 0;
    for _ in 0..TIMES {
        sum = fold(sum, std::hint::black_box(&piece));
    }
    std::hint::black_box(sum);
    begun.elapsed().as_nanos() as f64 / f64::from(TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&[u8]]) -> u64 {
        pieces.iter().fold(0, |sum, piece| fold(sum, piece))
    }

    #[test]
    fn what_goes_wrong_changes_the_checksum() {
        let right = of(&[b"abcdefgh", b"ijklmnop", b"qrs"]);
        assert_eq!(right, of(&[b"abcdefgh", b"ijklmnop", b"qrs", b""]));
        for wrong in [
            of(&[b"ijklmnop", b"abcdefgh", b"qrs"]),
            of(&[b"abcdefgh", b"qrs"]),
            of(&[b"abcdefgh", b"abcdefgh", b"qrs"]),
            of(&[b"abcdefgh", b"ijklmnop", b"qr"]),
            of(&[b"abcdefgh", b"ijklmnop", b"qrs\0"]),
            of(&[b"abcdefg", b"hijklmno", b"pqrs"]),
        ] {
            assert_ne!(right, wrong);
        }
    }

    #[test]
    fn a_round_with_a_wrong_checksum_is_an_error() {
        let wanted = of(&[b"abc"]);
        let mut tally = Tally::start(wanted, Duration::from_micros(1));
        assert!(tally.piece(b"abc"));
        assert_eq!(tally.offset(), 3);
        assert!(!tally.piece(b""));
        assert_eq!(tally.finish().expect("the checksum is right").ops, 2);
        let mut tally = Tally::start(wanted, Duration::ZERO);
        assert!(tally.piece(b"abd"));
        assert!(tally.finish().is_err());
    }
}
