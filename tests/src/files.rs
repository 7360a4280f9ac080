//! What the suites of the file half share: ways to drive a future, buffers that keep a record of their life, and
//! ways to hold a worker where a test wants it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

use haft::engine::Engine;
use haft::fs::{File, IoBuf, IoBufMut, OpenOptions};
use std::cell::UnsafeCell;
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a thread.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Release);
        self.thread.unpark();
    }
}

/// The barest executor there is: it polls, and sleeps until it is woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !unpark.woken.swap(false, Acquire) {
            thread::park();
        }
    }
}

/// Polls over and over, with a waker that does nothing.
pub fn spin_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
        thread::yield_now();
    }
}

/// One poll, with a waker that does nothing.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A waker that counts how often it is woken.
#[derive(Default)]
pub struct Count(AtomicUsize);

impl Count {
    /// The count, and a waker that adds to it.
    pub fn new() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), Waker::from(count))
    }

    /// How often it was woken.
    pub fn get(&self) -> usize {
        self.0.load(Acquire)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, AcqRel);
    }
}

/// Options for a new file, or one that is there, to read and write.
pub fn read_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    options
}

/// Each kind of handle that is read and written in a way of its own, with a name: on Windows, plain and overlapped
/// ones.
pub fn kinds() -> impl Iterator<Item = (&'static str, OpenOptions)> {
    let overlapped = cfg!(windows).then_some(("overlapped", true));
    [("plain", false)].into_iter().chain(overlapped).map(|(name, asynchronous)| {
        let mut options = read_write();
        options.asynchronous(asynchronous);
        (name, options)
    })
}

/// A file of an engine in `folder`, holding `bytes`.
pub fn file_with(engine: &Engine, folder: &Path, bytes: &[u8]) -> File {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let path = folder.join(format!("file-{}", NEXT.fetch_add(1, Relaxed)));
    std::fs::write(&path, bytes).expect("a file can be written");
    read_write().engine(engine).open(path).expect("the file opens")
}

/// An engine that never tries inline, with this many workers at most.
pub fn pool_engine(threads: usize) -> Engine {
    Engine::builder().threads(threads).inline_limit(0).build()
}

/// An engine that tries inline, and one that never does.
pub fn engines() -> [(&'static str, Engine); 2] {
    [("inline", Engine::builder().build()), ("pool", pool_engine(2))]
}

/// Has the system write this file's pages, at least; here it cannot be told to forget them.
#[cfg(windows)]
pub fn evict(file: &File, _: i64, _: i64) {
    file.sync_all().expect("it is on the device");
}

/// Bytes that differ from place to place and from `seed` to seed.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + (n >> 8) * 17 + seed * 101 + 7) as u8).collect()
}

/// How the memory and the drops of a [`Canary`] fared. It outlives the buffer, and keeps the buffer's memory, so
/// that whoever uses that memory after the drop is found out and hits nothing else.
pub struct Record {
    memory: Box<[UnsafeCell<u8>]>,
    drops: AtomicUsize,
    panics: bool,
}

// SAFETY: the bytes are touched by the buffer's user until the drop, and by the test after the drop.
unsafe impl Sync for Record {}

/// What a dropped buffer's memory is filled with.
const POISON: u8 = 0xDB;

impl Record {
    /// How often the buffer was dropped.
    pub fn drops(&self) -> usize {
        self.drops.load(Acquire)
    }

    /// Whether nobody has written to the memory since the buffer was dropped.
    pub fn is_untouched_since(&self) -> bool {
        // SAFETY: a wrong write may race with this, and then the test has found what it looks for.
        self.memory.iter().all(|byte| unsafe { byte.get().read_volatile() } == POISON)
    }

    /// Panics unless the buffer was dropped once and nobody has written to its memory since.
    #[track_caller]
    pub fn check(&self) {
        assert_eq!(self.drops(), 1, "drops of a buffer");
        assert!(self.is_untouched_since(), "a buffer was written to after its drop");
    }
}

/// A buffer that counts its drops, and that sings when it is used after one. `BULK` makes the value larger.
pub struct Canary<const BULK: usize> {
    record: Arc<Record>,
    bulk: [u8; BULK],
}

impl<const BULK: usize> Canary<BULK> {
    /// A buffer of these bytes.
    pub fn new(bytes: &[u8]) -> (Arc<Record>, Self) {
        Canary::make(bytes, false)
    }

    /// A buffer whose drop panics, after it was counted.
    pub fn panicking(bytes: &[u8]) -> (Arc<Record>, Self) {
        Canary::make(bytes, true)
    }

