//! A future may be dropped in any state: the buffer is freed once, as soon as nobody uses it and not before, and the
//! file, the engine and its workers stay whole.
//!
//! The buffers here keep a record: memory that is used after the drop is found out. A worker is held in a waker, or
//! stalled in the middle of a system call by memory that is not there yet (userfaultfd, which needs privileges).

use haft::engine::{Engine, Stats};
#[cfg(target_os = "linux")]
use haft::fs::OpenOptions;
use haft::fs::{File, IoBuf};
use haft_tests::files::{
    Canary, Count, HeldWorkers, block_on, ends_within, file_with, kinds, pattern, poll, pool_engine, spin_on,
};
#[cfg(target_os = "linux")]
use haft_tests::files::{Fault, signals_of, takes_nowait, threads_named};
use haft_tests::{eventually, isolated, skip, watchdog};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
#[cfg(target_os = "linux")]
use std::task::Poll;
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

const LEN: usize = 4096;
const SOON: Duration = Duration::from_secs(5);

/// An engine with one worker, and a file of one page.
fn stage(folder: &Path) -> (Engine, File) {
    let engine = pool_engine(1);
    let file = file_with(&engine, folder, &pattern(9, LEN));
    (engine, file)
}

/// Everything that was queued is accounted for, and operations go on.
#[track_caller]
fn check_engine(engine: &Engine, file: &File) {
    let read = block_on(file.read_at_async(vec![0; 16], 0)).expect("the engine goes on");
    assert_eq!(read.0, 16);
    let at_rest = |stats: Stats| stats.queued == stats.completed + stats.cancelled + stats.abandoned;
    assert!(at_rest(engine.stats()), "{:?}", engine.stats());
}

/// For these values' sizes: below and above the 64 bytes that fit an operation's cell.
macro_rules! for_sizes {
    ($test:ident) => {{
        $test::<0>();
        $test::<56>();
        $test::<57>();
        $test::<500>();
    }};
}

fn never_polled<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let (read, canary) = Canary::<BULK>::new(&[0; LEN]);
    drop(file.read_at_async(canary, 0));
    read.check();
    let (written, canary) = Canary::<BULK>::new(&[1; LEN]);
    drop(file.write_all_at_async(canary, 0));
    written.check();
    check_engine(&engine, &file);
    assert_eq!(engine.stats().queued, 1, "only the check itself");
    assert_eq!(block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap(), pattern(9, LEN));
}

#[test]
fn dropped_before_the_first_poll() {
    for_sizes!(never_polled);
}

#[cfg(target_os = "linux")]
fn after_a_yield<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits");
    std::fs::write(&path, pattern(9, LEN)).unwrap();
    let engine = Engine::builder().build();
    let file = OpenOptions::new().read(true).engine(&engine).open(&path).unwrap();
    for _ in 0..3000 {
        let (record, canary) = Canary::<BULK>::new(&[0; 64]);
        let (count, waker) = Count::new();
        let mut future = Box::pin(file.read_at_async(canary, 0));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(ended) => drop(ended),
            Poll::Pending => {
                assert_eq!(engine.stats().queued, 0, "a yield queues nothing");
                assert_eq!(count.get(), 1, "a yield wakes at once");
                drop(future);
                record.check();
                check_engine(&engine, &file);
                return;
            }
        }
        record.check();
    }
    panic!("no read yielded in 3000");
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_after_a_yield() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe");
    std::fs::write(&path, b"x").unwrap();
    if !takes_nowait(&path) {
        skip!("the file system of {} refuses RWF_NOWAIT", folder.path().display());
    }
    for_sizes!(after_a_yield);
}

