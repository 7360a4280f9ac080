//! The futures of asynchronous operations, over one that they all share.
//!
//! An operation is *created* (nothing has happened, and the buffer is a plain value), *queued* (a carrier has
//! the other side of its cell, and the buffer is held as `MaybeUninit`, since moving a `Box` under a writing
//! worker would be undefined) or *ended*.

use super::{
    buf::{IoBuf, IoBufMut},
    error::{OpError, unexpected_end},
    vectored::Buffers,
};
use crate::{
    engine::{
        Block, By, Carrier, Fault, FutureSide, HandleRef, Kind, Lease, Outcome, Release, Submitted, Work,
        count, fits_stash,
        inline::{self, Attempt},
        open_cell,
    },
    sync::Look,
};
use std::{
    fmt, io,
    marker::{PhantomData, PhantomPinned},
    mem::MaybeUninit,
    pin::Pin,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};

/// How long a poll that has just queued an operation looks for its end before it returns `Pending`.
const POLL_LOOK: Duration = Duration::from_micros(2);

/// Where the bytes of an operation's buffer are.
pub(crate) trait Locate<B> {
    fn locate(buffer: &mut B) -> (*mut u8, usize);
}

/// The buffer is filled.
#[derive(Debug)]
pub(crate) struct Fill;
/// The buffer is only read.
#[derive(Debug)]
pub(crate) struct Drain;
/// There is no buffer.
#[derive(Debug)]
pub(crate) struct Bare;

impl<B: IoBufMut> Locate<B> for Fill {
    fn locate(buffer: &mut B) -> (*mut u8, usize) {
        let room = buffer.io_room();
        (buffer.as_io_mut_ptr(), room)
    }
}

impl<B: IoBuf> Locate<B> for Drain {
    fn locate(buffer: &mut B) -> (*mut u8, usize) {
        (buffer.as_io_ptr().cast_mut(), buffer.io_len())
    }
}

/// Each buffer of a list is filled.
#[derive(Debug)]
pub(crate) struct Scatter;
/// Each buffer of a list is only read.
#[derive(Debug)]
pub(crate) struct Gather;

impl<B: IoBufMut> Locate<Buffers<B>> for Scatter {
    fn locate(buffers: &mut Buffers<B>) -> (*mut u8, usize) {
        buffers.located(|buffer| {
            let room = buffer.io_room();
            (buffer.as_io_mut_ptr(), room)
        })
    }
}

impl<B: IoBuf> Locate<Buffers<B>> for Gather {
    fn locate(buffers: &mut Buffers<B>) -> (*mut u8, usize) {
        buffers.located(|buffer| (buffer.as_io_ptr().cast_mut(), buffer.io_len()))
    }
}

impl Locate<()> for Bare {
    fn locate((): &mut ()) -> (*mut u8, usize) {
        (std::ptr::null_mut(), 0)
    }
}

enum Stage {
    Created,
    Queued {
        cell: FutureSide,
        /// The counters of the thread that queued it.
        queued_by: Option<NonNull<Block>>,
    },
    Ended,
}

enum Held<B> {
    Own(MaybeUninit<B>),
    /// A buffer value too large for the cell's stash, from queueing on.
    Boxed(MaybeUninit<Box<B>>),
}

impl<B> Held<B> {
    /// # Safety
    /// The buffer is there, and is not used through `self` again.
    unsafe fn take(&mut self) -> B {
        match self {
            // SAFETY: the caller's.
            Held::Own(buffer) => unsafe { buffer.assume_init_read() },
            // SAFETY: the caller's.
            Held::Boxed(buffer) => unsafe { *buffer.assume_init_read() },
        }
    }
}

pub(crate) struct Operation<'a, B, L> {
    handle: &'a HandleRef,
    work: Work,
    stage: Stage,
    buffer: Held<B>,
    locate: PhantomData<fn() -> L>,
    _pinned: PhantomPinned,
}

// SAFETY: buffers are Send; the raw pointers are the buffer's own and the engine's.
unsafe impl<B: Send, L> Send for Operation<'_, B, L> {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl<B: Send, L> Sync for Operation<'_, B, L> {}

impl<'a, B, L: Locate<B>> Operation<'a, B, L> {
    pub(crate) fn new(handle: &'a HandleRef, kind: Kind, offset: u64, buffer: B) -> Self {
        Operation {
            handle,
            work: Work::bare(kind, offset),
            stage: Stage::Created,
            buffer: Held::Own(MaybeUninit::new(buffer)),
            locate: PhantomData,
            _pinned: PhantomPinned,
        }
    }

