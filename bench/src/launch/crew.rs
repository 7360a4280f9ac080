//! The threads that launch at the same time.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::Job;

type Launch = fn(&Job) -> io::Result<()>;

/// Threads that wait for a round's work; they live as long as the crew, so that starting them is not
/// measured.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    begin: Condvar,
    end: Condvar,
    /// Launches taken in this round.
    taken: AtomicUsize,
}

#[derive(Default)]
struct State {
    round: u64,
    work: Option<(Arc<Job>, Launch)>,
    /// Threads that take part in this round and have not finished.
    at_work: usize,
    error: Option<io::Error>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes launches until the round has no more.
    fn work(&self, job: &Job, launch: Launch) -> io::Result<()> {
        while self.taken.fetch_add(1, Ordering::Relaxed) < job.count {
            while let Err(error) = launch(job) {
                if !is_wines(&error) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// What thread number `index` does.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            let work = if state.round == seen { None } else { state.work.clone() };
            seen = state.round;
            match work {
                Some((job, launch)) if index < job.threads => {
                    drop(state);
                    let done = self.work(&job, launch);
                    drop(job);
                    state = self.lock();
                    if let Err(error) = done {
                        state.error.get_or_insert(error);
                    }
                    state.at_work -= 1;
                    if state.at_work == 0 {
                        self.end.notify_all();
                    }
                }
                _ => state = self.begin.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Whether Wine failed at a launch by itself, as it does once in some thousands while many are under way, whoever
/// launches: `ERROR_INTERNAL_ERROR`, which no program can cause. It is made again, at that row's cost.
pub(super) fn is_wines(error: &io::Error) -> bool {
    cfg!(windows) && error.to_string().contains("(os error 1359)")
}

impl Crew {
    /// A crew of `threads`; of one there is none to start, the calling thread does the work.
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            begin: Condvar::new(),
            end: Condvar::new(),
            taken: AtomicUsize::new(0),
        });
        let mut crew = Self { shared, threads: Vec::new() };
        if threads > 1 {
            for index in 0..threads {
                let shared = Arc::clone(&crew.shared);
                let thread = std::thread::Builder::new().name(format!("crew {index}"));
                crew.threads.push(thread.spawn(move || shared.serve(index))?);
            }
        }
        Ok(crew)
    }

    /// One round: every launch of `job`, by as many threads as it asks for. The first error ends its thread's
    /// part.
    pub(crate) fn share(&self, job: &Arc<Job>, launch: Launch) -> io::Result<()> {
        self.shared.taken.store(0, Ordering::Relaxed);
        if job.threads == 1 {
            return self.shared.work(job, launch);
        }
        let mut state = self.shared.lock();
        state.round += 1;
        state.at_work = job.threads;
        state.work = Some((Arc::clone(job), launch));
        self.shared.begin.notify_all();
        while state.at_work > 0 {
            state = self.shared.end.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.work = None;
        state.error.take().map_or(Ok(()), Err)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.begin.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Method;

    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);

    fn job(crew: &Arc<Crew>, count: usize, threads: usize) -> Arc<Job> {
        let crew = Arc::clone(crew);
        Arc::new(Job {
            method: Method::Standard,
            program: "none".into(),
            arguments: &[],
            count,
            threads,
            crew,
        })
    }

    #[test]
    fn every_launch_is_made_once() {
        let crew = Arc::new(Crew::new(4).expect("threads"));
        for (count, threads) in [(1, 1), (3, 3), (256, 4), (256, 4)] {
            LAUNCHES.store(0, Ordering::Relaxed);
            let job = job(&crew, count, threads);
            crew.share(&job, |_| {
                LAUNCHES.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
            .expect("no launch fails");
            assert_eq!(LAUNCHES.load(Ordering::Relaxed), count);
        }
        let failing = crew.share(&job(&crew, 100, 4), |_| Err(io::Error::other("refused")));
        assert_eq!(failing.expect_err("every launch fails").to_string(), "refused");
    }
}