fn queued<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let held = HeldWorkers::hold(&engine, 1);
    for place in 0..4 {
        // Dropped as the first, in the middle, as the last, and alone in the queue.
        let others = if place == 3 { 0 } else { 2 };
        let (first, canary) = Canary::<BULK>::new(&[0; LEN]);
        let (second, other) = Canary::<BULK>::new(&[0; LEN]);
        let (write, source) = Canary::<BULK>::new(&[0xEE; LEN]);
        let mut a = Some(Box::pin(file.read_at_async(canary, 0)));
        let mut b = Some(Box::pin(file.read_exact_at_async(other, 0)));
        let mut w = Some(Box::pin(file.write_all_at_async(source, 0)));
        let before = engine.stats().cancelled;
        match place {
            0 | 3 => assert!(poll(w.as_mut().unwrap().as_mut()).is_pending()),
            _ => {}
        }
        if others > 0 {
            assert!(poll(a.as_mut().unwrap().as_mut()).is_pending());
            if place == 1 {
                assert!(poll(w.as_mut().unwrap().as_mut()).is_pending());
            }
            assert!(poll(b.as_mut().unwrap().as_mut()).is_pending());
            if place == 2 {
                assert!(poll(w.as_mut().unwrap().as_mut()).is_pending());
            }
        }
        w = None;
        assert!(w.is_none());
        write.check();
        assert_eq!(engine.stats().cancelled, before + 1, "it was taken out of the queue");
        assert_eq!((first.drops(), second.drops()), (0, 0), "the others wait on");
        (a, b) = (None, None);
        assert!(a.is_none() && b.is_none());
        first.check();
        second.check();
    }
    for (n, dropped) in [
        poll_and_drop(file.len_async()),
        poll_and_drop(file.set_len_async(1)),
        poll_and_drop(file.sync_all_async()),
        poll_and_drop(file.sync_data_async()),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(dropped, "operation {n} waited");
    }
    held.release();
    let content = block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap();
    assert!(content == pattern(9, LEN), "what was dropped while queued never happened");
    check_engine(&engine, &file);
}

/// Whether it was pending.
fn poll_and_drop(future: impl Future) -> bool {
    let mut future = Box::pin(future);
    poll(future.as_mut()).is_pending()
}

// Fails when Operation::forsake (fs/futures.rs) abandons without trying to cancel.
#[test]
fn dropped_while_queued_it_never_happens_and_the_buffer_is_freed_at_once() {
    watchdog!();
    for_sizes!(queued);
}

#[cfg(target_os = "linux")]
fn running_read<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let fault = Fault::new(LEN).unwrap();
    let (life, buffer) = fault.buffer::<BULK>();
    let mut future = Box::pin(file.read_at_async(buffer, 0));
    assert!(poll(future.as_mut()).is_pending());
    fault.wait();
    assert!(poll(future.as_mut()).is_pending());
    drop(future);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(life.drops(), 0, "the worker still writes into it");
    assert_eq!(engine.stats().abandoned, 1);
    fault.provide(&[]);
    assert!(eventually(SOON, || life.drops() == 1), "it is freed when the system call ends");
    assert!(!life.was_early());
    check_engine(&engine, &file);
    assert_eq!(life.drops(), 1);
    assert_eq!(fault.bytes(), pattern(9, LEN), "the read itself went through");
}

#[cfg(target_os = "linux")]
fn running_write<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let fault = Fault::new(LEN).unwrap();
    let (life, buffer) = fault.buffer::<BULK>();
    let mut future = Box::pin(file.write_all_at_async(buffer, 0));
    assert!(poll(future.as_mut()).is_pending());
    fault.wait();
    drop(future);
    assert_eq!(life.drops(), 0, "the worker still reads from it");
    fault.provide(&pattern(4, LEN));
    assert!(eventually(SOON, || life.drops() == 1), "it is freed when the system call ends");
    assert!(!life.was_early());
    check_engine(&engine, &file);
    let content = block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap();
    assert_eq!(content, pattern(4, LEN), "what runs, happens");
    assert_eq!(life.drops(), 1);
}

/// Skips where nobody can be stalled.
#[cfg(target_os = "linux")]
macro_rules! need_fault {
    () => {
        if let Err(why) = Fault::new(LEN) {
            skip!("{why}");
        }
    };
}

