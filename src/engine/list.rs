//! The list of waiting operations: doubly linked through the cells themselves, so that it allocates nothing
//! and an operation is taken out of the middle in constant time. It is always behind a lock, its owner's.

use super::cell::{Cell, Links};
use std::ptr::NonNull;

/// First in, first out.
pub(crate) struct List {
    ends: Option<(NonNull<Cell>, NonNull<Cell>)>,
    len: usize,
}

// SAFETY: the cells in it are Sync, and their links are touched only through the list.
unsafe impl Send for List {}

impl List {
    pub(crate) const fn new() -> List {
        List { ends: None, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// # Safety
    /// The cell is in no list, and stays alive and in place while it is in this one.
    pub(crate) unsafe fn push(&mut self, cell: NonNull<Cell>) {
        let last = self.ends.map(|(_, last)| last);
        links(cell, |links| *links = Links { prev: last, next: None });
        match self.ends {
            None => self.ends = Some((cell, cell)),
            Some((first, last)) => {
                links(last, |links| links.next = Some(cell));
                self.ends = Some((first, cell));
            }
        }
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<NonNull<Cell>> {
        let (first, _) = self.ends?;
        // SAFETY: it is in this list.
        unsafe { self.remove(first) };
        Some(first)
    }

    /// # Safety
    /// The cell is in this list.
    pub(crate) unsafe fn remove(&mut self, cell: NonNull<Cell>) {
        let (prev, next) = links(cell, |links| (links.prev.take(), links.next.take()));
        if let Some(prev) = prev {
            links(prev, |links| links.next = next);
        }
        if let Some(next) = next {
            links(next, |links| links.prev = prev);
        }
        let (first, last) = self.ends.expect("a list with a cell in it has ends");
        self.ends = match (prev, next) {
            (None, None) => None,
            (None, Some(next)) => Some((next, last)),
            (Some(prev), None) => Some((first, prev)),
            (Some(_), Some(_)) => Some((first, last)),
        };
        self.len -= 1;
    }
}

fn links<R>(cell: NonNull<Cell>, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: cells in a list are alive; the list's lock makes this access the only one.
    unsafe { cell.as_ref().links.with_mut(|links| f(&mut *links)) }
}
