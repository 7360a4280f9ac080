//! Several buffers at an offset.
//!
//! The system has one call for them that is of use to few: `ReadFileScatter` and `WriteFileGather` take whole, aligned
//! pages, of a file that is opened overlapped and unbuffered. Everything else goes buffer by buffer, for as long as each
//! is moved whole.
//!
//! References: ReadFileScatter, WriteFileGather.

use super::{Errno, Opened, positioned, read, read_end, write};
use crate::{engine::Segment, windows::finished};
use std::{
    io::{IoSlice, IoSliceMut},
    ptr::null,
    sync::OnceLock,
};
use windows_sys::{
    Win32::{
        Foundation::HANDLE,
        Storage::FileSystem::{FILE_SEGMENT_ELEMENT, ReadFileScatter, WriteFileGather},
        System::{
            IO::OVERLAPPED,
            SystemInformation::{GetSystemInfo, SYSTEM_INFO},
        },
    },
    core::BOOL,
};

/// The most pages that one call moves; their addresses are on the stack.
const MOST_PAGES: usize = 256;

/// What a list is moved by.
struct Calls {
    pages: unsafe extern "system" fn(
        HANDLE,
        *const FILE_SEGMENT_ELEMENT,
        u32,
        *const u32,
        *mut OVERLAPPED,
    ) -> BOOL,
    one: unsafe fn(Opened<'_>, Segment, u64) -> Result<usize, Errno>,
}

const READ: Calls = Calls {
    pages: ReadFileScatter,
    // SAFETY: the caller's, as of `transfer`.
    one: |file, segment, offset| unsafe { read(file, segment.ptr, segment.len, offset) },
};

const WRITE: Calls = Calls {
    pages: WriteFileGather,
    one: |file, segment, offset| {
        // SAFETY: the caller's, as of `transfer`.
        write(file, unsafe { std::slice::from_raw_parts(segment.ptr, segment.len) }, offset)
    },
};

/// Reads into one buffer after another, until one is not filled.
pub(crate) fn read_vectored(
    file: Opened<'_>,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> Result<usize, Errno> {
    let count = buffers.len();
    let nth = |index: usize| Segment { ptr: buffers[index].as_mut_ptr(), len: buffers[index].len() };
    // SAFETY: the buffers are borrowed for the call.
    unsafe { transfer(file, count, nth, offset, &READ, usize::MAX) }
}

/// Writes one buffer after another, until one is not written whole.
pub(crate) fn write_vectored(file: Opened<'_>, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize, Errno> {
    let nth = |index: usize| Segment { ptr: buffers[index].as_ptr().cast_mut(), len: buffers[index].len() };
    // SAFETY: the buffers are borrowed for the call.
    unsafe { transfer(file, buffers.len(), nth, offset, &WRITE, usize::MAX) }
}

/// One call of [`read_vectored`]'s: before the next, the operation may be abandoned.
///
/// # Safety
/// Each buffer is valid for writes, initialised or not, and nobody else uses it meanwhile.
pub(crate) unsafe fn read_segments(file: Opened<'_>, list: &[Segment], offset: u64) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    unsafe { transfer(file, list.len(), |index| list[index], offset, &READ, 1) }
}

/// One call of [`write_vectored`]'s, as above.
///
/// # Safety
/// Each buffer is initialised, and nobody changes it meanwhile.
pub(crate) unsafe fn write_segments(file: Opened<'_>, list: &[Segment], offset: u64) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    unsafe { transfer(file, list.len(), |index| list[index], offset, &WRITE, 1) }
}

/// Makes `most` calls at most.
///
/// # Safety
/// The buffers that `nth` gives may be used as the calls use them, until this returns.
unsafe fn transfer(
    file: Opened<'_>,
    count: usize,
    mut nth: impl FnMut(usize) -> Segment,
    offset: u64,
    calls: &Calls,
    most: usize,
) -> Result<usize, Errno> {
    positioned(file, offset)?;
    if file.ways.overlapped && file.ways.unbuffered && offset.is_multiple_of(page() as u64) {
        let mut pages = [FILE_SEGMENT_ELEMENT { Alignment: 0 }; MOST_PAGES + 1];
        let found = whole_pages((0..count).map(&mut nth), &mut pages[..MOST_PAGES]);
        if found > 1 {
            let bytes = (found * page()) as u32;
            // SAFETY: the caller's; the list ends in a null; the call is waited for.
            return read_end(
                finished(file.handle, offset, |handle, overlapped| unsafe {
                    (calls.pages)(handle, pages.as_ptr(), bytes, null(), overlapped)
                })
                .map_err(Errno),
            );
        }
    }
    let mut done = 0;
    for segment in (0..count).map(nth).filter(|segment| segment.len > 0).take(most) {
        // SAFETY: the caller's.
        match unsafe { (calls.one)(file, segment, offset.wrapping_add(done as u64)) } {
            Ok(moved) => {
                done += moved;
                if moved < segment.len {
                    break;
                }
            }
            // Whoever goes on meets it again.
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Notes the pages of which the first buffers consist; gives their number.
fn whole_pages(list: impl Iterator<Item = Segment>, pages: &mut [FILE_SEGMENT_ELEMENT]) -> usize {
    let page = page();
    let mut found = 0;
    for segment in list {
        if !segment.ptr.addr().is_multiple_of(page) || !segment.len.is_multiple_of(page) {
            break;
        }
        for at in (0..segment.len).step_by(page) {
            let Some(place) = pages.get_mut(found) else { return found };
            // All of its 64 bits, also where a pointer has fewer.
            *place =
                FILE_SEGMENT_ELEMENT { Alignment: segment.ptr.wrapping_add(at).expose_provenance() as u64 };
            found += 1;
        }
    }
    found
}

/// The size of a page of memory.
fn page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        let mut info = SYSTEM_INFO::default();
        // SAFETY: the place is this frame's.
        unsafe { GetSystemInfo(&raw mut info) };
        info.dwPageSize as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fails when a part of a buffer is taken for a page, or a page that is not aligned.
    #[test]
    fn only_whole_aligned_pages_at_the_beginning_go_by_one_call() {
        let page = page();
        let at = |ptr: usize, len: usize| Segment { ptr: std::ptr::without_provenance_mut(ptr), len };
        for (list, wanted) in [
            (vec![at(page, page), at(8 * page, 2 * page)], 3),
            (vec![at(page, page), at(8 * page, page + 1), at(20 * page, page)], 1),
            (vec![at(page, page), at(8 * page + 512, page), at(20 * page, page)], 1),
            (vec![at(page + 1, page)], 0),
            (vec![at(page, 0), at(4 * page, page)], 1),
            (vec![at(page, 1000 * page)], MOST_PAGES),
            (vec![], 0),
        ] {
            let mut pages = [FILE_SEGMENT_ELEMENT { Alignment: 0 }; MOST_PAGES + 1];
            assert_eq!(whole_pages(list.iter().copied(), &mut pages[..MOST_PAGES]), wanted, "{list:?}");
            // SAFETY: either field is a number.
            assert!(pages.iter().take(wanted).all(|one| unsafe { one.Alignment } % page as u64 == 0));
            // SAFETY: as above.
            assert_eq!(unsafe { pages[wanted].Alignment }, 0);
        }
    }
}