// rio#1, glommio#52, foyer#1286. Fails when Operation::forsake (fs/futures.rs) drops the buffer itself and leaves
// nothing in the stash.
#[cfg(target_os = "linux")]
#[test]
fn dropped_while_running_the_buffer_is_kept_until_the_system_call_ends() {
    watchdog!();
    need_fault!();
    for_sizes!(running_read);
    for_sizes!(running_write);
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_while_running_together_with_the_file_and_the_engine() {
    isolated!({
        watchdog!();
        need_fault!();
        let folder = tempfile::tempdir().unwrap();
        let (engine, file) = stage(folder.path());
        let fault = Fault::new(LEN).unwrap();
        let (life, buffer) = fault.buffer::<0>();
        let mut future = Box::pin(file.read_at_async(buffer, 0));
        assert!(poll(future.as_mut()).is_pending());
        fault.wait();
        drop(future);
        drop(file);
        drop(engine);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(life.drops(), 0);
        assert_eq!(threads_named("haft-io").len(), 1);
        fault.provide(&[]);
        assert!(eventually(SOON, || life.drops() == 1));
        assert!(eventually(SOON, || threads_named("haft-io").is_empty()), "then the worker ends");
        assert!(!life.was_early());
    });
}

// What waits behind the running one goes on to be done, or not to be done, as ever.
#[cfg(target_os = "linux")]
#[test]
fn others_queued_behind_a_running_one_that_is_dropped() {
    watchdog!();
    need_fault!();
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let fault = Fault::new(LEN).unwrap();
    let (life, buffer) = fault.buffer::<0>();
    let mut running = Box::pin(file.read_at_async(buffer, 0));
    assert!(poll(running.as_mut()).is_pending());
    fault.wait();
    let mut kept = Box::pin(file.read_exact_at_async(vec![0; LEN], 0));
    assert!(poll(kept.as_mut()).is_pending());
    let (record, canary) = Canary::<0>::new(&[0; LEN]);
    let mut dropped = Box::pin(file.read_at_async(canary, 0));
    assert!(poll(dropped.as_mut()).is_pending());
    drop(running);
    drop(dropped);
    record.check();
    fault.provide(&[]);
    assert_eq!(block_on(kept).unwrap(), pattern(9, LEN));
    assert_eq!((life.drops(), life.was_early()), (1, false));
    assert_eq!((engine.stats().abandoned, engine.stats().cancelled), (1, 1));
    check_engine(&engine, &file);
}

// A write of two pages whose first system call is cut short at the process's limit: the second would raise SIGXFSZ,
// which stays pending in the worker, where all signals are blocked. Fails when `transfer` (engine/perform.rs) does not
// ask `abandoned()`.
#[cfg(target_os = "linux")]
#[test]
fn dropped_while_running_no_further_step_starts() {
    isolated!({
        watchdog!();
        need_fault!();
        let folder = tempfile::tempdir().unwrap();
        let limit = libc::rlimit { rlim_cur: LEN as u64, rlim_max: libc::RLIM_INFINITY };
        let xfsz = 1_u64 << (libc::SIGXFSZ - 1);
        for dropped in [true, false] {
            let (engine, file) = stage(folder.path());
            // SAFETY: sets a limit of this process.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
            let fault = Fault::new(2 * LEN).unwrap();
            let (life, buffer) = fault.buffer::<0>();
            let mut future = Box::pin(file.write_all_at_async(buffer, 0));
            assert!(poll(future.as_mut()).is_pending());
            fault.wait();
            if dropped {
                drop(future);
                fault.provide(&pattern(2, 2 * LEN));
                assert!(eventually(SOON, || life.drops() == 1));
            } else {
                fault.provide(&pattern(2, 2 * LEN));
                let error = block_on(future).unwrap_err();
                assert_eq!(error.error().raw_os_error(), Some(libc::EFBIG), "{error:?}");
                assert_eq!(error.done(), LEN, "what was written before is told");
            }
            let worker = threads_named("haft-io")[0];
            let pending = signals_of(worker, "SigPnd").unwrap() & xfsz != 0;
            assert_eq!(pending, !dropped, "a second step was tried");
            assert_eq!(file.len().unwrap(), LEN as u64);
            drop((file, engine));
            assert!(eventually(SOON, || threads_named("haft-io").is_empty()));
        }
    });
}

fn done_but_not_received<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    for _ in 0..50 {
        // Held first, so that the poll's own look cannot see the end.
        let held = HeldWorkers::hold(&engine, 1);
        let (record, canary) = Canary::<BULK>::new(&[0; LEN]);
        let (count, waker) = Count::new();
        let mut future = Box::pin(file.read_at_async(canary, 0));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        held.release();
        assert!(eventually(SOON, || count.get() == 1));
        assert_eq!(record.drops(), 0);
        drop(future);
        record.check();
    }
    check_engine(&engine, &file);
    assert_eq!(engine.stats().cancelled + engine.stats().abandoned, 0, "{:?}", engine.stats());
    assert_eq!(engine.stats().cells, 32, "and no cell is lost");
}

