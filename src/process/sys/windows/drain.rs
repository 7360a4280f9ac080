//! Reading two pipes at once.

use std::io::{self, Read};
use std::marker::PhantomData;
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::thread;

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, ERROR_IO_PENDING, FALSE, TRUE, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::ReadFile;
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, WaitForMultipleObjects};

use super::pipe_end::PipeEnd;
use crate::windows::{last_error, owned};

/// How much room is made for one read.
const ROOM: usize = 64 * 1024;

/// Reads each to its end, into its vector.
pub(crate) fn drain_both(
    (mut one, into_one): (PipeEnd, &mut Vec<u8>),
    (mut other, into_other): (PipeEnd, &mut Vec<u8>),
) -> io::Result<()> {
    if !one.is_overlapped() || !other.is_overlapped() {
        // Ends that were put in place of ours. Nothing tells when such a one has something, but a thread that waits.
        return thread::scope(|scope| {
            let reader = thread::Builder::new()
                .name("haft-drain".into())
                .spawn_scoped(scope, || one.read_to_end(into_one))?;
            let read = other.read_to_end(into_other);
            reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")))?;
            read.map(drop)
        });
    }
    let mut reads = [Reading::new(&one, into_one)?, Reading::new(&other, into_other)?];
    let mut last = 1;
    loop {
        for index in 0..2 {
            if reads[index].ended {
                let [first, second] = reads;
                return if index == 0 { second.finish() } else { first.finish() };
            }
        }
        // Of two that are set, the wait names the first: the one that was not heard last.
        let order = [1 - last, last];
        let events = order.map(|index| reads[index].event.as_raw_handle());
        // SAFETY: both events are open.
        let woken = unsafe { WaitForMultipleObjects(2, events.as_ptr(), FALSE, INFINITE) };
        match woken.wrapping_sub(WAIT_OBJECT_0) {
            woken @ 0..2 => {
                last = order[woken as usize];
                reads[last].take()?;
            }
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

/// A pipe with a read under way into a vector's spare room.
struct Reading<'a> {
    end: &'a PipeEnd,
    into: &'a mut Vec<u8>,
    event: OwnedHandle,
    /// In a place of its own: the system writes to it while the read is under way.
    overlapped: *mut OVERLAPPED,
    under_way: bool,
    ended: bool,
    _owns: PhantomData<OVERLAPPED>,
}

impl<'a> Reading<'a> {
    fn new(end: &'a PipeEnd, into: &'a mut Vec<u8>) -> io::Result<Reading<'a>> {
        // SAFETY: no name and no attributes are given.
        let event = unsafe { CreateEventW(null(), TRUE, FALSE, null()) };
        if event.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the event was made a moment ago.
        let event = unsafe { owned(event) };
        let overlapped = Box::into_raw(Box::default());
        let mut reading =
            Reading { end, into, event, overlapped, under_way: false, ended: false, _owns: PhantomData };
        reading.begin()?;
        Ok(reading)
    }

    /// Begins reads, and takes what they bring at once, until one has to wait or the pipe has ended.
    fn begin(&mut self) -> io::Result<()> {
        if self.into.capacity() - self.into.len() < 512 {
            self.into.reserve(if self.into.is_empty() { 4096 } else { ROOM });
        }
        let room = self.into.spare_capacity_mut();
        // SAFETY: no read is under way. The room and the structure stay in place until the read has ended: `take` and
        // `drop` see to that, and nothing touches the vector in between. The event's low bit keeps a packet from a
        // port that the pipe may be bound to.
        let begun = unsafe {
            *self.overlapped = OVERLAPPED::default();
            (*self.overlapped).hEvent = (self.event.as_raw_handle() as usize | 1) as _;
            ReadFile(
                self.end.as_handle().as_raw_handle(),
                room.as_mut_ptr().cast(),
                u32::try_from(room.len()).unwrap_or(u32::MAX),
                null_mut(),
                self.overlapped,
            )
        };
        // A read that ended at once has set the event as well.
        match if begun == 0 { last_error() } else { ERROR_IO_PENDING } {
            ERROR_IO_PENDING => self.under_way = true,
            ERROR_BROKEN_PIPE | ERROR_HANDLE_EOF => self.ended = true,
            error => return Err(io::Error::from_raw_os_error(error as i32)),
        }
        Ok(())
    }

    /// Takes the result of a read whose event is set, and begins the next.
    fn take(&mut self) -> io::Result<()> {
        match self.result() {
            Ok(moved) => {
                // SAFETY: the read has filled so much of the spare room.
                unsafe { self.into.set_len(self.into.len() + moved) };
                self.begin()
            }
            Err(ERROR_BROKEN_PIPE | ERROR_HANDLE_EOF) => {
                self.ended = true;
                Ok(())
            }
            Err(error) => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }

    /// Waits for the read under way.
    fn result(&mut self) -> Result<usize, u32> {
        let mut moved = 0;
        let handle = self.end.as_handle().as_raw_handle();
        // SAFETY: the read was begun with this structure.
        let done = unsafe { GetOverlappedResult(handle, self.overlapped, &raw mut moved, TRUE) };
        self.under_way = false;
        if done == 0 { Err(last_error()) } else { Ok(moved as usize) }
    }

    /// Reads to the end, now that there is nothing else to look at.
    fn finish(mut self) -> io::Result<()> {
        while !self.ended {
            self.take()?;
        }
        Ok(())
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if self.under_way {
            // SAFETY: the read was begun with this structure; the wait sees its end before the memory goes.
            unsafe { CancelIoEx(self.end.as_handle().as_raw_handle(), self.overlapped) };
            let _ = self.result();
        }
        // SAFETY: it came from a box, and no read is under way.
        drop(unsafe { Box::from_raw(self.overlapped) });
    }
}
