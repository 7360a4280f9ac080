//! An operation allocates nothing, once there have been as many at once before: counted at the global allocator,
//! on all threads.
//!
//! Each test runs in a process of its own, where nothing else allocates. The futures are pinned in one array and
//! the buffers go round, so that what is counted is haft's alone.

use haft::engine::Engine;
use haft::fs::{Buffers, File, OpError, OpenOptions, Spare};
use haft_tests::files::{Canary, HeldWorkers, block_on, pattern, poll, pool_engine, read_write};
#[cfg(target_os = "linux")]
use haft_tests::files::{file_system, takes_nowait};
#[cfg(target_os = "linux")]
use haft_tests::skip;
use haft_tests::{isolated, watchdog};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::hint::black_box;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, with every call counted.
struct Counting;

fn count(bytes: i64) {
    ALLOCATIONS.fetch_add(1, SeqCst);
    LIVE.fetch_add(bytes, SeqCst);
}

// SAFETY: every call goes to the system's allocator as it came; the counters are two statics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, SeqCst);
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

/// How many allocations all threads made meanwhile.
fn allocations(body: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(SeqCst);
    body();
    ALLOCATIONS.load(SeqCst) - before
}

/// Waits until the test harness's other threads have got ready.
fn settle() {
    let mut before = u64::MAX;
    while before != ALLOCATIONS.load(SeqCst) {
        before = ALLOCATIONS.load(SeqCst);
        thread::sleep(std::time::Duration::from_millis(30));
    }
}

// Without this the zeros below would mean nothing.
#[test]
fn the_counter_counts_every_kind_of_allocation_on_every_thread() {
    isolated!({
        settle();
        assert_eq!(allocations(|| {}), 0);
        assert_eq!(allocations(|| drop(black_box(Box::new(1_u64)))), 1);
        assert_eq!(allocations(|| drop(black_box(vec![0_u8; 5000]))), 1, "zeroed");
        let mut vec = Vec::<u8>::with_capacity(10);
        assert_eq!(allocations(|| black_box(&mut vec).reserve_exact(100_000)), 1, "reallocated");
        // What another thread allocates, apart from what starting it costs.
        let start = Arc::new(AtomicBool::new(false));
        let allocator = thread::spawn({
            let start = Arc::clone(&start);
            move || {
                while !start.load(SeqCst) {
                    thread::park();
                }
                drop(black_box(Box::new([1_u64; 4])));
                start.store(false, SeqCst);
                thread::park();
            }
        });
        settle();
        let elsewhere = allocations(|| {
            start.store(true, SeqCst);
            allocator.thread().unpark();
            while start.load(SeqCst) {
                thread::yield_now();
            }
        });
        assert_eq!(elsewhere, 1, "on another thread");
        allocator.thread().unpark();
        allocator.join().unwrap();
        let live = LIVE.load(SeqCst);
        let held = vec![1_u8; 1234];
        assert_eq!(LIVE.load(SeqCst) - live, 1234);
        drop(held);
        assert_eq!(LIVE.load(SeqCst), live);
    });
}

struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.1.store(true, SeqCst);
        self.0.unpark();
    }
}

/// An executor for futures that lie in one array.
struct Row {
    unpark: Arc<Unpark>,
    waker: Waker,
}

impl Row {
    fn new() -> Row {
        let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
        Row { waker: Waker::from(Arc::clone(&unpark)), unpark }
    }