    /// The outcome, the buffer's length as it was located, and the buffer.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(Outcome, usize, B)> {
        // SAFETY: the buffer moves out only when nobody but this value refers to it.
        let this = unsafe { self.get_unchecked_mut() };
        match &mut this.stage {
            Stage::Created => this.begin(cx),
            Stage::Queued { .. } => this.wait(cx),
            Stage::Ended => panic!("a future of a finished operation was polled again"),
        }
    }

    #[inline(always)]
    fn begin(&mut self, cx: &mut Context<'_>) -> Poll<(Outcome, usize, B)> {
        let Held::Own(buffer) = &mut self.buffer else { unreachable!("only a queued buffer is boxed") };
        // SAFETY: nothing has happened yet, so the buffer is there.
        (self.work.ptr, self.work.len) = L::locate(unsafe { buffer.assume_init_mut() });
        let lease = self.handle.lease();
        let block = lease.blocks.current();
        if self.work.kind == Kind::Read {
            match inline::attempt(self.handle, lease, block, &mut self.work) {
                Attempt::Done(outcome) => return self.end(outcome),
                Attempt::Yield => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Attempt::HandOn => {}
            }
        }
        if matches!(self.work.kind, Kind::Write | Kind::WriteVectored) && self.handle.appends {
            return self.end(Outcome { done: 0, fault: Some(Fault::Appends) });
        }
        let by = lease.shared.route(self.handle, &self.work);
        if by == By::System && !inline::spend(block, self.work.len) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.queue(lease, block, by, cx)
    }

    #[inline]
    fn end(&mut self, outcome: Outcome) -> Poll<(Outcome, usize, B)> {
        self.stage = Stage::Ended;
        // SAFETY: the operation is done, and the stage says that the buffer is gone.
        Poll::Ready((outcome, self.work.len, unsafe { self.buffer.take() }))
    }

    #[cold]
    fn queue(
        &mut self,
        lease: &Arc<Lease>,
        block: Option<&Block>,
        by: By,
        cx: &mut Context<'_>,
    ) -> Poll<(Outcome, usize, B)> {
        if !fits_stash::<B>()
            && let Held::Own(buffer) = &self.buffer
        {
            // SAFETY: the buffer is there, and its old place is overwritten at once.
            let boxed = Box::new(unsafe { buffer.assume_init_read() });
            self.buffer = Held::Boxed(MaybeUninit::new(boxed));
        }
        // SAFETY: the engine outlives both sides of the cell: this future borrows a file that holds it, and
        // the completer works for it. The buffer is kept until the operation has ended, here or in the cell.
        let (future, completer) =
            unsafe { open_cell(self.handle.take_cell(), self.work, Some(self.handle.clone())) };
        let mut alone = false;
        if let Some(block) = block {
            alone = block.in_flight.fetch_add(1, Relaxed) == 0;
        }
        let submitted = lease.shared.submit(completer, by);
        if submitted == Submitted::Done {
            return self.receive_at_once(future, block);
        }
        if let Some(block) = block {
            count(&block.queued);
            block.spent.store(0, Relaxed);
        }
        let mut done = future.is_done();
        if let Some(block) = block
            && !done
            && alone
            && submitted == Submitted::Watched
            && lease.parallel
            && block.looks.is_due()
        {
            let mut look = Look::new(POLL_LOOK);
            while !done && look.again() {
                done = future.is_done();
            }
            if done { block.looks.paid() } else { block.looks.was_vain() }
        }
        // Before foreign code runs: a panic in the waker leaves a future that knows what it has queued.
        self.stage = Stage::Queued { cell: future, queued_by: block.map(NonNull::from) };
        if done { self.receive() } else { self.wait(cx) }
    }

    /// An operation that the system has done already.
    fn receive_at_once(&mut self, cell: FutureSide, block: Option<&Block>) -> Poll<(Outcome, usize, B)> {
        let (outcome, release) = cell.finish();
        self.recycle(release);
        if let Some(block) = block {
            block.in_flight.fetch_sub(1, Relaxed);
            count(&block.inline_hits);
        }
        self.end(outcome)
    }

    /// Asks to be woken, unless the operation is done.
    #[cold]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<(Outcome, usize, B)> {
        let Stage::Queued { cell, .. } = &mut self.stage else {
            unreachable!("only a queued operation is waited for")
        };
        let mut late = None;
        if !cell.is_done() {
            cell.register(cx.waker());
            if !cell.is_done() {
                return Poll::Pending;
            }
            // The completer may have found nothing to take. An idle cell holds no waker.
            late = cell.take_waker();
        }
        let received = self.receive();
        // Foreign code comes last.
        drop(late);
        received
    }

    #[cold]
    fn receive(&mut self) -> Poll<(Outcome, usize, B)> {
        let Stage::Queued { cell, queued_by } = std::mem::replace(&mut self.stage, Stage::Ended) else {
            unreachable!("only a queued operation is received")
        };
        let (outcome, release) = cell.finish();
        self.recycle(release);
        self.landed(queued_by, |block| &block.completed);
        self.end(outcome)
    }

    fn recycle(&self, release: Release) {
        if let Release::Idle(cell) = release {
            // SAFETY: this side was the last.
            unsafe { self.handle.give_cell(cell) };
        }
    }

    /// Counts the end of a queued operation.
    fn landed(
        &self,
        queued_by: Option<NonNull<Block>>,
        counter: impl FnOnce(&Block) -> &std::sync::atomic::AtomicU64,
    ) {
        if let Some(block) = queued_by {
            // SAFETY: blocks live as long as the engine, which the borrowed file holds.
            unsafe { block.as_ref() }.in_flight.fetch_sub(1, Relaxed);
        }
        if let Some(block) = self.handle.lease().blocks.current() {
            count(counter(block));
        }
    }
}