#[test]
fn dropped_when_done_but_not_received() {
    watchdog!();
    for_sizes!(done_but_not_received);
}

// The buffer comes back with the result and is its receiver's.
fn received<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let (record, canary) = Canary::<BULK>::new(&[0; LEN]);
    let (read, canary) = spin_on(file.read_at_async(canary, 0)).unwrap();
    assert_eq!((read, record.drops()), (LEN, 0));
    assert_eq!(canary.bytes(), pattern(9, LEN));
    let canary = block_on(file.write_all_at_async(canary, 0)).unwrap();
    let canary = block_on(file.read_exact_at_async(canary.slice(1..9), 0)).unwrap().into_inner();
    let error = block_on(file.read_exact_at_async(canary, LEN as u64 - 8)).unwrap_err();
    let (_, done, canary) = error.into_parts();
    assert_eq!((done, record.drops()), (8, 0));
    drop(canary);
    record.check();
    check_engine(&engine, &file);
}

#[test]
fn received_buffers_belong_to_the_receiver() {
    watchdog!();
    for_sizes!(received);
}

// Drops at random moments, by many threads: whatever the state was, nothing is used after its drop or dropped twice.
fn any_moment<const BULK: usize>() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mut options) in kinds() {
        let engine = pool_engine(3);
        let path = folder.path().join(name);
        std::fs::write(&path, pattern(9, LEN)).unwrap();
        at_any_moment::<BULK>(&engine, &options.engine(&engine).open(path).unwrap());
    }
}

fn at_any_moment<const BULK: usize>(engine: &Engine, file: &File) {
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut dice = haft_tests::Dice::new(seed);
                let mut records = Vec::new();
                for _ in 0..400 * haft_tests::soak() {
                    let (record, canary) = Canary::<BULK>::new(&pattern(9, LEN));
                    records.push(record);
                    if dice.below(2) == 0 {
                        let mut future = pin!(file.read_at_async(canary, 0));
                        drive_a_little(&mut dice, future.as_mut());
                    } else {
                        let mut future = pin!(file.write_at_async(canary, 0));
                        drive_a_little(&mut dice, future.as_mut());
                    }
                }
                let freed = || records.iter().all(|record| record.drops() == 1);
                assert!(eventually(SOON, freed), "every buffer is freed");
                records.iter().for_each(|record| record.check());
            });
        }
    });
    let content = block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap();
    assert!(content == pattern(9, LEN), "no write came from a freed buffer");
    check_engine(engine, file);
}

