//! Systems that cannot read from memory alone.

use super::Attempt;
use crate::engine::{Block, Handle, Lease, Work};

/// Leaves everything to a carrier.
#[inline(always)]
pub(crate) fn attempt(_: &Handle, _: &Lease, _: Option<&Block>, _: &mut Work) -> Attempt {
    Attempt::HandOn
}
