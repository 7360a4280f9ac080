//! A lock with rooms: whoever is in the same room shares it, and no two rooms are occupied at once.
//!
//! It is for work of several kinds of which each gets on with itself but not with the others. haft's own use is the
//! launching of processes where a handle has to be inheritable for a moment. Any number of launches that name their
//! handles may run beside one another, and so may any number that inherit everything; but one of the first kind beside
//! one of the second would let a child have a handle that was meant for another. A reader–writer lock cannot say that:
//! one of the two kinds would have to write, and so wait for its own like.
//!
//! # Who waits for whom
//!
//! [`Entry::Room`] enters a room, which its holders share. [`Entry::Alone`] is alone. Who cannot enter at once waits
//! for a *ticket*, and tickets are served first come, first served:
//!
//! * All who wait for one room hold one ticket together. It was placed when the first of them came, and when it is
//!   served all who wait for it by then enter.
//! * Every wait to be alone is a ticket of its own.
//! * A newcomer joins the open room only if nobody waits.
//!
//! So nobody waits longer than the tickets take that stood ahead of theirs when they came, whatever comes later, and
//! with n rooms at most n − 1 of these are tickets of rooms. With rooms alone and none waiting to be alone, as in most
//! programs most of the time, that is one ticket of each other room. A room that is in constant demand is not starved
//! by another, nor does it starve one.
//!
//! ```
//! use haft::room_lock::{Entry, RoomLock};
//!
//! static HALL: RoomLock = RoomLock::new();
//! const READERS: Entry = Entry::Room(0);
//! const CHESS_CLUB: Entry = Entry::Room(1);
//!
//! let reading = HALL.enter(READERS);
//! // Another reader comes in at once; the chess club and the cleaner do not.
//! assert!(HALL.try_enter(READERS).is_some());
//! assert!(HALL.try_enter(CHESS_CLUB).is_none());
//! assert!(HALL.try_enter(Entry::Alone).is_none());
//!
//! std::thread::scope(|scope| {
//!     // They wait, and enter one after the other when the last reader has left.
//!     scope.spawn(|| HALL.enter(CHESS_CLUB));
//!     scope.spawn(|| HALL.enter(Entry::Alone));
//!     drop(reading);
//! });
//! assert!(HALL.try_enter(CHESS_CLUB).is_some());
//! ```

mod queue;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;

use crate::sync::{Mutex, MutexGuard, lock};
use queue::{Queue, Ticket, Waiter};

/// Which room to enter, or none beside anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// The room of this number, beside others in it. Any number will do; rooms need no making.
    Room(usize),
    /// Alone: beside nobody, not even another that asked for this.
    Alone,
}

impl Entry {
    /// Whether two of these may be inside together.
    fn shares(self, other: Entry) -> bool {
        match (self, other) {
            (Entry::Room(this), Entry::Room(that)) => this == that,
            (Entry::Alone, _) | (_, Entry::Alone) => false,
        }
    }
}

/// A lock with rooms. The [module](self) says what it is for and who waits for whom.
///
/// It is a word of memory more than a mutex, a count and the ends of a list; it can be a `static`. Entering and leaving
/// take a short mutex each, which is all that they do where nobody has to wait. Waiting allocates nothing: a thread is
/// in the list by a node on its own stack, and sleeps until its turn has come.
///
/// It protects no data and has no poison: who panics inside leaves, as by returning.
///
/// # Deadlocks
/// A thread that is inside and enters once more may wait for ever, even for the same room: if somebody waits by then,
/// its second entry is behind that one, which waits for the first. Use [`try_enter`](RoomLock::try_enter) there.
pub struct RoomLock {
    state: Mutex<State>,
}

/// What the mutex is for. Nobody waits while nobody is inside: whoever leaves last hands over to the next ticket before
/// letting go of the mutex. So a newcomer cannot slip in between.
struct State {
    /// Who is inside.
    inside: usize,
    /// How they entered. Says nothing if there is nobody.
    open: Entry,
    queue: Queue,
    /// The entries past the queue and the tickets served so far, each of which is a turn that others see.
    #[cfg(test)]
    turns: usize,
}

impl RoomLock {
    /// A lock with nobody inside.
    ///
    /// ```
    /// use haft::room_lock::RoomLock;
    ///
    /// static LOCK: RoomLock = RoomLock::new();
    /// ```
    #[cfg(not(loom))]
    pub const fn new() -> RoomLock {
        RoomLock { state: Mutex::new(State::new()) }
    }

    /// A lock with nobody inside.
    #[cfg(loom)]
    pub fn new() -> RoomLock {
        RoomLock { state: Mutex::new(State::new()) }
    }

