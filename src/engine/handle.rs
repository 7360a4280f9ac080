//! The counted block behind every open file: its handle closes with the last of the `File`s and of the
//! queued or running operations that hold it. So an abandoned write cannot land in another file that got the
//! same number meanwhile.
//!
//! Blocks are recycled by the engine, as cells are: opening and closing allocates nothing in steady state.

use super::{Lease, backoff::Backoff, cell::Cell, slab::Slot};
use crate::{
    fs::sys::{self, OwnedHandle},
    sync::{
        UnsafeCell,
        atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*},
    },
};
use std::{
    mem::MaybeUninit,
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        // A hint that carries nothing from one thread to another, so no model needs to see it.
        atomic::AtomicU8,
    },
};

/// One open file, as the engine sees it.
pub(crate) struct Handle {
    references: AtomicUsize,
    index: u32,
    next_idle: AtomicU32,
    open: UnsafeCell<Open>,
    /// One idle cell at hand, so that a file used by one task does not go to the shared store.
    spare: AtomicPtr<Cell>,
    /// What is known about inline attempts on this file, in `inline`'s terms.
    pub(crate) inline: AtomicU8,
    /// Attempts that missed.
    pub(crate) misses: Backoff,
    /// Every write goes to the end of the file, whatever its offset.
    pub(crate) appends: bool,
    /// How calls are made on it, in the system's terms.
    pub(crate) ways: sys::Ways,
}

/// What the references share, and the last of them takes apart.
struct Open {
    /// There, while there are references.
    handle: MaybeUninit<OwnedHandle>,
    /// The engine that carries this file's operations; `None` while idle.
    lease: Option<Arc<Lease>>,
}

// SAFETY: `open` is written only by who has the block alone, before the first reference and after the last; the
// count's orderings lie between.
unsafe impl Sync for Handle {}

/// What has to be known of a file before it is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// Where inline attempts begin, in `inline`'s terms.
    pub(crate) inline: u8,
    pub(crate) appends: bool,
    pub(crate) ways: sys::Ways,
}

impl Slot for Handle {
    fn new(index: u32) -> Handle {
        Handle {
            references: AtomicUsize::new(0),
            index,
            next_idle: AtomicU32::new(0),
            open: UnsafeCell::new(Open { handle: MaybeUninit::uninit(), lease: None }),
            spare: AtomicPtr::new(null_mut()),
            inline: AtomicU8::new(0),
            misses: Backoff::new(),
            appends: false,
            ways: sys::Ways::default(),
        }
    }

    fn index(&self) -> u32 {
        self.index
    }

    unsafe fn next_idle<'a>(slot: NonNull<Handle>) -> &'a AtomicU32 {
        // SAFETY: the slot is alive; only this field of it is borrowed.
        unsafe { &(*slot.as_ptr()).next_idle }
    }
}

impl Handle {
    /// The open file, as calls take it.
    #[inline]
    pub(crate) fn opened(&self) -> sys::Opened<'_> {
        sys::opened(self.owned(), self.ways)
    }

    #[inline]
    pub(crate) fn owned(&self) -> &OwnedHandle {
        // SAFETY: while there are references nobody writes it, and it is there.
        self.open.with(|open| unsafe { (*open).handle.assume_init_ref() })
    }

    #[inline]
    pub(crate) fn lease(&self) -> &Arc<Lease> {
        // SAFETY: while there are references nobody writes it.
        let lease = self.open.with(|open| unsafe { &(*open).lease });
        lease.as_ref().expect("a live handle has an engine")
    }

    /// An idle cell: the one at hand, or one from the store.
    pub(crate) fn take_cell(&self) -> NonNull<Cell> {
        let spare = self.spare.swap(null_mut(), Acquire);
        NonNull::new(spare).unwrap_or_else(|| self.lease().shared.cells.take())
    }

    /// Keeps an idle cell at hand, or gives it back to the store.
    ///
    /// # Safety
    /// The cell came from this engine and is idle, and the caller's.
    pub(crate) unsafe fn give_cell(&self, cell: NonNull<Cell>) {
        if self.spare.compare_exchange(null_mut(), cell.as_ptr(), Release, Relaxed).is_err() {
            // SAFETY: the caller's.
            unsafe { self.lease().shared.cells.give(cell) };
        }
    }
}

/// One reference to an open file.
pub(crate) struct HandleRef(NonNull<Handle>);

// SAFETY: a block is used through shared references and atomics; the last reference alone changes it.
unsafe impl Send for HandleRef {}
// SAFETY: as above.
unsafe impl Sync for HandleRef {}

impl HandleRef {
    /// Takes `handle` over.
    pub(crate) fn new(lease: &Arc<Lease>, owned: OwnedHandle, mut traits: Traits) -> HandleRef {
        lease.shared.bind(&owned, &mut traits.ways);
        let block = lease.shared.handles.take();
        let handle = block.as_ptr();
        // SAFETY: an idle block is its taker's alone, but for the slab's link. So the parts are written one by
        // one, and no reference to the whole is made before it is complete.
        unsafe {
            let opened = Open { handle: MaybeUninit::new(owned), lease: Some(Arc::clone(lease)) };
            (*handle).open.with_mut(|open| *open = opened);
            (*handle).appends = traits.appends;
            (*handle).ways = traits.ways;
            (*handle).inline.store(traits.inline, Relaxed);
            (*handle).misses.reset();
            (*handle).references.store(1, Relaxed);
        }
        HandleRef(block)
    }

    /// The system's handle alone, if this is the only reference.
    pub(crate) fn into_owned(self) -> Result<OwnedHandle, HandleRef> {
        if self.references.load(Acquire) != 1 {
            return Err(self);
        }
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the count was 1, and this reference was it.
        Ok(unsafe { retire(this.0) })
    }
}

impl std::ops::Deref for HandleRef {
    type Target = Handle;

    #[inline]
    fn deref(&self) -> &Handle {
        // SAFETY: the block is live while a reference to it is counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for HandleRef {
    fn clone(&self) -> HandleRef {
        // Forgotten clones could make the count wrap where it has 32 bits, and free what is in use. Arc guards the same.
        if self.references.fetch_add(1, Relaxed) > usize::MAX / 2 {
            std::process::abort();
        }
        HandleRef(self.0)
    }
}

impl Drop for HandleRef {
    #[inline]
    fn drop(&mut self) {
        if self.references.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: that was the last reference. The file is closed here, where its handle drops.
            drop(unsafe { retire(self.0) });
        }
    }
}

/// Makes the block idle and gives the system's handle out.
///
/// # Safety
/// No reference to it is left.
#[cold]
unsafe fn retire(block: NonNull<Handle>) -> OwnedHandle {
    let handle = block.as_ptr();
    // SAFETY: nobody else has the block, but for the slab's link; its handle is there.
    let (owned, lease, spare) = unsafe {
        let idle = Open { handle: MaybeUninit::uninit(), lease: None };
        let Open { handle: owned, lease } =
            (*handle).open.with_mut(|open| std::mem::replace(&mut *open, idle));
        let lease = lease.expect("a live handle has an engine");
        (owned.assume_init(), lease, (*handle).spare.load(Relaxed))
    };
    if let Some(spare) = NonNull::new(spare) {
        // SAFETY: as above.
        unsafe { (*handle).spare.store(null_mut(), Relaxed) };
        // SAFETY: the spare cell was idle and this block's.
        unsafe { lease.shared.cells.give(spare) };
    }
    // SAFETY: the block came from this engine, and nobody uses it any more.
    unsafe { lease.shared.handles.give(block) };
    owned
}