    /// Makes a future in each slot, drives them all to their ends, and hands on what they give.
    fn run<F: Future>(
        &self,
        slots: &mut [Option<F>],
        mut make: impl FnMut(usize) -> F,
        mut end: impl FnMut(usize, F::Output),
    ) {
        for (n, slot) in slots.iter_mut().enumerate() {
            *slot = Some(make(n));
        }
        let mut cx = Context::from_waker(&self.waker);
        let mut left = slots.len();
        while left > 0 {
            for (n, slot) in slots.iter_mut().enumerate() {
                // SAFETY: the slots do not move while a future is in them, and each is dropped where it lies.
                let mut slot = unsafe { Pin::new_unchecked(slot) };
                let Some(future) = slot.as_mut().as_pin_mut() else { continue };
                if let Poll::Ready(output) = future.poll(&mut cx) {
                    end(n, output);
                    slot.set(None);
                    left -= 1;
                }
            }
            while left > 0 && !self.unpark.1.swap(false, SeqCst) {
                thread::park();
            }
        }
    }
}

const BLOCK: usize = 1024;

/// A file of `depth` blocks, and as many buffers that go round.
struct Stage {
    file: File,
    depth: usize,
    buffers: Vec<RefCell<Option<Vec<u8>>>>,
    row: Row,
    _folder: tempfile::TempDir,
}

/// Where the file is, whose folder is to be kept.
fn new_file(blocks: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blocks");
    std::fs::write(&path, pattern(0, blocks * BLOCK)).unwrap();
    (folder, path)
}

impl Stage {
    fn new(engine: &Engine, depth: usize) -> Stage {
        Stage::of(read_write(), engine, depth)
    }

    fn of(mut options: OpenOptions, engine: &Engine, depth: usize) -> Stage {
        let (folder, path) = new_file(depth);
        let file = options.engine(engine).open(&path).unwrap();
        let buffers = (0..depth).map(|_| RefCell::new(Some(vec![0; BLOCK]))).collect();
        Stage { file, depth, buffers, row: Row::new(), _folder: folder }
    }

    /// A worker lets go of a cell a moment after the task has seen the end, so once in a while there are as many
    /// cells in use as operations and workers together. Steady is what follows after that.
    fn reach_the_peak(&self, engine: &Engine) {
        let held = HeldWorkers::hold(engine, 2);
        let mut more: Box<[Option<_>]> = (0..self.depth + 2).map(|_| Some(self.file.len_async())).collect();
        for slot in &mut more {
            // SAFETY: the boxed slice stays where it is until it drops with the futures in it.
            let future = unsafe { Pin::new_unchecked(slot) }.as_pin_mut().unwrap();
            assert!(poll(future).is_pending());
        }
        drop(more);
        held.release();
    }

    fn take(&self, n: usize) -> Vec<u8> {
        self.buffers[n].borrow_mut().take().unwrap()
    }

    fn give(&self, n: usize, buffer: Vec<u8>) {
        assert_eq!(buffer.len(), BLOCK);
        *self.buffers[n].borrow_mut() = Some(buffer);
    }

    fn offset(n: usize) -> u64 {
        (n * BLOCK) as u64
    }

    /// Runs rounds of these futures, and panics if anything is allocated after the first three.
    fn check<F: Future>(
        &self,
        what: &str,
        mut make: impl FnMut(usize) -> F,
        mut end: impl FnMut(usize, F::Output),
    ) {
        let mut slots: Box<[Option<F>]> = (0..self.depth).map(|_| None).collect();
        let rounds = (2000 / self.depth).max(4);
        let mut run = |rounds| {
            for _ in 0..rounds {
                self.row.run(&mut slots, &mut make, &mut end);
            }
        };
        run(3);
        let made = allocations(|| run(rounds));
        assert_eq!(made, 0, "{what} at depth {}: allocations in {rounds} rounds", self.depth);
    }

