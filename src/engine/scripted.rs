//! A system that carries operations on as a model tells it, in a thread of its own for each step that does not end at
//! once.

use super::{
    Shared,
    cell::{Cell, Kind, Work},
    direct,
    handle::Handle,
    port::Begun,
};
use crate::fs::sys::{Errno, OwnedHandle, Ways};
use loom::{
    cell::UnsafeCell,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};
use std::{
    ptr::NonNull,
    sync::{Arc, Weak},
};

/// What the system keeps in a cell: the result of the step, and that it has ended.
pub(crate) struct InFlight {
    noted: AtomicBool,
    result: UnsafeCell<Option<Result<usize, Errno>>>,
}

pub(super) fn in_flight() -> InFlight {
    InFlight { noted: AtomicBool::new(false), result: UnsafeCell::new(None) }
}

/// After so many bytes at once the pool goes on.
pub(super) const AT_ONCE: usize = 3;

/// How a step goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// It ends before the call returns, with this many bytes.
    AtOnce(usize),
    /// It ends later, with this many bytes.
    Later(usize),
    /// It ends only when it is cancelled.
    Never,
}

/// Moves a step's bytes.
pub(super) type Transfer = fn(&Work, usize);

pub(crate) struct Port {
    script: Option<(Mutex<Vec<Step>>, Transfer)>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    /// A step that never ends is under way, and may be cancelled. Relaxed: what orders it is not the system.
    waits: AtomicBool,
    shared: Mutex<Weak<Shared>>,
}

struct Sent(NonNull<Cell>);

// SAFETY: the cell is Sync.
unsafe impl Send for Sent {}

impl Port {
    pub(super) fn new() -> Port {
        Port {
            script: None,
            threads: Mutex::new(Vec::new()),
            waits: AtomicBool::new(false),
            shared: Mutex::new(Weak::new()),
        }
    }

    /// A system that carries every operation, by these steps, the first last.
    pub(super) fn scripted(steps: Vec<Step>, transfer: Transfer) -> Port {
        Port { script: Some((Mutex::new(steps), transfer)), ..Port::new() }
    }

    /// Waits until all that was begun has ended.
    pub(super) fn join(&self) {
        loop {
            let Some(thread) = self.threads.lock().unwrap().pop() else { return };
            thread.join().unwrap();
        }
    }

    pub(super) fn bind(&self, _: &Arc<Shared>, _: &OwnedHandle, _: &mut Ways) {}

    pub(super) fn carries(&self, _: &Handle, _: &Work) -> bool {
        self.script.is_some()
    }

    /// # Safety
    /// As for every port.
    pub(super) unsafe fn begin(&self, shared: &Arc<Shared>, cell: &Cell, _: &Handle, work: &Work) -> Begun {
        let (steps, transfer) = self.script.as_ref().expect("only a scripted port carries");
        let step = steps.lock().unwrap().pop().expect("the script has a step");
        cell.in_flight.with(|place| {
            // SAFETY: no step of the cell is under way.
            unsafe { (*place).noted.store(false, Relaxed) };
        });
        match step {
            Step::AtOnce(bytes) => {
                transfer(work, bytes);
                Begun::Ended(Ok(bytes))
            }
            Step::Later(bytes) => {
                self.later(shared, cell, *work, Some((*transfer, bytes)));
                Begun::Pending
            }
            Step::Never => {
                *self.shared.lock().unwrap() = Arc::downgrade(shared);
                self.waits.store(true, Relaxed);
                Begun::Pending
            }
        }
    }

    fn later(&self, shared: &Arc<Shared>, cell: &Cell, work: Work, moves: Option<(Transfer, usize)>) {
        struct Moved(Work);
        // SAFETY: the buffer that it names is the operation's.
        unsafe impl Send for Moved {}
        let (shared, cell, work) = (Arc::clone(shared), Sent(NonNull::from(cell)), Moved(work));
        let thread = thread::spawn(move || {
            let (Sent(cell), Moved(work)) = ({ cell }, { work });
            let ended = match moves {
                Some((transfer, bytes)) => {
                    transfer(&work, bytes);
                    Ok(bytes)
                }
                None => Err(Errno::CANCELED),
            };
            // SAFETY: until it is told that the step has ended, the system may write to the cell.
            unsafe {
                cell.as_ref().in_flight.with(|place| {
                    (*place).result.with_mut(|result| *result = Some(ended));
                    (*place).noted.store(true, Release);
                });
            }
            // SAFETY: it is told once.
            if let Some(waker) = unsafe { direct::arrived(&shared, cell) } {
                waker.wake();
            }
        });
        self.threads.lock().unwrap().push(thread);
    }

    pub(super) fn ended(&self, cell: &Cell, _: &Work) -> Result<usize, Errno> {
        // SAFETY: the step has ended.
        cell.in_flight.with(|place| unsafe { (*place).result.with(|result| *result) }).expect("it has ended")
    }

    pub(super) fn noted(&self, cell: &Cell, _: &Work) -> Option<Result<usize, Errno>> {
        cell.in_flight.with(|place| {
            // SAFETY: the structure is the cell's; its result is not written any more once that has been noted.
            unsafe { (*place).noted.load(Acquire).then(|| (*place).result.with(|result| *result))? }
        })
    }

    pub(super) fn cancel(&self, cell: &Cell, _: &Handle) {
        // Only one of two that cancel finds it. An exchange would order more than the system promises.
        if self.waits.load(Relaxed) && self.waits.swap(false, Relaxed) {
            let shared = self.shared.lock().unwrap().upgrade().expect("the engine is there");
            self.later(&shared, cell, Work::bare(Kind::Len, 0), None);
        }
    }

    pub(super) fn shut_down(&self) {}
}
