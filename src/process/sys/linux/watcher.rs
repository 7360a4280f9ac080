//! The thread that reaps children whose [`Child`](crate::process::Child) was dropped.
//!
//! It starts when the first running child is dropped, waits on pidfds with `poll`, and never looks at children that
//! were not handed to it. Signals are blocked in it; `SIGCHLD` is not touched.
//!
//! Children are handed over by a list that is pushed to and emptied with one compare-exchange or swap each. If the
//! thread cannot be started, they stay in the list, and the next drop or launch tries again, and reaps those that have
//! ended. After a fork the
//! child process has no such thread; it starts its own when it needs one, by comparing process numbers.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::pid::{Pid, Seen};
use super::{raw, signals};
use crate::process::stdio::off_standard;
use crate::process::sys::force::{self, Lack};

/// How often children without a pidfd, and those whose pidfd is readable though they have not ended (a tracer holds
/// them), are looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

static HANDED: Handover<Pid> = Handover::new();
/// The process whose watcher runs; negative while it starts; 0 before.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// The watcher's eventfd. Written before `OWNER` says that it runs.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Reaps this child when it ends.
pub(crate) fn watch(pid: Pid) {
    HANDED.push(pid);
    start_or_wake();
}

/// Tries again where children were handed over and the watcher could not be started.
#[inline]
pub(super) fn start_if_needed() {
    if !HANDED.is_empty() {
        start_or_wake();
    }
}

/// Whoever has pushed calls this. If it finds the watcher starting, that one has not emptied the list yet: had it,
/// our push would have come after its swap, and with it we would see that it runs.
#[cold]
fn start_or_wake() {
    let me = raw::getpid();
    let owner = OWNER.load(Ordering::Acquire);
    if owner == me {
        wake(WAKE.load(Ordering::Relaxed));
    } else if owner != -me
        && OWNER.compare_exchange(owner, -me, Ordering::Acquire, Ordering::Relaxed).is_ok()
        && start(me).is_err()
    {
        OWNER.store(0, Ordering::Release);
        sweep();
    }
}

/// Without a watcher: reaps those that have ended by now, and keeps the others for the next time.
fn sweep() {
    let mut running = Vec::new();
    HANDED.take_all(|pid| running.extend(is_running(&pid).then_some(pid)));
    running.into_iter().for_each(|pid| HANDED.push(pid));
}

fn start(me: i32) -> std::io::Result<()> {
    if force::lacks(Lack::Watcher) {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    let bell = off_standard(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)?;
    let number = bell.as_raw_fd();
    let thread = std::thread::Builder::new().name("haft-reaper".into()).stack_size(128 * 1024);
    WAKE.store(number, Ordering::Relaxed);
    signals::blocked(|| {
        thread.spawn(move || {
            OWNER.store(me, Ordering::Release);
            run(&bell)
        })
    })?;
    Ok(())
}

fn wake(bell: RawFd) {
    // SAFETY: the watcher never closes it.
    let bell = unsafe { BorrowedFd::borrow_raw(bell) };
    // A full counter wakes as well.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// A child that nobody waits for.
struct Orphan {
    pid: Pid,
    /// Looked at every tick instead of polled.
    by_tick: bool,
}

fn run(bell: &OwnedFd) -> ! {
    let mut orphans: Vec<Orphan> = Vec::new();
    loop {
        HANDED.take_all(|pid| orphans.push(Orphan { by_tick: pid.fd().is_none(), pid }));
        orphans.retain(|orphan| !orphan.by_tick || is_running(&orphan.pid));

        let mut ends = vec![PollFd::new(bell, PollFlags::IN)];
        let mut polled = Vec::new();
        for (index, orphan) in orphans.iter().enumerate() {
            if let Some(fd) = orphan.pid.fd()
                && !orphan.by_tick
            {
                ends.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
                polled.push(index);
            }
        }
        let timeout = (polled.len() < orphans.len()).then_some(&TICK);
        if let Err(errno) = poll(&mut ends, timeout)
            && errno != rustix::io::Errno::INTR
        {
            // No memory, or more children than descriptors are allowed: look at each, slowly.
            orphans.retain(|orphan| is_running(&orphan.pid));
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        if !ends[0].revents().is_empty() {
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
        let ready: Vec<usize> = (1..ends.len())
            .filter(|&end| !ends[end].revents().is_empty())
            .map(|end| polled[end - 1])
            .collect();
        drop(ends);
        // From the last, so that indexes before it stay right.
        for index in ready.into_iter().rev() {
            if is_running(&orphans[index].pid) {
                orphans[index].by_tick = true;
            } else {
                orphans.swap_remove(index);
            }
        }
    }
}

fn is_running(pid: &Pid) -> bool {
    matches!(pid.reap(), Ok(Seen::Running))
}

/// Values pushed by many and taken all at once by one, without a lock: a fork cannot leave it locked.
struct Handover<T> {
    head: AtomicPtr<Node<T>>,
}

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

impl<T: Send> Handover<T> {
    const fn new() -> Handover<T> {
        Handover { head: AtomicPtr::new(ptr::null_mut()) }
    }

    fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: ours until the exchange succeeds.
            unsafe { (*node).next = head };
            // Release hands the node over. Acquire makes what the taker did before it emptied the list visible.
            match self.head.compare_exchange_weak(head, node, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything; the last pushed comes first.
    fn take_all(&self, mut each: impl FnMut(T)) {
        let mut node = self.head.swap(ptr::null_mut(), Ordering::AcqRel);
        while !node.is_null() {
            // SAFETY: the swap made the whole chain ours, and each was a box.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.next;
            each(owned.value);
        }
    }
}