    fn reads(&self) {
        let some = |n, ended: Result<(usize, Vec<u8>), OpError<Vec<u8>>>| {
            let (read, buffer) = ended.unwrap();
            assert_eq!(read, BLOCK);
            self.give(n, buffer);
        };
        let whole = |n, ended: Result<Vec<u8>, OpError<Vec<u8>>>| self.give(n, ended.unwrap());
        self.check("read_at", |n| self.file.read_at_async(self.take(n), Self::offset(n)), some);
        self.check("read_exact_at", |n| self.file.read_exact_at_async(self.take(n), Self::offset(n)), whole);
        // At the end of the file, where the size is asked for.
        let past = Self::offset(self.depth);
        self.check(
            "read_at past the end",
            |n| self.file.read_at_async(self.take(n), past),
            |n, ended| {
                let (read, buffer) = ended.unwrap();
                assert_eq!(read, 0);
                self.give(n, buffer);
            },
        );
        let spare = |n, ended: Result<(usize, Spare), OpError<Spare>>| {
            let (read, Spare(mut buffer)) = ended.unwrap();
            assert_eq!((read, buffer.len()), (BLOCK, BLOCK));
            buffer.truncate(BLOCK);
            self.give(n, buffer);
        };
        let empty = |n| {
            let mut buffer = self.take(n);
            buffer.clear();
            Spare(buffer)
        };
        self.check("read into spare", |n| self.file.read_at_async(empty(n), Self::offset(n)), spare);
    }

    fn writes(&self) {
        let some = |n, ended: Result<(usize, Vec<u8>), OpError<Vec<u8>>>| {
            let (written, buffer) = ended.unwrap();
            assert_eq!(written, BLOCK);
            self.give(n, buffer);
        };
        let whole = |n, ended: Result<Vec<u8>, OpError<Vec<u8>>>| self.give(n, ended.unwrap());
        self.check("write_at", |n| self.file.write_at_async(self.take(n), Self::offset(n)), some);
        self.check("write_all_at", |n| self.file.write_all_at_async(self.take(n), Self::offset(n)), whole);
    }

    /// Lists of four buffers, of which each round takes the same.
    fn lists(&self) {
        let list = || Buffers::from(vec![vec![0_u8; BLOCK / 4]; 4]);
        let lists: Vec<_> = (0..self.depth).map(|_| RefCell::new(Some(list()))).collect();
        let take = |n: usize| lists[n].borrow_mut().take().unwrap();
        type List = Buffers<Vec<u8>>;
        let give = |n: usize, ended: Result<(usize, List), OpError<List>>| {
            let (moved, list) = ended.unwrap();
            assert_eq!(moved, BLOCK);
            *lists[n].borrow_mut() = Some(list);
        };
        let file = &self.file;
        self.check("write_vectored_at", |n| file.write_vectored_at_async(take(n), Self::offset(n)), give);
        self.check("read_vectored_at", |n| file.read_vectored_at_async(take(n), Self::offset(n)), give);
    }

    fn others(&self) {
        let len = Self::offset(self.depth);
        self.check("len", |_| self.file.len_async(), |_, ended| assert_eq!(ended.unwrap(), len));
        self.check("set_len", |_| self.file.set_len_async(len), |_, ended| ended.unwrap());
        self.check("sync_all", |_| self.file.sync_all_async(), |_, ended| ended.unwrap());
        self.check("sync_data", |_| self.file.sync_data_async(), |_, ended| ended.unwrap());
    }
}

/// An engine that carries everything on its two threads, both of which are there already.
fn warm_pool() -> Engine {
    let engine = pool_engine(2);
    HeldWorkers::hold(&engine, 2).release();
    assert_eq!(engine.stats().threads, 2);
    engine
}

// Fails when Handle::take_cell makes a new cell each time, or when Claims::current (engine/stats.rs) allocates.
#[cfg(target_os = "linux")]
fn inline(depth: usize) {
    let stage = Stage::new(&Engine::default(), depth);
    let before = Engine::default().stats();
    stage.reads();
    let after = Engine::default().stats();
    let hits = after.inline_hits - before.inline_hits;
    assert!(hits > 4000, "these reads were to be answered inline: {after:?}");
    assert_eq!(after.queued, before.queued, "{after:?}");
}

