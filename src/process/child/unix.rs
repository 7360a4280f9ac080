//! Where a child is reaped.

use std::{io, mem};

use crate::process::ExitStatus;
use crate::process::sys::{self, Pid, Seen};

/// The one place where a child is reaped and signalled.
///
/// Both take it exclusively, so that a signal by number never meets a child that was just reaped, whose number may be
/// another process's.
#[derive(Debug)]
pub(super) struct Reaper {
    state: State,
    id: u32,
}

#[derive(Debug)]
enum State {
    Unreaped(Pid),
    /// The pidfd is closed.
    Reaped(ExitStatus),
    /// By others, or handed to the watcher.
    Gone,
}

impl Reaper {
    pub(super) fn new(pid: Pid) -> Reaper {
        let id = pid.number();
        Reaper { state: State::Unreaped(pid), id }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        let seen = match &self.state {
            State::Unreaped(pid) => pid.wait_and_reap()?,
            State::Reaped(status) => Seen::Ended(*status),
            State::Gone => Seen::Gone,
        };
        self.record(seen)?.ok_or_else(gone)
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let seen = match &self.state {
            State::Unreaped(pid) => pid.reap()?,
            State::Reaped(status) => Seen::Ended(*status),
            State::Gone => Seen::Gone,
        };
        self.record(seen)
    }

    fn record(&mut self, seen: Seen) -> io::Result<Option<ExitStatus>> {
        match seen {
            Seen::Running => Ok(None),
            Seen::Ended(status) => {
                self.state = State::Reaped(status);
                Ok(Some(status))
            }
            Seen::Gone => {
                self.state = State::Gone;
                Err(gone())
            }
        }
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        match &self.state {
            State::Unreaped(pid) => pid.kill(),
            State::Reaped(_) | State::Gone => Ok(()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other(
        "the child was reaped by other code in this process (something that waits for any child, or SIGCHLD set to \
         be ignored): its exit status is lost",
    )
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let State::Unreaped(pid) = mem::replace(&mut self.state, State::Gone)
            && matches!(pid.reap(), Ok(Seen::Running))
        {
            sys::watch(pid);
        }
    }
}
