//! The future of a process's end.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::ExitStatus;
use super::sys::{Pid, Registration, on_exit};

/// Waits for a process.
#[must_use = "futures do nothing unless awaited"]
pub(super) struct Wait<'a> {
    pid: &'a Pid,
    waker: Arc<Mutex<Option<Waker>>>,
    registration: Option<Registration>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(pid: &'a Pid) -> Wait<'a> {
        Wait { pid, waker: Arc::default(), registration: None }
    }
}

impl Future for Wait<'_> {
    type Output = io::Result<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // The waker stands before the look, so that an end that the look misses finds it.
        let old = lock(&this.waker).replace(cx.waker().clone());
        // Foreign code, so not under the lock.
        drop(old);
        if let Some(status) = this.pid.try_wait()? {
            this.registration = None;
            return Poll::Ready(Ok(status));
        }
        // An end between the look and this is told at once.
        if this.registration.is_none() {
            let waker = Arc::clone(&this.waker);
            let tell = move || {
                let waker = lock(&waker).take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            };
            this.registration = Some(on_exit(this.pid, Box::new(tell))?);
        }
        Poll::Pending
    }
}

fn lock(waker: &Mutex<Option<Waker>>) -> std::sync::MutexGuard<'_, Option<Waker>> {
    waker.lock().unwrap_or_else(PoisonError::into_inner)
}
