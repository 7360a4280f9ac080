//! The pool: the carrier that has threads of its own and can do any operation.
//!
//! All that it decides by is a handful of integers under one short lock, so that the argument for "no wake-up
//! is lost" fits here:
//!
//! * A worker is *looking* (it will take the lock and look at the list before it sleeps), *running* an
//!   operation, or *sleeping* on the condition variable. It is counted as looking from the moment it is woken
//!   or started, and already before it tells a task that its operation is done: that task often queues the
//!   next one at once, and needs to wake nobody.
//! * Whoever adds an operation while nobody looks wakes a sleeper, or starts a worker. Whoever takes one and
//!   leaves others behind while nobody else looks does the same. So while operations wait, somebody looks or
//!   nobody is left to wake; and a worker that looks finds them.
//! * A worker sleeps only after it has seen, under the lock, that the list is empty.
//!
//! Looking costs processor time, and saves what is dear in a hand-off: waking a thread on another core. One
//! worker at a time does, for [`SHORT_LOOK`]. That catches the next operation of a task that was itself looking for
//! the end of its last. A task that sleeps takes longer to wake than that; to get from there into the quick
//! exchange, a worker that has just woken a task looks for [`LONG_LOOK`], unless such looks have been in vain: they
//! pay if the operation that they catch is followed by another that a short look catches.

use super::{
    Shared, Submitted,
    backoff::Backoff,
    cell::{Completed, CompleterSide, FutureSide, Release},
    list::List,
    shield::shielded,
};
use crate::sync::{
    Condvar, Look, Mutex,
    atomic::{AtomicUsize, Ordering::*},
    lock, wait,
};
use crate::{
    force::{self, Lack},
    thread,
};
use std::{io, sync::Arc, thread::Builder, time::Duration};

/// How long an idle worker looks for the next operation before it sleeps. The next operation of a task that looks
/// for the end of its last, and does little in between, comes within 2 µs.
const SHORT_LOOK: Duration = Duration::from_micros(5);

/// As long as it takes to wake a task on a sleeping processor of a virtual machine.
const LONG_LOOK: Duration = Duration::from_micros(50);

pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    /// The list's length, for looking without the lock. Only a hint: whoever acts on it takes the lock.
    waiting: AtomicUsize,
    /// The most threads that there may be.
    limit: usize,
    /// Long looks.
    long_looks: Backoff,
}

struct State {
    list: List,
    threads: usize,
    looking: usize,
    sleeping: usize,
    /// Sleepers that were woken and have not noticed yet; they count as looking.
    woken: usize,
    shutdown: bool,
}

/// What whoever changed the list has to do after unlocking.
#[must_use]
enum Call {
    Nobody,
    Wake,
    Start,
}

impl State {
    /// Sees to it that somebody looks, if operations wait.
    fn call(&mut self, limit: usize) -> Call {
        if self.list.is_empty() || self.looking > 0 {
            Call::Nobody
        } else if self.sleeping > 0 {
            self.sleeping -= 1;
            self.woken += 1;
            self.looking += 1;
            Call::Wake
        } else if self.threads < limit {
            self.threads += 1;
            self.looking += 1;
            Call::Start
        } else {
            Call::Nobody
        }
    }
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Pool {
        Pool {
            state: Mutex::new(State {
                list: List::new(),
                threads: 0,
                looking: 0,
                sleeping: 0,
                woken: 0,
                shutdown: false,
            }),
            work: Condvar::new(),
            waiting: AtomicUsize::new(0),
            limit,
            long_looks: Backoff::new(),
        }
    }

    /// How many threads there are now.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    /// Counts a worker that a model starts itself.
    #[cfg(all(test, loom))]
    pub(crate) fn enrol(&self) {
        let mut state = lock(&self.state);
        state.threads += 1;
        state.looking += 1;
    }

    /// A worker is called for and cannot start, in two steps as in life: others see it as coming in between.
    #[cfg(all(test, loom))]
    pub(crate) fn fail_a_start(&self, shared: &Arc<Shared>) {
        self.enrol();
        loom::thread::yield_now();
        self.start(shared);
    }

    /// Lets the workers end once the list is empty.
    pub(crate) fn shut_down(&self) {
        lock(&self.state).shutdown = true;
        self.work.notify_all();
    }

    /// Queues an operation.
    pub(crate) fn submit(&self, shared: &Arc<Shared>, cell: CompleterSide) -> Submitted {
        let (call, submitted) = {
            let mut state = lock(&self.state);
            // SAFETY: the cell is in no list, and its COMPLETER bit keeps it alive while it is in this one.
            unsafe { state.list.push(cell.pointer()) };
            self.waiting.store(state.list.len(), Relaxed);
            // Those who are looking now, and are not only about to wake.
            let watched = state.looking > state.woken && state.list.len() == 1;
            (state.call(self.limit), if watched { Submitted::Watched } else { Submitted::Waits })
        };
        self.answer(shared, call);
        submitted
    }

    /// Takes an operation out of the list, if it is still there: then it never happens.
    pub(crate) fn cancel(&self, cell: &FutureSide) -> bool {
        let mut state = lock(&self.state);
        if !cell.cell().is_queued() {
            return false;
        }
        // SAFETY: a queued cell of this engine is in this list.
        unsafe { state.list.remove(cell.pointer()) };
        self.waiting.store(state.list.len(), Relaxed);
        true
    }