// Fails when FutureSide::let_go or CompleterSide::let_go (engine/cell.rs) loses the cell, when Pool::run does not
// give it back, and when a waiting operation is queued in a node of its own.
fn through_the_pool(depth: usize) {
    let engine = warm_pool();
    let stage = Stage::new(&engine, depth);
    stage.reach_the_peak(&engine);
    stage.reads();
    stage.writes();
    stage.lists();
    stage.others();
    let stats = engine.stats();
    assert!(stats.queued > 20_000, "{stats:?}");
    assert_eq!((stats.inline_hits, stats.threads), (0, 2), "{stats:?}");
    assert_eq!(stats.queued, stats.completed + stats.cancelled, "{stats:?}");
    assert!(stats.cells as usize <= (depth + 8).next_power_of_two().max(32), "{stats:?}");
}

/// Why the inline attempt cannot be measured where temporary files are.
#[cfg(target_os = "linux")]
fn no_nowait() -> Option<String> {
    let (_folder, path) = new_file(1);
    (!takes_nowait(&path)).then(|| format!("{} refuses RWF_NOWAIT", file_system(&path)))
}

macro_rules! at_depth {
    ($($name:ident: $measure:ident($depth:expr);)*) => {$(
        #[test]
        fn $name() {
            isolated!({
                watchdog!();
                settle();
                $measure($depth);
            });
        }
    )*};
    (inline $($name:ident: $measure:ident($depth:expr);)*) => {$(
        #[test]
        fn $name() {
            isolated!({
                watchdog!();
                settle();
                if let Some(why) = no_nowait() {
                    skip!("{why}");
                }
                $measure($depth);
            });
        }
    )*};
}

#[cfg(target_os = "linux")]
at_depth! { inline
    inline_reads_allocate_nothing_one_at_a_time: inline(1);
    inline_reads_allocate_nothing_32_at_a_time: inline(32);
    inline_reads_allocate_nothing_1000_at_a_time: inline(1000);
    open_read_close_allocates_nothing_inline: open_read_close_inline(500);
}

at_depth! {
    pool_operations_allocate_nothing_one_at_a_time: through_the_pool(1);
    pool_operations_allocate_nothing_32_at_a_time: through_the_pool(32);
    pool_operations_allocate_nothing_1000_at_a_time: through_the_pool(1000);
    sync_methods_allocate_nothing: sync_methods(200);
    open_read_close_allocates_nothing_through_the_pool: open_read_close_pool(500);
    ten_thousand_operations_dropped_while_queued_allocate_nothing: dropped_while_queued(10_000);
    operations_under_tokio_allocate_nothing: under_tokio(1000);
    a_large_buffer_type_is_boxed_while_queued_and_costs_nothing_else: large_type(100);
    threads_that_are_gone_leave_nothing_behind: gone_threads(200);
}

#[cfg(target_os = "linux")]
at_depth! {
    engines_that_are_gone_leave_nothing_behind: gone_engines(200);
}

#[cfg(windows)]
at_depth! {
    overlapped_operations_allocate_nothing_one_at_a_time: by_the_system(1);
    overlapped_operations_allocate_nothing_32_at_a_time: by_the_system(32);
    overlapped_operations_allocate_nothing_1000_at_a_time: by_the_system(1000);
    operations_on_pipes_allocate_nothing: on_pipes(2000);
    sync_methods_on_overlapped_handles_allocate_nothing: sync_methods_overlapped(200);
}

#[cfg(windows)]
fn overlapped() -> OpenOptions {
    let mut options = read_write();
    options.asynchronous(true);
    options
}

