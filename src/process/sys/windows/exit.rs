//! Being told that a process has ended.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{
    INFINITE, RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEONLYONCE,
};

use super::pid::Pid;
use crate::windows::last_error;

/// A wait of the system's thread pool for a process. Dropping it ends the wait.
pub(crate) struct Registration {
    wait: HANDLE,
    told: Arc<Told>,
    /// The handle that is waited for stays open until the wait is over.
    _process: Pid,
}

struct Told {
    /// The wait's own reference is gone, or is the taker's.
    taken: AtomicBool,
    tell: Box<dyn Fn() + Send + Sync>,
}

// SAFETY: the wait is used by its number alone, by whoever owns the registration.
unsafe impl Send for Registration {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl Sync for Registration {}

/// Calls `tell` once when the process has ended, on a thread of the system's pool.
pub(crate) fn on_exit(process: &Pid, tell: Box<dyn Fn() + Send + Sync>) -> io::Result<Registration> {
    let told = Arc::new(Told { taken: AtomicBool::new(false), tell });
    let mut wait = null_mut();
    // The wait has a reference of its own.
    let context = Arc::into_raw(Arc::clone(&told));
    // SAFETY: the process's handle stays open, and the context alive, until the wait is over.
    let registered = unsafe {
        RegisterWaitForSingleObject(
            &raw mut wait,
            process.handle().as_raw_handle(),
            Some(ended),
            context.cast::<c_void>(),
            INFINITE,
            WT_EXECUTEONLYONCE,
        )
    };
    if registered == 0 {
        let error = last_error();
        // SAFETY: there is no wait that could use it.
        drop(unsafe { Arc::from_raw(context) });
        return Err(io::Error::from_raw_os_error(error as i32));
    }
    Ok(Registration { wait, told, _process: process.clone() })
}

/// What the pool's thread calls.
unsafe extern "system" fn ended(context: *mut c_void, _: bool) {
    let context = context.cast::<Told>().cast_const();
    // SAFETY: the wait's own reference keeps it alive: nobody but this call gives that up once it has begun.
    let told = unsafe {
        Arc::increment_strong_count(context);
        Arc::from_raw(context)
    };
    if !told.taken.swap(true, AcqRel) {
        // SAFETY: the wait's reference is this call's to give up now.
        drop(unsafe { Arc::from_raw(context) });
    }
    // A panic must not leave this frame, which the system has called. The code is foreign: a waker.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (told.tell)()));
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Without waiting for a call that runs: this may happen in that very call, or under a lock that it needs.
        // SAFETY: the wait was registered, and is ended once.
        let over = unsafe { UnregisterWaitEx(self.wait, null_mut()) } != 0;
        // Where a call runs or is still to come, it gives the reference up by itself.
        if over && !self.told.taken.swap(true, AcqRel) {
            // SAFETY: no call has begun and none will.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&self.told)) });
        }
    }
}
