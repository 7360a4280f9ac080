//! Several buffers in one operation.

use super::IoBufMut;
use crate::engine::Segment;
use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// The buffers of a vectored async operation, in order. It is made of a vector, gives it back, and can be used for one
/// operation after another: then none of them allocates.
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
/// # let path = folder.path().join("log");
/// use haft::fs::{Buffers, File};
///
/// let file = File::options().read(true).write(true).create(true).open(path)?;
/// let (written, _) = file.write_vectored_at_async(vec!["head, ", "body"], 0).await?;
/// assert_eq!(written, 10);
///
/// let mut buffers = Buffers::from(vec![vec![0; 6], vec![0; 6]]);
/// for _ in 0..3 {
///     let (read, back) = file.read_vectored_at_async(buffers, 0).await?;
///     assert_eq!((read, &back[0][..], &back[1][..4]), (10, &b"head, "[..], &b"body"[..]));
///     buffers = back;
/// }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct Buffers<B> {
    parts: Vec<B>,
    /// Where each lies, for the operation that is under way; of no meaning in between.
    segments: Vec<Segment>,
}

// SAFETY: the addresses are those of the parts, which the value owns.
unsafe impl<B: Send> Send for Buffers<B> {}
// SAFETY: through a shared reference nobody uses them.
unsafe impl<B: Sync> Sync for Buffers<B> {}

impl<B> Buffers<B> {
    /// The buffers.
    pub fn into_inner(self) -> Vec<B> {
        self.parts
    }

    /// Notes where each part lies; gives the address of that list, and the bytes of all.
    pub(super) fn located(&mut self, mut locate: impl FnMut(&mut B) -> (*mut u8, usize)) -> (*mut u8, usize) {
        self.segments.clear();
        let mut bytes = 0_usize;
        self.segments.extend(self.parts.iter_mut().map(|part| {
            let (ptr, len) = locate(part);
            // Parts may share their bytes, and then have more of them than there is memory.
            let len = len.min(isize::MAX as usize - bytes);
            bytes += len;
            Segment { ptr, len }
        }));
        (self.segments.as_mut_ptr().cast(), bytes)
    }
}

impl<B: IoBufMut> Buffers<B> {
    /// Tells each part how much of it was filled.
    ///
    /// # Safety
    /// So many bytes were, in order, and no more than there is room.
    pub(super) unsafe fn set_filled(&mut self, mut bytes: usize) {
        for part in &mut self.parts {
            let filled = bytes.min(part.io_room());
            // SAFETY: the caller's.
            unsafe { part.set_filled(filled) };
            bytes -= filled;
        }
    }
}

impl<B> From<Vec<B>> for Buffers<B> {
    fn from(parts: Vec<B>) -> Buffers<B> {
        Buffers { parts, segments: Vec::new() }
    }
}

impl<B> Deref for Buffers<B> {
    type Target = [B];

    fn deref(&self) -> &[B] {
        &self.parts
    }
}

impl<B> DerefMut for Buffers<B> {
    fn deref_mut(&mut self) -> &mut [B] {
        &mut self.parts
    }
}

impl<B: fmt::Debug> fmt::Debug for Buffers<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.parts).finish()
    }
}
