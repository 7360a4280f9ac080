//! The operation cell: at once the queue's node, the waker's slot and the record of the arguments and the
//! result, and reused for ever after. It is what makes an operation cost no allocation.
//!
//! Two sides hold a cell: the *future* that awaits it and the *completer* that carries it out (a queue and
//! then one of its workers). Each owns one bit of the state word; who clears the last one recycles the cell.
//!
//! | phase | who may touch what |
//! |---|---|
//! | `IDLE` | in the engine's store of cells; nothing but the slab's link |
//! | `QUEUED` | in a list; the list's lock covers the links and the move to the next phase |
//! | `RUNNING` | the completer has the request and the outcome, the future the stash |
//! | `ABANDONED` | the future has gone and left its buffer in the stash; all is the completer's |
//! | `DONE` | the future has the outcome; the completer only wakes and lets go |
//!
//! The completer stores the outcome, swaps `DONE` in, wakes, and lets go *last*: a poller that sees `DONE`
//! early takes its outcome and lets go too, but cannot recycle the cell under the completer's hands.
//!
//! A future dropped while the operation runs moves its buffer into the stash and then exchanges `RUNNING`
//! for `ABANDONED`. If that fails the operation is done, and it takes the buffer back.

use super::{
    course::Course,
    handle::{Handle, HandleRef},
    perform,
    port::{InFlight, in_flight},
    shield::shielded,
    slab::Slot,
    waker::WakerSlot,
};
use crate::{
    fs::sys::Errno,
    sync::{
        UnsafeCell,
        atomic::{AtomicU32, Ordering::*},
    },
};
use std::{
    mem::{MaybeUninit, align_of, size_of},
    ptr::NonNull,
    task::Waker,
};

const IDLE: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;
const ABANDONED: u32 = 3;
const DONE: u32 = 4;
/// The bits of the phase.
const PHASE: u32 = 0b111;
/// The future still holds the cell.
const FUTURE: u32 = 1 << 3;
/// The completer still holds the cell.
const COMPLETER: u32 = 1 << 4;
const BOTH: u32 = FUTURE | COMPLETER;

/// What an operation does, in terms of the file alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fill the buffer from `offset` on, until it is full or the file ends.
    Read,
    /// Write the whole buffer at `offset`.
    Write,
    /// As `Read`, into a list of buffers: `ptr` is that of the first [`Segment`](super::Segment), `len` counts the bytes
    /// of all.
    ReadVectored,
    /// As `Write`, from such a list.
    WriteVectored,
    /// Take what a pipe holds, at least a byte; nothing at its end. Without an offset.
    Receive,
    /// Put the whole buffer into a pipe. Without an offset.
    Send,
    /// The file's length, as the outcome's `done`.
    Len,
    /// Make `offset` the file's length.
    SetLen,
    /// Set room aside for `offset` bytes.
    Allocate,
    /// fsync.
    SyncAll,
    /// fdatasync.
    SyncData,
}

/// The arguments of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) ptr: *mut u8,
    pub(crate) len: usize,
    pub(crate) offset: u64,
    /// Bytes already transferred, by an attempt that came short.
    pub(crate) done: usize,
}

impl Work {
    /// An operation without a buffer.
    pub(crate) const fn bare(kind: Kind, offset: u64) -> Work {
        Work { kind, ptr: std::ptr::null_mut(), len: 0, offset, done: 0 }
    }
}

/// Why an operation ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A system call failed with this error number.
    Os(i32),
    /// The system accepted none of a write's bytes.
    WriteZero,
    /// A write to the end of the file alone was asked to write elsewhere.
    Appends,
}

/// How an operation ended. A fault may come after some bytes, and then both are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Bytes transferred, or the answer of an operation without a buffer.
    pub(crate) done: u64,
    pub(crate) fault: Option<Fault>,
}

/// Room for the buffer of a future that went away while the operation ran.
const STASH: usize = 64;

#[repr(C, align(16))]
struct Stash {
    bytes: [MaybeUninit<u8>; STASH],
    drop: Option<unsafe fn(*mut u8)>,
}

