//! How many handles a process has open, by kind. `GetProcessHandleCount` says 0 under Wine, so the kernel's table of
//! all handles is asked, and every census first proves that the table shows a handle more.

use super::look::{Handle, kind, look};
use std::collections::BTreeMap;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::time::Duration;
use windows_sys::Wdk::System::SystemInformation::NtQuerySystemInformation;
use windows_sys::Win32::Foundation::{DUPLICATE_SAME_ACCESS, DuplicateHandle, STATUS_INFO_LENGTH_MISMATCH};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcess, PROCESS_DUP_HANDLE};

/// The class of information that has process numbers and handle values in full width.
const EXTENDED_HANDLE_INFORMATION: i32 = 64;

/// One handle in the system's table.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    object: usize,
    process: usize,
    value: usize,
    access: u32,
    backtrace: u16,
    kind: u16,
    attributes: u32,
    reserved: u32,
}

/// The values of all open handles of a process.
fn values(process: u32) -> Vec<usize> {
    // The table has a head of two words: how many entries there are, and nothing.
    const HEAD: usize = 2;
    let mut table = vec![0_usize; 1 << 16];
    loop {
        let size = size_of_val(table.as_slice()) as u32;
        // SAFETY: the place is as large as is said.
        let status = unsafe {
            NtQuerySystemInformation(EXTENDED_HANDLE_INFORMATION, table.as_mut_ptr().cast(), size, null_mut())
        };
        if status == STATUS_INFO_LENGTH_MISMATCH {
            // Processes begin and end meanwhile, so the size that it names may be too small already.
            table.resize(table.len() * 2, 0);
            continue;
        }
        assert_eq!(status, 0, "NtQuerySystemInformation: {status:#x}");
        let fit = (table.len() - HEAD) * size_of::<usize>() / size_of::<Entry>();
        let count = table[0].min(fit);
        // SAFETY: the entries follow the head, aligned as words are, and that many fit.
        let entries = unsafe { std::slice::from_raw_parts(table[HEAD..].as_ptr().cast::<Entry>(), count) };
        return entries.iter().filter(|e| e.process == process as usize).map(|e| e.value).collect();
    }
}

/// Every open handle of a process, this one or a child, with the kernel's name for its kind. A handle whose kind cannot
/// be told, as one that is closed meanwhile, has `?`.
pub fn handles_of(process: u32) -> BTreeMap<usize, String> {
    let own = process == std::process::id();
    let other = if own { None } else { open(process) };
    let kind_of = |value: usize| match (own, &other) {
        (true, _) => kind(value as _),
        (false, Some(other)) => kind(duplicate(other, value)?.as_raw_handle()),
        (false, None) => None,
    };
    values(process).into_iter().map(|value| (value, kind_of(value).unwrap_or_else(|| "?".into()))).collect()
}

/// Every open handle of this process. What it has as a standard handle is among them.
pub fn own_handles() -> Vec<Handle> {
    values(std::process::id()).into_iter().filter_map(look).collect()
}

fn open(process: u32) -> Option<OwnedHandle> {
    // SAFETY: opens by number.
    let handle = unsafe { OpenProcess(PROCESS_DUP_HANDLE, 0, process) };
    // SAFETY: it was opened a moment ago.
    (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A duplicate, here, of another process's handle.
fn duplicate(of: &OwnedHandle, value: usize) -> Option<OwnedHandle> {
    let mut here = null_mut();
    // SAFETY: a value that is not open there any more is an error; the new handle is nobody else's.
    unsafe {
        let me = GetCurrentProcess();
        let done =
            DuplicateHandle(of.as_raw_handle(), value as _, me, &mut here, 0, 0, DUPLICATE_SAME_ACCESS);
        (done != 0).then(|| OwnedHandle::from_raw_handle(here))
    }
}

/// How many handles of each kind this process has.
fn kinds() -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for kind in handles_of(std::process::id()).into_values() {
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// The open handles of this process at one moment, to be compared with a later one.
pub struct Census {
    kinds: BTreeMap<String, usize>,
}

impl Census {
    /// Takes stock, once nothing changes any more: another thread may be about to close what it is done with. Launch
    /// something first, so that what the library and the system open once and keep is counted.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Census {
        let mut last = kinds();
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(10));
            let now = kinds();
            if now == last {
                break;
            }
            last = now;
        }
        let census = Census { kinds: last };
        census.prove();
        census
    }

    /// The counter sees handles that are left open on purpose, and that they are closed again. A few of them, since
    /// what else this process does may close one at the same moment.
    fn prove(&self) {
        const LEFT_OPEN: usize = 8;
        let left_open: Vec<_> = (0..LEFT_OPEN).map(|_| super::event()).collect();
        let more = self.more();
        assert!(more.get("Event").is_some_and(|&n| n > LEFT_OPEN / 2), "handles cannot be counted: {more:?}");
        drop(left_open);
        self.check();
    }

    /// How many handles more there are now, of each kind that has any.
    pub fn more(&self) -> BTreeMap<String, usize> {
        let mut now = kinds();
        for (kind, then) in &self.kinds {
            if let Some(count) = now.get_mut(kind) {
                *count = count.saturating_sub(*then);
            }
        }
        now.retain(|_, more| *more > 0);
        now
    }

    /// Panics if more handles of any kind are open than when stock was taken. What other threads are about to finish
    /// is waited for.
    pub fn check(&self) {
        self.check_within(0);
    }

    /// As [`check`](Self::check), but for so many handles of each kind that may be there besides: the system's thread
    /// pool starts and ends threads when it pleases, whatever was launched.
    pub fn check_within(&self, besides: usize) {
        let within = || self.more().values().all(|&more| more <= besides);
        if crate::eventually(Duration::from_secs(5), within) {
            return;
        }
        let open: Vec<_> = own_handles().iter().map(Handle::to_string).collect();
        panic!("handles more: {:?} of {open:#?}", self.more());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    // Alone in its process: the other tests of this library open handles meanwhile.
    #[test]
    fn a_handle_left_open_is_seen() {
        crate::isolated!({
            let census = Census::new();
            let left_open = super::super::event();
            assert_eq!(census.more(), BTreeMap::from([("Event".to_owned(), 1)]));
            assert!(catch_unwind(|| census.check()).is_err(), "one handle more goes unnoticed");
            census.check_within(1);
            let value = left_open.as_raw_handle() as usize;
            assert_eq!(handles_of(std::process::id()).get(&value).map(String::as_str), Some("Event"));
            drop(left_open);
            census.check();
        });
    }
}
