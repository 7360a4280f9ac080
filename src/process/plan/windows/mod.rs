//! A launch on Windows as data: strings in UTF-16, handles as numbers.
//!
//! Everything that `CreateProcessW` is given is made here and tested on every system. The one call to Windows compares
//! the names of variables, because only Windows knows how it folds their case.

pub(crate) mod batch;
pub(crate) mod command_line;
#[cfg(test)]
mod crt;
pub(crate) mod environment;
pub(crate) mod flaw;
pub(crate) mod handle_list;
pub(crate) mod logon;
#[cfg(windows)]
mod resolve;
pub(crate) mod search;
pub(crate) mod secret;
pub(crate) mod shell;
mod source;
pub(crate) mod together;

#[cfg(windows)]
pub(crate) use resolve::{Parent, Plan, arguments, refused};
#[cfg(windows)]
pub(crate) use source::Source;

const BACKSLASH: u16 = b'\\' as u16;
const SLASH: u16 = b'/' as u16;
const QUOTE: u16 = b'"' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const DOT: u16 = b'.' as u16;
const COLON: u16 = b':' as u16;
const PERCENT: u16 = b'%' as u16;
const EQUALS: u16 = b'=' as u16;

/// An ASCII literal in UTF-16.
const fn units<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut units = [0; N];
    let mut index = 0;
    while index < N {
        assert!(text[index].is_ascii());
        units[index] = text[index] as u16;
        index += 1;
    }
    units
}

/// Whether a string ends in these ASCII characters, in any case.
fn ends_in<const N: usize>(string: &[u16], lower_case: &[u8; N]) -> bool {
    string.last_chunk::<N>().is_some_and(|end| {
        end.iter()
            .zip(lower_case)
            .all(|(&unit, &wanted)| u8::try_from(unit).is_ok_and(|unit| unit.to_ascii_lowercase() == wanted))
    })
}

/// A string of a test in UTF-16.
#[cfg(test)]
fn wide(string: &str) -> Vec<u16> {
    string.encode_utf16().collect()
}

/// Strings of any units but NUL, rich in those that quoting is about.
#[cfg(test)]
fn any_string() -> impl proptest::strategy::Strategy<Value = Vec<u16>> {
    use proptest::prelude::*;
    let special = proptest::sample::select(wide("\\\\\\\\\"\"\"  \t%%&|<>^!()@,;=*?:~'`#\u{a0}ÿéaZ0"));
    proptest::collection::vec(prop_oneof![4 => special, 1 => 1..=u16::MAX], 0..24)
}
