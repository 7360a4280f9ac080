//! Who waits for a room lock.
//!
//! A thread that waits has a [`Waiter`] on its stack. The first who waits for a room *is* that room's ticket; those who
//! come later hang on it, side by side. Tickets stand in one line, and those of rooms in a second one besides, so that
//! who comes finds its room's ticket among as many as there are rooms, however many wait to be alone.
//!
//! ```text
//! line      Room(0) ──▶ Alone ──▶ Room(1) ──▶ Alone
//!              │                     │
//! of rooms     ╰─────────────────────╯
//! beside    Room(0)
//!           Room(0)
//! ```
//!
//! Links are read and written under the lock's mutex while the waiter is in the queue. A ticket that was taken out
//! belongs to whoever took it, who walks it without the mutex: nobody else can reach it any more, and each waiter stays
//! where it is until it has been told.

use std::ptr::NonNull;

use super::Entry;
use crate::sync::atomic::{AtomicBool, Ordering::*};
use crate::sync::{Sleeper, UnsafeCell};

/// One thread that waits.
pub(super) struct Waiter {
    entry: Entry,
    thread: Sleeper,
    /// Set when its ticket has been served. The waiter may be gone from then on.
    admitted: AtomicBool,
    links: UnsafeCell<Links>,
}

type Place = NonNull<Waiter>;

struct Links {
    /// The ticket behind this one, in either line.
    behind: [Option<Place>; 2],
    /// The next with the same ticket.
    beside: Option<Place>,
    /// Of a ticket: how many hold it.
    holders: usize,
    #[cfg(test)]
    seen: Seen,
}

/// What a waiter saw, in turns.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The turns that had been when it came.
    came: usize,
    /// Those that had been when it entered, its own included.
    entered: usize,
    /// The tickets that stood ahead of its own when it came.
    pub(super) ahead: usize,
}

#[cfg(test)]
impl Seen {
    /// The turns of others that passed between coming and entering.
    pub(super) fn waited(self) -> usize {
        (self.entered - self.came).saturating_sub(1)
    }
}

impl Waiter {
    /// For the calling thread. Panics where a thread has no handle of its own any more.
    pub(super) fn new(entry: Entry) -> Waiter {
        let links = Links {
            behind: [None; 2],
            beside: None,
            holders: 1,
            #[cfg(test)]
            seen: Seen::default(),
        };
        Waiter {
            entry,
            thread: Sleeper::new(),
            admitted: AtomicBool::new(false),
            links: UnsafeCell::new(links),
        }
    }

    /// Sleeps until its ticket has been served. Acquires what those did who were inside before.
    ///
    /// The wake-up may come late, for a later sleep of the same thread's, which has to expect that of anybody.
    pub(super) fn sleep(&self) {
        while !self.admitted.load(Acquire) {
            self.thread.sleep();
        }
    }
}

/// Tickets in the order in which they were placed, linked by `behind[WHICH]`.
struct Line<const WHICH: usize> {
    ends: Option<(Place, Place)>,
}

const ALL: usize = 0;
const ROOMS: usize = 1;

impl<const WHICH: usize> Line<WHICH> {
    /// # Safety
    /// As [`Queue::add`].
    unsafe fn push(&mut self, place: Place) {
        self.ends = match self.ends {
            None => Some((place, place)),
            Some((first, last)) => {
                links(last, |links| links.behind[WHICH] = Some(place));
                Some((first, place))
            }
        };
    }

    fn pop(&mut self) -> Option<Place> {
        let (first, last) = self.ends?;
        self.ends = links(first, |links| links.behind[WHICH]).map(|next| (next, last));
        Some(first)
    }

    fn iter(&self) -> impl Iterator<Item = Place> {
        let first = self.ends.map(|(first, _)| first);
        std::iter::successors(first, |&place| links(place, |links| links.behind[WHICH]))
    }
}

/// The tickets.
pub(super) struct Queue {
    line: Line<ALL>,
    rooms: Line<ROOMS>,
}

// SAFETY: waiters may be used by any thread (its `Sleeper` and flag are Sync), and their links only by whoever has the
// queue, or a ticket out of it.
unsafe impl Send for Queue {}

