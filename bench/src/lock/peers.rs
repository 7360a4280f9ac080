//! The locks, each with its rule for who may be inside beside whom.

use std::sync::{Mutex, PoisonError};

use haft::room_lock::{Entry, RoomLock};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::mix::Kind;

/// A lock that launches go through.
pub(crate) trait Peer: Send + Sync {
    fn name(&self) -> &'static str;

    /// Does `work` inside.
    fn pass(&self, kind: Kind, work: &dyn Fn());
}

/// In the order of the table.
pub(crate) fn all() -> [Box<dyn Peer>; 6] {
    [
        Box::new(Rooms(RoomLock::new())),
        Box::new(StdMutex(Mutex::new(()))),
        Box::new(ReadWrite { name: "rwlock", lock: RwLock::new(()), reads: isolated, fair: false }),
        Box::new(ReadWrite {
            name: "rwlock-unlock-fair",
            lock: RwLock::new(()),
            reads: isolated,
            fair: true,
        }),
        Box::new(ReadWrite {
            name: "pull-request-unlock-fair",
            lock: RwLock::new(()),
            reads: pull_request,
            fair: true,
        }),
        Box::new(PullRequestFair(RoomLock::new())),
    ]
}

pub(crate) const NAMES: [&str; 6] =
    ["haft", "mutex", "rwlock", "rwlock-unlock-fair", "pull-request-unlock-fair", "pull-request-fair"];

/// haft's rule on its own lock.
struct Rooms(RoomLock);

impl Peer for Rooms {
    fn name(&self) -> &'static str {
        "haft"
    }

    fn pass(&self, kind: Kind, work: &dyn Fn()) {
        let _inside = self.0.enter(match kind {
            Kind::Isolated => Entry::Room(0),
            Kind::InheritAll => Entry::Room(1),
            Kind::InheritAllRedirected => Entry::Alone,
        });
        work();
    }
}

/// One at a time, as std and .NET 10 do it.
struct StdMutex(Mutex<()>);

impl Peer for StdMutex {
    fn name(&self) -> &'static str {
        "mutex"
    }

    fn pass(&self, _: Kind, work: &dyn Fn()) {
        let _inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work();
    }
}

/// The rule that is right on a reader–writer lock: only one kind can read.
fn isolated(kind: Kind) -> bool {
    kind == Kind::Isolated
}

/// The pull request's rule, which lets a child have what it should not: it writes when it inherits all *and* redirects.
fn pull_request(kind: Kind) -> bool {
    kind != Kind::InheritAllRedirected
}

/// parking_lot's reader–writer lock, with the kinds that read; given back fairly, or not.
struct ReadWrite {
    name: &'static str,
    lock: RwLock<()>,
    reads: fn(Kind) -> bool,
    fair: bool,
}

impl Peer for ReadWrite {
    fn name(&self) -> &'static str {
        self.name
    }

    fn pass(&self, kind: Kind, work: &dyn Fn()) {
        if (self.reads)(kind) {
            let inside = self.lock.read();
            work();
            if self.fair {
                RwLockReadGuard::unlock_fair(inside);
            }
        } else {
            let inside = self.lock.write();
            work();
            if self.fair {
                RwLockWriteGuard::unlock_fair(inside);
            }
        }
    }
}

/// The pull request's rule on a fair reader–writer lock, which haft's is with one room.
struct PullRequestFair(RoomLock);

impl Peer for PullRequestFair {
    fn name(&self) -> &'static str {
        "pull-request-fair"
    }

    fn pass(&self, kind: Kind, work: &dyn Fn()) {
        let _inside = self.0.enter(if pull_request(kind) { Entry::Room(0) } else { Entry::Alone });
        work();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_peers() {
        assert_eq!(all().map(|peer| peer.name()), NAMES);
    }
}
