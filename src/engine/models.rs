//! Models: loom runs the shipped cell, list, slab, waker slot and pool through the interleavings and the stale
//! reads that the memory model allows, up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p haft --lib --release models`
//!
//! loom itself reports an access to a cell's parts that nothing orders before the other side's, a leaked
//! allocation and a deadlock, which is how a lost wake-up shows. The models add what only they know: that each
//! buffer is dropped once, that the right outcome arrives, and that every cell comes back.

use super::{
    Lease, Outcome, Release, Shared, Work,
    cell::{Cell, Completed, Kind},
    handle::{Handle, HandleRef, Traits},
    open_cell,
    port::{AT_ONCE, Port},
    scripted::Step,
    slab::{Slab, Slot},
    waker::WakerSlot,
};
use crate::fs::{File, IoBufMut};
use loom::{
    cell::UnsafeCell,
    future::block_on,
    model::Builder,
    sync::{Arc as LoomArc, Condvar, Mutex, atomic::AtomicBool, atomic::Ordering::*},
    thread,
};
use std::{
    future::poll_fn,
    os::fd::AsRawFd,
    pin::{Pin, pin},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(body);
}

/// A buffer of one tracked number. loom objects to any use of it that is not ordered with the others, its
/// drop included.
struct Canary {
    value: Box<UnsafeCell<u32>>,
    drops: Arc<AtomicUsize>,
}

impl Canary {
    fn new() -> (Canary, Arc<AtomicUsize>) {
        let drops = Arc::default();
        (Canary { value: Box::new(UnsafeCell::new(1)), drops: Arc::clone(&drops) }, drops)
    }

