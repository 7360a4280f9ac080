//! What carries an asynchronous operation from the task that awaits it to the system call that does it.
//!
//! One engine serves any number of files, tasks and executors. [`Engine::default`] is the process's own, made
//! at first use; an own engine has its own threads and its own counters, and is chosen when a file is opened:
//!
//! ```
//! use haft::{engine::Engine, fs::OpenOptions};
//!
//! # fn main() -> std::io::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("a");
//! let engine = Engine::builder().threads(2).build();
//! let file = OpenOptions::new().write(true).create(true).engine(&engine).open(path)?;
//! # let _ = file;
//! # Ok(()) }
//! ```
//!
//! The parts, each in a file of its own: the *inline* attempt, the operation *cell*, the *pool* that carries cells and its intrusive
//! *list*, the *slab* that recycles cells and handles, the *handle* block that keeps a descriptor open while
//! anything uses it, and the counters.

mod backoff;
mod cell;
mod course;
mod direct;
mod handle;
pub(crate) mod inline;
#[cfg(windows)]
mod iocp;
mod list;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(any(windows, all(test, loom))))]
mod no_port;
mod perform;
mod pool;
mod port;
#[cfg(all(test, loom))]
mod scripted;
mod segments;
mod shield;
mod slab;
mod stats;
mod waker;

pub use stats::Stats;

pub(crate) use cell::{Fault, FutureSide, Kind, Outcome, Release, Work, fits_stash, open as open_cell};
pub(crate) use handle::{Handle, HandleRef, Traits};
pub(crate) use segments::Segment;
pub(crate) use stats::{Block, Blocks, count};

use crate::{
    fs::sys::{OwnedHandle, Ways},
    sync::atomic::AtomicUsize,
};
use pool::Pool;
use port::Port;
use slab::Slab;
use std::{
    fmt,
    num::NonZero,
    sync::{Arc, OnceLock},
    thread::available_parallelism,
};

/// How an operation is done: by the steps of [`Work`] on a handle, until it is done, fails, or the last
/// argument says that nobody wants it any more.
pub(crate) type Perform = fn(&Work, Option<&Handle>, &dyn Fn() -> bool) -> Outcome;

/// What becomes of an operation that a carrier has just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// A thread is looking for it and may have begun: its end may be a moment away.
    Watched,
    /// It waits for others to end, or for a thread to wake.
    Waits,
    /// The system has it.
    Issued,
    /// It is done.
    Done,
}

/// Who carries an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The threads of the [`pool`].
    Pool,
    /// The system by itself, see [`direct`].
    System,
}

/// A carrier takes operations and sees them through without the caller.
pub(crate) trait Carrier {
    /// Who is to carry this operation.
    fn route(&self, handle: &Handle, work: &Work) -> By;
    /// Takes over the completer's side of a cell.
    fn submit(self: &Arc<Self>, cell: cell::CompleterSide, by: By) -> Submitted;
    /// Takes an operation back, if it has not begun. Then it never happens, and the completer's side of its
    /// cell is gone. One that the system has begun is cut short.
    fn cancel(&self, cell: &FutureSide, handle: &Handle) -> bool;
}

/// What the files, the operations and the workers of an engine share. It lives until the last of them ends.
pub(crate) struct Shared {
    pub(crate) cells: Slab<cell::Cell>,
    pub(crate) handles: Slab<Handle>,
    pool: Pool,
    port: Port,
    /// Operations that have ended and of which the port has yet to hear, see [`direct`].
    untold: AtomicUsize,
    perform: Perform,
}

impl Shared {
    fn new(threads: usize, perform: Perform) -> Arc<Shared> {
        Arc::new(Shared::parts(threads, perform))
    }

    fn parts(threads: usize, perform: Perform) -> Shared {
        Shared {
            cells: Slab::new(),
            handles: Slab::new(),
            pool: Pool::new(threads),
            port: Port::new(),
            untold: AtomicUsize::new(0),
            perform,
        }
    }
}

impl Shared {
    /// Lets the system carry operations on this handle by itself, where it does that.
    fn bind(self: &Arc<Self>, handle: &OwnedHandle, ways: &mut Ways) {
        self.port.bind(self, handle, ways);
    }
}

