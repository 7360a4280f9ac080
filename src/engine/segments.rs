//! The buffers of a vectored transfer, as its steps see them.

use super::{Handle, Outcome, Work, perform::settle};
use crate::{
    force::shortened,
    fs::sys::{Errno, Opened},
};

/// One buffer of a list. On Unix it is laid out as the system's `iovec`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) ptr: *mut u8,
    pub(crate) len: usize,
}

/// Transfers what is in a list of buffers, step by step. `work` has the list's address and the bytes of all.
///
/// # Safety
/// The list, and the buffers that it names, are the operation's until it is done.
pub(super) unsafe fn perform(
    work: &Work,
    handle: &Handle,
    abandoned: &dyn Fn() -> bool,
    step: unsafe fn(Opened<'_>, &[Segment], u64) -> Result<usize, Errno>,
) -> Outcome {
    // The system looks at so many buffers only, and if all of them were empty, that would look like the end.
    // SAFETY: the caller's.
    let mut left = advance(unsafe { list(work.ptr.cast(), work.len) }, 0);
    let mut work = *work;
    loop {
        let offset = work.offset.wrapping_add(work.done as u64);
        let rest = work.len - work.done;
        let moved = match shortened(rest) {
            // SAFETY: the caller's.
            len if len == rest => unsafe { step(handle.opened(), left, offset) },
            // Cut short, for a test.
            len => {
                let first = left[0];
                // SAFETY: as above.
                unsafe { step(handle.opened(), &[Segment { len: first.len.min(len), ..first }], offset) }
            }
        };
        if let Some(outcome) = settle(&mut work, handle.opened(), moved) {
            return outcome;
        }
        left = advance(left, moved.unwrap_or(0));
        if abandoned() {
            return Outcome { done: work.done as u64, fault: None };
        }
    }
}

/// The buffers from `first` on that hold so many bytes, from the first that has any.
///
/// # Safety
/// They are there, and nobody else's.
unsafe fn list<'a>(first: *mut Segment, bytes: usize) -> &'a mut [Segment] {
    let (mut count, mut held) = (0, 0);
    while held < bytes {
        // SAFETY: the caller's.
        held += unsafe { (*first.add(count)).len };
        count += 1;
    }
    if count == 0 {
        return &mut [];
    }
    // SAFETY: as above.
    advance(unsafe { std::slice::from_raw_parts_mut(first, count) }, 0)
}

/// What is left of a list after so many bytes, which may end within a buffer.
fn advance(mut list: &mut [Segment], mut bytes: usize) -> &mut [Segment] {
    while let Some(first) = list.first_mut() {
        if first.len > bytes {
            // SAFETY: that is within the buffer.
            first.ptr = unsafe { first.ptr.add(bytes) };
            first.len -= bytes;
            break;
        }
        bytes -= first.len;
        list = &mut list[1..];
    }
    list
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // dotnet#109826. Fails when the rest of a list begins at a buffer's start instead of within it.
    #[test]
    fn a_list_goes_on_within_the_buffer_where_it_stopped() {
        let lens = [3, 0, 1, 4, 0, 0, 2];
        let bytes: Vec<u8> = (0..10).collect();
        for done in 0..=10 {
            let mut at = bytes.as_ptr().cast_mut();
            let mut segments: Vec<Segment> = lens
                .iter()
                .map(|&len| {
                    let segment = Segment { ptr: at, len };
                    at = at.wrapping_add(len);
                    segment
                })
                .collect();
            // SAFETY: the list is this test's.
            let whole = unsafe { list(segments.as_mut_ptr(), 10) };
            let left: Vec<u8> = advance(whole, done)
                .iter()
                // SAFETY: each is a part of `bytes`.
                .flat_map(|segment| unsafe { std::slice::from_raw_parts(segment.ptr, segment.len) }.to_vec())
                .collect();
            assert_eq!(left, bytes[done..]);
        }
    }

    // A step that is cut short takes the first buffer alone, and one without bytes would look like the end. Fails when
    // `list` gives all that it has.
    #[test]
    fn a_list_begins_with_a_buffer_that_has_bytes() {
        let mut bytes = [0_u8; 4];
        let mut segments = [0, 0, 4].map(|len| Segment { ptr: bytes.as_mut_ptr(), len });
        // SAFETY: the list is this test's.
        let left = unsafe { list(segments.as_mut_ptr(), 4) };
        assert_eq!(left.iter().map(|segment| segment.len).collect::<Vec<_>>(), [4]);
    }
}