    fn value(&self) -> u32 {
        // SAFETY: the canary is the caller's.
        self.value.with(|value| unsafe { *value })
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        // SAFETY: as is all of it, when it is dropped.
        self.value.with_mut(|value| unsafe { *value = 0 });
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: the number is on the heap. That it is no byte string is between the canary and `fill`.
unsafe impl IoBufMut for Canary {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        (&raw mut *self.value).cast()
    }

    fn io_room(&self) -> usize {
        FILLED as usize
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

const FILLED: u32 = 7;

/// Fills a canary as a worker fills a buffer: in two steps, between which it asks whether anybody cares.
fn fill(work: &Work, _: Option<&Handle>, abandoned: &dyn Fn() -> bool) -> Outcome {
    // SAFETY: the models queue canaries only.
    let value = unsafe { &*work.ptr.cast::<UnsafeCell<u32>>() };
    // SAFETY: the buffer is the operation's.
    value.with_mut(|value| unsafe { *value = 2 });
    if !abandoned() {
        // SAFETY: as above.
        value.with_mut(|value| unsafe { *value = FILLED });
    }
    Outcome { done: work.len as u64, fault: None }
}

fn lease(threads: usize) -> Arc<Lease> {
    lease_of(threads, fill, true)
}

fn lease_of(threads: usize, perform: super::Perform, parallel: bool) -> Arc<Lease> {
    Arc::new(Lease {
        shared: Shared::new(threads, perform),
        blocks: Arc::default(),
        inline_limit: 0,
        parallel,
    })
}

fn file(lease: &Arc<Lease>) -> File {
    let null = std::fs::File::open("/dev/null").unwrap();
    File::from_handle(HandleRef::new(lease, null.into(), Traits::default()))
}

/// Starts `count` workers of the lease's pool.
fn workers(lease: &Arc<Lease>, count: usize) -> Vec<thread::JoinHandle<()>> {
    let start = |_| {
        lease.shared.pool.enrol();
        let shared = Arc::clone(&lease.shared);
        thread::spawn(move || shared.pool.work(&shared))
    };
    (0..count).map(start).collect()
}

/// Ends a model of a pool: the last file and the engine go, the workers end, and the cells are idle.
fn end(file: File, lease: Arc<Lease>, workers: Vec<thread::JoinHandle<()>>) {
    let shared = Arc::clone(&lease.shared);
    drop((file, lease));
    for worker in workers {
        worker.join().unwrap();
    }
    let made = shared.cells.made();
    for _ in 0..2 {
        // SAFETY: cells live as long as the store, and this one is nobody else's now.
        assert!(unsafe { shared.cells.take().as_ref() }.holds_nothing(), "an idle cell holds something");
    }
    assert_eq!(shared.cells.made(), made.max(2), "a cell is lost");
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn waker_slot_never_loses_the_wake_up() {
    model(3, || {
        let slot = LoomArc::new((WakerSlot::new(), AtomicBool::new(false)));
        let completer = LoomArc::clone(&slot);
        let thread = thread::spawn(move || {
            // As weak as it can be: what orders the flag is the slot.
            completer.1.store(true, Relaxed);
            if let Some(waker) = completer.0.take() {
                waker.wake();
            }
        });
        block_on(poll_fn(|cx| {
            if slot.1.load(Relaxed) {
                return Poll::Ready(());
            }
            slot.0.register(cx.waker());
            if slot.1.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
        }));
        thread.join().unwrap();
    });
}

#[test]
fn waker_slot_gives_a_waker_to_one_of_two_takers() {
    model(3, || {
        let slot = LoomArc::new(WakerSlot::new());
        slot.register(Waker::noop());
        let other = LoomArc::clone(&slot);
        let thread = thread::spawn(move || usize::from(other.take().is_some()));
        let mine = usize::from(slot.take().is_some());
        assert_eq!(mine + thread.join().unwrap(), 1);
        // And the slot is usable again.
        slot.register(Waker::noop());
        assert!(slot.take().is_some());
    });
}

#[test]
fn waker_slot_serves_the_next_user_of_its_cell() {
    model(3, || {
        let slot = LoomArc::new(WakerSlot::new());
        slot.register(Waker::noop());
        let other = LoomArc::clone(&slot);
        let thread = thread::spawn(move || drop(other.take()));
        slot.register(Waker::noop());
        drop(slot.take());
        thread.join().unwrap();
        assert!(slot.take().is_none());
    });
}

#[test]
fn waker_slot_is_whole_for_a_second_taker() {
    model(3, || {
        let slot = LoomArc::new(WakerSlot::new());
        let other = LoomArc::clone(&slot);
        let thread = thread::spawn(move || {
            drop(other.take());
            drop(other.take());
        });
        slot.register(Waker::noop());
        thread.join().unwrap();
    });
}

/// A slab slot with a part that only its taker may touch.
struct Slip {
    index: u32,
    next: loom::sync::atomic::AtomicU32,
    owned: UnsafeCell<u32>,
}

impl Slot for Slip {
    fn new(index: u32) -> Slip {
        Slip { index, next: loom::sync::atomic::AtomicU32::new(0), owned: UnsafeCell::new(0) }
    }

    fn index(&self) -> u32 {
        self.index
    }

    unsafe fn next_idle<'a>(slot: NonNull<Slip>) -> &'a loom::sync::atomic::AtomicU32 {
        // SAFETY: the slot is alive; only this field of it is borrowed.
        unsafe { &(*slot.as_ptr()).next }
    }
}

fn use_slip(slab: &Slab<Slip>) {
    let slip = slab.take();
    // SAFETY: it was taken here, and slips are never freed before the slab.
    unsafe {
        slip.as_ref().owned.with_mut(|owned| *owned += 1);
        slab.give(slip);
    }
}

#[test]
fn slab_gives_a_slot_to_one_taker_with_all_that_the_last_one_did() {
    model(3, || {
        let slab = LoomArc::new(Slab::<Slip>::new());
        use_slip(&slab);
        let other = LoomArc::clone(&slab);
        let thread = thread::spawn(move || {
            use_slip(&other);
            use_slip(&other);
        });
        // Taking two and giving them back in the other order brings the same head back with another next:
        // without the tag, the other thread would install a slot that is in use.
        let (a, b) = (slab.take(), slab.take());
        // SAFETY: both were taken here.
        unsafe {
            a.as_ref().owned.with_mut(|owned| *owned += 1);
            slab.give(a);
            b.as_ref().owned.with_mut(|owned| *owned += 1);
            slab.give(b);
        }
        thread.join().unwrap();
        // Every slot is there, once.
        let mut seen: Vec<u32> = (0..4)
            .map(|_| {
                // SAFETY: taken just now.
                unsafe { slab.take().as_ref().index }
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
    });
}

#[test]
fn slab_survives_a_slot_that_went_and_came_back() {
    model(3, || {
        let slab = LoomArc::new(Slab::<Slip>::new());
        // The idle stack is now 0, 1.
        use_slip(&slab);
        let other = LoomArc::clone(&slab);
        let thread = thread::spawn(move || {
            let a = other.take();
            let b = other.take();
            // SAFETY: both were taken here; `b` stays with this thread.
            unsafe {
                other.give(a);
                b.as_ref().owned.with_mut(|owned| *owned += 1);
            }
            b.as_ptr() as usize
        });
        let mine = slab.take();
        // SAFETY: taken here.
        unsafe { mine.as_ref().owned.with_mut(|owned| *owned += 1) };
        let next = slab.take();
        // SAFETY: taken here.
        unsafe { next.as_ref().owned.with_mut(|owned| *owned += 1) };
        let theirs = thread.join().unwrap();
        assert_ne!(mine, next);
        assert!(mine.as_ptr() as usize != theirs && next.as_ptr() as usize != theirs);
    });
}

/// A whole operation by one thread, most likely in the cell that was given back last: nothing that anyone did with it
/// before may come later than this.
fn use_again(cells: &Slab<Cell>) {
    // SAFETY: no memory is named.
    let (mut future, completer) = unsafe { open_cell(cells.take(), Work::bare(Kind::Len, 0), None) };
    completer.cell().start();
    future.register(Waker::noop());
    let Completed::Wake(Some(_), completer) = completer.complete(Outcome { done: 1, fault: None }) else {
        panic!("it was registered and not abandoned");
    };
    assert!(matches!(completer.let_go(), Release::Held));
    let (Outcome { done: 1, fault: None }, Release::Idle(cell)) = future.finish() else {
        panic!("it has this outcome, and the future was the last");
    };
    // SAFETY: it is idle.
    unsafe { cells.give(cell) };
}

/// Both ends of a cell, without a pool: the completer in a thread of its own.
fn ends(body: impl Fn(super::FutureSide, &Slab<Cell>) + Send + Sync + 'static) {
    model(4, move || {
        let cells = LoomArc::new(Slab::<Cell>::new());
        let work = Work::bare(Kind::Len, 0);
        // SAFETY: the cells outlive both sides, and no memory is named.
        let (future, completer) = unsafe { open_cell(cells.take(), work, None) };
        completer.cell().start();
        let theirs = LoomArc::clone(&cells);
        let thread = thread::spawn(move || {
            let _ = completer.take_request();
            completer.is_abandoned();
            let outcome = Outcome { done: u64::from(FILLED), fault: None };
            let idle = match completer.complete(outcome) {
                Completed::Wake(waker, side) => {
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    match side.let_go() {
                        Release::Idle(cell) => Some(cell),
                        Release::Held => None,
                    }
                }
                Completed::Abandoned(side) => Some(side.discard()),
            };
            if let Some(cell) = idle {
                // SAFETY: this side was the last.
                unsafe { theirs.give(cell) };
            }
            use_again(&theirs);
        });
        body(future, &cells);
        use_again(&cells);
        thread.join().unwrap();
        // Whoever was last gave the cell back, once: both of the first segment's cells can be taken.
        let mut seen = [cells.take(), cells.take()].map(|cell| {
            // SAFETY: cells live as long as the slab.
            unsafe { cell.as_ref() }.index()
        });
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
    });
}

#[test]
fn cell_brings_the_outcome_to_a_future_that_waits() {
    ends(|future, cells| {
        let mut future = Some(future);
        let outcome = block_on(poll_fn(|cx| {
            let side = future.as_mut().expect("polled once after its end");
            if !side.is_done() {
                side.register(cx.waker());
                if !side.is_done() {
                    return Poll::Pending;
                }
            }
            let (outcome, release) = future.take().expect("it is there").finish();
            if let Release::Idle(cell) = release {
                // SAFETY: this side was the last.
                unsafe { cells.give(cell) };
            }
            Poll::Ready(outcome)
        }));
        assert_eq!(outcome, Outcome { done: u64::from(FILLED), fault: None });
    });
}

#[test]
fn cell_drops_an_abandoned_buffer_once() {
    // The counter is made anew for each run by being compared before and after.
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Buffer(Box<UnsafeCell<u32>>);
    impl Drop for Buffer {
        fn drop(&mut self) {
            // SAFETY: it is dropped.
            self.0.with_mut(|value| unsafe { *value = 0 });
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    ends(|future, cells| {
        let buffer = Buffer(Box::new(UnsafeCell::new(1)));
        if let Some((buffer, release)) = future.abandon(std::mem::MaybeUninit::new(buffer)) {
            // SAFETY: the operation was done, and the buffer came back.
            drop(unsafe { buffer.assume_init() });
            if let Release::Idle(cell) = release {
                // SAFETY: this side was the last.
                unsafe { cells.give(cell) };
            }
        }
    });
    assert!(DROPS.load(Ordering::Relaxed) > 0);
}

#[test]
fn pool_wakes_its_worker_for_each_operation() {
    model(2, || {
        let lease = lease(1);
        let workers = workers(&lease, 1);
        let file = file(&lease);
        for _ in 0..2 {
            let (canary, drops) = Canary::new();
            let (_, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
            assert_eq!(canary.value(), FILLED);
            drop(canary);
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
        end(file, lease, workers);
    });
}

#[test]
fn pool_leaves_no_operation_behind_when_two_come_at_once() {
    model(1, || {
        let lease = lease(2);
        let workers = workers(&lease, 2);
        let file = file(&lease);
        let (a, _) = Canary::new();
        let (b, _) = Canary::new();
        {
            let (mut a, mut b) = (pin!(file.read_at_async(a, 0)), pin!(file.read_at_async(b, 0)));
            // Both are queued before either is awaited.
            let (first, second) = (poll_once(a.as_mut()), poll_once(b.as_mut()));
            for (polled, future) in [(first, a), (second, b)] {
                let (_, canary) = match polled {
                    Poll::Ready(done) => done.unwrap(),
                    Poll::Pending => block_on(future).unwrap(),
                };
                assert_eq!(canary.value(), FILLED);
            }
        }
        end(file, lease, workers);
    });
}

/// A canary that stands for an operation which waits for another: the one opens the gate, the other waits for it.
struct Gated {
    canary: Canary,
    gate: Arc<Gate>,
    waits: bool,
}

struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

// SAFETY: as for Canary; the bytes stand for the whole, which is boxed by who queues it.
unsafe impl IoBufMut for Box<Gated> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        (&raw mut **self).cast()
    }

    fn io_room(&self) -> usize {
        1
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

fn through_the_gate(work: &Work, _: Option<&Handle>, _: &dyn Fn() -> bool) -> Outcome {
    // SAFETY: the model queues gated canaries only, and they are the operation's.
    let gated = unsafe { &*work.ptr.cast::<Gated>() };
    let mut open = gated.gate.open.lock().unwrap();
    if gated.waits {
        while !*open {
            open = gated.gate.changed.wait(open).unwrap();
        }
    } else {
        *open = true;
        gated.gate.changed.notify_all();
    }
    drop(open);
    // SAFETY: the buffer is the operation's.
    gated.canary.value.with_mut(|value| unsafe { *value = FILLED });
    Outcome { done: 1, fault: None }
}

#[test]
fn pool_does_what_waits_beside_an_operation_that_takes_long() {
    model(1, || {
        // A poll that looked for the end of the first would give the workers time before the second is queued.
        let lease = lease_of(2, through_the_gate, false);
        let workers = workers(&lease, 2);
        let file = file(&lease);
        let gate = Arc::new(Gate { open: Mutex::new(false), changed: Condvar::new() });
        let gated = |waits| Box::new(Gated { canary: Canary::new().0, gate: Arc::clone(&gate), waits });
        {
            let mut long = pin!(file.read_at_async(gated(true), 0));
            let mut short = pin!(file.read_at_async(gated(false), 0));
            // Queued in this order, so that the long one is begun first.
            let long_polled = poll_once(long.as_mut());
            let short_polled = poll_once(short.as_mut());
            for (polled, future) in [(short_polled, short), (long_polled, long)] {
                let (_, gated) = match polled {
                    Poll::Ready(done) => done.unwrap(),
                    Poll::Pending => block_on(future).unwrap(),
                };
                assert_eq!(gated.canary.value(), FILLED);
            }
        }
        end(file, lease, workers);
    });
}

#[test]
fn what_is_left_to_a_worker_that_cannot_start_is_done_by_another() {
    model(3, || {
        let lease = lease(2);
        // One worker; the second that the pool may have cannot start, in models.
        let workers = workers(&lease, 1);
        let shared = Arc::clone(&lease.shared);
        let thread = thread::spawn(move || shared.pool.fail_a_start(&shared));
        let file = file(&lease);
        let (canary, _) = Canary::new();
        let (_, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
        assert_eq!(canary.value(), FILLED);
        thread.join().unwrap();
        end(file, lease, workers);
    });
}

#[test]
fn a_dropped_operation_gives_its_buffer_back_once_in_every_state() {
    model(3, || {
        let lease = lease(1);
        let workers = workers(&lease, 1);
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        {
            let mut future = pin!(file.read_at_async(canary, 0));
            let _ = poll_once(future.as_mut());
            // Queued, running or done by now: dropped in that state.
        }
        // The next operation uses the same cell if the first has ended.
        let (next, _) = Canary::new();
        let (_, next) = block_on(file.read_at_async(next, 0)).unwrap();
        assert_eq!(next.value(), FILLED);
        end(file, lease, workers);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn an_operation_dropped_in_the_middle_of_the_queue_leaves_its_neighbours() {
    model(2, || {
        let lease = lease(1);
        let file = file(&lease);
        // Nobody looks yet, so all three wait.
        lease.shared.pool.enrol();
        let (canaries, drops): (Vec<_>, Vec<_>) = (0..3).map(|_| Canary::new()).unzip();
        let mut futures: Vec<_> =
            canaries.into_iter().map(|canary| Some(Box::pin(file.read_at_async(canary, 0)))).collect();
        for future in futures.iter_mut().flatten() {
            assert!(poll_once(future.as_mut()).is_pending());
        }
        let shared = Arc::clone(&lease.shared);
        let worker = thread::spawn(move || shared.pool.work(&shared));
        futures[1] = None;
        for future in futures.into_iter().flatten() {
            let (_, canary) = block_on(future).unwrap();
            assert_eq!(canary.value(), FILLED);
        }
        end(file, lease, vec![worker]);
        assert!(drops.iter().all(|drops| drops.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn an_operation_happens_although_no_worker_can_start() {
    model(2, || {
        let lease = lease(1);
        let file = file(&lease);
        let (canary, _) = Canary::new();
        let (_, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
        assert_eq!(canary.value(), FILLED);
    });
}

#[test]
fn two_tasks_share_the_cell_at_hand() {
    model(2, || {
        let lease = lease(1);
        let file = file(&lease);
        let read = |file: &File| {
            let (canary, _) = Canary::new();
            let (_, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
            assert_eq!(canary.value(), FILLED);
        };
        // Leaves a cell with the file.
        read(&file);
        let other = file.clone();
        let thread = thread::spawn(move || read(&other));
        read(&file);
        thread.join().unwrap();
    });
}

#[test]
fn the_last_reference_closes_the_file_after_every_use() {
    model(3, || {
        let lease = lease(1);
        let file = file(&lease);
        let other = file.clone();
        let thread = thread::spawn(move || {
            assert!(other.as_raw_fd() >= 0);
            drop(other);
        });
        assert!(file.as_raw_fd() >= 0);
        drop(file);
        thread.join().unwrap();
    });
}

#[test]
fn a_file_becomes_stds_after_every_other_use_or_not_at_all() {
    model(3, || {
        let lease = lease(1);
        let file = file(&lease);
        let other = file.clone();
        let thread = thread::spawn(move || {
            assert!(other.as_raw_fd() >= 0);
            drop(other);
        });
        // Too early as long as the other is there; afterwards the descriptor changes hands.
        if let Err(file) = file.try_into_std() {
            drop(file);
        }
        thread.join().unwrap();
    });
}

/// Fills a canary as the system does, when the step that fills it up has ended.
fn moved(work: &Work, bytes: usize) {
    if work.done + bytes == work.len {
        // SAFETY: the models queue canaries only, and this one is the operation's.
        unsafe { &*work.ptr.cast::<UnsafeCell<u32>>() }.with_mut(|value| unsafe { *value = FILLED });
    }
}

/// A system that carries operations by these steps, the first last; no worker of the pool.
fn scripted(steps: &[Step]) -> Arc<Lease> {
    let steps = steps.iter().rev().copied().collect();
    Arc::new(Lease {
        shared: Arc::new(Shared { port: Port::scripted(steps, moved), ..Shared::parts(1, fill) }),
        blocks: Arc::default(),
        inline_limit: 0,
        parallel: false,
    })
}

/// Ends a model of a scripted system.
fn end_scripted(file: File, lease: Arc<Lease>) {
    lease.shared.port.join();
    end(file, lease, Vec::new());
}

#[test]
fn a_step_that_ends_at_once_gives_its_result_to_the_poll_that_began_it() {
    model(3, || {
        let lease = scripted(&[Step::AtOnce(FILLED as usize)]);
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        let Poll::Ready(Ok((_, canary))) = poll_once(pin!(file.read_at_async(canary, 0))) else {
            panic!("it has ended");
        };
        assert_eq!(canary.value(), FILLED);
        drop(canary);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        end_scripted(file, lease);
    });
}

#[test]
fn the_end_of_a_step_and_the_return_of_its_call_may_come_in_either_order() {
    model(3, || {
        let lease = scripted(&[Step::Later(FILLED as usize)]);
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        let (read, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
        assert_eq!((read, canary.value()), (FILLED as usize, FILLED));
        drop(canary);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        end_scripted(file, lease);
    });
}

// The first reader's poll may find that its step has ended before the port hears of it, and then its cell is to stay out
// until the port does. Fails when `finish_untold` gives the cell back whether or not the end has been heard of, and when
// it never does.
#[test]
fn an_operation_that_a_poll_found_ended_keeps_its_cell_until_the_end_is_heard_of() {
    model(3, || {
        let lease = scripted(&[Step::Later(FILLED as usize), Step::Later(FILLED as usize)]);
        let file = file(&lease);
        for _ in 0..2 {
            let (canary, drops) = Canary::new();
            let (read, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
            assert_eq!((read, canary.value()), (FILLED as usize, FILLED));
            drop(canary);
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
        lease.shared.port.join();
        assert_eq!(lease.shared.untold.load(Ordering::Relaxed), 0);
        end(file, lease, Vec::new());
    });
}

#[test]
fn a_step_that_comes_short_is_followed_by_another_whoever_hears_of_it() {
    model(2, || {
        let lease = scripted(&[Step::Later(3), Step::AtOnce(1), Step::Later(3)]);
        let file = file(&lease);
        let (canary, _) = Canary::new();
        let reader = workers(&lease, 1);
        let (read, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
        assert_eq!((read, canary.value()), (FILLED as usize, FILLED));
        lease.shared.port.join();
        end(file, lease, reader);
    });
}

// Fails when `advance` hands on every part that ended at once (does not look at AT_ONCE): no worker is there.
#[test]
fn a_small_part_that_ends_at_once_is_followed_by_the_next_step_in_the_same_poll() {
    model(3, || {
        let rest = FILLED as usize - AT_ONCE + 1;
        let lease = scripted(&[Step::AtOnce(AT_ONCE - 1), Step::AtOnce(rest)]);
        // Nobody looks, so that what came to the pool would wait.
        lease.shared.pool.enrol();
        let file = file(&lease);
        let (canary, _) = Canary::new();
        let Poll::Ready(Ok((read, canary))) = poll_once(pin!(file.read_at_async(canary, 0))) else {
            panic!("it has ended");
        };
        assert_eq!((read, canary.value()), (FILLED as usize, FILLED));
        drop(canary);
        let shared = Arc::clone(&lease.shared);
        let worker = thread::spawn(move || shared.pool.work(&shared));
        end(file, lease, vec![worker]);
    });
}

#[test]
fn what_is_left_after_a_part_that_ended_at_once_goes_to_the_pool() {
    model(1, || {
        let lease = scripted(&[Step::AtOnce(3)]);
        let workers = workers(&lease, 1);
        let file = file(&lease);
        let (canary, _) = Canary::new();
        let (read, canary) = block_on(file.read_at_async(canary, 0)).unwrap();
        assert_eq!((read, canary.value()), (FILLED as usize, FILLED));
        end(file, lease, workers);
    });
}

#[test]
fn what_was_left_to_the_pool_and_waits_there_never_happens_once_it_is_dropped() {
    model(2, || {
        let lease = scripted(&[Step::AtOnce(3)]);
        // Nobody looks, so it waits.
        lease.shared.pool.enrol();
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        {
            let mut future = pin!(file.read_at_async(canary, 0));
            assert!(poll_once(future.as_mut()).is_pending());
        }
        assert_eq!(drops.load(Ordering::Relaxed), 1, "it was not taken back");
        // A worker that came now would find it, if it were still there.
        let shared = Arc::clone(&lease.shared);
        let worker = thread::spawn(move || shared.pool.work(&shared));
        end(file, lease, vec![worker]);
    });
}

#[test]
fn a_dropped_step_keeps_its_buffer_until_the_system_has_done_with_it() {
    model(3, || {
        let lease = scripted(&[Step::Later(FILLED as usize), Step::Later(FILLED as usize)]);
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        {
            let mut future = pin!(file.read_at_async(canary, 0));
            let _ = poll_once(future.as_mut());
        }
        let (next, _) = Canary::new();
        let (_, next) = block_on(file.read_at_async(next, 0)).unwrap();
        assert_eq!(next.value(), FILLED);
        drop(next);
        end_scripted(file, lease);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_step_that_would_never_end_is_cancelled_even_if_it_begins_as_its_future_goes() {
    model(3, || {
        // The second step begins on the thread that heard of the first one's end.
        let lease = scripted(&[Step::Later(3), Step::Never]);
        let file = file(&lease);
        let (canary, drops) = Canary::new();
        {
            let mut future = pin!(file.read_at_async(canary, 0));
            let _ = poll_once(future.as_mut());
        }
        lease.shared.port.join();
        assert_eq!(drops.load(Ordering::Relaxed), 1, "the system still has the buffer");
        end(file, lease, Vec::new());
    });
}
