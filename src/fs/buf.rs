//! Buffers that an operation owns while it is under way.

use std::{
    ops::{Bound, RangeBounds},
    sync::Arc,
};

/// A buffer whose bytes can be written to a file.
///
/// # Safety
/// Until the value is dropped or changed through `&mut`, [`as_io_ptr`](IoBuf::as_io_ptr) names the same
/// [`io_len`](IoBuf::io_len) initialised bytes, *wherever the value itself is moved*: they lie on the heap, say,
/// and not in the value. Nobody changes them meanwhile. The pointer is never null, not even to no bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the buffer of an async write",
    note = "the system may read it after the future is dropped, so the future has to own it, and its bytes must stay \
            in place when it moves: `Vec<u8>`, `Box<[u8]>`, `String`, `Arc<[u8]>` or `&'static [u8]`, say"
)]
pub unsafe trait IoBuf: Send + 'static {
    /// Where the bytes begin.
    fn as_io_ptr(&self) -> *const u8;

    /// How many there are.
    fn io_len(&self) -> usize;

    /// A part of this buffer, as a buffer of its own; [`Slice::into_inner`] gives the whole back.
    ///
    /// # Panics
    /// If the range ends before it begins, or after the buffer, as slicing does.
    ///
    /// ```
    /// use haft::fs::IoBuf;
    /// let part = vec![1, 2, 3, 4].slice(1..3);
    /// assert_eq!(*part, [2, 3]);
    /// assert_eq!(part.into_inner(), [1, 2, 3, 4]);
    /// ```
    fn slice(self, range: impl RangeBounds<usize>) -> Slice<Self>
    where
        Self: Sized,
    {
        let len = self.io_len();
        let begin = match range.start_bound() {
            Bound::Included(&at) => at,
            Bound::Excluded(&at) => at.checked_add(1).expect("the range begins after the largest index"),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.checked_add(1).expect("the range ends after the largest index"),
            Bound::Excluded(&at) => at,
            Bound::Unbounded => len,
        };
        assert!(begin <= end && end <= len, "range {begin}..{end} of a buffer of {len} bytes");
        Slice { buffer: self, begin, end }
    }
}

/// A buffer that can be filled from a file.
///
/// # Safety
/// As for [`IoBuf`], with [`as_io_mut_ptr`](IoBufMut::as_io_mut_ptr) and [`io_room`](IoBufMut::io_room) in place of
/// its two; the bytes may be uninitialised, and nobody else reads or writes them meanwhile.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the buffer of an async read",
    note = "the system may write to it after the future is dropped, so the future has to own it, and its bytes must \
            stay in place when it moves: `Vec<u8>`, `Box<[u8]>` or `haft::fs::Spare(vec)`, say"
)]
pub unsafe trait IoBufMut: Send + 'static {
    /// Where the bytes to fill begin.
    fn as_io_mut_ptr(&mut self) -> *mut u8;

    /// How many there are to fill.
    fn io_room(&self) -> usize;

    /// Called when an operation has ended: the first `bytes` of the room are initialised now.
    ///
    /// # Safety
    /// They are, and `bytes` is at most the room.
    unsafe fn set_filled(&mut self, bytes: usize);
}

// SAFETY: a vector's elements are on the heap.
unsafe impl IoBuf for Vec<u8> {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

/// Filled over exactly its length; what is read never changes the length. See [`Spare`] for the capacity.
// SAFETY: a vector's elements are on the heap.
unsafe impl IoBufMut for Vec<u8> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn io_room(&self) -> usize {
        self.len()
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

// SAFETY: a box's bytes are on the heap.
unsafe impl IoBuf for Box<[u8]> {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

// SAFETY: a box's bytes are on the heap.
unsafe impl IoBufMut for Box<[u8]> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn io_room(&self) -> usize {
        self.len()
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

// SAFETY: a box's bytes are on the heap.
unsafe impl<const N: usize> IoBuf for Box<[u8; N]> {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        N
    }
}

// SAFETY: a box's bytes are on the heap.
unsafe impl<const N: usize> IoBufMut for Box<[u8; N]> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn io_room(&self) -> usize {
        N
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

// SAFETY: a static slice stays.
unsafe impl IoBuf for &'static [u8] {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

// SAFETY: a static array stays.
unsafe impl<const N: usize> IoBuf for &'static [u8; N] {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        N
    }
}

// SAFETY: a static string stays.
unsafe impl IoBuf for &'static str {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

// SAFETY: a string's bytes are on the heap.
unsafe impl IoBuf for String {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

// SAFETY: the shared bytes are on the heap, and cannot be changed while this reference is counted.
unsafe impl IoBuf for Arc<[u8]> {
    fn as_io_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn io_len(&self) -> usize {
        self.len()
    }
}

/// Reads into a vector's spare capacity, after what it holds, and makes it longer by what was read.
///
/// ```
/// # fn block_on<F: Future>(f: F) -> F::Output {
/// #     let mut f = std::pin::pin!(f);
/// #     loop {
/// #         let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// #         if let std::task::Poll::Ready(out) = f.as_mut().poll(&mut cx) { return out }
/// #     }
/// # }
/// # block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("words");
/// # std::fs::write(&path, b"brave new world")?;
/// use haft::fs::{File, Spare};
///
/// let mut text = Vec::with_capacity(64);
/// text.extend_from_slice(b"O ");
/// let (read, Spare(text)) = File::open(path)?.read_at_async(Spare(text), 0).await?;
/// assert_eq!(read, 15);
/// assert_eq!(text, b"O brave new world");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spare(
    /// The vector.
    pub Vec<u8>,
);

// SAFETY: a vector's capacity is on the heap.
unsafe impl IoBufMut for Spare {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.0.spare_capacity_mut().as_mut_ptr().cast()
    }

