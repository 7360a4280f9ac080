//! The environment block of a child.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::flaw::Flaw;
use super::{EQUALS, units};

/// Without it sockets, random numbers and the search for side-by-side assemblies fail in the child.
const SYSTEM_ROOT: [u16; 10] = units(b"SystemRoot");

/// One change to the parent's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: Vec<u16>,
    /// `None` removes the variable.
    pub(crate) value: Option<Vec<u16>>,
}

/// The name of a variable: equal and in order as Windows sees it, whatever its case.
#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) Vec<u16>);

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        compare_names(&self.0, &other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name {}

/// The block that `CreateProcessW` takes with `CREATE_UNICODE_ENVIRONMENT`: the parent's variables, or none of them
/// after a `clear`, with the changes. `None`: nothing is changed, and the child takes over the parent's block.
///
/// * The last change to a name counts. The spelling that a name had first stays: the parent's, else that of the first
///   change. Both as in std.
/// * Of two names of the parent's that differ in case only, the first stays: it is the one that Windows finds.
/// * Sorted by name, upper case, unit by unit. The hidden variables `=C:`, the working directories of drives, are
///   variables like others; the order puts them in front of all that begin with a letter.
/// * `SystemRoot` outlives a `clear`, unless a change is about it.
/// * A name that is empty or has an equals sign after its first character is refused: the child would see another
///   name. std's `Command` lets it pass.
///
/// The parent's variables are not asked for if nothing is changed.
///
/// <https://learn.microsoft.com/windows/win32/procthread/changing-environment-variables>
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw>
pub(crate) fn block(
    parent: impl IntoIterator<Item = (Vec<u16>, Vec<u16>)>,
    clear: bool,
    changes: &[Change],
) -> Result<Option<Vec<u16>>, Flaw> {
    if !clear && changes.is_empty() {
        return Ok(None);
    }
    let mut changed = BTreeMap::new();
    for Change { name, value } in changes {
        if let Some(value) = value {
            check(name, value)?;
        }
        // The key that is there already stays.
        changed.insert(Name(name.clone()), value.as_deref());
    }

    let mut variables = BTreeMap::new();
    for (name, value) in parent {
        if !clear || compare_names(&name, &SYSTEM_ROOT).is_eq() {
            variables.entry(Name(name)).or_insert(value);
        }
    }
    for (name, value) in changed {
        match value {
            Some(value) => drop(variables.insert(name, value.to_vec())),
            None => drop(variables.remove(&name)),
        }
    }

    let mut block = Vec::new();
    for (name, value) in &variables {
        block.extend_from_slice(&name.0);
        block.push(EQUALS);
        block.extend_from_slice(value);
        block.push(0);
    }
    if variables.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(Some(block))
}

/// What these changes set the variable of this name to, if they set it.
pub(crate) fn set_to<'a>(changes: &'a [Change], name: &[u16]) -> Option<&'a [u16]> {
    let last = changes.iter().rfind(|change| compare_names(&change.name, name).is_eq())?;
    last.value.as_deref()
}

fn check(name: &[u16], value: &[u16]) -> Result<(), Flaw> {
    let refuse = |reason| Err(Flaw::Variable(name.to_vec(), reason));
    match name {
        [] => refuse("its name is empty"),
        _ if name.contains(&0) || value.contains(&0) => refuse("its name or value contains a NUL character"),
        [_, rest @ ..] if rest.contains(&EQUALS) => refuse("its name contains an equals sign"),
        _ => Ok(()),
    }
}

/// Windows' own comparison of names: units in upper case, by a table that differs between its versions.
/// <https://learn.microsoft.com/windows/win32/api/stringapiset/nf-stringapiset-comparestringordinal>
#[cfg(windows)]
pub(crate) fn compare_names(a: &[u16], b: &[u16]) -> Ordering {
    use windows_sys::Win32::Globalization::{
        CSTR_EQUAL, CSTR_GREATER_THAN, CSTR_LESS_THAN, CompareStringOrdinal,
    };
    // Windows is not asked about an empty string, for which a slice has no address of its own.
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    // A negative length would say that the string ends in a NUL.
    let length = |name: &[u16]| i32::try_from(name.len()).unwrap_or(i32::MAX);
    // SAFETY: both are readable for the lengths given, which are not above theirs.
    match unsafe { CompareStringOrdinal(a.as_ptr(), length(a), b.as_ptr(), length(b), 1) } {
        CSTR_LESS_THAN => Ordering::Less,
        CSTR_EQUAL => Ordering::Equal,
        CSTR_GREATER_THAN => Ordering::Greater,
        _ => unreachable!("two strings with their lengths can be compared"),
    }
}