// Fails when `serve` (engine/iocp.rs) collects its wakers in a vector.
#[cfg(windows)]
fn by_the_system(depth: usize) {
    let engine = Engine::builder().build();
    // A thread of the port lets go of a cell a moment after the task has seen the end. And where that thread finds as many
    // ends as it takes at once, it has another one start, which is no operation's cost: so this is not counted.
    let more = Stage::of(overlapped(), &engine, depth + 70);
    let mut slots: Box<[Option<_>]> = (0..more.depth).map(|_| None).collect();
    for _ in 0..20 {
        more.row.run(&mut slots, &mut |n| more.file.read_at_async(more.take(n), 0), &mut |n,
                                                                                          ended: Result<
            (usize, Vec<u8>),
            OpError<Vec<u8>>,
        >| {
            more.give(n, ended.unwrap().1)
        });
    }
    let stage = Stage::of(overlapped(), &engine, depth);
    stage.reads();
    stage.writes();
    let stats = engine.stats();
    assert_eq!((stats.threads, stats.cancelled), (0, 0), "the pool was to have no part: {stats:?}");
    assert_eq!(stats.queued, stats.completed, "{stats:?}");
}

#[cfg(windows)]
fn on_pipes(rounds: usize) {
    let (reader, writer) = haft::pipe::Builder::new().async_reader(true).async_writer(true).build().unwrap();
    let row = Row::new();
    let mut buffers = [Some(vec![0; BLOCK]), Some(pattern(1, BLOCK))];
    let mut run = |rounds| {
        for _ in 0..rounds {
            let (mut into, mut from) = (buffers[0].take(), buffers[1].take());
            let read = std::pin::pin!(reader.read_async(into.take().unwrap()));
            let mut read = Some(read);
            let waits = poll(read.as_mut().unwrap().as_mut());
            assert!(waits.is_pending());
            row.run(
                &mut [None],
                |_| writer.write_all_async(from.take().unwrap()),
                |_, ended| {
                    buffers[1] = Some(ended.unwrap());
                },
            );
            row.run(
                &mut [None],
                |_| read.take().unwrap(),
                |_, ended| {
                    let (read, buffer) = ended.unwrap();
                    assert_eq!(read, BLOCK);
                    buffers[0] = Some(buffer);
                },
            );
        }
    };
    run(3);
    assert_eq!(allocations(|| run(rounds)), 0);
}

#[cfg(windows)]
fn sync_methods_overlapped(rounds: usize) {
    sync_methods_of(Stage::of(overlapped(), &Engine::default(), 1), rounds);
}

fn sync_methods(rounds: usize) {
    sync_methods_of(Stage::new(&Engine::default(), 1), rounds);
}

fn sync_methods_of(stage: Stage, rounds: usize) {
    let mut buffer = stage.take(0);
    let mut once = || {
        stage.file.write_all_at(&buffer, 0).unwrap();
        assert_eq!(stage.file.write_at(&buffer, 0).unwrap(), BLOCK);
        stage.file.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(stage.file.read_at(&mut buffer, 0).unwrap(), BLOCK);
        assert_eq!(stage.file.len().unwrap(), BLOCK as u64);
        stage.file.set_len(BLOCK as u64).unwrap();
        stage.file.sync_all().unwrap();
        stage.file.sync_data().unwrap();
    };
    once();
    assert_eq!(allocations(|| (0..rounds).for_each(|_| once())), 0);
}

#[cfg(target_os = "linux")]
fn open_read_close_inline(rounds: usize) {
    open_read_close(None, rounds);
}

fn open_read_close_pool(rounds: usize) {
    open_read_close(Some(warm_pool()), rounds);
}

// Fails when a handle is an Arc of its own, when a closing file drops its spare cell (`retire`, engine/handle.rs),
// or when paths are always copied to the heap (ON_STACK, fs/sys/unix/open.rs).
fn open_read_close(engine: Option<Engine>, rounds: usize) {
    let (_folder, path) = new_file(1);
    let expected = pattern(0, BLOCK);
    let unpark = Row::new();
    let mut options = OpenOptions::new();
    options.read(true);
    if let Some(engine) = &engine {
        options.engine(engine);
    }
    let mut buffer = Some(vec![0; BLOCK]);
    let mut once = || {
        let file = options.open(&path).unwrap();
        let mut future = std::pin::pin!(file.read_exact_at_async(buffer.take().unwrap(), 0));
        let mut cx = Context::from_waker(&unpark.waker);
        let ended = loop {
            if let Poll::Ready(ended) = future.as_mut().poll(&mut cx) {
                break ended.unwrap();
            }
            thread::park();
        };
        assert_eq!(ended, expected);
        buffer = Some(ended);
    };
    (0..20).for_each(|_| once());
    let made = allocations(|| (0..rounds).for_each(|_| once()));
    assert_eq!(made, 0, "opening, reading and closing {rounds} times");
}

