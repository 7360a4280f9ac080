//! The thread that reaps children whose [`Child`](crate::process::Child) was dropped.
//!
//! It starts when the first running child is dropped, waits on pidfds with `poll`, and never looks at children that
//! were not handed to it. Signals are blocked in it; `SIGCHLD` is not touched.
//!
//! Children are handed over without a lock (see `handover`). If the thread cannot be started, they stay in the list, and
//! the next drop or launch tries again, and reaps those that have ended. After a fork the child process has no such
//! thread; it starts its own when it needs one (see `generation`).
//!
//! A program that closes "everything" and opens its own files may get our numbers. The bell is a pipe because a pipe has
//! an inode of its own: before it is rung or read it must still be ours, and if it is not, there is to be a new one.
//! So it is with the children's pidfds, which are then forgotten, and the children looked at every tick.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};

use super::handles::{Identity, identity, off_standard};
use super::handover::{Handover, Knock};
use super::pid::{Pid, Seen};
use super::{generation, raw};
use crate::process::sys::force::{self, Lack};
use crate::thread;

/// How often children without a pidfd, and those whose pidfd is readable though they have not ended (a tracer holds
/// them), are looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

static HANDED: OnceLock<Handover<Orphan, Bell>> = OnceLock::new();

/// Reaps this child when it ends.
pub(crate) fn watch(pid: Pid) {
    let handed = HANDED.get_or_init(Handover::new);
    handed.push(Orphan::new(pid));
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
fn start_or_wake(handed: &'static Handover<Orphan, Bell>) {
    let me = generation::here();
    loop {
        match handed.knock(me) {
            Knock::Leave => return,
            Knock::Wake(bell) if bell.ring() => return,
            Knock::Wake(bell) if !handed.lost(me, bell) => {}
            Knock::Wake(_) | Knock::Start => {
                if start(handed, me).is_err() {
                    sweep(handed);
                    handed.not_started();
                }
                return;
            }
        }
    }
}

/// Without a watcher: reaps those that have ended by now, and keeps the others for the next time.
fn sweep(handed: &Handover<Orphan, Bell>) {
    let mut running = Vec::new();
    handed.take_all(|mut orphan| {
        if orphan.is_running() {
            running.push(orphan);
        }
    });
    running.into_iter().for_each(|orphan| handed.push(orphan));
}

fn start(handed: &'static Handover<Orphan, Bell>, me: i32) -> io::Result<()> {
    if force::lacks(Lack::Watcher) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let ends = new_ends()?;
    let thread = std::thread::Builder::new().name("haft-reaper".into()).stack_size(128 * 1024);
    thread::start(thread, move || run(handed, me, ends))
}

/// A bell's reader and writer. Neither waits: a full pipe wakes as well.
fn new_ends() -> io::Result<[OwnedFd; 2]> {
    let (reader, writer) = io::pipe()?;
    let ends = [off_standard(reader.into())?, off_standard(writer.into())?];
    for end in &ends {
        fcntl_setfl(end, OFlags::NONBLOCK)?;
    }
    Ok(ends)
}

/// What wakes the watcher. It is leaked, and its descriptors closed only when they get lost.
struct Bell {
    reader: RawFd,
    writer: RawFd,
    /// Both ends have the pipe's.
    identity: Option<Identity>,
}

impl Bell {
    fn new([reader, writer]: [OwnedFd; 2]) -> &'static Bell {
        let identity = identity(reader.as_raw_fd());
        Box::leak(Box::new(Bell { reader: reader.into_raw_fd(), writer: writer.into_raw_fd(), identity }))
    }

    /// Where a sandbox does not let us look, it never was known, and counts as ours.
    fn is_ours(&self, end: RawFd) -> bool {
        identity(end) == self.identity
    }

    /// False if it is lost. A writer without a reader counts as that too, and does not bring SIGPIPE.
    fn ring(&self) -> bool {
        if !self.is_ours(self.reader) || !self.is_ours(self.writer) {
            return false;
        }
        // SAFETY: just seen to be ours.
        let _ = rustix::io::write(unsafe { BorrowedFd::borrow_raw(self.writer) }, &[0]);
        true
    }

    /// Silences it after a ring. False if it is lost.
    fn hush(&self) -> bool {
        if !self.is_ours(self.reader) || !self.is_ours(self.writer) {
            return false;
        }
        // SAFETY: just seen to be ours.
        let _ = rustix::io::read(unsafe { BorrowedFd::borrow_raw(self.reader) }, &mut [0; 64]);
        true
    }

    /// Closes what is left of a lost one.
    fn close(&self) {
        for end in [self.reader, self.writer] {
            if self.is_ours(end) {
                let _ = raw::close(end);
            }
        }
    }
}

/// A child that nobody waits for.
struct Orphan {
    pid: Pid,
    /// Of its pidfd. All pidfds have the same before 6.9.
    identity: Option<Identity>,
    /// Looked at every tick instead of polled.
    by_tick: bool,
}

impl Orphan {
    fn new(pid: Pid) -> Orphan {
        let identity = pid.fd().and_then(|fd| identity(fd.as_raw_fd()));
        Orphan { by_tick: pid.fd().is_none(), pid, identity }
    }

    /// Forgets a pidfd whose number is another file's by now.
    fn check(&mut self) {
        if self.pid.fd().is_some_and(|fd| identity(fd.as_raw_fd()) != self.identity) {
            self.pid.forget_fd();
            self.by_tick = true;
        }
    }

    fn is_running(&mut self) -> bool {
        self.check();
        matches!(self.pid.reap(), Ok(Seen::Running))
    }
}

fn run(handed: &'static Handover<Orphan, Bell>, me: i32, ends_of_first: [OwnedFd; 2]) {
    let mut bell = Bell::new(ends_of_first);
    handed.runs(me, bell);
    let mut orphans: Vec<Orphan> = Vec::new();
    loop {
        handed.take_all(|orphan| orphans.push(orphan));
        orphans.retain_mut(|orphan| !orphan.by_tick || orphan.is_running());

        // SAFETY: where it is not ours any more, that is seen below, and asking whether it is readable changes nothing.
        let reader = unsafe { BorrowedFd::borrow_raw(bell.reader) };
        let mut ends = vec![PollFd::from_borrowed_fd(reader, PollFlags::IN)];
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
            orphans.retain_mut(Orphan::is_running);
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        let rung = !ends[0].revents().is_empty();
        let ready: Vec<usize> = (1..ends.len())
            .filter(|&end| !ends[end].revents().is_empty())
            .map(|end| polled[end - 1])
            .collect();
        drop(ends);
        // From the last, so that indexes before it stay right.
        for index in ready.into_iter().rev() {
            if orphans[index].is_running() {
                orphans[index].by_tick = true;
            } else {
                orphans.swap_remove(index);
            }
        }
        if rung && !bell.hush() {
            bell.close();
            // What closed the bell has closed the pidfds too, most likely.
            orphans.iter_mut().for_each(Orphan::check);
            if handed.lost(me, bell) {
                if let Ok(ends) = new_ends() {
                    bell = Bell::new(ends);
                    handed.runs(me, bell);
                    continue;
                }
                orphans.into_iter().for_each(|orphan| handed.push(orphan));
                handed.not_started();
            } else {
                // Another watcher is being started.
                orphans.into_iter().for_each(|orphan| handed.push(orphan));
                start_or_wake(handed);
            }
            return;
        }
    }
}