    fn answer(&self, shared: &Arc<Shared>, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Wake => self.work.notify_one(),
            Call::Start => self.start(shared),
        }
    }

    #[cold]
    fn start(&self, shared: &Arc<Shared>) {
        if start_worker(shared).is_ok() {
            return;
        }
        // Without memory or a free thread, operations must happen all the same. What was left to the worker that did
        // not come goes to one that sleeps; those that run come to it by themselves; if there is none, this thread
        // does what waits.
        let (alone, call) = {
            let mut state = lock(&self.state);
            state.looking -= 1;
            state.threads -= 1;
            (state.threads == 0, if state.sleeping > 0 { state.call(self.limit) } else { Call::Nobody })
        };
        self.answer(shared, call);
        if alone {
            // In a closure, so that the lock is not held for the loop's body.
            let next = || self.pop(&mut lock(&self.state));
            while let Some(cell) = next() {
                self.run(shared, cell, false);
            }
        }
    }

    fn pop(&self, state: &mut State) -> Option<CompleterSide> {
        let cell = state.list.pop()?;
        self.waiting.store(state.list.len(), Relaxed);
        // SAFETY: `submit` put the completer's side into the list.
        let cell = unsafe { CompleterSide::from_pointer(cell) };
        cell.cell().start();
        Some(cell)
    }

    /// A worker's life. It begins and goes round as one who looks.
    pub(crate) fn work(&self, shared: &Arc<Shared>) {
        // Whether the last operation had a sleeping task, and whether a long look caught it.
        let mut woke = false;
        let mut caught = false;
        let mut state = lock(&self.state);
        loop {
            if let Some(cell) = self.pop(&mut state) {
                state.looking -= 1;
                let call = state.call(self.limit);
                drop(state);
                self.answer(shared, call);
                woke = self.run(shared, cell, true);
                state = lock(&self.state);
                continue;
            }
            if state.looking == 1 && !state.shutdown {
                let long = woke && self.long_looks.is_due();
                drop(state);
                let mut look = Look::new(if long { LONG_LOOK } else { SHORT_LOOK });
                while self.waiting.load(Relaxed) == 0 && look.again() {
                    std::hint::spin_loop();
                }
                state = lock(&self.state);
                let found = !state.list.is_empty();
                match (long, found) {
                    (true, false) => self.long_looks.was_vain(),
                    (false, true) if caught => self.long_looks.paid(),
                    (false, false) if caught => self.long_looks.was_vain(),
                    _ => {}
                }
                caught = long && found;
                woke = false;
                if found {
                    continue;
                }
            }
            state.looking -= 1;
            if state.shutdown {
                state.threads -= 1;
                return;
            }
            state.sleeping += 1;
            while state.woken == 0 && !state.shutdown {
                state = wait(&self.work, state);
            }
            if state.woken > 0 {
                state.woken -= 1;
            } else {
                state.sleeping -= 1;
                state.looking += 1;
            }
        }
    }

    /// Carries one operation out, and tells whether a task slept for it. A worker (and not a thread that does what
    /// no worker can) is counted as looking again when this returns.
    fn run(&self, shared: &Arc<Shared>, cell: CompleterSide, worker: bool) -> bool {
        let (work, handle) = cell.take_request();
        let outcome = (shared.perform)(&work, handle.as_deref(), &|| cell.is_abandoned());
        // The descriptor goes first, see `take_request`. This may close it.
        drop(handle);
        if worker {
            lock(&self.state).looking += 1;
        }
        match cell.complete(outcome) {
            Completed::Wake(waker, cell) => {
                let slept = waker.is_some();
                if let Some(waker) = waker {
                    // A waker is foreign code: it may take its time, or wait for what this pool has to do. So this
                    // worker does not look while it runs, and others are woken or started, up to the limit.
                    self.aside(shared, worker, || waker.wake());
                }
                if let Release::Idle(cell) = cell.let_go() {
                    // SAFETY: this side was the last.
                    unsafe { shared.cells.give(cell) };
                }
                slept
            }
            Completed::Abandoned(cell) => {
                let mut idle = None;
                self.aside(shared, worker, || idle = Some(cell.discard()));
                if let Some(idle) = idle {
                    // SAFETY: an abandoned cell is this side's alone.
                    unsafe { shared.cells.give(idle) };
                }
                false
            }
        }
    }

    /// Runs foreign code, counted as running and not as looking.
    fn aside(&self, shared: &Arc<Shared>, worker: bool, foreign: impl FnOnce()) {
        if worker {
            let call = {
                let mut state = lock(&self.state);
                state.looking -= 1;
                state.call(self.limit)
            };
            self.answer(shared, call);
        }
        shielded(foreign);
        if worker {
            lock(&self.state).looking += 1;
        }
    }
}

fn start_worker(shared: &Arc<Shared>) -> io::Result<()> {
    // Models start their workers themselves.
    if cfg!(loom) || force::lacks(Lack::Threads) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let worker = Arc::clone(shared);
    thread::start(Builder::new().name("haft-io".into()), move || worker.pool.work(&worker))
}