// Fails when Operation::forsake (fs/futures.rs) forgets to give the cell of a cancelled operation back.
fn dropped_while_queued(operations: usize) {
    const AT_ONCE: usize = 1000;
    let engine = pool_engine(1);
    let stage = Stage::new(&engine, AT_ONCE);
    let mut slots: Box<[Option<_>]> = (0..AT_ONCE).map(|_| None).collect();
    // Two sets: dropping a future drops its buffer, and the next must not be made while it counts.
    let mut spare: Vec<Vec<u8>> = (0..operations + AT_ONCE).map(|_| vec![0; 16]).collect();
    let held = HeldWorkers::hold(&engine, 1);
    let mut once = || {
        for slot in &mut slots {
            *slot = Some(stage.file.read_at_async(spare.pop().unwrap(), 0));
            // SAFETY: the array stays where it is, and the future is dropped in it below.
            let future = unsafe { Pin::new_unchecked(slot) }.as_pin_mut().unwrap();
            assert!(poll(future).is_pending());
        }
        slots.iter_mut().for_each(|slot| *slot = None);
    };
    once();
    let made = allocations(|| (0..operations / AT_ONCE).for_each(|_| once()));
    assert_eq!(made, 0, "while {operations} operations were queued and dropped");
    drop(spare);
    held.release();
    let stats = engine.stats();
    assert_eq!(stats.cancelled as usize, operations + AT_ONCE, "{stats:?}");
    assert!(stats.cells <= 1024, "{stats:?}");
    stage.check(
        "read_exact_at, afterwards",
        |n| stage.file.read_exact_at_async(stage.take(n), Stage::offset(n)),
        |n, ended| stage.give(n, ended.unwrap()),
    );
    assert!(engine.stats().cells <= 1024);
}

/// A thread's first use of an engine allocates its counters, and a task may move to another thread in any pass: so the
/// best of a few tells.
async fn best_of_passes(file: File, operations: usize) -> u64 {
    let mut buffer = vec![0; BLOCK];
    let mut best = u64::MAX;
    for _ in 0..6 {
        let before = ALLOCATIONS.load(SeqCst);
        for _ in 0..operations {
            buffer = file.read_exact_at_async(buffer, 0).await.unwrap();
        }
        best = best.min(ALLOCATIONS.load(SeqCst) - before);
    }
    best
}

fn under_tokio(operations: usize) {
    let current = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let multi = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for (name, runtime) in [("current-thread", current), ("multi-thread", multi)] {
        #[cfg_attr(windows, allow(unused_mut))]
        let mut engines = vec![("through the pool", warm_pool())];
        #[cfg(target_os = "linux")]
        match no_nowait() {
            None => engines.push(("inline", Engine::default())),
            Some(why) => haft_tests::report_skip("inline, under tokio", &why),
        }
        for (how, engine) in engines {
            let (_folder, path) = new_file(1);
            let file = read_write().engine(&engine).open(&path).unwrap();
            let made = runtime.block_on(async {
                // In a task, and in what block_on drives.
                let in_task = tokio::spawn(best_of_passes(file.clone(), operations)).await.unwrap();
                (in_task, best_of_passes(file, operations).await)
            });
            assert_eq!(made, (0, 0), "{operations} reads {how}, tokio {name}: in a task, in block_on");
        }
    }
}