    /// Enters, and leaves when the [`Admission`] is dropped. Waits for its turn if others are inside that cannot share
    /// with it, or if anybody waits already.
    ///
    /// # Panics
    /// Only if it has to wait, in the destructor of a thread-local value that runs after those of the standard library.
    /// Nothing has changed then.
    ///
    /// ```
    /// use haft::room_lock::{Entry, RoomLock};
    ///
    /// let lock = RoomLock::new();
    /// let together = std::sync::Barrier::new(2);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| {
    ///             let _inside = lock.enter(Entry::Room(7));
    ///             together.wait(); // for the other, who is in the same room
    ///         });
    ///     }
    /// });
    /// ```
    pub fn enter(&self, entry: Entry) -> Admission<'_> {
        let mut state = lock(&self.state);
        if state.join(entry) {
            drop(state);
            return Admission::new(self);
        }
        self.wait(state, entry)
    }

    /// Enters if that takes no waiting: nobody waits already, and nobody is inside that cannot share.
    ///
    /// ```
    /// use haft::room_lock::{Entry, RoomLock};
    ///
    /// let lock = RoomLock::new();
    /// let alone = lock.try_enter(Entry::Alone).unwrap();
    /// assert!(lock.try_enter(Entry::Alone).is_none());
    /// drop(alone);
    /// assert!(lock.try_enter(Entry::Alone).is_some());
    /// ```
    pub fn try_enter(&self, entry: Entry) -> Option<Admission<'_>> {
        let joined = lock(&self.state).join(entry);
        joined.then(|| Admission::new(self))
    }

    #[cold]
    fn wait(&self, mut state: MutexGuard<'_, State>, entry: Entry) -> Admission<'_> {
        let waiter = Waiter::new(entry);
        #[cfg(test)]
        waiter.came(state.turns, state.queue.tickets());
        // SAFETY: the waiter is on this stack until it has been admitted: nothing in between returns or unwinds.
        unsafe { state.queue.add(&waiter) };
        drop(state);
        waiter.sleep();
        Admission {
            lock: self,
            #[cfg(test)]
            seen: waiter.seen(),
        }
    }
}

impl State {
    const fn new() -> State {
        State {
            inside: 0,
            open: Entry::Alone,
            queue: Queue::new(),
            #[cfg(test)]
            turns: 0,
        }
    }

    /// Enters past the queue, if there is none.
    fn join(&mut self, entry: Entry) -> bool {
        let room = self.inside == 0 || self.open.shares(entry);
        if !room || !self.queue.is_empty() {
            return false;
        }
        self.inside += 1;
        self.open = entry;
        #[cfg(test)]
        {
            self.turns += 1;
        }
        true
    }

    /// One leaves. The last takes the next ticket, whose holders count as inside from here on, and is to admit them.
    fn leave(&mut self) -> Option<Ticket> {
        self.inside -= 1;
        if self.inside > 0 {
            return None;
        }
        let ticket = self.queue.pop()?;
        self.inside = ticket.holders();
        self.open = ticket.entry();
        #[cfg(test)]
        {
            self.turns += 1;
            ticket.served(self.turns);
        }
        Some(ticket)
    }
}

impl Default for RoomLock {
    fn default() -> RoomLock {
        RoomLock::new()
    }
}

impl fmt::Debug for RoomLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inside, open) = {
            let state = lock(&self.state);
            (state.inside, state.open)
        };
        let open = (inside > 0).then_some(open);
        f.debug_struct("RoomLock").field("open", &open).field("inside", &inside).finish_non_exhaustive()
    }
}

/// To be inside of a [`RoomLock`]; dropping it is leaving.
///
/// It may be dropped by another thread. One that is forgotten ([`std::mem::forget`]) stays inside for ever.
///
/// ```
/// use haft::room_lock::{Entry, RoomLock};
///
/// let lock = RoomLock::new();
/// let inside = lock.enter(Entry::Alone);
/// std::thread::scope(|scope| {
///     scope.spawn(|| drop(inside));
/// });
/// assert!(lock.try_enter(Entry::Alone).is_some());
/// ```
#[must_use = "dropping it is leaving"]
pub struct Admission<'a> {
    lock: &'a RoomLock,
    /// What this one saw while it waited.
    #[cfg(test)]
    seen: queue::Seen,
}

impl<'a> Admission<'a> {
    fn new(lock: &'a RoomLock) -> Admission<'a> {
        Admission {
            lock,
            #[cfg(test)]
            seen: queue::Seen::default(),
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let ticket = lock(&self.lock.state).leave();
        // Waking takes a system call for each, so it comes after the mutex.
        if let Some(ticket) = ticket {
            ticket.admit();
        }
    }
}

impl fmt::Debug for Admission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("lock", self.lock).finish()
    }
}
