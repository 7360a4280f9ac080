//! Overlapped operations and the completion port of an engine.
//!
//! * A file object takes one port, for life. So a handle is bound when it comes to the engine. One that is bound
//!   elsewhere already is left to the pool, which waits for its calls by events.
//! * The port and its first thread are made with the first handle that is bound; further threads, up to
//!   [`MOST_THREADS`], when one finds more completions than it takes at once.
//! * A call that ends at once tells so by its return, and with `FILE_SKIP_COMPLETION_PORT_ON_SUCCESS` the port hears
//!   nothing of it. Where the system does not take that mode, a successful call is told twice, and the port's word
//!   counts. A call that fails at once is never told to the port.
//! * `FILE_SKIP_SET_EVENT_ON_HANDLE` would save the system from signalling the file itself, but cannot be taken back; and
//!   std's reads wait for that after `try_into_std`, as DeviceIoControl does without an `OVERLAPPED`.
//! * A call that does not end at once may have ended all the same when it returns: its status is in the `OVERLAPPED` then,
//!   as `HasOverlappedIoCompleted` tells, and the packet comes later. Wine reads regular files so.
//! * Whoever has the handle, or a duplicate of it, can make overlapped calls of which this port hears. So a completion
//!   counts only if its address is that of a cell of this engine.
//! * A write that makes the file longer ends before its call returns, whatever the handle, and takes its time. The pool
//!   has those. So it has what the port cannot do: lengths, syncs.
//!
//! # References
//! * CreateIoCompletionPort, SetFileCompletionNotificationModes, GetQueuedCompletionStatusEx, CancelIoEx
//! * [Asynchronous disk I/O appears as synchronous](https://learn.microsoft.com/troubleshoot/windows/win32/asynchronous-disk-io-synchronous)

use super::{
    Shared,
    cell::{Cell, Kind, Work},
    direct,
    handle::Handle,
    perform::rest,
    port::Begun,
    shield::shielded,
};
use crate::{
    force::{self, Lack},
    fs::sys::{self, Errno, OwnedHandle, STEP, Ways, overlapped_at, positioned, read_end, received},
    sync::{Mutex, UnsafeCell, lock},
    thread,
    windows::{last_error, owned},
};
use std::{
    io,
    os::windows::io::AsRawHandle,
    ptr::{NonNull, null, null_mut},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Acquire},
    },
    thread::{Builder, available_parallelism},
};
use windows_sys::Win32::{
    Foundation::{
        ERROR_IO_PENDING, HANDLE, INVALID_HANDLE_VALUE, RtlNtStatusToDosError, STATUS_PENDING, TRUE,
    },
    Storage::FileSystem::{ReadFile, SetFileCompletionNotificationModes, WriteFile},
    System::{
        IO::{
            CancelIoEx, CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED, OVERLAPPED_ENTRY,
            PostQueuedCompletionStatus,
        },
        Threading::INFINITE,
        WindowsProgramming::FILE_SKIP_COMPLETION_PORT_ON_SUCCESS,
    },
};

/// What the system keeps in a cell while a step is under way.
pub(crate) type InFlight = OVERLAPPED;

pub(super) fn in_flight() -> InFlight {
    overlapped_at(0)
}

/// Completions that a thread takes at once.
const BATCH: usize = 64;

/// They wake tasks and little else.
const MOST_THREADS: usize = 4;

/// The most bytes of a buffered file that one step moves: if it ends at once they are copied in a poll.
const BUFFERED_STEP: usize = 1 << 20;

/// So many bytes of a buffered file, and one step more, are copied in a poll at most.
pub(super) const AT_ONCE: usize = 64 * 1024;

/// The keys by which a thread of the port tells completions from the word to end.
const COMPLETION: usize = 0;
const END: usize = 1;

pub(crate) struct Port {
    state: Mutex<State>,
}

struct State {
    port: Option<OwnedHandle>,
    threads: usize,
}

impl Port {
    pub(super) fn new() -> Port {
        Port { state: Mutex::new(State { port: None, threads: 0 }) }
    }