fn drive_a_little<F: Future>(dice: &mut haft_tests::Dice, mut future: std::pin::Pin<&mut F>) {
    let (_, waker) = Count::new();
    for _ in 0..dice.below(4) {
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return;
        }
        for _ in 0..dice.below(300) {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn dropped_at_any_moment() {
    watchdog!();
    for_sizes!(any_moment);
}

/// Messages of panics that are meant go nowhere.
fn silence() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Says what failed past the silence.
fn loudly(body: impl FnOnce()) {
    silence();
    let ended = catch_unwind(AssertUnwindSafe(body));
    drop(std::panic::take_hook());
    if let Err(why) = ended {
        let text = why.downcast_ref::<String>().cloned();
        panic!("{}", text.or_else(|| why.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default());
    }
}

#[test]
fn a_buffer_whose_drop_panics_while_queued_or_done_costs_nothing_else() {
    isolated!({
        watchdog!();
        loudly(|| {
            let folder = tempfile::tempdir().unwrap();
            let (engine, file) = stage(folder.path());
            for done in [false, true] {
                for _ in 0..100 {
                    let held = HeldWorkers::hold(&engine, 1);
                    let (record, canary) = Canary::<0>::panicking(&[0; LEN]);
                    let (large_record, large) = Canary::<99>::panicking(&[0; LEN]);
                    let (count, waker) = Count::new();
                    let mut cx = Context::from_waker(&waker);
                    let mut small = Box::pin(file.read_at_async(canary, 0));
                    let mut large = Box::pin(file.read_at_async(large, 0));
                    assert!(small.as_mut().poll(&mut cx).is_pending());
                    assert!(large.as_mut().poll(&mut cx).is_pending());
                    let mut held = Some(held);
                    if done {
                        held.take().unwrap().release();
                        assert!(eventually(SOON, || count.get() == 2));
                    }
                    assert!(
                        catch_unwind(AssertUnwindSafe(|| drop(small))).is_err(),
                        "it comes to the dropper"
                    );
                    assert!(
                        catch_unwind(AssertUnwindSafe(|| drop(large))).is_err(),
                        "it comes to the dropper"
                    );
                    record.check();
                    large_record.check();
                }
            }
            // Fails when Operation::forsake (fs/futures.rs) drops a buffer that came back before it has given the
            // cell back: a panic loses the cell, and the count of what was completed.
            check_engine(&engine, &file);
            assert_eq!(engine.stats().cells, 32, "no cell is lost: {:?}", engine.stats());
        });
    });
}

// Fails when CompleterSide::discard (engine/cell.rs) does not catch.
#[cfg(target_os = "linux")]
#[test]
fn a_buffer_whose_drop_panics_in_a_worker_does_not_cost_the_worker() {
    isolated!({
        watchdog!();
        need_fault!();
        loudly(|| {
            let folder = tempfile::tempdir().unwrap();
            let (engine, file) = stage(folder.path());
            for n in 0..40 {
                let fault = Fault::new(LEN).unwrap();
                let (life, buffer) = fault.buffer::<0>();
                let (boxed_life, boxed) = fault.buffer::<99>();
                drop(boxed);
                assert_eq!(boxed_life.drops(), 1);
                let mut future = Box::pin(file.read_at_async(buffer.panicking(), 0));
                assert!(poll(future.as_mut()).is_pending());
                fault.wait();
                drop(future);
                fault.provide(&[]);
                assert!(eventually(SOON, || life.drops() == 2), "round {n}");
            }
            check_engine(&engine, &file);
            assert_eq!((engine.stats().cells, engine.stats().threads), (32, 1), "{:?}", engine.stats());
        });
    });
}

/// How often the wakers below were called.
static WAKES: AtomicUsize = AtomicUsize::new(0);

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        WAKES.fetch_add(1, SeqCst);
        panic!("this waker panics");
    }
}

#[cfg(windows)]
#[test]
fn dropped_while_running() {
    skip!("nothing stalls a system call here; the library's own tests drop reads of empty pipes, which wait");
}

/// One queued read that is polled with this waker, and polled again once that was called.
fn read_with(engine: &Engine, file: &File, waker: &Waker) {
    let wakes = WAKES.load(SeqCst);
    let held = HeldWorkers::hold(engine, 1);
    let mut future = Box::pin(file.read_at_async(vec![0; LEN], 0));
    assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    held.release();
    assert!(eventually(SOON, || WAKES.load(SeqCst) == wakes + 1), "it is called once");
    assert_eq!(spin_on(future).unwrap().0, LEN, "the operation is done all the same");
}

// Fails when Pool::aside (engine/pool.rs) does not catch.
#[test]
fn a_waker_that_panics_does_not_cost_the_worker() {
    isolated!({
        watchdog!();
        loudly(|| {
            let folder = tempfile::tempdir().unwrap();
            let (engine, file) = stage(folder.path());
            for _ in 0..100 {
                read_with(&engine, &file, &Waker::from(Arc::new(Panics)));
            }
            check_engine(&engine, &file);
            assert_eq!((engine.stats().cells, engine.stats().threads), (32, 1), "{:?}", engine.stats());
        });
    });
}

/// The payload of a panic that panics when it is dropped.
struct Worse;

impl Drop for Worse {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("and so does what it panicked with");
        }
    }
}

impl Wake for Worse {
    fn wake(self: Arc<Self>) {
        WAKES.fetch_add(1, SeqCst);
        // This one is not to be dropped by the unwinding itself.
        std::mem::forget(self);
        panic_any(Worse);
    }
}