    fn io_room(&self) -> usize {
        self.0.capacity() - self.0.len()
    }

    unsafe fn set_filled(&mut self, bytes: usize) {
        let len = self.0.len() + bytes;
        // SAFETY: the caller's.
        unsafe { self.0.set_len(len) };
    }
}

/// A part of a buffer, from [`IoBuf::slice`].
#[derive(Clone, Debug)]
pub struct Slice<B> {
    buffer: B,
    begin: usize,
    end: usize,
}

impl<B> Slice<B> {
    /// The whole buffer.
    pub fn into_inner(self) -> B {
        self.buffer
    }

    /// The whole buffer, borrowed.
    pub fn get_ref(&self) -> &B {
        &self.buffer
    }
}

/// The bytes of the part.
impl<B: IoBuf> std::ops::Deref for Slice<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer names initialised bytes, which nobody changes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.as_io_ptr(), self.io_len()) }
    }
}

// SAFETY: a part of stable bytes is stable. The range is held against the buffer's own length each time: `slice`
// checked it, but a clone may be shorter.
unsafe impl<B: IoBuf> IoBuf for Slice<B> {
    fn as_io_ptr(&self) -> *const u8 {
        let begin = self.begin.min(self.buffer.io_len());
        // SAFETY: `begin` is at most the buffer's length.
        unsafe { self.buffer.as_io_ptr().add(begin) }
    }

    fn io_len(&self) -> usize {
        self.end.min(self.buffer.io_len()).saturating_sub(self.begin)
    }
}

// SAFETY: as above, with the room in place of the length.
unsafe impl<B: IoBuf + IoBufMut> IoBufMut for Slice<B> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        // SAFETY: `begin` is at most the buffer's length, and io_room stops at its room.
        unsafe { self.buffer.as_io_mut_ptr().add(self.begin.min(self.buffer.io_room())) }
    }

    fn io_room(&self) -> usize {
        self.end.min(self.buffer.io_room()).saturating_sub(self.begin)
    }

    /// The buffer's bytes were initialised before, so there is nothing to tell it.
    unsafe fn set_filled(&mut self, _: usize) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A correct buffer whose clones are shorter.
    struct Shrinks(Vec<u8>);

    impl Clone for Shrinks {
        fn clone(&self) -> Shrinks {
            Shrinks(vec![0; self.0.len() / 2])
        }
    }

    // SAFETY: a vector's elements are on the heap.
    unsafe impl IoBuf for Shrinks {
        fn as_io_ptr(&self) -> *const u8 {
            self.0.as_ptr()
        }

        fn io_len(&self) -> usize {
            self.0.len()
        }
    }

    // Fails when Slice takes its length from the range that it was made with.
    #[test]
    fn a_slice_never_reaches_past_its_buffer() {
        let slice = Shrinks(vec![0; 64]).slice(16..64);
        assert_eq!(slice.io_len(), 48);
        let clone = slice.clone();
        assert_eq!(clone.io_len(), 16);
        assert_eq!(clone.as_io_ptr(), clone.get_ref().0[16..].as_ptr());
        assert_eq!(clone.clone().io_len(), 0);
        assert_eq!(clone.clone().clone().io_len(), 0);
    }

    #[test]
    fn a_slice_is_of_the_bytes_that_its_range_names() {
        let mut slice = vec![0, 1, 2, 3, 4, 5].slice(1..=4).slice(1..);
        assert_eq!((slice.io_len(), slice.io_room()), (3, 3));
        assert_eq!(*slice, [2, 3, 4]);
        assert_eq!(slice.as_io_mut_ptr().cast_const(), slice.as_io_ptr());
        assert_eq!(slice.into_inner().into_inner(), [0, 1, 2, 3, 4, 5]);
    }
}