impl Queue {
    pub(super) const fn new() -> Queue {
        Queue { line: Line { ends: None }, rooms: Line { ends: None } }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.ends.is_none()
    }

    /// Adds one who waits: to its room's ticket, or by a new one at the end.
    ///
    /// # Safety
    /// The waiter is in no queue, and stays alive and in place until it has been admitted.
    pub(super) unsafe fn add(&mut self, waiter: &Waiter) {
        let place = NonNull::from(waiter);
        if let Some(ticket) = self.ticket_for(waiter.entry) {
            let beside = links(ticket, |links| {
                links.holders += 1;
                links.beside.replace(place)
            });
            links(place, |links| links.beside = beside);
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { self.line.push(place) };
        if matches!(waiter.entry, Entry::Room(_)) {
            // SAFETY: as above.
            unsafe { self.rooms.push(place) };
        }
    }

    /// The ticket that whoever comes may hold with others.
    fn ticket_for(&self, entry: Entry) -> Option<Place> {
        self.rooms.iter().find(|&place| entry_of(place).shares(entry))
    }

    /// Takes out the ticket that is next.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let first = self.line.pop()?;
        if matches!(entry_of(first), Entry::Room(_)) {
            // Both lines have the same order, so it is the first of the rooms' too.
            let room = self.rooms.pop();
            debug_assert_eq!(room, Some(first));
        }
        Some(Ticket(first))
    }
}

/// A ticket whose turn has come.
#[must_use = "its holders wait"]
pub(super) struct Ticket(Place);

impl Ticket {
    pub(super) fn entry(&self) -> Entry {
        entry_of(self.0)
    }

    pub(super) fn holders(&self) -> usize {
        links(self.0, |links| links.holders)
    }

    /// Lets all its holders enter.
    pub(super) fn admit(self) {
        let mut next = Some(self.0);
        while let Some(place) = next {
            next = links(place, |links| links.beside);
            // SAFETY: it has not been admitted, so it is still there.
            let waiter = unsafe { place.as_ref() };
            let thread = waiter.thread.clone();
            // Release is for what was done inside. The waiter may be gone now; the handle of its thread is ours.
            waiter.admitted.store(true, Release);
            thread.wake();
        }
    }
}

fn entry_of(place: Place) -> Entry {
    // SAFETY: waiters in the queue or a ticket are there until they have been admitted.
    unsafe { place.as_ref() }.entry
}

fn links<R>(place: Place, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: as above; and whoever has the queue, or the ticket, is the only one to touch its links.
    unsafe { place.as_ref().links.with_mut(|links| f(&mut *links)) }
}

/// The bookkeeping of the tests and models. All of it is called under the lock's mutex, but `seen`.
#[cfg(test)]
mod observed {
    use super::{Entry, Place, Queue, Seen, Ticket, Waiter, entry_of, links};

    impl Queue {
        /// Every ticket with the number of its holders, the next one first.
        pub(in super::super) fn tickets(&self) -> Vec<(Entry, usize)> {
            self.line.iter().map(|place| (entry_of(place), links(place, |links| links.holders))).collect()
        }
    }

    impl Waiter {
        /// Comes after so many turns, and finds these tickets.
        pub(in super::super) fn came(&self, turns: usize, tickets: Vec<(Entry, usize)>) {
            let mine = |&(entry, _): &(Entry, usize)| entry.shares(self.entry);
            let ahead = tickets.iter().position(mine).unwrap_or(tickets.len());
            links(Place::from(self), |links| links.seen = Seen { came: turns, entered: turns, ahead });
        }

        #[cfg(not(loom))]
        pub(in super::super) fn is_admitted(&self) -> bool {
            self.admitted.load(super::Relaxed)
        }

        /// After it has been admitted, when it belongs to its thread again.
        pub(in super::super) fn seen(&self) -> Seen {
            links(Place::from(self), |links| links.seen)
        }
    }

    impl Ticket {
        /// Is served as the turn of this number.
        pub(in super::super) fn served(&self, turn: usize) {
            let holders = std::iter::successors(Some(self.0), |&place| links(place, |links| links.beside));
            holders.for_each(|place| links(place, |links| links.seen.entered = turn));
        }
    }
}