/// Whether a buffer value of type `B` fits the stash; one that does not is boxed before it is queued.
pub(crate) const fn fits_stash<B>() -> bool {
    size_of::<B>() <= STASH && align_of::<B>() <= align_of::<Stash>()
}

/// The list's links, null at the ends.
pub(crate) struct Links {
    pub(crate) prev: Option<NonNull<Cell>>,
    pub(crate) next: Option<NonNull<Cell>>,
}

struct Request {
    handle: Option<HandleRef>,
    work: Work,
}

/// The system knows a step that it carries on by the address of its part, so that comes first.
#[repr(C)]
pub(crate) struct Cell {
    pub(super) in_flight: UnsafeCell<InFlight>,
    pub(super) course: Course,
    state: AtomicU32,
    index: u32,
    next_idle: AtomicU32,
    pub(super) links: UnsafeCell<Links>,
    waker: WakerSlot,
    request: UnsafeCell<Request>,
    outcome: UnsafeCell<Outcome>,
    stash: UnsafeCell<Stash>,
}

// SAFETY: the module's table says which side touches which part in which phase; the state word's orderings
// (and, while queued, the list's lock) carry the data from one to the other.
unsafe impl Sync for Cell {}
// SAFETY: the raw pointers in it belong to buffers that are Send.
unsafe impl Send for Cell {}

impl Slot for Cell {
    fn new(index: u32) -> Cell {
        Cell {
            in_flight: UnsafeCell::new(in_flight()),
            course: Course::new(),
            state: AtomicU32::new(IDLE),
            index,
            next_idle: AtomicU32::new(0),
            links: UnsafeCell::new(Links { prev: None, next: None }),
            waker: WakerSlot::new(),
            request: UnsafeCell::new(Request { handle: None, work: Work::bare(Kind::Len, 0) }),
            outcome: UnsafeCell::new(Outcome { done: 0, fault: None }),
            stash: UnsafeCell::new(Stash { bytes: [MaybeUninit::uninit(); STASH], drop: None }),
        }
    }

    fn index(&self) -> u32 {
        self.index
    }

    unsafe fn next_idle<'a>(slot: NonNull<Cell>) -> &'a AtomicU32 {
        // SAFETY: the slot is alive; only this field of it is borrowed.
        unsafe { &(*slot.as_ptr()).next_idle }
    }
}

impl Cell {
    /// Marks a queued cell as running. Called with the list's lock held, which every change from or to
    /// `QUEUED` needs, so that a plain store is enough; or before the cell is in a list, by who has both sides.
    pub(super) fn start(&self) {
        self.state.store(RUNNING | BOTH, Relaxed);
    }

    /// Marks a running cell as queued again. Called by who has both sides.
    pub(super) fn requeue(&self) {
        self.course.clear();
        self.state.store(QUEUED | BOTH, Relaxed);
    }

    /// Whether the cell is in a list. Called with that list's lock held.
    pub(super) fn is_queued(&self) -> bool {
        self.state.load(Relaxed) & PHASE == QUEUED
    }

    /// Whether an idle cell holds nothing of its last operation. For models, where nobody else is here.
    #[cfg(all(test, loom))]
    pub(super) fn holds_nothing(&self) -> bool {
        // SAFETY: the caller is alone with the cell.
        self.waker.is_empty() && self.request.with(|request| unsafe { (*request).handle.is_none() })
    }

    fn recycled(&self) {
        self.state.store(IDLE, Relaxed);
    }
}

/// What is to be done with a cell after one side let go of it.
#[must_use]
pub(crate) enum Release {
    /// The other side still holds it.
    Held,
    /// This side was the last: the cell goes back to the store.
    Idle(NonNull<Cell>),
}

/// Fills an idle cell and gives it its two sides. The handle is held until the operation has ended.
///
/// # Safety
/// `cell` was taken from a store that outlives both sides. The memory that `work` names stays valid until
/// the completer is done, unless the operation is cancelled while queued.
pub(crate) unsafe fn open(
    cell: NonNull<Cell>,
    work: Work,
    handle: Option<HandleRef>,
) -> (FutureSide, CompleterSide) {
    // SAFETY: an idle cell is its taker's alone.
    let it = unsafe { cell.as_ref() };
    // SAFETY: as above.
    it.request.with_mut(|request| unsafe { *request = Request { handle, work } });
    it.course.clear();
    // The list's lock publishes it, or the system that is told of the cell.
    it.state.store(QUEUED | BOTH, Relaxed);
    (FutureSide(cell), CompleterSide(cell))
}