fn large_type(rounds: usize) {
    let engine = warm_pool();
    let stage = Stage::new(&engine, 1);
    let read = |canary| block_on(stage.file.read_at_async(canary, 0)).unwrap().1;
    fn counted<const BULK: usize>(rounds: usize, read: impl Fn(Canary<BULK>) -> Canary<BULK>) -> u64 {
        let mut canary = read(Canary::new(&[0; 64]).1);
        // The bare executor allocates its waker once an operation.
        let own = allocations(|| block_on(async {}));
        let mut made = 0;
        for _ in 0..rounds {
            let mut canary_now = None;
            made += allocations(|| canary_now = Some(read(canary)));
            canary = canary_now.unwrap();
        }
        made - own * rounds as u64
    }
    // 8 bytes are the pointer to the record.
    assert_eq!(counted::<56>(rounds, read), 0, "a type of 64 bytes");
    let read = |canary| block_on(stage.file.read_at_async(canary, 0)).unwrap().1;
    assert_eq!(counted::<57>(rounds, read), rounds as u64, "a type of more");
    #[cfg(target_os = "linux")]
    if no_nowait().is_none() {
        let inline = Stage::new(&Engine::default(), 1);
        let read = |canary| block_on(inline.file.read_at_async(canary, 0)).unwrap().1;
        assert_eq!(counted::<57>(rounds, read), 0, "a type of more, inline");
    }
}

/// How many bytes more are allocated after `rounds` of `once` than after a tenth of them.
fn growth(rounds: usize, mut once: impl FnMut()) -> i64 {
    (0..rounds / 10).for_each(|_| once());
    let before = LIVE.load(SeqCst);
    (0..rounds).for_each(|_| once());
    LIVE.load(SeqCst) - before
}

// A thread's claim on the counters of an engine that is gone is given up at its next claim, however many threads
// have one. Fails when Blocks::claim (engine/stats.rs) tells "gone" by the count of references, which other threads
// that have not made a claim since hold up too: then what two threads have used is never freed.
#[cfg(target_os = "linux")]
fn gone_engines(engines: usize) {
    let (_folder, path) = new_file(1);
    let go = |engine: &Engine| {
        let file = OpenOptions::new().read(true).engine(engine).open(&path).unwrap();
        assert_eq!(block_on(file.len_async()).unwrap(), BLOCK as u64);
    };
    let place = std::sync::Mutex::new(Some(Engine::builder().threads(1).build()));
    let changed = std::sync::Condvar::new();
    let done = AtomicBool::new(false);
    let grown = thread::scope(|scope| {
        scope.spawn(|| {
            let mut engine = place.lock().unwrap();
            while !done.load(SeqCst) {
                if let Some(engine) = engine.take() {
                    go(&engine);
                    changed.notify_all();
                }
                engine = changed.wait_timeout(engine, std::time::Duration::from_millis(20)).unwrap().0;
            }
        });
        let grown = growth(engines, || {
            let engine = Engine::builder().threads(1).build();
            go(&engine);
            let mut place = place.lock().unwrap();
            *place = Some(engine);
            changed.notify_all();
            while place.is_some() {
                place = changed.wait(place).unwrap();
            }
            drop(place);
            let ended = || haft_tests::files::threads_named("haft-io").is_empty();
            assert!(haft_tests::eventually(std::time::Duration::from_secs(5), ended));
        });
        done.store(true, SeqCst);
        grown
    });
    // Both threads may keep a few until they next look.
    assert!(grown < 8 * 1024, "{grown} bytes more after {engines} engines that are gone");
}

fn gone_threads(threads: usize) {
    let engine = warm_pool();
    let stage = Stage::new(&engine, 1);
    let before = engine.stats().completed;
    let grown = growth(threads, || {
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(block_on(stage.file.len_async()).unwrap(), BLOCK as u64));
        });
    });
    assert!(grown < 1024, "{grown} bytes more after {threads} threads that are gone");
    let done = engine.stats().completed - before;
    assert_eq!(done as usize, threads + threads / 10, "what they did is still counted");
}
