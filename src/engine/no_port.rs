//! Systems that carry no operation on by themselves.

use super::{
    Shared,
    cell::{Cell, Work},
    handle::Handle,
    port::Begun,
};
use crate::fs::sys::{Errno, OwnedHandle, Ways};
use std::sync::Arc;

/// What the system keeps in a cell: nothing.
pub(crate) struct InFlight;

pub(super) const fn in_flight() -> InFlight {
    InFlight
}

/// Nothing ends at once.
pub(super) const AT_ONCE: usize = 1;

pub(crate) struct Port;

impl Port {
    pub(super) const fn new() -> Port {
        Port
    }

    pub(super) fn bind(&self, _: &Arc<Shared>, _: &OwnedHandle, _: &mut Ways) {}

    #[inline(always)]
    pub(super) fn carries(&self, _: &Handle, _: &Work) -> bool {
        false
    }

    /// # Safety
    /// It is never called, as all here but [`carries`](Port::carries).
    pub(super) unsafe fn begin(&self, _: &Arc<Shared>, _: &Cell, _: &Handle, _: &Work) -> Begun {
        unreachable!("the system carries nothing")
    }

    pub(super) fn ended(&self, _: &Cell, _: &Work) -> Result<usize, Errno> {
        unreachable!("the system carries nothing")
    }

    pub(super) fn noted(&self, _: &Cell, _: &Work) -> Option<Result<usize, Errno>> {
        unreachable!("the system carries nothing")
    }

    pub(super) fn cancel(&self, _: &Cell, _: &Handle) {}

    pub(super) fn shut_down(&self) {}
}