    /// Binds an overlapped handle, if it can be: [`Ways::bound`] tells.
    pub(super) fn bind(&self, shared: &Arc<Shared>, handle: &OwnedHandle, ways: &mut Ways) {
        if !ways.overlapped || (ways.stream && !ways.ours) {
            return;
        }
        let Some(port) = self.ready(shared) else { return };
        let handle = handle.as_raw_handle();
        // SAFETY: both handles are open.
        if unsafe { CreateIoCompletionPort(handle, port, COMPLETION, 0) }.is_null() {
            return;
        }
        ways.bound = true;
        // SAFETY: the handle is open.
        ways.skips =
            unsafe { SetFileCompletionNotificationModes(handle, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS as u8) }
                != 0;
    }

    /// The port, with a thread that serves it. It lives as long as `shared`.
    fn ready(&self, shared: &Arc<Shared>) -> Option<HANDLE> {
        let mut state = lock(&self.state);
        if state.port.is_none() {
            // SAFETY: no handle is bound by this call; it makes a port.
            let port = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 0) };
            if port.is_null() {
                return None;
            }
            // SAFETY: it was made a moment ago.
            state.port = Some(unsafe { owned(port) });
        }
        let port = state.port.as_ref()?.as_raw_handle();
        if state.threads == 0 {
            start(shared, port).ok()?;
            state.threads = 1;
        }
        Some(port)
    }

    /// One more thread, if there may be more.
    #[cold]
    fn reinforce(&self, shared: &Arc<Shared>, port: HANDLE) {
        let most = available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        let mut state = lock(&self.state);
        if state.threads < most && start(shared, port).is_ok() {
            state.threads += 1;
        }
    }

    /// Whether the system is to carry this operation on by itself.
    #[inline]
    pub(super) fn carries(&self, handle: &Handle, work: &Work) -> bool {
        let possible = || positioned(handle.opened(), work.offset).is_ok();
        handle.ways.bound
            && match work.kind {
                Kind::Receive | Kind::Send => true,
                Kind::Read => possible(),
                Kind::Write => {
                    let end = work.offset.saturating_add(work.len as u64);
                    possible() && sys::size(handle.opened()).is_ok_and(|(size, _)| end <= size)
                }
                _ => false,
            }
    }

    /// Begins the next step.
    ///
    /// # Safety
    /// No step of this cell is under way. The cell, the buffer and the handle stay until the step's end has been told,
    /// and nobody else uses the buffer.
    pub(super) unsafe fn begin(&self, _: &Arc<Shared>, cell: &Cell, handle: &Handle, work: &Work) -> Begun {
        let next = rest(work);
        let whole = handle.ways.unbuffered || handle.ways.stream;
        let len = next.len.min(if whole { STEP } else { BUFFERED_STEP }) as u32;
        // Nothing that is written would reach the reader as such, and look like the end to most; to read nothing would
        // wait until there is something.
        if matches!(work.kind, Kind::Send | Kind::Receive) && len == 0 {
            return Begun::Ended(Ok(0));
        }
        let file = handle.opened().raw();
        let begun = cell.in_flight.with_mut(|overlapped| {
            // SAFETY: the caller's. From here on the system may write to the structure, and to the buffer.
            unsafe {
                *overlapped = overlapped_at(next.offset);
                (*overlapped).Internal = STATUS_PENDING as usize;
                match work.kind {
                    Kind::Read | Kind::Receive => ReadFile(file, next.ptr, len, null_mut(), overlapped),
                    _ => WriteFile(file, next.ptr, len, null_mut(), overlapped),
                }
            }
        });
        if begun != 0 {
            // Without the mode the port is going to be told, and the step is under way until then.
            return if handle.ways.skips { Begun::Ended(self.ended(cell, work)) } else { Begun::Pending };
        }
        match last_error() {
            ERROR_IO_PENDING => Begun::Pending,
            // Of an error the port hears nothing. Of a warning it would (more data than fits, from a pipe of messages), but
            // no handle that is bound gives one: files do not, nor do pipes of bytes, and others are not bound.
            error => Begun::Ended(result(work, Err(Errno(error)))),
        }
    }

    /// What the system left in the cell of a step, if that has ended by now.
    pub(super) fn noted(&self, cell: &Cell, work: &Work) -> Option<Result<usize, Errno>> {
        let ended = cell.in_flight.with(|overlapped| {
            // SAFETY: the structure is the cell's, and the system writes this word as one, after all else.
            let status = unsafe { AtomicUsize::from_ptr((&raw const (*overlapped).Internal).cast_mut()) };
            status.load(Acquire) as i32 != STATUS_PENDING
        });
        ended.then(|| self.ended(cell, work))
    }

    /// What the system left in the cell of a step that has ended.
    pub(super) fn ended(&self, cell: &Cell, work: &Work) -> Result<usize, Errno> {
        cell.in_flight.with(|overlapped| {
            // SAFETY: the step has ended, and the system does not write to it any more.
            let (status, moved) = unsafe { ((*overlapped).Internal as i32, (*overlapped).InternalHigh) };
            let ended = match status {
                // SAFETY: it turns a number into another.
                ..0 => Err(Errno(unsafe { RtlNtStatusToDosError(status) })),
                0.. => Ok(moved),
            };
            result(work, ended)
        })
    }

    /// Ends the step of this cell that is under way, if there is one.
    pub(super) fn cancel(&self, cell: &Cell, handle: &Handle) {
        // SAFETY: the handle is open. The address names the step; what is there is not looked at.
        cell.in_flight.with(|overlapped| unsafe { CancelIoEx(handle.opened().raw(), overlapped) });
    }

    /// Nothing can be under way any more: lets the threads end.
    pub(super) fn shut_down(&self) {
        let state = lock(&self.state);
        let Some(port) = &state.port else { return };
        for _ in 0..state.threads {
            end(port.as_raw_handle());
        }
    }
}