/// The future's hold on a cell.
#[derive(Debug)]
pub(crate) struct FutureSide(NonNull<Cell>);

// SAFETY: the side may move between threads; the cell is Sync.
unsafe impl Send for FutureSide {}
// SAFETY: through a shared reference it only looks at the state and registers wakers by `&mut` owners.
unsafe impl Sync for FutureSide {}

impl FutureSide {
    pub(crate) fn cell(&self) -> &Cell {
        // SAFETY: the FUTURE bit keeps the cell from being recycled, and cells outlive their users.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn pointer(&self) -> NonNull<Cell> {
        self.0
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.cell().state.load(Acquire) & PHASE == DONE
    }

    /// Asks to be woken. The caller then looks at [`is_done`](FutureSide::is_done) once more.
    pub(crate) fn register(&mut self, waker: &Waker) {
        self.cell().waker.register(waker);
    }

    /// The outcome of an operation that is done, and the cell if this side was the last.
    pub(crate) fn finish(self) -> (Outcome, Release) {
        debug_assert!(self.is_done());
        // SAFETY: DONE was seen with Acquire; the completer does not touch the outcome any more.
        let outcome = self.cell().outcome.with(|outcome| unsafe { *outcome });
        (outcome, self.let_go())
    }

    /// Gives up an operation that its carrier has taken out of its queue: it never happens. Returns the
    /// cell, and what it held; the waker is foreign, and its drop may panic.
    pub(crate) fn cancelled(self) -> (NonNull<Cell>, Option<HandleRef>, Option<Waker>) {
        let cell = self.cell();
        let waker = cell.waker.take();
        // SAFETY: the carrier took it out under its lock, so no completer will come.
        let handle = cell.request.with_mut(|request| unsafe { (*request).handle.take() });
        cell.recycled();
        (self.0, handle, waker)
    }

    /// The waker that waits, if any. Whoever abandons the operation drops it, so that its task is let go at once and
    /// not when the system call ends; and so does who registered too late for the completer to take it.
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        self.cell().waker.take()
    }

    /// Leaves a running operation to its completer, with the buffer that it works on.
    ///
    /// Returns the buffer, and the cell if this side was the last, when the operation is done already.
    ///
    /// # Panics
    /// If `B` does not fit the stash.
    pub(crate) fn abandon<B>(self, buffer: MaybeUninit<B>) -> Option<(MaybeUninit<B>, Release)> {
        assert!(fits_stash::<B>(), "a larger buffer is boxed before it is queued");
        let cell = self.cell();
        // SAFETY: while the operation runs the stash is the future's, and it is large and aligned enough.
        cell.stash.with_mut(|stash| unsafe {
            (&raw mut (*stash).bytes).cast::<MaybeUninit<B>>().write(buffer);
            (*stash).drop = Some(drop_in_place::<B>);
        });
        if cell.state.compare_exchange(RUNNING | BOTH, ABANDONED | COMPLETER, Release, Relaxed).is_ok() {
            return None;
        }
        // SAFETY: it is done, and the completer has not seen the stash; it is what was written above. What the completer did
        // to the buffer's contents is seen by letting go.
        let buffer = cell.stash.with_mut(|stash| unsafe {
            (*stash).drop = None;
            (&raw mut (*stash).bytes).cast::<MaybeUninit<B>>().read()
        });
        Some((buffer, self.let_go()))
    }

    /// Acquire, for after `DONE` the completer may still touch the course.
    fn let_go(self) -> Release {
        let cell = self.cell();
        if cell.state.fetch_and(!FUTURE, AcqRel) & COMPLETER != 0 {
            return Release::Held;
        }
        cell.recycled();
        Release::Idle(self.0)
    }
}

