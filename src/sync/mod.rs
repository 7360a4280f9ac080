//! The synchronisation primitives that the engine is built on, from the standard library or, under
//! `--cfg loom`, from the model checker of that name.
//!
//! Every type whose correctness depends on the order of memory accesses takes its atomics, locks and cells
//! from here, so that loom runs the shipped type and never a copy of it.

pub mod room_lock;

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{Condvar, Mutex, MutexGuard, atomic},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

use std::sync::PoisonError;

/// Locks `mutex`. A panic under one of haft's locks cannot leave the data half changed: no user code runs
/// under them. So the poison flag says nothing, and is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on `condvar`, ignoring poison as [`lock`] does.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// std's cell in the form of loom's, which has to see where an access begins and ends.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A thread that sleeps until another wakes it: by parking, as in std. A wake-up that comes first is kept, and one may
/// come for no reason.
///
/// loom has parking too. But there an unpark comes in one step with what its thread did last, and orders that even for
/// one that never slept; so the weakest ordering of the word beside it would do.
#[derive(Clone)]
pub(crate) struct Sleeper {
    #[cfg(not(loom))]
    thread: std::thread::Thread,
    #[cfg(loom)]
    woken: loom::sync::Arc<(Mutex<bool>, Condvar)>,
}

impl Sleeper {
    /// The calling thread. Panics where that has no handle of its own any more, late in its end.
    pub(crate) fn new() -> Sleeper {
        #[cfg(not(loom))]
        return Sleeper { thread: std::thread::current() };
        #[cfg(loom)]
        Sleeper { woken: loom::sync::Arc::new((Mutex::new(false), Condvar::new())) }
    }

    /// Called by the thread itself.
    pub(crate) fn sleep(&self) {
        #[cfg(not(loom))]
        std::thread::park();
        #[cfg(loom)]
        {
            let mut woken = lock(&self.woken.0);
            while !*woken {
                woken = wait(&self.woken.1, woken);
            }
            *woken = false;
        }
    }

    pub(crate) fn wake(&self) {
        #[cfg(not(loom))]
        self.thread.unpark();
        #[cfg(loom)]
        {
            *lock(&self.woken.0) = true;
            self.woken.1.notify_one();
        }
    }
}

/// A bounded time of looking for something that another thread is about to do, before sleeping for it.
pub(crate) struct Look {
    #[cfg(not(loom))]
    until: std::time::Instant,
    #[cfg(loom)]
    left: u32,
}

impl Look {
    /// Looks for at most `limit` from now.
    pub(crate) fn new(limit: std::time::Duration) -> Look {
        #[cfg(not(loom))]
        return Look { until: std::time::Instant::now() + limit };
        #[cfg(loom)]
        {
            let _ = limit;
            Look { left: 1 }
        }
    }

    /// Passes a moment; false once the time is over.
    #[inline]
    pub(crate) fn again(&mut self) -> bool {
        #[cfg(not(loom))]
        {
            for _ in 0..4 {
                std::hint::spin_loop();
            }
            std::time::Instant::now() < self.until
        }
        #[cfg(loom)]
        {
            loom::thread::yield_now();
            let more = self.left > 0;
            self.left = self.left.saturating_sub(1);
            more
        }
    }
}
