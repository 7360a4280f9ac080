//! Each rule by itself, all of them beside a model, and streams of every kind.
//!
//! Nothing is counted in time. A turn is an entry past the queue, or a ticket that is served.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Mutex, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::Entry::{self, Alone, Room};
use super::queue::{Seen, Waiter};
use super::{RoomLock, State};

impl RoomLock {
    fn tickets(&self) -> Vec<(Entry, usize)> {
        super::lock(&self.state).queue.tickets()
    }
}

/// Runs a test that a mistake would let wait for ever; then the process ends after a minute.
fn in_time<R>(test: impl FnOnce() -> R) -> R {
    let (running, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("somebody waits for ever");
            std::process::abort();
        }
    });
    let result = test();
    drop(running);
    result
}

/// Starts a thread that enters, and returns once it waits and the tickets are these.
fn waiter<'scope>(
    scope: &'scope Scope<'scope, '_>,
    lock: &'scope RoomLock,
    entry: Entry,
    tickets: &[(Entry, usize)],
    inside: impl FnOnce() + Send + 'scope,
) -> ScopedJoinHandle<'scope, Seen> {
    let thread = scope.spawn(move || {
        let admission = lock.enter(entry);
        inside();
        admission.seen
    });
    let begun = Instant::now();
    while lock.tickets() != tickets {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?} are not {tickets:?}", lock.tickets());
        thread::yield_now();
    }
    thread
}

/// Fails if `Entry::shares` says true for two rooms, or for two that would be alone.
#[test]
fn only_one_room_is_shared() {
    let lock = RoomLock::new();
    for (inside, comes, shares) in [
        (Room(0), Room(0), true),
        (Room(0), Room(1), false),
        (Room(0), Alone, false),
        (Alone, Room(0), false),
        (Alone, Alone, false),
    ] {
        let admission = lock.enter(inside);
        assert_eq!(lock.try_enter(comes).is_some(), shares, "{inside:?}, {comes:?}");
        drop(admission);
        assert!(lock.try_enter(comes).is_some(), "{comes:?} into an empty house");
    }
}

/// Fails if `State::join` does not ask whether the queue is empty.
#[test]
fn newcomers_join_the_open_room_only_if_nobody_waits() {
    let lock = RoomLock::new();
    in_time(|| {
        thread::scope(|scope| {
            let open = lock.enter(Room(0));
            assert!(lock.try_enter(Room(0)).is_some());
            let waits = waiter(scope, &lock, Room(1), &[(Room(1), 1)], || ());
            assert!(lock.try_enter(Room(0)).is_none(), "joined past one that waits");
            // And who then waits for the open room stands behind.
            let behind = waiter(scope, &lock, Room(0), &[(Room(1), 1), (Room(0), 1)], || ());
            drop(open);
            assert_eq!(waits.join().unwrap().waited(), 0);
            assert_eq!(behind.join().unwrap().waited(), 1);
        })
    });
}

/// Fails if `Queue::ticket_for` finds nothing, and if `State::leave` counts one holder where there are more (the next
/// ticket is then served while others of the room are inside).
#[test]
fn all_who_wait_for_a_room_enter_by_one_ticket() {
    let lock = RoomLock::new();
    let (in_room, overlaps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    in_time(|| {
        thread::scope(|scope| {
            let alone = lock.enter(Alone);
            let visit = || {
                in_room.fetch_add(1, SeqCst);
                thread::sleep(Duration::from_millis(20));
                in_room.fetch_sub(1, SeqCst);
            };
            let mut waiting: Vec<_> =
                (1..=3).map(|count| waiter(scope, &lock, Room(4), &[(Room(4), count)], visit)).collect();
            waiting.push(waiter(scope, &lock, Room(5), &[(Room(4), 3), (Room(5), 1)], || {
                overlaps.fetch_add(in_room.load(SeqCst), SeqCst);
            }));
            drop(alone);
            let waited: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap().waited()).collect();
            assert_eq!(waited, [0, 0, 0, 1]);
        })
    });
    assert_eq!(overlaps.into_inner(), 0);
}

