//! Where a program is looked for.

use super::flaw::{Flaw, NUL};
use super::{BACKSLASH, COLON, DOT, QUOTE, SLASH, ends_in, units};

const SUFFIX: [u16; 4] = units(b".exe");
const SEMICOLON: u16 = b';' as u16;

/// The directories in which a bare name is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The child's `PATH`, if the command sets it.
    pub(crate) child_path: Option<&'a [u16]>,
    /// The directory of the program that launches; empty where it cannot be told.
    pub(crate) application: &'a [u16],
    /// `GetSystemDirectoryW`.
    pub(crate) system: &'a [u16],
    /// `GetWindowsDirectoryW`.
    pub(crate) windows: &'a [u16],
    /// The parent's `PATH`, which is asked for only where a bare name is looked for.
    pub(crate) parent_path: &'a dyn Fn() -> Option<Vec<u16>>,
}

/// A path at which the program may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    terminated: Vec<u16>,
    /// Whether the next one is to be tried if there is no such file. Otherwise this is the last, and `CreateProcessW`
    /// says what is wrong with it.
    pub(crate) must_exist: bool,
}

impl Candidate {
    fn new(pieces: &[&[u16]], must_exist: bool) -> Candidate {
        Candidate { terminated: [&pieces.concat()[..], &[0]].concat(), must_exist }
    }

    /// The path as calls take it, with the NUL that ends it.
    pub(crate) fn terminated(&self) -> &[u16] {
        &self.terminated
    }

    /// The path without the NUL.
    pub(crate) fn path(&self) -> &[u16] {
        &self.terminated[..self.terminated.len() - 1]
    }
}

