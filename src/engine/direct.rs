//! Operations that the system carries on by itself, step by step, without a thread that waits for each.
//!
//! 1. The first step begins at the first poll, on the calling thread. If it ends at once, that poll has the result.
//! 2. Else its end is heard of by a thread of the [`Port`](super::port::Port), which begins the next step, or
//!    completes the operation.
//! 3. Between the two [`Course`](super::course::Course) decides who goes on.
//!
//! A transfer of which a large part ended at once, on the calling thread, is finished by the pool: what ends at once is
//! copied from or to the system's cache, and a poll must not do so for long. After a small part the poll goes on: most
//! likely the file ends there, and the next step says so.
//!
//! Until a step has ended the system may write to the cell and to the buffer. So a future that goes away cancels the step,
//! leaves its buffer in the cell, and both are kept until the end has been heard of.
//!
//! The system notes a step's end in the cell before it tells of it. If that stands there when the call returns, and the
//! operation is whole with it, the poll has the result, and no thread need wake another. The cell alone stays out until the
//! end has been heard of, since that is told by the cell's address; so that this stays far from making cells without end,
//! it is done for [`MOST_UNTOLD`] operations at a time.

use super::{
    Shared, Submitted,
    cell::{Cell, Completed, CompleterSide, FutureSide, Kind, Outcome, Release, Work},
    course::Arrival,
    handle::Handle,
    port::{AT_ONCE, Begun},
};
use crate::{fs::sys::Errno, sync::atomic::Ordering::Relaxed};
use std::{ptr::NonNull, sync::Arc, task::Waker};

/// How many operations may have ended of which the port has not heard yet.
const MOST_UNTOLD: usize = 16;

/// How far a thread got with an operation.
enum Advanced {
    /// A step is under way.
    Pending,
    /// A large part ended at once.
    HandOn(CompleterSide),
    Ended(CompleterSide, Outcome),
    /// It has ended, and the port is going to hear of the last step, or has.
    Untold(CompleterSide, Outcome),
}

/// Begins an operation on the calling thread.
pub(super) fn submit(shared: &Arc<Shared>, cell: CompleterSide) -> Submitted {
    cell.cell().start();
    cell.cell().course.enter();
    match advance(shared, cell, None, true) {
        Advanced::Pending => Submitted::Issued,
        Advanced::HandOn(cell) => {
            cell.cell().requeue();
            shared.pool.submit(shared, cell)
        }
        Advanced::Ended(cell, outcome) => {
            // No waker can be there yet.
            drop(finish(shared, cell, outcome));
            Submitted::Done
        }
        Advanced::Untold(cell, outcome) => {
            finish_untold(shared, cell, outcome);
            Submitted::Done
        }
    }
}

/// A thread of the port hears of a step's end. The waker is for it to wake.
///
/// # Safety
/// The step was begun by this carrier on `cell`, and this is the one time that its end is told.
#[cfg_attr(not(any(windows, all(test, loom))), allow(dead_code, reason = "nothing is begun"))]
pub(super) unsafe fn arrived(shared: &Arc<Shared>, cell: NonNull<Cell>) -> Option<Waker> {
    // SAFETY: the completer's bit of the cell is that step's.
    let cell = unsafe { CompleterSide::from_pointer(cell) };
    match cell.cell().course.arrived() {
        Arrival::First => return None,
        Arrival::Second => {}
        Arrival::Late => {
            shared.untold.fetch_sub(1, Relaxed);
            give_back(shared, cell);
            return None;
        }
    }
    let ended = cell.with_request(|work, _| shared.port.ended(cell.cell(), work));
    match advance(shared, cell, Some(ended), false) {
        Advanced::Pending => None,
        Advanced::HandOn(_) | Advanced::Untold(..) => unreachable!("only the calling thread does that"),
        Advanced::Ended(cell, outcome) => finish(shared, cell, outcome),
    }
}

