//! What an engine has done, counted where it costs least.
//!
//! Each thread that awaits operations has a block of counters for each engine it uses, which it alone writes,
//! by plain loads and stores: a locked addition would cost a noticeable part of an inline read. A reader sums
//! all blocks. When a thread ends, its block is handed to the next thread that comes, with what it has
//! counted, so a sum never goes back and the number of blocks is that of the threads at the peak.

use super::backoff::Backoff;
use std::{
    cell::{Cell, RefCell},
    ptr::{NonNull, null},
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};

/// What an engine has done since it was made: a snapshot that [`Engine::stats`](super::Engine::stats) takes.
///
/// Operations of other threads may be under way while the counters are summed, so their relations hold
/// exactly only while none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Operations that ended on the calling thread: reads from the page cache, and on Windows what the system did at once.
    pub inline_hits: u64,
    /// Inline attempts that brought some of the bytes; the rest was handed on.
    pub inline_partials: u64,
    /// Inline attempts that found nothing cached.
    pub inline_misses: u64,
    /// Inline attempts that the file system refuses.
    pub inline_unsupported: u64,
    /// Operations handed to the pool, or to the system.
    pub queued: u64,
    /// Operations handed on whose outcome was received.
    pub completed: u64,
    /// Operations dropped while they waited: they never happened.
    pub cancelled: u64,
    /// Operations dropped while they ran.
    pub abandoned: u64,
    /// Worker threads at present.
    pub threads: u64,
    /// Operation cells made so far, in use or idle. They are reused and never freed before the engine is.
    pub cells: u64,
}

/// The counters of one thread.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) inline_hits: AtomicU64,
    pub(crate) inline_partials: AtomicU64,
    pub(crate) inline_misses: AtomicU64,
    pub(crate) inline_unsupported: AtomicU64,
    pub(crate) queued: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    /// Work done inline since this thread last yielded to its executor, see `inline`.
    pub(crate) spent: AtomicU32,
    /// Queued operations of this thread that have not ended. Others may end them, so it is really shared.
    pub(crate) in_flight: AtomicU32,
    /// Looks of this thread for the end of an operation that it has queued, see `fs::futures`.
    pub(crate) looks: Backoff,
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// How long a thread waits for its block. The lock is held for a moment only, but its holder may be off its processor.
const PATIENCE: Duration = Duration::from_millis(500);

/// All blocks of an engine.
#[derive(Default)]
pub(crate) struct Blocks {
    all: Mutex<Registry>,
    /// The engine has gone: threads drop what they hold of it when they next claim a block.
    gone: AtomicBool,
}

#[derive(Default)]
struct Registry {
    // Boxed, so that a block stays where it is while the vector grows.
    #[allow(clippy::vec_box)]
    blocks: Vec<Box<Block>>,
    /// Indices of those that belong to no thread.
    free: Vec<usize>,
}

impl Blocks {
    /// The calling thread's block; `None` in a thread that is ending and has given its blocks back, or could get none.
    #[inline]
    pub(crate) fn current(self: &Arc<Blocks>) -> Option<&Block> {
        let (owner, block) = LAST.get();
        if owner == Arc::as_ptr(self) {
            // SAFETY: LAST names a block that this thread holds; CLAIMS keeps its engine's blocks alive,
            // and clears LAST before it lets go. It is null where there was none to be had.
            return unsafe { block.as_ref() };
        }
        // SAFETY: blocks live as long as `self`.
        self.claim().map(|block| unsafe { block.as_ref() })
    }

    #[cold]
    fn claim(self: &Arc<Blocks>) -> Option<NonNull<Block>> {
        CLAIMS
            .try_with(|claims| {
                let mut claims = claims.try_borrow_mut().ok()?;
                let held = claims.0.iter().find(|claim| Arc::ptr_eq(&claim.owner, self));
                let block = match held {
                    Some(claim) => claim.block,
                    None => {
                        claims.0.retain(|claim| !claim.owner.gone.load(Relaxed));
                        let Some((index, block)) = self.issue() else {
                            LAST.set((Arc::as_ptr(self), null()));
                            return None;
                        };
                        claims.0.push(Claim { owner: Arc::clone(self), index, block });
                        block
                    }
                };
                LAST.set((Arc::as_ptr(self), block.as_ptr()));
                Some(block)
            })
            .ok()
            .flatten()
    }

    /// The engine that these belong to has ended.
    pub(crate) fn retire(&self) {
        self.gone.store(true, Relaxed);
    }

    /// A block for a thread that has none. `None` if the lock stays taken for [`PATIENCE`]: it was taken at a fork, and in
    /// the child nobody gives it back.
    fn issue(&self) -> Option<(usize, NonNull<Block>)> {
        let until = Instant::now() + PATIENCE;
        let mut all = loop {
            match self.all.try_lock() {
                Ok(all) => break all,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() > until => return None,
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        };
        let index = all.free.pop().unwrap_or_else(|| {
            all.blocks.push(Box::default());
            all.blocks.len() - 1
        });
        Some((index, NonNull::from(&*all.blocks[index])))
    }

    pub(crate) fn sum(&self) -> Stats {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Stats::default();
        for block in &all.blocks {
            sum.inline_hits += block.inline_hits.load(Relaxed);
            sum.inline_partials += block.inline_partials.load(Relaxed);
            sum.inline_misses += block.inline_misses.load(Relaxed);
            sum.inline_unsupported += block.inline_unsupported.load(Relaxed);
            sum.queued += block.queued.load(Relaxed);
            sum.completed += block.completed.load(Relaxed);
            sum.cancelled += block.cancelled.load(Relaxed);
            sum.abandoned += block.abandoned.load(Relaxed);
        }
        sum
    }
}

/// A thread's hold on a block.
struct Claim {
    owner: Arc<Blocks>,
    index: usize,
    block: NonNull<Block>,
}

struct Claims(Vec<Claim>);

impl Drop for Claims {
    fn drop(&mut self) {
        LAST.set((null(), null()));
        for claim in self.0.drain(..) {
            let mut all = claim.owner.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.free.push(claim.index);
        }
    }
}

thread_local! {
    /// The block used last. Without a destructor, so that reading it is a plain load.
    static LAST: Cell<(*const Blocks, *const Block)> = const { Cell::new((null(), null())) };
    static CLAIMS: RefCell<Claims> = const { RefCell::new(Claims(Vec::new())) };
}