/// The paths at which a program is looked for, in order.
///
/// As std does it, which differs from `CreateProcessW` alone: the working directory is not searched, and the child's
/// `PATH` is.
///
/// * A path, that is a name with a separator or a drive, is itself. If it does not end in `.exe`, the path with
///   `.exe` added goes first.
/// * A bare name gets `.exe` if there is no dot in it, and is looked for in the child's `PATH` if the command sets
///   one, the directory of the program that launches, the system's, Windows', and the parent's `PATH`.
///
/// Relative paths are the parent's working directory's.
///
/// <https://doc.rust-lang.org/std/process/struct.Command.html#method.new>
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw>
pub(crate) fn candidates(program: &[u16], places: &Places<'_>) -> Result<Vec<Candidate>, Flaw> {
    if program.contains(&0) {
        return Err(Flaw::Program(NUL));
    }
    // After this prefix a slash is a character like others.
    let verbatim = program.starts_with(&units(br"\\?\"));
    let is_separator = |unit: u16| unit == BACKSLASH || (unit == SLASH && !verbatim);
    let drive = starts_with_drive(program);
    if program.last().is_none_or(|&last| is_separator(last)) || (drive && program.len() == 2) {
        return Err(Flaw::Program("it does not name a file"));
    }

    if drive || program.iter().any(|&unit| unit == BACKSLASH || unit == SLASH) {
        let itself = Candidate::new(&[program], false);
        return Ok(match ends_in(program, b".exe") {
            true => vec![itself],
            false => vec![Candidate::new(&[program, &SUFFIX], true), itself],
        });
    }

    let parent_path = (places.parent_path)();
    let suffix = if program.contains(&DOT) { &[][..] } else { &SUFFIX };
    let directories = elements(places.child_path.unwrap_or_default())
        .chain([places.application.to_vec(), places.system.to_vec(), places.windows.to_vec()])
        .chain(elements(parent_path.as_deref().unwrap_or_default()));
    Ok(directories
        // The environment with such a PATH is refused; a part of it must not be looked into before.
        .filter(|directory| !directory.is_empty() && !directory.contains(&0))
        .map(|directory| {
            // A drive alone is its working directory, with a separator it would be its root.
            let joined = directory.last().is_some_and(|&last| last == BACKSLASH || last == SLASH)
                || (directory.len() == 2 && starts_with_drive(&directory));
            let separator = if joined { &[][..] } else { &[BACKSLASH] };
            Candidate::new(&[&directory, separator, program, suffix], true)
        })
        .collect())
}

fn starts_with_drive(path: &[u16]) -> bool {
    matches!(path, [letter, COLON, ..] if u8::try_from(*letter).is_ok_and(|letter| letter.is_ascii_alphabetic()))
}

/// The directories of a `PATH`. Between quotation marks, which may stand anywhere, a semicolon belongs to the name.
/// <https://doc.rust-lang.org/std/env/fn.split_paths.html>
fn elements(path: &[u16]) -> impl Iterator<Item = Vec<u16>> {
    let mut quoted = false;
    path.split(move |&unit| {
        quoted ^= unit == QUOTE;
        unit == SEMICOLON && !quoted
    })
    .map(|element| element.iter().copied().filter(|&unit| unit != QUOTE).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{any_string, wide};
    use super::*;

    fn found(program: &str, child_path: Option<&str>, parent_path: Option<&str>) -> Vec<(String, bool)> {
        let [child, parent] = [child_path, parent_path].map(|path| path.map(wide));
        let places = Places {
            child_path: child.as_deref(),
            application: &wide(r"C:\app"),
            system: &wide(r"C:\Windows\system32"),
            windows: &wide(r"C:\Windows"),
            parent_path: &|| parent.clone(),
        };
        let list = candidates(&wide(program), &places).unwrap();
        list.iter()
            .map(|candidate| {
                assert_eq!(candidate.terminated(), [candidate.path(), &[0]].concat());
                (String::from_utf16(candidate.path()).unwrap(), candidate.must_exist)
            })
            .collect()
    }

    #[test]
    fn a_path_is_itself() {
        for (program, wanted) in [
            (r"C:\d\x", &[(r"C:\d\x.exe", true), (r"C:\d\x", false)][..]),
            (r"d\x.bat", &[(r"d\x.bat.exe", true), (r"d\x.bat", false)]),
            ("./x", &[("./x.exe", true), ("./x", false)]),
            (r".\x.EXE", &[(r".\x.EXE", false)]),
            (r"\\server\share\x.eXe", &[(r"\\server\share\x.eXe", false)]),
            (r"\\?\C:\x/", &[(r"\\?\C:\x/.exe", true), (r"\\?\C:\x/", false)]),
            ("C:x", &[("C:x.exe", true), ("C:x", false)]),
            ("C:x.exe", &[("C:x.exe", false)]),
            (r"d\.exe", &[(r"d\.exe", false)]),
        ] {
            let wanted: Vec<_> = wanted.iter().map(|&(path, must)| (path.to_owned(), must)).collect();
            assert_eq!(found(program, Some(r"C:\other"), None), wanted, "{program}");
        }
    }

    // Fails with the child's PATH after the application's directory, with empty elements kept (the working directory
    // would be searched), and with `.exe` added to a name with a dot.
    #[test]
    fn a_bare_name_is_looked_for_in_stds_order() {
        let names = |program, child, parent| {
            let list = found(program, child, parent);
            assert!(list.iter().all(|(_, must_exist)| *must_exist));
            list.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        assert_eq!(
            names("x", Some(r#";C:\a;;"C:\b;c";C:\d"ir;1"\;"";E:"#), Some(r"C:\p/;.")),
            [
                r"C:\a\x.exe",
                r"C:\b;c\x.exe",
                r"C:\dir;1\x.exe",
                r"E:x.exe",
                r"C:\app\x.exe",
                r"C:\Windows\system32\x.exe",
                r"C:\Windows\x.exe",
                r"C:\p/x.exe",
                r".\x.exe",
            ]
        );
        let system =
            |name: &str| [r"C:\app\", r"C:\Windows\system32\", r"C:\Windows\"].map(|d| format!("{d}{name}"));
        assert_eq!(names("x.cmd", None, None), system("x.cmd"));
        assert_eq!(names("x.", Some(""), Some(";")), system("x."));
        assert_eq!(names("xy:s", None, Some("\0")), system("xy:s.exe"));
    }

    #[test]
    fn what_names_no_file_is_refused() {
        let places =
            Places { child_path: None, application: &[], system: &[], windows: &[], parent_path: &|| None };
        for program in ["", "/", r"d\", "d/", r"C:\", "C:", r"\\?\C:\", "x\0y", "d/\0"] {
            assert!(matches!(candidates(&wide(program), &places), Err(Flaw::Program(_))), "{program:?}");
        }
        assert_eq!(candidates(&wide("x"), &places), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn a_path_is_split_as_the_documentation_of_std_says(directories in proptest::collection::vec(any_string(), 0..6)) {
            let mut directories = directories;
            let quoted: Vec<_> = directories
                .iter_mut()
                .map(|directory| {
                    directory.retain(|&unit| unit != QUOTE);
                    [&[QUOTE], &directory[..], &[QUOTE]].concat()
                })
                .collect();
            let path = quoted.join(&SEMICOLON);
            if directories.is_empty() {
                directories.push(Vec::new());
            }
            #[cfg(windows)]
            {
                use std::os::windows::ffi::{OsStrExt, OsStringExt};
                let split: Vec<Vec<u16>> = std::env::split_paths(&std::ffi::OsString::from_wide(&path))
                    .map(|directory| directory.as_os_str().encode_wide().collect())
                    .collect();
                // A last element that is empty is not reported by std; it is passed over here.
                prop_assert!(directories.iter().filter(|d| !d.is_empty()).eq(split.iter().filter(|d| !d.is_empty())));
            }
            prop_assert_eq!(elements(&path).collect::<Vec<_>>(), directories);
        }
    }
}