impl Carrier for Shared {
    #[inline(always)]
    fn route(&self, handle: &Handle, work: &Work) -> By {
        if self.port.carries(handle, work) { By::System } else { By::Pool }
    }

    fn submit(self: &Arc<Self>, cell: cell::CompleterSide, by: By) -> Submitted {
        match by {
            By::Pool => self.pool.submit(self, cell),
            By::System => direct::submit(self, cell),
        }
    }

    fn cancel(&self, cell: &FutureSide, handle: &Handle) -> bool {
        if cell.cell().course.is_direct() {
            direct::cancel(self, cell, handle);
            return false;
        }
        self.pool.cancel(cell)
    }
}

/// The hold of engines and files on the shared part. When the last of them is gone nothing can be queued any
/// more, and the workers end.
pub(crate) struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) blocks: Arc<Blocks>,
    /// Reads up to this size are tried inline.
    pub(crate) inline_limit: usize,
    /// Whether looking for another thread's progress can pay: not if all share one processor.
    pub(crate) parallel: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.pool.shut_down();
        self.shared.port.shut_down();
        self.blocks.retire();
    }
}

/// The threads and the store of reusable operations behind files; cheap to clone.
///
/// See the [module's documentation](self). An engine ends, and its threads with it, when the last clone and
/// the last file opened with it are gone.
#[derive(Clone)]
pub struct Engine {
    lease: Arc<Lease>,
}

impl Engine {
    /// Settings for an engine of one's own.
    pub fn builder() -> Builder {
        Builder { threads: None, inline_limit: Builder::INLINE_LIMIT }
    }

    /// What this engine has done so far, summed over all threads.
    ///
    /// ```
    /// let stats = haft::engine::Engine::default().stats();
    /// println!("{} reads were answered from the page cache", stats.inline_hits);
    /// ```
    pub fn stats(&self) -> Stats {
        let mut stats = self.lease.blocks.sum();
        stats.threads = self.lease.shared.pool.threads() as u64;
        #[cfg(not(loom))]
        {
            stats.cells = self.lease.shared.cells.made() as u64;
        }
        stats
    }

    /// The process's engine, without counting another use of it.
    pub(crate) fn process() -> &'static Engine {
        static PROCESS: OnceLock<Engine> = OnceLock::new();
        PROCESS.get_or_init(|| Engine::builder().build())
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }
}

impl Default for Engine {
    /// The process's engine: the same one at every call. It is made at the first, and its threads start when
    /// operations need them.
    fn default() -> Engine {
        Engine::process().clone()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("inline_limit", &self.lease.inline_limit)
            .field("stats", &self.stats())
            .finish()
    }
}

/// Settings for an [`Engine`], from [`Engine::builder`].
#[derive(Clone, Debug)]
#[must_use = "it makes an engine only when built"]
pub struct Builder {
    threads: Option<NonZero<usize>>,
    inline_limit: usize,
}

impl Builder {
    /// The largest read that is tried inline by default, in bytes. Copying that much takes some ten
    /// microseconds, about as long as a hand-off to another thread and back.
    pub const INLINE_LIMIT: usize = 64 * 1024;

    /// The most worker threads that may run at once; at least 1 is used. Workers start on demand. The default
    /// is four for each processor that the process may use, and at least 8: they wait for devices, mostly.
    pub fn threads(mut self, most: usize) -> Builder {
        self.threads = Some(NonZero::new(most).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// The largest read, in bytes, that is first tried on the calling thread, from the page cache alone
    /// (Linux: `preadv2` with `RWF_NOWAIT`). 0 switches such attempts off. The default is
    /// [`INLINE_LIMIT`](Builder::INLINE_LIMIT).
    pub fn inline_limit(mut self, bytes: usize) -> Builder {
        self.inline_limit = bytes;
        self
    }

    /// Makes the engine. No thread starts before the first operation needs one.
    pub fn build(self) -> Engine {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let threads = self.threads.map_or((4 * processors).max(8), NonZero::get);
        Engine {
            lease: Arc::new(Lease {
                shared: Shared::new(threads, perform::perform),
                blocks: Arc::default(),
                inline_limit: self.inline_limit,
                parallel: processors > 1,
            }),
        }
    }
}
