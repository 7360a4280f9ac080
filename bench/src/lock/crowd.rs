//! Threads that go through a lock at the same time, and what is seen from inside.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::mix::{Kind, Mix};
use super::peers::Peer;
use crate::meter::{Meter, Sample};
use crate::usage::Whose;

/// One round's work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) threads: usize,
    pub(crate) entries: u64,
    /// What each does inside: it sleeps so long.
    pub(crate) work: Duration,
    pub(crate) mix: Mix,
}

/// What was seen in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The most entries of others between an arrival and its entry.
    pub(crate) longest_wait: u64,
    /// Entries that found a launch inside which must not be: isolated beside inheriting all. Each could have handed a
    /// child another's handle.
    pub(crate) overlaps: u64,
}

/// The house as it is seen from inside.
#[derive(Default)]
struct House {
    entered: AtomicU64,
    isolated: AtomicU64,
    inheriting: AtomicU64,
    longest_wait: AtomicU64,
    overlaps: AtomicU64,
}

impl House {
    /// One entry: arrives, enters, works, leaves; returns how many entered in between.
    fn visit(&self, lock: &dyn Peer, kind: Kind, work: Duration) -> u64 {
        let (ours, others) = match kind {
            Kind::Isolated => (&self.isolated, &self.inheriting),
            Kind::InheritAll | Kind::InheritAllRedirected => (&self.inheriting, &self.isolated),
        };
        let waited = std::cell::Cell::new(0);
        let arrived = self.entered.load(SeqCst);
        lock.pass(kind, &|| {
            waited.set(self.entered.fetch_add(1, SeqCst) - arrived);
            ours.fetch_add(1, SeqCst);
            if others.load(SeqCst) > 0 {
                self.overlaps.fetch_add(1, SeqCst);
            }
            thread::sleep(work);
            ours.fetch_sub(1, SeqCst);
        });
        waited.get()
    }
}

/// One round: all entries of `job`, shared by its threads, all of which have started before the clock does.
pub(crate) fn round(lock: &dyn Peer, job: &Job) -> (Sample, Seen) {
    let house = House::default();
    let taken = AtomicU64::new(0);
    let (begin, end) = (Barrier::new(job.threads + 1), Barrier::new(job.threads + 1));
    let sample = thread::scope(|scope| {
        for _ in 0..job.threads {
            scope.spawn(|| {
                begin.wait();
                // Once more, so that the clock starts when all are there.
                begin.wait();
                let mut longest = 0;
                loop {
                    let index = taken.fetch_add(1, SeqCst);
                    if index >= job.entries {
                        break;
                    }
                    longest = longest.max(house.visit(lock, job.mix.kind(index), job.work));
                }
                house.longest_wait.fetch_max(longest, SeqCst);
                end.wait();
            });
        }
        begin.wait();
        let meter = Meter::start(Whose::Process);
        begin.wait();
        end.wait();
        meter.stop(job.entries, Duration::ZERO)
    });
    let seen = Seen { longest_wait: house.longest_wait.into_inner(), overlaps: house.overlaps.into_inner() };
    (sample, seen)
}

/// One thread that enters and leaves with nothing to do inside.
pub(crate) fn uncontended(lock: &dyn Peer, entries: u64) -> Sample {
    let meter = Meter::start(Whose::Process);
    for _ in 0..entries {
        lock.pass(Kind::Isolated, &|| ());
    }
    meter.stop(entries, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::peers;

    #[test]
    fn every_entry_is_made_and_the_right_rules_never_overlap() {
        let job = Job {
            threads: 4,
            entries: 200,
            work: Duration::from_micros(10),
            mix: Mix::new(&[60, 30, 10]).expect("they add up"),
        };
        for lock in peers::all() {
            let (sample, seen) = round(&*lock, &job);
            assert_eq!(sample.ops, 200);
            if lock.name().starts_with("pull-request") {
                assert!(seen.overlaps > 0, "{} is right after all", lock.name());
            } else {
                assert_eq!(seen.overlaps, 0, "{}", lock.name());
            }
        }
    }
}