/// Ends the step that is under way, if there is one, and lets no other begin.
pub(super) fn cancel(shared: &Shared, cell: &FutureSide, handle: &Handle) {
    cell.cell().course.cancel();
    if !cell.is_done() {
        shared.port.cancel(cell.cell(), handle);
    }
}

/// Goes on with an operation, whose last step had this result, until a step is under way or the operation has ended.
fn advance(
    shared: &Arc<Shared>,
    cell: CompleterSide,
    mut last: Option<Result<usize, Errno>>,
    calling: bool,
) -> Advanced {
    let course = &cell.cell().course;
    loop {
        if let Some(result) = last.take() {
            if let Some(outcome) = cell.settle(result) {
                return Advanced::Ended(cell, outcome);
            }
            let is_long = |work: &Work| matches!(work.kind, Kind::Read | Kind::Write) && work.done >= AT_ONCE;
            if calling && cell.with_request(|work, _| is_long(work)) {
                return Advanced::HandOn(cell);
            }
            if course.is_cancelled() {
                let done = cell.with_request(|work, _| work.done as u64);
                return Advanced::Ended(cell, Outcome { done, fault: None });
            }
        }
        course.begin();
        // SAFETY: no step of this cell is under way; the operation owns its buffer until it is done, and the cell and
        // the handle stay for as long.
        let begun =
            cell.with_request(|work, handle| unsafe { shared.port.begin(shared, cell.cell(), handle, work) });
        match begun {
            Begun::Ended(result) => last = Some(result),
            Begun::Pending => {
                if course.is_cancelled_by_now() {
                    cell.with_request(|_, handle| shared.port.cancel(cell.cell(), handle));
                }
                if calling && let Some(outcome) = untold(shared, &cell) {
                    return Advanced::Untold(cell, outcome);
                }
                if !course.issued() {
                    return Advanced::Pending;
                }
                last = Some(cell.with_request(|work, _| shared.port.ended(cell.cell(), work)));
            }
        }
    }
}

fn finish(shared: &Arc<Shared>, cell: CompleterSide, outcome: Outcome) -> Option<Waker> {
    let (_, handle) = cell.take_request();
    // The handle goes first, see `take_request`. This may close it.
    drop(handle);
    match cell.complete(outcome) {
        Completed::Wake(waker, cell) => {
            give_back(shared, cell);
            waker
        }
        Completed::Abandoned(cell) => {
            let idle = cell.discard();
            // SAFETY: an abandoned cell is this side's alone.
            unsafe { shared.cells.give(idle) };
            None
        }
    }
}

/// The outcome of an operation whose step is under way as far as the port knows, but has ended with all that was left.
///
/// Until the call that began the step counts as returned, the operation is the caller's alone, whoever hears of the end.
fn untold(shared: &Arc<Shared>, cell: &CompleterSide) -> Option<Outcome> {
    if shared.untold.load(Relaxed) >= MOST_UNTOLD {
        return None;
    }
    let whole = cell.with_request(|work, _| {
        let noted = shared.port.noted(cell.cell(), work);
        noted.filter(|ended| matches!(ended, Ok(moved) if *moved > 0 && work.done + moved == work.len))
    });
    cell.settle(whole?)
}

/// Ends such an operation, on the thread that has its future.
fn finish_untold(shared: &Arc<Shared>, cell: CompleterSide, outcome: Outcome) {
    let (_, handle) = cell.take_request();
    drop(handle);
    match cell.complete(outcome) {
        Completed::Wake(_, cell) => {
            shared.untold.fetch_add(1, Relaxed);
            if cell.cell().course.issued_and_ended() {
                shared.untold.fetch_sub(1, Relaxed);
                give_back(shared, cell);
            }
            // Else this side is left to who hears of the end.
        }
        Completed::Abandoned(_) => unreachable!("its future is being polled"),
    }
}

/// Lets go of an operation that is done.
fn give_back(shared: &Shared, cell: CompleterSide) {
    if let Release::Idle(cell) = cell.let_go() {
        // SAFETY: this side was the last.
        unsafe { shared.cells.give(cell) };
    }
}
