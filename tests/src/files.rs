//! What the suites of the file half share: ways to drive a future, buffers that keep a record of their life, and
//! two ways to hold a worker where a test wants it.

use haft::engine::Engine;
use haft::fs::{File, IoBuf, IoBufMut, OpenOptions};
use std::cell::UnsafeCell;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
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

/// Bytes that differ from place to place and from `seed` to seed.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + (n >> 8) * 17 + seed * 101 + 7) as u8).collect()
}

/// Whether the file system of `path` answers `preadv2(RWF_NOWAIT)` from the page cache, and the library is not asked
/// to do without it. The file must hold a byte.
pub fn takes_nowait(path: &Path) -> bool {
    if crate::forced("no_nowait") {
        return false;
    }
    let file = std::fs::File::open(path).expect("the file opens");
    let mut byte = [0_u8];
    // SAFETY: the arguments are ours and outlive the call.
    unsafe {
        libc::pread(file.as_raw_fd(), byte.as_mut_ptr().cast(), 1, 0);
        let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        libc::preadv2(file.as_raw_fd(), &part, 1, 0, libc::RWF_NOWAIT) == 1
    }
}

/// The name of the file system of `path`, as far as these suites tell them apart.
pub fn file_system(path: &Path) -> &'static str {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: the structure is ours.
    let kind = unsafe {
        let mut fs: libc::statfs = std::mem::zeroed();
        assert_eq!(libc::statfs(path.as_ptr(), &mut fs), 0, "{}", io::Error::last_os_error());
        fs.f_type
    };
    match kind as i64 {
        0xEF53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x794C_7630 => "overlayfs",
        _ => "another",
    }
}

/// The threads of this process that have this name.
pub fn threads_named(name: &str) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| {
            std::fs::read_to_string(format!("/proc/self/task/{tid}/comm"))
                .is_ok_and(|comm| comm.trim() == name)
        })
        .collect()
}

