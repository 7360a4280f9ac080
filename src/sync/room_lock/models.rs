//! Models: loom runs the shipped lock.
//!
//! A lost wake-up shows as a deadlock, which loom reports by itself, as it does an access to the cell below that
//! nothing orders. The models add that nobody sees a turn more than there were tickets ahead when it came.

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use super::Entry::{self, Alone, Room};
use super::RoomLock;
use super::queue::Seen;
use crate::sync::UnsafeCell;

/// What is inside. Room 0 reads it, so that its holders may do so at the same time; the others write it. Each model
/// has one thread at most for every room but that.
struct House {
    lock: RoomLock,
    visits: UnsafeCell<usize>,
}

// SAFETY: that is what loom checks.
unsafe impl Sync for House {}

impl House {
    fn new() -> Arc<House> {
        Arc::new(House { lock: RoomLock::new(), visits: UnsafeCell::new(0) })
    }

    fn look_round(&self, entry: Entry) {
        if entry == Room(0) {
            // SAFETY: the room is ours and others' who read; loom checks it.
            self.visits.with(|visits| unsafe { visits.read() });
        } else {
            // SAFETY: we are by ourselves; loom checks it.
            self.visits.with_mut(|visits| unsafe { *visits += 1 });
        }
    }

    fn visit(&self, entry: Entry) -> Seen {
        let admission = self.lock.enter(entry);
        self.look_round(entry);
        assert_eq!(admission.seen.waited(), admission.seen.ahead);
        admission.seen
    }
}

/// Every history of a thread for each of these, which enters so often; the first is the main thread.
fn model(preemptions: usize, visitors: &'static [(Entry, usize)], most_ahead: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let house = House::new();
        let visits = move |house: &House, (entry, times): (Entry, usize)| {
            for _ in 0..times {
                assert!(house.visit(entry).ahead <= most_ahead);
            }
        };
        let threads: Vec<_> = visitors[1..]
            .iter()
            .map(|&visitor| {
                let house = Arc::clone(&house);
                thread::spawn(move || visits(&house, visitor))
            })
            .collect();
        visits(&house, visitors[0]);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(house.lock.try_enter(Alone).is_some(), "somebody is still inside");
    });
}

#[test]
fn two_rooms_are_never_occupied_at_once() {
    model(4, &[(Room(0), 1), (Room(1), 1), (Room(0), 1)], 1);
}

#[test]
fn who_is_alone_is_beside_nobody() {
    model(4, &[(Alone, 1), (Alone, 1), (Room(0), 1)], 1);
}

#[test]
fn who_comes_again_stands_behind_whoever_waits() {
    model(3, &[(Room(0), 2), (Room(1), 1), (Room(0), 2)], 1);
}

/// Two rooms wait for the end of one who is alone: two tickets, however many wait.
#[test]
fn who_waits_for_one_room_has_one_ticket() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let house = House::new();
        let alone = house.lock.enter(Alone);
        house.look_round(Alone);
        let threads: Vec<_> = [Room(0), Room(1), Room(0)]
            .into_iter()
            .map(|entry| {
                let house = Arc::clone(&house);
                thread::spawn(move || assert!(house.visit(entry).ahead <= 1))
            })
            .collect();
        drop(alone);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