fn result(work: &Work, result: Result<usize, Errno>) -> Result<usize, Errno> {
    match work.kind {
        Kind::Read => read_end(result),
        Kind::Receive => received(result, work.len),
        _ => result,
    }
}

/// Tells one thread of the port to end.
fn end(port: HANDLE) {
    // SAFETY: the port is open; no structure is named.
    unsafe { PostQueuedCompletionStatus(port, 0, END, null()) };
}

/// A handle that a thread takes with it.
struct Served(HANDLE);

// SAFETY: a handle may be used by any thread.
unsafe impl Send for Served {}

fn start(shared: &Arc<Shared>, port: HANDLE) -> io::Result<()> {
    if force::lacks(Lack::Threads) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (shared, port) = (Arc::clone(shared), Served(port));
    thread::start(Builder::new().name("haft-port".into()), move || {
        let Served(port) = { port };
        serve(&shared, port);
    })
}

/// The life of a thread of the port.
fn serve(shared: &Arc<Shared>, port: HANDLE) {
    let mut entries = [OVERLAPPED_ENTRY::default(); BATCH];
    let mut wakers = [const { None }; BATCH];
    loop {
        let mut count = 0;
        // SAFETY: there is room for as many entries as are asked for, and the port is open: `shared` has it.
        let taken = unsafe {
            GetQueuedCompletionStatusEx(port, entries.as_mut_ptr(), BATCH as u32, &raw mut count, INFINITE, 0)
        } == TRUE;
        if !taken {
            // The next handle that is bound starts another thread.
            lock(&shared.port.state).threads -= 1;
            return;
        }
        let entries = &entries[..count as usize];
        if entries.len() == BATCH {
            shared.port.reinforce(shared, port);
        }
        // All are completed before foreign code runs, which may take its time.
        for (entry, waker) in entries.iter().zip(&mut wakers) {
            let cell = entry.lpOverlapped.cast::<Cell>();
            if entry.lpCompletionKey == COMPLETION
                && shared.cells.holds(cell)
                && let Some(cell) = NonNull::new(cell)
            {
                // SAFETY: the structure at a cell's start goes to the system with a step that is begun, and with
                // nothing else.
                *waker = unsafe { direct::arrived(shared, cell) };
            }
        }
        for waker in &mut wakers {
            if let Some(waker) = waker.take() {
                shielded(|| waker.wake());
            }
        }
        let ends = entries.iter().filter(|entry| entry.lpCompletionKey == END).count();
        if ends > 0 {
            // The others are for other threads.
            (1..ends).for_each(|_| end(port));
            return;
        }
    }
}

const _: () = assert!(
    std::mem::offset_of!(Cell, in_flight) == 0
        && size_of::<UnsafeCell<InFlight>>() == size_of::<OVERLAPPED>()
);