/// A mask of signals of one thread, from its status: `SigBlk`, `SigPnd`.
pub fn signals_of(tid: i32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    u64::from_str_radix(line.trim(), 16).ok()
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

/// `struct uffdio_api`.
#[repr(C)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`, and `struct uffdio_zeropage` too.
#[repr(C)]
struct UffdRange {
    start: u64,
    len: u64,
    mode: u64,
    result: u64,
}

/// `struct uffdio_copy`.
#[repr(C)]
struct UffdCopy {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

// _IOWR(0xAA, number, structure), on the architectures that haft runs on.
const fn uffdio<T>(number: u64) -> u64 {
    0xC000_0000 | (size_of::<T>() as u64) << 16 | 0xAA00 | number
}

/// Memory that nobody has provided yet: whoever touches it, the kernel on a worker's behalf too, stays in that
/// access until the test provides it. This is how a worker is stalled in the middle of a system call.
pub struct Fault {
    uffd: OwnedFd,
    at: usize,
    len: usize,
    life: Arc<FaultLife>,
}

/// What became of the buffer over a [`Fault`]'s memory.
#[derive(Default)]
pub struct FaultLife {
    drops: AtomicUsize,
    provided: AtomicBool,
    early: AtomicBool,
}

impl FaultLife {
    /// How often the buffer was dropped.
    pub fn drops(&self) -> usize {
        self.drops.load(Acquire)
    }

    /// Whether it was dropped while somebody was still in it.
    pub fn was_early(&self) -> bool {
        self.early.load(Acquire)
    }
}

/// The memory of a [`Fault`], as a buffer to read into or to write from. `BULK` makes the value larger.
pub struct FaultBuffer<const BULK: usize> {
    at: usize,
    len: usize,
    life: Arc<FaultLife>,
    panics: bool,
    _bulk: [u8; BULK],
}

/// What a test says where the system does not let it stall anybody.
pub type Refused = String;

impl Fault {
    /// So many bytes, a multiple of the page's size.
    ///
    /// # Errors
    /// Why it cannot be had: without privileges, the kernel's own accesses may not be stalled.
    pub fn new(len: usize) -> Result<Fault, Refused> {
        let failed = |what: &str| format!("{what}: {}", io::Error::last_os_error());
        // SAFETY: the calls concern a descriptor and a mapping of our own. The mapping is never unmapped: whoever
        // used it too late would else hit what took its place.
        unsafe {
            let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK);
            if fd < 0 {
                return Err(failed("userfaultfd"));
            }
            let uffd = OwnedFd::from_raw_fd(fd as i32);
            let mut api = UffdApi { api: 0xAA, features: 0, ioctls: 0 };
            if libc::ioctl(uffd.as_raw_fd(), uffdio::<UffdApi>(0x3F) as _, &mut api) != 0 {
                return Err(failed("UFFDIO_API"));
            }
            let at = libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(failed("mmap"));
            }
            // UFFDIO_REGISTER_MODE_MISSING
            let mut range = UffdRange { start: at as u64, len: len as u64, mode: 1, result: 0 };
            if libc::ioctl(uffd.as_raw_fd(), uffdio::<UffdRange>(0) as _, &mut range) != 0 {
                return Err(failed("UFFDIO_REGISTER"));
            }
            Ok(Fault { uffd, at: at as usize, len, life: Arc::default() })
        }
    }

    /// The buffer, and the record of its life. To be called once.
    pub fn buffer<const BULK: usize>(&self) -> (Arc<FaultLife>, FaultBuffer<BULK>) {
        let life = Arc::clone(&self.life);
        (Arc::clone(&life), FaultBuffer { at: self.at, len: self.len, life, panics: false, _bulk: [0; BULK] })
    }

    /// Waits until somebody is stalled.
    pub fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.uffd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure is ours. The message is not read: it stays until the page is there.
        let ready = unsafe { libc::poll(&mut poll, 1, 10_000) };
        assert_eq!(ready, 1, "nobody touched the memory within 10 s");
    }

    /// Whether somebody is stalled now.
    pub fn is_touched(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.uffd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure is ours.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    /// Provides the memory, holding `bytes` and then zeros: whoever is stalled goes on.
    pub fn provide(&self, bytes: &[u8]) {
        let mut whole = vec![0_u8; self.len];
        whole[..bytes.len()].copy_from_slice(bytes);
        self.life.provided.store(true, SeqCst);
        let mut copy = UffdCopy {
            to: self.at as u64,
            from: whole.as_ptr() as u64,
            len: self.len as u64,
            mode: 0,
            copied: 0,
        };
        // SAFETY: both ranges are ours and of that length.
        let r = unsafe { libc::ioctl(self.uffd.as_raw_fd(), uffdio::<UffdCopy>(3) as _, &mut copy) };
        assert_eq!(r, 0, "UFFDIO_COPY: {}", io::Error::last_os_error());
    }

    /// What the memory holds, once it was provided.
    pub fn bytes(&self) -> Vec<u8> {
        assert!(self.life.provided.load(SeqCst), "the memory is not there yet");
        // SAFETY: the mapping stays for ever.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.len).to_vec() }
    }
}

impl Drop for Fault {
    /// A test that fails must not leave a thread behind that nobody can end.
    fn drop(&mut self) {
        if !self.life.provided.load(SeqCst) {
            self.provide(&[]);
        }
    }
}

impl<const BULK: usize> std::fmt::Debug for FaultBuffer<BULK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultBuffer").finish_non_exhaustive()
    }
}

impl<const BULK: usize> FaultBuffer<BULK> {
    /// Its drop panics, after it was counted.
    pub fn panicking(mut self) -> Self {
        self.panics = true;
        self
    }
}

impl<const BULK: usize> Drop for FaultBuffer<BULK> {
    fn drop(&mut self) {
        if !self.life.provided.load(SeqCst) {
            self.life.early.store(true, SeqCst);
        }
        self.life.drops.fetch_add(1, AcqRel);
        assert!(!self.panics, "the drop of this buffer panics");
    }
}

// SAFETY: the mapping stays where it is.
unsafe impl<const BULK: usize> IoBuf for FaultBuffer<BULK> {
    fn as_io_ptr(&self) -> *const u8 {
        self.at as *const u8
    }

    fn io_len(&self) -> usize {
        self.len
    }
}

// SAFETY: as above; it is writable.
unsafe impl<const BULK: usize> IoBufMut for FaultBuffer<BULK> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.at as *mut u8
    }

    fn io_room(&self) -> usize {
        self.len
    }

    unsafe fn set_filled(&mut self, _: usize) {}
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