// Fails when Pool::aside (engine/pool.rs) drops what catch_unwind caught instead of forgetting it.
#[test]
fn a_panic_whose_payload_panics_does_not_cost_the_worker() {
    isolated!({
        watchdog!();
        loudly(|| {
            let folder = tempfile::tempdir().unwrap();
            let (engine, file) = stage(folder.path());
            let waker = std::mem::ManuallyDrop::new(Waker::from(Arc::new(Worse)));
            read_with(&engine, &file, &waker);
            let again = file.clone();
            let goes_on = move || assert_eq!(block_on(again.len_async()).unwrap(), LEN as u64);
            assert!(ends_within(Duration::from_secs(3), goes_on), "the only worker is gone");
            assert_eq!(engine.stats().threads, 1);
        });
    });
}

/// A waker whose clone panics.
fn unclonable() -> Waker {
    fn clone(_: *const ()) -> RawWaker {
        panic!("the clone of this waker panics");
    }
    fn nothing(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    // SAFETY: the functions touch nothing; that a clone may panic is no less than a Waker's user has to expect.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}

// The waker is cloned when the operation is queued already. Fails when Operation::queue (fs/futures.rs) registers the
// waker before it has stored the stage: unwinding then takes the operation for one that has not begun, and frees the
// buffer under the worker's hands.
#[test]
fn a_waker_whose_clone_panics_does_not_free_the_buffer_of_a_queued_operation() {
    isolated!({
        watchdog!();
        loudly(|| {
            let folder = tempfile::tempdir().unwrap();
            let (engine, file) = stage(folder.path());
            let held = HeldWorkers::hold(&engine, 1);
            let (record, canary) = Canary::<0>::new(&[0; LEN]);
            let waker = unclonable();
            let before = engine.stats().queued;
            let mut future = Box::pin(file.read_at_async(canary, 0));
            let polled =
                catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
            assert!(polled.is_err(), "the panic comes to the poller");
            assert_eq!(engine.stats().queued, before + 1, "{:?}", engine.stats());
            drop(future);
            held.release();
            block_on(file.len_async()).unwrap();
            record.check();
            check_engine(&engine, &file);
        });
    });
}

// A future that is never dropped keeps its buffer and the file for ever, and nothing else comes of it.
#[test]
fn forgotten_futures_harm_nobody() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let (engine, file) = stage(folder.path());
    let held = HeldWorkers::hold(&engine, 1);
    let mut records = Vec::new();
    for _ in 0..50 {
        let (record, canary) = Canary::<0>::new(&pattern(8, LEN));
        let (boxed_record, boxed) = Canary::<99>::new(&[0; LEN]);
        let mut write = Box::pin(file.write_all_at_async(canary, 0));
        let mut read = Box::pin(file.read_at_async(boxed, 0));
        assert!(poll(write.as_mut()).is_pending());
        assert!(poll(read.as_mut()).is_pending());
        std::mem::forget((write, read));
        records.extend([record, boxed_record]);
    }
    std::mem::forget(Box::pin(file.read_at_async(vec![0; 8], 0)));
    held.release();
    let content = block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap();
    assert_eq!(content, pattern(8, LEN), "they happen");
    assert!(records.iter().all(|record| record.drops() == 0));
    let stats = engine.stats();
    assert_eq!(stats.queued, stats.completed + 100, "{stats:?}");
    file.try_into_std().expect("no operation holds it, though their futures are there");
}

#[cfg(target_os = "linux")]
#[test]
fn forgotten_while_running_the_file_closes_when_the_operation_ends() {
    isolated!({
        watchdog!();
        need_fault!();
        let folder = tempfile::tempdir().unwrap();
        let (engine, file) = stage(folder.path());
        let fd = file.as_raw_fd();
        let fault = Fault::new(LEN).unwrap();
        let (life, buffer) = fault.buffer::<0>();
        let mut future = Box::pin(file.read_at_async(buffer, 0));
        assert!(poll(future.as_mut()).is_pending());
        fault.wait();
        std::mem::forget(future);
        drop(file);
        thread::sleep(Duration::from_millis(5));
        assert!(haft_tests::id_of(fd).is_some(), "still open");
        fault.provide(&[]);
        assert!(eventually(SOON, || haft_tests::id_of(fd).is_none()), "closed");
        assert_eq!(life.drops(), 0);
        drop(engine);
    });
}
