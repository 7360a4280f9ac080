//! The least executor: one future, polled on this thread, which is parked in between.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}

/// Polls `future` to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static WAKER: RefCell<(Arc<Unpark>, Waker)> = {
            let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
            RefCell::new((Arc::clone(&unpark), unpark.into()))
        };
    }
    WAKER.with(|waker| {
        let waker = waker.try_borrow_mut().expect("block_on is not called within block_on");
        let (unpark, waker) = &*waker;
        let mut future = pin!(future);
        let mut context = Context::from_waker(waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            while !unpark.woken.swap(false, Ordering::Acquire) {
                thread::park();
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wake_from_another_thread_is_seen() {
        let mut polls = 0;
        let answer = block_on(std::future::poll_fn(|context| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(42);
            }
            let waker = context.waker().clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1));
                waker.wake();
            });
            Poll::Pending
        }));
        assert_eq!((answer, polls), (42, 3));
    }
}
