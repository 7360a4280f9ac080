//! The handles that a child inherits, by value.
//!
//! Windows' answers to a wrong list are not all errors: a NULL in it, and nothing is inherited; and Wine accepts what
//! Windows refuses. So the rules are kept here, and checked once more on the finished list.
//!
//! <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-updateprocthreadattribute>

use super::flaw::Flaw;

/// What `PROC_THREAD_ATTRIBUTE_HANDLE_LIST` takes: at least one handle, none twice, each a handle of the kernel's.
///
/// The values stay where they are when the list is moved, as the attribute needs it: it keeps their address until
/// `CreateProcessW` has returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandleList(Box<[usize]>);

/// What a value means as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// A handle of the console's before Windows 8, which the kernel does not know. The child gets its console anyway.
    Console,
    Wrong(&'static str),
}

/// `GetCurrentProcess` is -1 and so is `INVALID_HANDLE_VALUE`, `GetCurrentThread` is -2, the session -3, and the
/// tokens of the process, of the thread, and of whichever of them holds are -4 to -6. None has a place in a table.
///
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getcurrentprocess>
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getcurrentprocesstoken>
fn kind(value: usize) -> Kind {
    match value as isize {
        0 => Kind::Wrong("it is NULL"),
        -1 => Kind::Wrong("it is INVALID_HANDLE_VALUE, or the pseudo handle of the current process"),
        -6..=-2 => Kind::Wrong("it is a pseudo handle, which means something else in the child"),
        // Numbers in the kernel's table are multiples of four.
        _ if value & 0b11 == 0b11 => Kind::Console,
        _ => Kind::Kernel,
    }
}

/// The kernel does not look at the two low bits, so handles that differ in them are the same.
fn same(a: usize, b: usize) -> bool {
    a >> 2 == b >> 2
}

impl HandleList {
    /// The list of these handles, in their order, each once. `None` where there is nothing to inherit: then there is
    /// no attribute, and `bInheritHandles` is false, for an empty list is an error.
    ///
    /// The [`Flaw`] has the place of the first value that is no handle. Handles of the console's are left out.
    pub(crate) fn new(values: impl IntoIterator<Item = usize>) -> Result<Option<HandleList>, Flaw> {
        let mut list: Vec<usize> = Vec::new();
        for (place, value) in values.into_iter().enumerate() {
            match kind(value) {
                Kind::Wrong(reason) => return Err(Flaw::Handle(place, reason)),
                Kind::Kernel if !list.iter().any(|&other| same(other, value)) => list.push(value),
                Kind::Kernel | Kind::Console => {}
            }
        }
        Ok((!list.is_empty()).then(|| HandleList(list.into())))
    }

    /// The values; on Windows a `usize` is as large as a `HANDLE`.
    pub(crate) fn values(&self) -> &[usize] {
        &self.0
    }

    /// Panics unless everything holds that Windows asks of a list: there is a handle, none is there twice, each is
    /// one of the kernel's and inheritable, and the standard handles of the child are among them. NULL is no standard
    /// handle, and one of the console's need not be there.
    pub(crate) fn assert_valid(&self, standard: &[usize], inheritable: impl FnMut(usize) -> bool) {
        if let Err(broken) = self.check(standard, inheritable) {
            panic!("the handle list {:x?} {broken}", self.0);
        }
    }

    fn check(
        &self,
        standard: &[usize],
        mut inheritable: impl FnMut(usize) -> bool,
    ) -> Result<(), &'static str> {
        let HandleList(list) = self;
        if list.is_empty() {
            return Err("is empty");
        }
        for (place, &value) in list.iter().enumerate() {
            if kind(value) != Kind::Kernel {
                return Err("has a value that is not a handle of the kernel's");
            }
            if list[..place].iter().any(|&other| same(other, value)) {
                return Err("has a handle twice");
            }
            if !inheritable(value) {
                return Err("has a handle that is not inheritable");
            }
        }
        for &value in standard {
            let listed = list.iter().any(|&other| same(other, value));
            if value != 0 && kind(value) != Kind::Console && !listed {
                return Err("lacks a standard handle");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn pseudo(number: isize) -> usize {
        number as usize
    }

    fn list(values: &[usize]) -> Option<Vec<usize>> {
        HandleList::new(values.iter().copied()).unwrap().map(|list| list.values().to_vec())
    }

    #[test]
    fn in_order_once_and_without_the_consoles() {
        assert_eq!(list(&[]), None);
        assert_eq!(list(&[0x10, 0x8, 0x10, 0x3, 0x9, 0xc, 0x8]), Some(vec![0x10, 0x8, 0xc]));
        // Only handles of a console of old: nothing to list, and no empty list.
        assert_eq!(list(&[3, 7, 11]), None);
        // Beyond the pseudo handles.
        assert_eq!(list(&[pseudo(-8)]), Some(vec![pseudo(-8)]));
    }

    // Fails with `-6` changed to `-5`, or with the console's low bits asked for first: -1 and -5 have them too.
    #[test]
    fn what_is_no_handle_is_named_by_its_place() {
        for value in [0, pseudo(-1), pseudo(-2), pseudo(-3), pseudo(-4), pseudo(-5), pseudo(-6)] {
            let flaw = HandleList::new([8, 8, value, 12]).unwrap_err();
            assert!(matches!(flaw, Flaw::Handle(2, _)), "{value:x}");
        }
    }

    // Fails with any of the conditions of `check` taken out.
    #[test]
    fn the_check_sees_each_mistake() {
        let check = |values: &[usize], standard: &[usize]| {
            HandleList(values.into()).check(standard, |value| value != 0x20)
        };
        assert_eq!(check(&[8, 12], &[8, 0, 7, 8]), Ok(()));
        assert_eq!(check(&[8, 12], &[]), Ok(()));
        assert_eq!(check(&[], &[]), Err("is empty"));
        for value in [0, 3, pseudo(-1), pseudo(-6)] {
            assert_eq!(check(&[8, value], &[]), Err("has a value that is not a handle of the kernel's"));
        }
        assert_eq!(check(&[8, 12, 8], &[]), Err("has a handle twice"));
        assert_eq!(check(&[8, 9], &[]), Err("has a handle twice"));
        assert_eq!(check(&[8, 0x20], &[]), Err("has a handle that is not inheritable"));
        assert_eq!(check(&[8, 12], &[8, 12, 16]), Err("lacks a standard handle"));
        assert_eq!(check(&[8], &[pseudo(-1)]), Err("lacks a standard handle"));
    }

    #[test]
    #[should_panic(expected = "lacks a standard handle")]
    fn a_broken_list_is_not_given_to_windows() {
        HandleList::new([8]).unwrap().unwrap().assert_valid(&[12], |_| true);
    }

    proptest! {
        #[test]
        fn a_finished_list_is_always_valid(values in proptest::collection::vec(-12..64isize, 0..24)) {
            let values: Vec<_> = values.into_iter().map(pseudo).collect();
            match HandleList::new(values.iter().copied()) {
                Ok(Some(list)) => list.assert_valid(&values, |_| true),
                Ok(None) => prop_assert!(values.iter().all(|&value| kind(value) == Kind::Console)),
                Err(Flaw::Handle(place, _)) => prop_assert!(matches!(kind(values[place]), Kind::Wrong(_))),
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
