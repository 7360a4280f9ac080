//! The thread that reaps children whose [`Child`](crate::process::Child) was dropped.
//!
//! It starts when the first running child is dropped, waits on pidfds with `poll`, and never looks at children that
//! were not handed to it. Signals are blocked in it; `SIGCHLD` is not touched.
//!
//! Children are handed over without a lock (see `handover`). If the
//! thread cannot be started, they stay in the list, and the next drop or launch tries again, and reaps those that have
//! ended. After a fork the
//! child process has no such thread; it starts its own when it needs one, by comparing process numbers.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::handles::off_standard;
use super::handover::{Handover, Knock};
use super::pid::{Pid, Seen};
use super::{raw, signals};
use crate::process::sys::force::{self, Lack};

/// How often children without a pidfd, and those whose pidfd is readable though they have not ended (a tracer holds
/// them), are looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

static HANDED: OnceLock<Handover<Pid>> = OnceLock::new();

/// Reaps this child when it ends.
pub(crate) fn watch(pid: Pid) {
    let handed = HANDED.get_or_init(Handover::new);
    handed.push(pid);
    start_or_wake(handed);
}

/// Tries again where children were handed over and the watcher could not be started.
#[inline]
pub(super) fn start_if_needed() {
    if let Some(handed) = HANDED.get()
        && !handed.is_empty()
    {
        start_or_wake(handed);
    }
}

#[cold]
fn start_or_wake(handed: &'static Handover<Pid>) {
    let me = raw::getpid();
    match handed.knock(me) {
        Knock::Wake(bell) => wake(bell),
        Knock::Leave => {}
        Knock::Start => {
            if start(handed, me).is_err() {
                handed.not_started();
                sweep(handed);
            }
        }
    }
}

/// Without a watcher: reaps those that have ended by now, and keeps the others for the next time.
fn sweep(handed: &Handover<Pid>) {
    let mut running = Vec::new();
    handed.take_all(|pid| running.extend(is_running(&pid).then_some(pid)));
    running.into_iter().for_each(|pid| handed.push(pid));
}

fn start(handed: &'static Handover<Pid>, me: i32) -> std::io::Result<()> {
    if force::lacks(Lack::Watcher) {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    let bell = off_standard(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)?;
    let thread = std::thread::Builder::new().name("haft-reaper".into()).stack_size(128 * 1024);
    signals::blocked(|| {
        thread.spawn(move || {
            handed.runs(me, bell.as_raw_fd());
            run(handed, &bell)
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

fn run(handed: &Handover<Pid>, bell: &OwnedFd) -> ! {
    let mut orphans: Vec<Orphan> = Vec::new();
    loop {
        handed.take_all(|pid| orphans.push(Orphan { by_tick: pid.fd().is_none(), pid }));
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