/// Fails if `Line::push` puts tickets in front, and if a wait to be alone takes part in another's ticket.
#[test]
fn tickets_are_served_in_the_order_in_which_they_were_placed() {
    let lock = RoomLock::new();
    let order = Mutex::new(Vec::new());
    in_time(|| {
        thread::scope(|scope| {
            let open = lock.enter(Room(2));
            let order = &order;
            let mut tickets = Vec::new();
            let mut waiting = Vec::new();
            for entry in [Room(0), Alone, Room(1), Alone, Room(2)] {
                tickets.push((entry, 1));
                waiting
                    .push(waiter(scope, &lock, entry, &tickets, move || order.lock().unwrap().push(entry)));
            }
            // It holds the ticket that stands first, and not one at the end.
            tickets[0].1 = 2;
            waiting
                .push(waiter(scope, &lock, Room(0), &tickets, move || order.lock().unwrap().push(Room(0))));
            drop(open);
            let seen: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(seen.iter().map(|seen| seen.ahead).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0]);
            assert!(seen.iter().all(|seen| seen.waited() == seen.ahead), "{seen:?}");
        })
    });
    assert_eq!(order.into_inner().unwrap(), [Room(0), Room(0), Alone, Room(1), Alone, Room(2)]);
}

/// Fails if `State::leave` hands over whenever one leaves.
#[test]
fn the_last_to_leave_hands_over() {
    let lock = RoomLock::new();
    let gone = AtomicBool::new(false);
    in_time(|| {
        thread::scope(|scope| {
            let (first, last) = (lock.enter(Room(0)), lock.enter(Room(0)));
            let waits = waiter(scope, &lock, Alone, &[(Alone, 1)], || assert!(gone.load(SeqCst)));
            drop(first);
            assert_eq!(lock.tickets(), [(Alone, 1)]);
            gone.store(true, SeqCst);
            drop(last);
            waits.join().unwrap();
        })
    });
}

/// Fails if an `Admission` has no destructor.
#[test]
fn who_panics_inside_leaves_and_the_lock_goes_on() {
    let lock = RoomLock::new();
    in_time(|| {
        thread::scope(|scope| {
            let alone = lock.enter(Alone);
            let panics = waiter(scope, &lock, Room(0), &[(Room(0), 1)], || ());
            let inside = catch_unwind(AssertUnwindSafe(|| {
                let _alone = alone;
                std::panic::resume_unwind(Box::new("inside"));
            }));
            assert!(inside.is_err());
            panics.join().unwrap();
        })
    });
    assert!(lock.try_enter(Alone).is_some());
}

/// The rules once more, written down as simply as they can be.
#[derive(Default)]
struct Model {
    inside: Vec<(usize, Entry)>,
    queue: Vec<(Entry, Vec<usize>)>,
}

impl Model {
    /// Whether number `who` enters at once.
    fn comes(&mut self, who: usize, entry: Entry) -> bool {
        let beside = |&(_, other): &(usize, Entry)| matches!(entry, Room(_)) && other == entry;
        if self.queue.is_empty() && self.inside.iter().all(beside) {
            self.inside.push((who, entry));
            return true;
        }
        match self.queue.iter_mut().find(|(other, _)| matches!(entry, Room(_)) && *other == entry) {
            Some((_, holders)) => holders.push(who),
            None => self.queue.push((entry, vec![who])),
        }
        false
    }

