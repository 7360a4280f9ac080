//! The attributes of a new process: the handles that it gets, and the jobs that it is in.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, HANDLE};
use windows_sys::Win32::System::Threading::{
    DeleteProcThreadAttributeList, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, UpdateProcThreadAttribute,
};

use crate::windows::last_error;

/// An attribute list. It keeps pointers to what it lists, which therefore outlives it.
pub(super) struct Attributes<'a> {
    /// Aligned as pointers are; empty if there are no attributes.
    room: Vec<usize>,
    _listed: std::marker::PhantomData<&'a [HANDLE]>,
}

impl<'a> Attributes<'a> {
    /// A list of these handles and these jobs, as far as there are any.
    pub(super) fn new(handles: &'a [HANDLE], jobs: &'a [HANDLE]) -> Result<Attributes<'a>, u32> {
        let count = u32::from(!handles.is_empty()) + u32::from(!jobs.is_empty());
        let mut attributes = Attributes { room: Vec::new(), _listed: std::marker::PhantomData };
        if count == 0 {
            return Ok(attributes);
        }
        let mut size = 0;
        // SAFETY: without a list it only says how large one is.
        unsafe { InitializeProcThreadAttributeList(null_mut(), count, 0, &raw mut size) };
        if size == 0 {
            return Err(last_error());
        }
        let mut room = vec![0; size.div_ceil(size_of::<usize>())];
        // SAFETY: the room is as large as it said.
        if unsafe { InitializeProcThreadAttributeList(room.as_mut_ptr().cast(), count, 0, &raw mut size) }
            == 0
        {
            return Err(if last_error() == 0 { ERROR_INSUFFICIENT_BUFFER } else { last_error() });
        }
        attributes.room = room;
        for (attribute, list) in
            [(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles), (PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs)]
        {
            if list.is_empty() {
                continue;
            }
            // SAFETY: the list was initialised for this many; what it points to outlives it.
            let updated = unsafe {
                UpdateProcThreadAttribute(
                    attributes.as_ptr(),
                    0,
                    attribute as usize,
                    list.as_ptr().cast::<c_void>(),
                    size_of_val(list),
                    null_mut(),
                    null(),
                )
            };
            if updated == 0 {
                return Err(last_error());
            }
        }
        Ok(attributes)
    }

    /// As `STARTUPINFOEXW` takes it; null if there are none.
    pub(super) fn as_ptr(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        if self.room.is_empty() { null_mut() } else { self.room.as_mut_ptr().cast() }
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        if !self.room.is_empty() {
            // SAFETY: it was initialised, and is not used again.
            unsafe { DeleteProcThreadAttributeList(self.as_ptr()) };
        }
    }
}