impl<B, L> Drop for Operation<'_, B, L> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            // SAFETY: nothing has happened, so the buffer is there.
            Stage::Created => drop(unsafe { self.buffer.take() }),
            Stage::Queued { cell, queued_by } => self.forsake(cell, queued_by),
            Stage::Ended => {}
        }
    }
}

impl<B, L> Operation<'_, B, L> {
    #[cold]
    fn forsake(&mut self, mut cell: FutureSide, queued_by: Option<NonNull<Block>>) {
        let lease = self.handle.lease();
        let block = lease.blocks.current();
        if let Some(block) = queued_by {
            // SAFETY: blocks live as long as the engine, which the borrowed file holds.
            unsafe { block.as_ref() }.in_flight.fetch_sub(1, Relaxed);
        }
        if lease.shared.cancel(&cell, self.handle) {
            block.inspect(|block| count(&block.cancelled));
            let (cell, handle, waker) = cell.cancelled();
            // SAFETY: the carrier gave it up, and so does this side.
            unsafe { self.handle.give_cell(cell) };
            // SAFETY: no carrier knows of the buffer any more.
            let buffer = unsafe { self.buffer.take() };
            // Foreign drops come last; if one panics, the others happen all the same.
            drop((handle, waker, buffer));
            return;
        }
        let waker = cell.take_waker();
        match &mut self.buffer {
            Held::Own(buffer) => {
                let buffer = std::mem::replace(buffer, MaybeUninit::uninit());
                abandon(self.handle, block, cell, buffer);
            }
            Held::Boxed(buffer) => {
                let buffer = std::mem::replace(buffer, MaybeUninit::uninit());
                abandon(self.handle, block, cell, buffer);
            }
        }
        drop(waker);
    }
}

/// Leaves an operation that is no longer queued, with its buffer, to its completer; or drops the buffer, if the
/// operation is done.
fn abandon<H>(handle: &HandleRef, block: Option<&Block>, cell: FutureSide, buffer: MaybeUninit<H>) {
    let Some((back, release)) = cell.abandon(buffer) else {
        block.inspect(|block| count(&block.abandoned));
        return;
    };
    block.inspect(|block| count(&block.completed));
    if let Release::Idle(cell) = release {
        // SAFETY: this side was the last.
        unsafe { handle.give_cell(cell) };
    }
    // SAFETY: the operation is done, and the buffer came back.
    drop(unsafe { back.assume_init() });
}

macro_rules! futures {
    ($($(#[$doc:meta])* $name:ident<B: $bound:ident> by $locate:ident -> $output:ty, $finish:expr;)*) => {$(
        $(#[$doc])*
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<'a, B>(pub(crate) Operation<'a, B, $locate>);

        impl<B: $bound> Future for $name<'_, B> {
            type Output = Result<$output, OpError<B>>;

            #[inline(always)]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                // SAFETY: the one field is pinned with the whole.
                let operation = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
                operation.poll(cx).map($finish)
            }
        }

        impl<B> fmt::Debug for $name<'_, B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($name), f)
            }
        }
    )*};
}

macro_rules! vectored_futures {
    ($($(#[$doc:meta])* $name:ident<B: $bound:ident> by $locate:ident, $finish:expr;)*) => {$(
        $(#[$doc])*
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<'a, B>(pub(crate) Operation<'a, Buffers<B>, $locate>);

        impl<B: $bound> Future for $name<'_, B> {
            type Output = Result<(usize, Buffers<B>), OpError<Buffers<B>>>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                // SAFETY: the one field is pinned with the whole.
                let operation = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
                operation.poll(cx).map($finish)
            }
        }

        impl<B> fmt::Debug for $name<'_, B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($name), f)
            }
        }
    )*};
}