/// # Safety
/// `at` points to a valid, aligned `B` that nobody else owns.
unsafe fn drop_in_place<B>(at: *mut u8) {
    // SAFETY: the caller's.
    unsafe { at.cast::<B>().drop_in_place() }
}

/// The completer's hold on a cell.
pub(crate) struct CompleterSide(NonNull<Cell>);

// SAFETY: as for FutureSide.
unsafe impl Send for CompleterSide {}

/// What the completer still has to do once the outcome is stored.
pub(crate) enum Completed {
    /// Wake the task, if it waits, and let go.
    Wake(Option<Waker>, CompleterSide),
    /// The future went away. The cell comes back with the buffer, which is to be dropped outside any lock.
    Abandoned(CompleterSide),
}

impl CompleterSide {
    pub(crate) fn cell(&self) -> &Cell {
        // SAFETY: the COMPLETER bit keeps the cell from being recycled, and cells outlive their users.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn pointer(&self) -> NonNull<Cell> {
        self.0
    }

    /// # Safety
    /// The completer's bit of this cell is the caller's to take up.
    pub(crate) unsafe fn from_pointer(cell: NonNull<Cell>) -> CompleterSide {
        CompleterSide(cell)
    }

    /// What is to be done. The handle moves out: it is released before the operation is done, so that a task
    /// that has seen its last operation end owns the descriptor alone.
    pub(crate) fn take_request(&self) -> (Work, Option<HandleRef>) {
        // SAFETY: while the operation runs the request is the completer's.
        self.cell().request.with_mut(|request| unsafe { ((*request).work, (*request).handle.take()) })
    }

    /// What is left to be done, and on what, until the request is taken.
    pub(super) fn with_request<R>(&self, f: impl FnOnce(&Work, &Handle) -> R) -> R {
        self.cell().request.with(|request| {
            // SAFETY: while the operation runs the request is the completer's.
            let Request { handle, work } = unsafe { &*request };
            f(work, handle.as_deref().expect("it is on a handle"))
        })
    }

    /// Takes a step's result into account. The outcome, if that was the last.
    pub(super) fn settle(&self, step: Result<usize, Errno>) -> Option<Outcome> {
        self.cell().request.with_mut(|request| {
            // SAFETY: while the operation runs the request is the completer's.
            let Request { handle, work } = unsafe { &mut *request };
            perform::settle(work, handle.as_deref().expect("it is on a handle").opened(), step)
        })
    }

    /// Whether the future went away, so that no further step need start.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.cell().state.load(Relaxed) & PHASE == ABANDONED
    }

    /// Stores the outcome and says that the operation is done.
    pub(crate) fn complete(self, outcome: Outcome) -> Completed {
        let cell = self.cell();
        // SAFETY: until DONE is stored the outcome is the completer's.
        cell.outcome.with_mut(|place| unsafe { *place = outcome });
        if cell.state.swap(DONE | BOTH, AcqRel) & PHASE == ABANDONED {
            return Completed::Abandoned(self);
        }
        let waker = cell.waker.take();
        Completed::Wake(waker, self)
    }

    /// Drops what an abandoned operation left in the cell. What comes back is idle.
    pub(crate) fn discard(self) -> NonNull<Cell> {
        let cell = self.cell();
        cell.stash.with_mut(|stash| {
            // SAFETY: the operation was abandoned: the stash is this side's alone.
            let (drop, buffer) = unsafe { ((*stash).drop.take(), (&raw mut (*stash).bytes).cast()) };
            if let Some(drop) = drop {
                // SAFETY: the future wrote a buffer of the type that `drop` is for.
                shielded(|| unsafe { drop(buffer) });
            }
        });
        cell.recycled();
        self.0
    }

    /// The last thing that the completer does with a cell. If the future has let go before, Acquire orders its look
    /// at the outcome before the next use of the cell; if not, Release orders what this side did with the course.
    pub(crate) fn let_go(self) -> Release {
        let cell = self.cell();
        if cell.state.fetch_and(!COMPLETER, AcqRel) & FUTURE != 0 {
            return Release::Held;
        }
        cell.recycled();
        Release::Idle(self.0)
    }
}
