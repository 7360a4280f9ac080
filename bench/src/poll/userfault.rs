//! A buffer that stalls whoever touches it: memory registered with `userfaultfd`, whose pages nobody provides
//! until [`UserFault::resolve`]. A worker's `pread` into it stays in the kernel until then.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::fs::IoBufMut;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, UserfaultfdFlags, mmap_anonymous, munmap, userfaultfd};

use crate::Result;

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register` and `struct uffdio_zeropage`, which have one layout.
#[repr(C)]
struct Range {
    start: u64,
    length: u64,
    mode: u64,
    result: u64,
}

// _IOWR(0xAA, number, size)
const UFFDIO_API: u64 = 0xC000_0000 | (size_of::<Api>() as u64) << 16 | 0xAA3F;
const UFFDIO_REGISTER: u64 = 0xC000_0000 | (size_of::<Range>() as u64) << 16 | 0xAA00;
const UFFDIO_ZEROPAGE: u64 = 0xC000_0000 | (size_of::<Range>() as u64) << 16 | 0xAA04;
const REGISTER_MODE_MISSING: u64 = 1;

struct Mapping {
    at: *mut u8,
    length: usize,
}

// SAFETY: an address; what is there is only touched by whoever owns the one buffer of this mapping.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared Mapping gives out nothing but numbers.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `UserFault::new` and, with the last owner gone, named by nobody. That it fails is
        // not possible, and a leak would be the worst of it.
        let _ = unsafe { munmap(self.at.cast(), self.length) };
    }
}

/// The means to let the stalled ones go.
pub(super) struct UserFault {
    descriptor: OwnedFd,
    mapping: Arc<Mapping>,
}

/// The memory, as a buffer to read into.
pub(super) struct StallingBuffer {
    mapping: Arc<Mapping>,
    filled: usize,
}

impl UserFault {
    /// One buffer of `length` bytes, a multiple of the page size. Needs privileges, since the faults are the
    /// kernel's.
    pub(super) fn new(length: usize) -> std::result::Result<(Self, StallingBuffer), String> {
        // SAFETY: the descriptor is used on a mapping of our own alone.
        let descriptor = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK) }
            .map_err(|error| format!("userfaultfd is refused: {error}"))?;
        let mut api = Api { api: 0xAA, features: 0, ioctls: 0 };
        ioctl(&descriptor, UFFDIO_API, &mut api).map_err(|error| format!("UFFDIO_API: {error}"))?;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(|error| format!("mmap: {error}"))?
        .cast();
        let mapping = Arc::new(Mapping { at, length });
        let this = Self { descriptor, mapping: Arc::clone(&mapping) };
        this.range(UFFDIO_REGISTER, REGISTER_MODE_MISSING)
            .map_err(|error| format!("UFFDIO_REGISTER: {error}"))?;
        Ok((this, StallingBuffer { mapping, filled: 0 }))
    }

    /// Waits until somebody is stalled.
    pub(super) fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        let mut message = [0_u8; 32];
        loop {
            match rustix::io::read(&self.descriptor, &mut message) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) if begun.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::AGAIN) => return Err("no worker touched the stalling buffer within 5 s".into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Provides the memory, all of it zero: whoever was stalled goes on.
    pub(super) fn resolve(&self) -> Result<()> {
        Ok(self.range(UFFDIO_ZEROPAGE, 0)?)
    }

    fn range(&self, request: u64, mode: u64) -> std::io::Result<()> {
        let Mapping { at, length } = *self.mapping;
        ioctl(
            &self.descriptor,
            request,
            &mut Range { start: at.addr() as u64, length: length as u64, mode, result: 0 },
        )
    }
}

fn ioctl<T>(descriptor: &OwnedFd, request: u64, argument: &mut T) -> std::io::Result<()> {
    // SAFETY: `request` encodes the size of `T`, whose layout is the kernel's structure of that request.
    match unsafe { libc::ioctl(descriptor.as_raw_fd(), request as _, std::ptr::from_mut(argument)) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl StallingBuffer {
    /// What has been read into it.
    pub(super) fn filled(&self) -> &[u8] {
        // SAFETY: an operation that has ended wrote these bytes.
        unsafe { std::slice::from_raw_parts(self.mapping.at, self.filled) }
    }
}

// SAFETY: the bytes are a mapping of their own, so they stay where they are when the value moves; it lives
// until the value is dropped, and nobody else reads or writes it.
unsafe impl IoBufMut for StallingBuffer {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.mapping.at
    }

    fn io_room(&self) -> usize {
        self.mapping.length
    }

    unsafe fn set_filled(&mut self, bytes: usize) {
        self.filled = bytes;
    }
}