macro_rules! bare_futures {
    ($($(#[$doc:meta])* $name:ident -> $output:ty, $value:expr;)*) => {$(
        $(#[$doc])*
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<'a>(pub(crate) Operation<'a, (), Bare>);

        impl Future for $name<'_> {
            type Output = io::Result<$output>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                // SAFETY: the one field is pinned with the whole.
                let operation = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
                operation.poll(cx).map(|(outcome, _, ())| match outcome.fault {
                    None => Ok($value(outcome.done)),
                    Some(fault) => Err(fault.into()),
                })
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($name), f)
            }
        }
    )*};
}

futures! {
    /// The future of [`File::read_at_async`](super::File::read_at_async).
    ReadAt<B: IoBufMut> by Fill -> (usize, B), read_some;
    /// The future of [`File::read_exact_at_async`](super::File::read_exact_at_async).
    ReadExactAt<B: IoBufMut> by Fill -> B, read_exact;
    /// The future of [`File::write_at_async`](super::File::write_at_async).
    WriteAt<B: IoBuf> by Drain -> (usize, B), written;
    /// The future of [`File::write_all_at_async`](super::File::write_all_at_async).
    WriteAllAt<B: IoBuf> by Drain -> B, |done| written(done).map(|(_, buffer)| buffer);
    /// The future of [`PipeReader::read_async`](crate::pipe::PipeReader::read_async).
    ReadSome<B: IoBufMut> by Fill -> (usize, B), read_some;
    /// The future of [`PipeWriter::write_all_async`](crate::pipe::PipeWriter::write_all_async).
    WriteAll<B: IoBuf> by Drain -> B, |done| written(done).map(|(_, buffer)| buffer);
}

vectored_futures! {
    /// The future of [`File::read_vectored_at_async`](super::File::read_vectored_at_async).
    ReadVectoredAt<B: IoBufMut> by Scatter, read_parts;
    /// The future of [`File::write_vectored_at_async`](super::File::write_vectored_at_async).
    WriteVectoredAt<B: IoBuf> by Gather, ended;
}

bare_futures! {
    /// The future of [`File::len_async`](super::File::len_async).
    Len -> u64, |len| len;
    /// The future of [`File::set_len_async`](super::File::set_len_async).
    SetLen -> (), |_| ();
    /// The future of [`File::allocate_async`](super::File::allocate_async).
    Allocate -> (), |_| ();
    /// The future of [`File::sync_all_async`](super::File::sync_all_async).
    SyncAll -> (), |_| ();
    /// The future of [`File::sync_data_async`](super::File::sync_data_async).
    SyncData -> (), |_| ();
}

#[inline]
fn read_some<B: IoBufMut>((outcome, _, mut buffer): (Outcome, usize, B)) -> Result<(usize, B), OpError<B>> {
    let done = outcome.done as usize;
    // SAFETY: the operation filled that many bytes, at most its room.
    unsafe { buffer.set_filled(done) };
    match outcome.fault {
        None => Ok((done, buffer)),
        Some(fault) => Err(OpError { error: fault.into(), done, buffer }),
    }
}

fn read_exact<B: IoBufMut>(ended: (Outcome, usize, B)) -> Result<B, OpError<B>> {
    let len = ended.1;
    let (done, buffer) = read_some(ended)?;
    if done < len {
        return Err(OpError { error: unexpected_end(), done, buffer });
    }
    Ok(buffer)
}

fn read_parts<B: IoBufMut>(
    (outcome, len, mut buffers): (Outcome, usize, Buffers<B>),
) -> Result<(usize, Buffers<B>), OpError<Buffers<B>>> {
    // SAFETY: the operation filled that many bytes, in the order of the list.
    unsafe { buffers.set_filled(outcome.done as usize) };
    ended((outcome, len, buffers))
}

fn written<B: IoBuf>(done: (Outcome, usize, B)) -> Result<(usize, B), OpError<B>> {
    ended(done)
}

fn ended<B>((outcome, _, buffer): (Outcome, usize, B)) -> Result<(usize, B), OpError<B>> {
    let done = outcome.done as usize;
    match outcome.fault {
        None => Ok((done, buffer)),
        Some(fault) => Err(OpError { error: fault.into(), done, buffer }),
    }
}

impl<B, L> Operation<'_, B, L> {
    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Created => "created",
            Stage::Queued { .. } => "queued or running",
            Stage::Ended => "ended",
        };
        f.debug_struct(name).field("offset", &self.work.offset).field("stage", &stage).finish_non_exhaustive()
    }
}