    fn make(bytes: &[u8], panics: bool) -> (Arc<Record>, Self) {
        let memory = bytes.iter().map(|&byte| UnsafeCell::new(byte)).collect();
        let record = Arc::new(Record { memory, drops: AtomicUsize::new(0), panics });
        (Arc::clone(&record), Canary { record, bulk: [0xB1; BULK] })
    }

    /// What it holds.
    pub fn bytes(&self) -> Vec<u8> {
        assert_eq!(self.bulk, [0xB1; BULK], "the value itself came through");
        // SAFETY: the buffer is not in an operation, since it is here.
        self.record.memory.iter().map(|byte| unsafe { *byte.get() }).collect()
    }
}

impl<const BULK: usize> Drop for Canary<BULK> {
    fn drop(&mut self) {
        for byte in &self.record.memory {
            // SAFETY: the buffer is being dropped, so nobody may use it; that somebody does is what a test finds.
            unsafe { byte.get().write_volatile(POISON) };
        }
        self.record.drops.fetch_add(1, AcqRel);
        assert!(!self.record.panics, "the drop of this buffer panics");
    }
}

// SAFETY: the bytes are in the record, on the heap.
unsafe impl<const BULK: usize> IoBuf for Canary<BULK> {
    fn as_io_ptr(&self) -> *const u8 {
        self.record.memory.as_ptr().cast()
    }

    fn io_len(&self) -> usize {
        self.record.memory.len()
    }
}

// SAFETY: as above; cells may be written through a shared reference.
unsafe impl<const BULK: usize> IoBufMut for Canary<BULK> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.record.memory.as_ptr().cast_mut().cast()
    }

    fn io_room(&self) -> usize {
        self.record.memory.len()
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

impl<const BULK: usize> std::fmt::Debug for Canary<BULK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").finish_non_exhaustive()
    }
}

/// Workers that are held in foreign code, a waker, so that they carry nothing else out. This needs no privileges.
pub struct HeldWorkers {
    gate: Arc<Gate>,
    held: Vec<Held>,
}

type Held = Pin<Box<dyn Future<Output = io::Result<u64>> + Send>>;

#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// Workers that came.
    inside: usize,
    /// Wake-ups by a poller that met the worker at the waker's slot: it is not to be held.
    missed: usize,
    open: bool,
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.state);
        if thread::current().name() != Some("haft-io") {
            state.missed += 1;
            return;
        }
        state.inside += 1;
        while !state.open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeldWorkers {
    /// Holds `workers` of the engine's workers: with as many as it may have, nothing that is queued afterwards
    /// begins before [`release`](HeldWorkers::release).
    pub fn hold(engine: &Engine, workers: usize) -> HeldWorkers {
        let gate = Arc::new(Gate::default());
        let waker = Waker::from(Arc::clone(&gate));
        let mut cx = Context::from_waker(&waker);
        let file = engine.adopt(tempfile::tempfile().expect("a temporary file"));
        let mut held: Vec<Held> = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let (inside, missed) = {
                let state = lock(&gate.state);
                (state.inside, state.missed)
            };
            if inside >= workers {
                return HeldWorkers { gate, held };
            }
            assert!(Instant::now() < deadline, "{inside} of {workers} workers held");
            let file = file.clone();
            let mut future: Held = Box::pin(async move { file.len_async().await });
            if future.as_mut().poll(&mut cx).is_pending() {
                // Not polled again: a worker will be held in its waker, unless this poll itself had to wake it.
                held.push(future);
                let arrived = || {
                    let state = lock(&gate.state);
                    state.inside > inside || state.missed > missed
                };
                while !arrived() && Instant::now() < deadline {
                    thread::sleep(Duration::from_micros(200));
                }
            } else {
                // It ended while the poll still looked. Let the worker go to sleep, then it takes longer.
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Lets the workers go on.
    pub fn release(self) {}
}

impl Drop for HeldWorkers {
    fn drop(&mut self) {
        lock(&self.gate.state).open = true;
        self.gate.changed.notify_all();
        for future in self.held.drain(..) {
            let _ = block_on(future);
        }
    }
}

/// Runs `body` on another thread and waits for it so long; false if it has not ended by then. The thread is then
/// left behind.
pub fn ends_within(limit: Duration, body: impl FnOnce() + Send + 'static) -> bool {
    let (ended, wait) = mpsc::channel();
    thread::spawn(move || {
        body();
        let _ = ended.send(());
    });
    wait.recv_timeout(limit).is_ok()
}
