//! Peer `floor`: `ReadFile` with an offset in its `OVERLAPPED`, the least that a positioned read costs. On a handle for
//! overlapped I/O it waits for the end of each by an event.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_HANDLE_EOF, ERROR_IO_PENDING};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_OVERLAPPED, ReadFile};
use windows_sys::Win32::System::IO::{GetOverlappedResult, OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};
use windows_sys::Win32::System::Threading::CreateEventW;

use super::super::{ASYNC, Job, Peer, SYNC, buffer};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct Floor {
    file: File,
    event: Option<OwnedHandle>,
    buffer: Vec<u8>,
}

impl Floor {
    pub(crate) fn new(job: &Job, overlapped: bool) -> Result<Self> {
        let flags = if overlapped { FILE_FLAG_OVERLAPPED } else { 0 };
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&job.path)?;
        let event = if overlapped { Some(event()?) } else { None };
        Ok(Self { file, event, buffer: buffer(job.block) })
    }

    fn read_at(&mut self, offset: u64) -> io::Result<usize> {
        // SAFETY: zeroes are a value of a structure of integers and pointers.
        let mut overlapped: OVERLAPPED = unsafe { MaybeUninit::zeroed().assume_init() };
        let place = OVERLAPPED_0_0 { Offset: offset as u32, OffsetHigh: (offset >> 32) as u32 };
        overlapped.Anonymous = OVERLAPPED_0 { Anonymous: place };
        if let Some(event) = &self.event {
            overlapped.hEvent = event.as_raw_handle();
        }
        let handle = self.file.as_raw_handle();
        let mut count = 0;
        // SAFETY: the buffer is as long as is said, and both it and the structure stay until the read has ended: on a
        // plain handle that is at once, else the second call waits for it.
        let error = unsafe {
            let (into, length) = (self.buffer.as_mut_ptr(), self.buffer.len() as u32);
            let mut done = ReadFile(handle, into, length, &raw mut count, &raw mut overlapped);
            let mut error = io::Error::last_os_error();
            if done == 0 && error.raw_os_error() == Some(ERROR_IO_PENDING as i32) {
                done = GetOverlappedResult(handle, &raw const overlapped, &raw mut count, 1);
                error = io::Error::last_os_error();
            }
            if done == 0 { Some(error) } else { None }
        };
        match error {
            None => Ok(count as usize),
            Some(error) if error.raw_os_error() == Some(ERROR_HANDLE_EOF as i32) => Ok(0),
            Some(error) => Err(error),
        }
    }
}

fn event() -> io::Result<OwnedHandle> {
    // SAFETY: neither attributes nor a name are given; a new handle is nobody else's.
    unsafe {
        let event = CreateEventW(null(), 1, 0, null());
        if event.is_null() {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedHandle::from_raw_handle(event))
        }
    }
}

impl Peer for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn method(&self) -> &'static str {
        if self.overlapped() { ASYNC } else { SYNC }
    }

    fn overlapped(&self) -> bool {
        self.event.is_some()
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let mut tally = job.tally();
        loop {
            let count = self.read_at(tally.offset())?;
            if !tally.piece(&self.buffer[..count]) {
                return tally.finish();
            }
        }
    }
}