    /// Whoever is at this place leaves.
    fn leaves(&mut self, place: usize) {
        self.inside.remove(place);
        if self.inside.is_empty() && !self.queue.is_empty() {
            let (entry, holders) = self.queue.remove(0);
            self.inside.extend(holders.into_iter().map(|who| (who, entry)));
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Comes(Entry),
    Leaves(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..3_usize).prop_map(|room| Event::Comes(Room(room))),
        1 => Just(Event::Comes(Alone)),
        3 => any::<prop::sample::Index>().prop_map(Event::Leaves),
    ]
}

proptest! {
    /// Any history of coming and leaving lets in who the model lets in, when the model does. Fails with any of the
    /// changes that the tests of the rules name, and if a ticket's holders are not linked to one another.
    #[test]
    fn who_is_inside_is_who_the_rules_say(events in prop::collection::vec(event(), 0..80)) {
        let mut state = State::new();
        let mut model = Model::default();
        // In boxes, so that they stay in place.
        let mut waiters: Vec<Option<Box<Waiter>>> = Vec::new();
        for event in events {
            match event {
                Event::Comes(entry) => {
                    let joined = state.join(entry);
                    prop_assert_eq!(joined, model.comes(waiters.len(), entry));
                    waiters.push((!joined).then(|| Box::new(Waiter::new(entry))));
                    if let Some(Some(waiter)) = waiters.last() {
                        waiter.came(state.turns, state.queue.tickets());
                        // SAFETY: it is kept until the end of the test.
                        unsafe { state.queue.add(waiter) };
                    }
                }
                Event::Leaves(_) if model.inside.is_empty() => {}
                Event::Leaves(place) => {
                    model.leaves(place.index(model.inside.len()));
                    if let Some(ticket) = state.leave() {
                        ticket.admit();
                    }
                }
            }
            prop_assert_eq!(state.inside, model.inside.len());
            let tickets: Vec<_> =
                model.queue.iter().map(|(entry, holders)| (*entry, holders.len())).collect();
            prop_assert_eq!(state.queue.tickets(), tickets);
            for (who, waiter) in waiters.iter().enumerate() {
                let waits = model.queue.iter().any(|(_, holders)| holders.contains(&who));
                prop_assert_eq!(waiter.as_ref().is_none_or(|waiter| waiter.is_admitted()), !waits);
            }
        }
        let seen = waiters.iter().flatten().filter(|waiter| waiter.is_admitted()).map(|waiter| waiter.seen());
        for seen in seen {
            prop_assert_eq!(seen.waited(), seen.ahead);
        }
    }
}

/// Who is inside, seen from inside: two rooms, and who is alone.
#[derive(Default)]
struct House([AtomicUsize; 3]);

impl House {
    /// Enters, looks round, stays a little, leaves.
    fn visit(&self, lock: &RoomLock, entry: Entry) -> Seen {
        let admission = lock.enter(entry);
        let mine = if let Room(room) = entry { room } else { 2 };
        let before = self.0[mine].fetch_add(1, SeqCst);
        assert!(before == 0 || entry != Alone, "two are alone");
        for _ in 0..2 {
            let mut others = (0..3).filter(|&place| place != mine);
            assert!(others.all(|place| self.0[place].load(SeqCst) == 0), "{entry:?} is not by itself");
            thread::yield_now();
        }
        self.0[mine].fetch_sub(1, SeqCst);
        let seen = admission.seen;
        // What stood ahead, and not a turn more, whatever came meanwhile.
        assert_eq!(seen.waited(), seen.ahead);
        seen
    }
}

/// A constant stream of each kind, beside a waiter of each kind, and then all of them at once: a waiter sees the
/// tickets that stood ahead of it when it came, and none that came later. Fails if `State::join` does not ask
/// whether the queue is empty, and if tickets are put in front.
#[test]
fn nobody_starves_in_a_constant_stream_of_any_kind() {
    const VISITS: usize = 40;
    // So often is a waiter passed at most; it then sees how often that was.
    const STARVED: usize = 100_000;
    let kinds = [Room(0), Room(1), Alone];
    for streams in [&kinds[..1], &kinds[1..2], &kinds[2..], &kinds[..2], &kinds[..]] {
        for waits in kinds {
            let (lock, house, passed) = (RoomLock::new(), House::default(), AtomicUsize::new(0));
            let rooms_alone = waits != Alone && !streams.contains(&Alone);
            let most = in_time(|| {
                thread::scope(|scope| {
                    for number in 0..4 {
                        let (lock, house, passed) = (&lock, &house, &passed);
                        let entry = streams[number % streams.len()];
                        scope.spawn(move || {
                            while passed.fetch_add(1, Relaxed) < STARVED {
                                let seen = house.visit(lock, entry);
                                assert!(!rooms_alone || seen.ahead <= 1, "two rooms, and {seen:?}");
                            }
                        });
                    }
                    let visit = |_| {
                        passed.store(0, Relaxed);
                        house.visit(&lock, waits).ahead
                    };
                    let most = scope.spawn(move || (0..VISITS).map(visit).max()).join();
                    passed.store(STARVED, Relaxed);
                    most
                })
            });
            let most = most.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).unwrap();
            // Of those in front, each thread of the stream holds one ticket at most.
            assert!(most <= if rooms_alone { 1 } else { 4 }, "{most} tickets ahead of {waits:?}");
        }
    }
}