/// As Windows compares names, for Basic Latin and Latin-1; other letters keep their case.
#[cfg(not(windows))]
pub(crate) fn compare_names(a: &[u16], b: &[u16]) -> Ordering {
    latin::compare(a, b)
}

#[cfg(any(not(windows), test))]
mod latin {
    use std::cmp::Ordering;

    pub(super) fn compare(a: &[u16], b: &[u16]) -> Ordering {
        let upper = |name: &[u16]| name.iter().copied().map(upper).collect::<Vec<_>>();
        upper(a).cmp(&upper(b))
    }

    fn upper(unit: u16) -> u16 {
        match unit {
            // The division sign stands among the letters.
            0x61..=0x7a | 0xe0..=0xf6 | 0xf8..=0xfe => unit - 0x20,
            0xff => 0x178,
            _ => unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::wide;
    use super::*;

    fn set(name: &str, value: &str) -> Change {
        Change { name: wide(name), value: Some(wide(value)) }
    }

    fn remove(name: &str) -> Change {
        Change { name: wide(name), value: None }
    }

    const PARENT: [(&str, &str); 7] = [
        ("Path", "p"),
        ("=C:", r"C:\d"),
        ("systemroot", "S"),
        ("_u", ""),
        ("a", "1"),
        ("A", "2"),
        ("0", "zero"),
    ];

    fn pairs(variables: &[(&str, &str)]) -> Vec<(Vec<u16>, Vec<u16>)> {
        variables.iter().map(|(name, value)| (wide(name), wide(value))).collect()
    }

    fn built(clear: bool, changes: &[Change]) -> String {
        String::from_utf16(&block(pairs(&PARENT), clear, changes).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn nothing_changed_is_the_parents_block() {
        let parent = std::iter::from_fn(|| unreachable!("the parent is asked only if something changes"));
        assert_eq!(block(parent, false, &[]), Ok(None));
    }

    // Fails with `insert` in the place of `entry().or_insert()`: the parent's second `A` would win; with a comparison
    // in lower case: `_u` would come before letters; with the `variables.is_empty()` branch away: one NUL is no end.
    #[test]
    fn merged_sorted_and_spelled_as_first_seen() {
        for (clear, changes, wanted) in [
            (false, vec![remove("none")], "0=zero\0=C:=C:\\d\0a=1\0Path=p\0systemroot=S\0_u=\0\0"),
            (
                false,
                vec![set("PATH", "q"), set("b", "x"), set("B", "y")],
                "0=zero\0=C:=C:\\d\0a=1\0b=y\0Path=q\0systemroot=S\0_u=\0\0",
            ),
            (
                false,
                vec![remove("PATH"), remove("A"), set("path", "again"), remove("SYSTEMROOT"), remove("=c:")],
                "0=zero\0Path=again\0_u=\0\0",
            ),
            (true, vec![], "systemroot=S\0\0"),
            (true, vec![set("SystemRoot", "T"), set("Z", "=")], "systemroot=T\0Z==\0\0"),
            (true, vec![remove("SystemRoot")], "\0\0"),
            (true, vec![set("=D:", "D:\\"), remove("SYSTEMROOT")], "=D:=D:\\\0\0"),
        ] {
            assert_eq!(built(clear, &changes), wanted, "{changes:?}");
        }
        assert_eq!(block([], true, &[]), Ok(Some(vec![0, 0])));
    }

    #[test]
    fn what_is_refused() {
        let flaw = |change: Change| match block([], false, std::slice::from_ref(&change)) {
            Err(Flaw::Variable(name, reason)) => {
                assert_eq!(name, change.name);
                reason
            }
            other => panic!("{other:?}"),
        };
        assert!(flaw(set("", "x")).contains("empty"));
        assert!(flaw(set("a\0", "x")).contains("NUL"));
        assert!(flaw(set("a", "x\0y")).contains("NUL"));
        assert!(flaw(set("a=b", "x")).contains("equals"));
        assert!(flaw(set("==", "x")).contains("equals"));
        // As in std, nothing is said of what is only to be away.
        assert_eq!(block([], true, &[remove("a=b"), remove("")]), Ok(Some(vec![0, 0])));
    }

    #[test]
    fn the_last_change_tells_what_is_set() {
        let changes = [set("Path", "1"), set("PATH", "2"), set("x", "3"), remove("X")];
        assert_eq!(set_to(&changes, &wide("path")), Some(&wide("2")[..]));
        assert_eq!(set_to(&changes, &wide("x")), None);
        assert_eq!(set_to(&changes, &wide("y")), None);
    }

    // Fails with the division sign taken for a letter, and with ÿ left as it is.
    #[test]
    fn latin_letters_differ_from_their_capitals_only_in_case() {
        let pairs: Vec<_> = (1..=0xff)
            .flat_map(|a| (1..=0x178).map(move |b| (a, b)))
            .filter(|&(a, b)| a < b && compare_names(&[a], &[b]).is_eq())
            .map(|(a, b)| [a, b].map(|unit| char::from_u32(unit.into()).unwrap()))
            .collect();
        let wanted: Vec<_> = ('A'..='Z')
            .chain(('À'..='Þ').filter(|&letter| letter != '×'))
            .map(|upper| [upper, upper.to_lowercase().next().unwrap()])
            .chain([['ÿ', 'Ÿ']])
            .collect();
        assert_eq!(pairs, wanted);
        #[cfg(windows)]
        for a in 1..=0xff {
            for b in 1..=0xff {
                assert_eq!(compare_names(&[a], &[b]), latin::compare(&[a], &[b]), "{a:#x} {b:#x}");
            }
        }
    }

    /// The variables of a block, each name up to the first equals sign after its first character.
    fn read(block: &[u16]) -> Vec<(Vec<u16>, Vec<u16>)> {
        assert!(block.ends_with(&[0, 0]));
        let strings = block[..block.len() - 1].split(|unit| *unit == 0);
        strings
            .filter(|string| !string.is_empty())
            .map(|string| {
                let at = 1 + string[1..].iter().position(|&unit| unit == EQUALS).unwrap();
                (string[..at].to_vec(), string[at + 1..].to_vec())
            })
            .collect()
    }

    fn any_name() -> impl Strategy<Value = Vec<u16>> {
        let first = proptest::sample::select(wide("aAbB_=0éÉ÷ÿz"));
        let rest = proptest::collection::vec(proptest::sample::select(wide("aAbB_0")), 0..2);
        (first, rest).prop_map(|(first, rest)| [vec![first], rest].concat())
    }

    proptest! {
        #[test]
        fn the_child_sees_what_was_meant(
            parent in proptest::collection::vec((any_name(), any_name()), 0..12),
            changes in proptest::collection::vec((any_name(), proptest::option::of(any_name())), 1..8),
            clear: bool,
        ) {
            let changes: Vec<_> =
                changes.into_iter().map(|(name, value)| Change { name, value }).collect();
            let variables = read(&block(parent.clone(), clear, &changes).unwrap().unwrap());
            prop_assert!(variables.is_sorted_by(|a, b| compare_names(&a.0, &b.0).is_lt()));

            let names = parent.iter().map(|(name, _)| name).chain(changes.iter().map(|change| &change.name));
            for name in names {
                let same = |other: &[u16]| compare_names(name, other).is_eq();
                let changed = changes.iter().rfind(|change| same(&change.name));
                let first = parent.iter().find(|(other, _)| !clear && same(other));
                let wanted = match changed {
                    Some(change) => change.value.as_ref(),
                    None => first.map(|(_, value)| value),
                };
                let seen = variables.iter().find(|(other, _)| same(other));
                prop_assert_eq!(seen.map(|(_, value)| value), wanted);
                if let Some((spelled, _)) = seen {
                    let first_change = changes.iter().map(|change| &change.name).find(|other| same(other));
                    prop_assert_eq!(Some(spelled), first.map(|(other, _)| other).or(first_change));
                }
            }
        }
    }
}
