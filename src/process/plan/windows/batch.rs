//! Batch files: `cmd.exe` runs them, and takes the command line apart by rules of its own, in which an argument can
//! become a command.
//!
//! * CVE-2024-24576: <https://blog.rust-lang.org/2024/04/09/cve-2024-24576.html>
//! * CVE-2024-43402: <https://blog.rust-lang.org/2024/09/04/cve-2024-43402.html>

use super::command_line::Argument;
use super::flaw::{Flaw, NUL};
use super::{BACKSLASH, COLON, DOT, PERCENT, QUOTE, SLASH, SPACE, ends_in, units};

/// Command extensions on, which [`PERCENT_ALONE`] needs; no delayed expansion, so that `!` means itself; no commands
/// from the registry. `cmd.exe` takes the quotation mark at the end away, and the last one of the line.
/// <https://learn.microsoft.com/windows-server/administration/windows-commands/cmd>
const OPENING: [u16; 29] = units(b"cmd.exe /e:ON /v:OFF /d /c \"\"");

/// What `cmd.exe` expands to one percent sign. The first has no name to its right and stays. The others enclose a
/// piece of no characters of the variable `cd`, which is always there. So no percent sign is left with which one in
/// the argument could pair.
const PERCENT_ALONE: [u16; 8] = units(b"%%cd:~,%");

/// <https://learn.microsoft.com/troubleshoot/windows-client/shell-experience/command-line-string-limitation>
const LONGEST: usize = 8_191;

const CARRIAGE_RETURN: u16 = b'\r' as u16;
const LINE_FEED: u16 = b'\n' as u16;

/// Whether Windows would run this path by `cmd.exe`.
///
/// Windows leaves out dots and spaces at the end of a name and resolves `.` and `..`, so that `x.bat. .` and
/// `x.bat\.` are `x.bat`; `x.bat::$DATA` is what `x.bat` holds. In doubt the answer is yes: then arguments are
/// escaped more than they need, not less.
/// <https://learn.microsoft.com/windows/win32/fileio/naming-a-file>
pub(crate) fn is_batch_file(path: &[u16]) -> bool {
    let path = path.split(|&unit| unit == 0).next().unwrap_or_default();
    let mut names = path.rsplit(|&unit| unit == BACKSLASH || unit == SLASH).map(without_end);
    match names.next() {
        // It ends in a dot or a separator: the file is named by something before that.
        Some([]) => names.any(is_batch_name),
        Some(name) => is_batch_name(name),
        None => false,
    }
}

/// A name without the dots and spaces that Windows ignores.
fn without_end(name: &[u16]) -> &[u16] {
    let end = name.iter().rposition(|&unit| unit != DOT && unit != SPACE);
    &name[..end.map_or(0, |last| last + 1)]
}

/// A name, or one of those that colons part it into: a drive, the file, its stream, the stream's type.
fn is_batch_name(name: &[u16]) -> bool {
    name.split(|&unit| unit == COLON)
        .map(without_end)
        .any(|part| ends_in(part, b".bat") || ends_in(part, b".cmd"))
}

/// The command line with which `cmd.exe` runs a batch file, and from which no regular argument can break out; with
/// the NUL that ends it.
///
/// The script gets regular arguments as the Microsoft C runtime would, once it hands them on by `%*` or `"%~1"`. Raw
/// ones go in as they are, as with std: whoever gives them vouches for them. Beyond what std does, the script's own
/// percent signs are escaped too, and blanks outside ASCII quoted.
/// <https://doc.rust-lang.org/std/process/index.html#windows-argument-splitting>
pub(crate) fn command_line(script: &[u16], arguments: &[Argument]) -> Result<Vec<u16>, Flaw> {
    let unsafe_in_a_name = [0, QUOTE, CARRIAGE_RETURN, LINE_FEED];
    if script.iter().any(|unit| unsafe_in_a_name.contains(unit)) || script.last() == Some(&BACKSLASH) {
        return Err(Flaw::Program(
            "no batch file's name contains a quotation mark, a line break or a NUL, or ends in a backslash",
        ));
    }
    let mut line = OPENING.to_vec();
    for &unit in script {
        push_unit(&mut line, unit);
    }
    line.push(QUOTE);
    for (index, argument) in arguments.iter().enumerate() {
        line.push(SPACE);
        match argument {
            _ if argument.text().contains(&0) => return Err(Flaw::Argument(index, NUL)),
            Argument::Regular(text) if text.contains(&CARRIAGE_RETURN) || text.contains(&LINE_FEED) => {
                return Err(Flaw::Argument(index, "a line break cannot be passed to a batch file safely"));
            }
            Argument::Regular(text) => push_escaped(&mut line, text),
            Argument::Raw(text) => line.extend_from_slice(text),
        }
    }
    line.push(QUOTE);
    if line.len() > LONGEST {
        return Err(Flaw::CommandLine(
            "it is longer than the 8,191 characters that cmd.exe takes, which runs batch files",
        ));
    }
    line.push(0);
    Ok(line)
}

/// To `cmd.exe` each quotation mark begins or ends what is quoted, backslash or not; so one inside is doubled, and
/// what stands between it and the next is inside again. The C runtime takes two inside for one, if the backslashes
/// before them are doubled.
fn push_escaped(line: &mut Vec<u16>, argument: &[u16]) {
    let quoted = needs_quotes(argument);
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for &unit in argument {
        if unit == QUOTE {
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
            line.push(QUOTE);
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        push_unit(line, unit);
    }
    if quoted {
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
}

fn push_unit(line: &mut Vec<u16>, unit: u16) {
    match unit {
        PERCENT => line.extend_from_slice(&PERCENT_ALONE),
        _ => line.push(unit),
    }
}

/// All but what is known to be harmless. A backslash at the end would escape the quotation mark that a script puts
/// around the argument.
fn needs_quotes(argument: &[u16]) -> bool {
    argument.is_empty()
        || argument.last() == Some(&BACKSLASH)
        || !char::decode_utf16(argument.iter().copied()).all(|unit| unit.is_ok_and(is_harmless))
}

fn is_harmless(character: char) -> bool {
    match character {
        '#' | '$' | '*' | '+' | '-' | '.' | '/' | ':' | '?' | '@' | '\\' | '_' => true,
        // One of `cmd.exe`'s separators is 0xFF.
        'ÿ' => false,
        _ => character.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{any_string, crt, wide};
    use super::*;

    /// Between the two quotation marks that `cmd.exe` takes away.
    fn inside(script: &[u16], arguments: &[Vec<u16>]) -> Vec<u16> {
        let arguments: Vec<_> = arguments.iter().cloned().map(Argument::Regular).collect();
        let line = command_line(script, &arguments).unwrap();
        let line = line.strip_prefix(&OPENING[..OPENING.len() - 1]).unwrap();
        line.strip_suffix(&[QUOTE, 0]).unwrap().to_vec()
    }

    /// Expands percent signs as `cmd.exe` does on a command line where no variable is set but `cd`, and reports
    /// any other use of them.
    fn expanded(mut line: &[u16]) -> Result<Vec<u16>, &[u16]> {
        let mut result = Vec::new();
        while let Some((&unit, rest)) = line.split_first() {
            result.push(unit);
            if unit == PERCENT {
                line = line.strip_prefix(&PERCENT_ALONE).ok_or(line)?;
            } else {
                line = rest;
            }
        }
        Ok(result)
    }

    /// What stands outside of quotation marks. They are balanced.
    fn outside(line: &[u16]) -> Vec<u16> {
        let parts: Vec<_> = line.split(|&unit| unit == QUOTE).collect();
        assert_eq!(parts.len() % 2, 1, "{}", String::from_utf16_lossy(line));
        parts.into_iter().step_by(2).flatten().copied().collect()
    }

    proptest! {
        // Fails without the doubled quotation mark, without either doubling of backslashes, with `%` as it is, and with
        // every letter outside ASCII for a harmless one.
        #[test]
        fn no_argument_gets_out_of_its_quotes_and_each_comes_back(
            script in any_string(),
            arguments in proptest::collection::vec(any_string(), 0..5),
        ) {
            let (mut script, mut arguments) = (script, arguments);
            script.retain(|unit| !matches!(*unit, QUOTE | CARRIAGE_RETURN | LINE_FEED));
            script.extend(wide(".bat"));
            for argument in &mut arguments {
                argument.retain(|unit| !matches!(*unit, CARRIAGE_RETURN | LINE_FEED));
            }
            let line = expanded(&inside(&script, &arguments)).unwrap();

            let separators = wide(" \t,;=\u{b}\u{c}\u{a0}ÿ");
            let operators = wide("&|<>^()!%`'~[]{}");
            let spaces = outside(&line).into_iter().filter(|&unit| unit == SPACE).count();
            prop_assert_eq!(spaces, arguments.len());
            for unit in outside(&line) {
                prop_assert!(unit == SPACE || !separators.contains(&unit) && !operators.contains(&unit));
                prop_assert!(!(0xd800..0xe000).contains(&unit) || String::from_utf16(&line).is_ok());
            }

            let wanted: Vec<_> = std::iter::once(script).chain(arguments).collect();
            prop_assert_eq!(crt::parse(&line), wanted);
        }
    }

    // Fails with any of `&|<>^()!,;=` and the like among the harmless ones, or without the quotes around a backslash at
    // the end.
    #[test]
    fn hostile_arguments() {
        for (argument, wanted) in [
            ("plain-1.0", "plain-1.0"),
            ("", r#""""#),
            (r"C:\dir\file", r"C:\dir\file"),
            (r"C:\dir\", r#""C:\dir\\""#),
            ("&calc.exe", r#""&calc.exe""#),
            (r#""&calc.exe"#, r#""""&calc.exe""#),
            (r#"\"&calc.exe"#, r#""\\""&calc.exe""#),
            (r#""&"whoami"#, r#""""&""whoami""#),
            ("a|b>c<d^e", r#""a|b>c<d^e""#),
            ("%PATH%", r#""%%cd:~,%PATH%%cd:~,%""#),
            ("%CMDCMDLINE:~-1%&calc", r#""%%cd:~,%CMDCMDLINE:~-1%%cd:~,%&calc""#),
            ("a=b,c;d", r#""a=b,c;d""#),
            ("!x!", r#""!x!""#),
            ("a b", r#""a b""#),
            ("a\u{a0}b", "\"a\u{a0}b\""),
            ("\u{ff02}&", "\"\u{ff02}&\""),
            ("é漢\u{1d4b3}", "é漢\u{1d4b3}"),
            ("\u{1b}", "\"\u{1b}\""),
            ("\u{9b}", "\"\u{9b}\""),
        ] {
            let line = inside(&wide("x.bat"), &[wide(argument)]);
            assert_eq!(String::from_utf16(&line).unwrap(), format!(r#""x.bat" {wanted}"#), "{argument:?}");
        }
        for character in ('\x01'..='\x7f').filter(|character| !matches!(character, '\r' | '\n' | '"' | '%')) {
            let line = inside(&wide("x.bat"), &[wide(&format!("a{character}b"))]);
            let harmless = character.is_ascii_alphanumeric() || "#$*+-./:?@\\_".contains(character);
            let quote = if harmless { "" } else { "\"" };
            let wanted = format!("\"x.bat\" {quote}a{character}b{quote}");
            assert_eq!(String::from_utf16(&line).unwrap(), wanted, "{character:?}");
        }
        let line = inside(&wide(r"C:\100%cd%\x.cmd"), &[]);
        assert_eq!(String::from_utf16(&line).unwrap(), r#""C:\100%%cd:~,%cd%%cd:~,%\x.cmd""#);

        let raw = command_line(&wide("x.bat"), &[Argument::Raw(wide("& echo %1"))]).unwrap();
        assert_eq!(String::from_utf16(&raw).unwrap(), "cmd.exe /e:ON /v:OFF /d /c \"\"x.bat\" & echo %1\"\0");
    }

    #[test]
    fn what_is_refused() {
        let flaw = |script: &str, argument: &str| {
            command_line(&wide(script), &[Argument::Regular(wide("ok")), Argument::Regular(wide(argument))])
                .unwrap_err()
        };
        for argument in ["a\rb", "a\nb", "\r\n", "\n"] {
            assert!(
                matches!(flaw("x.bat", argument), Flaw::Argument(1, reason) if reason.contains("line break"))
            );
        }
        assert_eq!(flaw("x.bat", "\0"), Flaw::Argument(1, NUL));
        for script in ["x\".bat", "x\n.bat", "x\r.bat", "x\0.bat", "x.bat\\"] {
            assert!(matches!(flaw(script, ""), Flaw::Program(_)), "{script:?}");
        }
        let fixed = OPENING.len() + "x.bat\" ok \"".len();
        assert!(matches!(flaw("x.bat", &"x".repeat(LONGEST - fixed + 1)), Flaw::CommandLine(_)));
        let longest = Argument::Regular(wide(&"x".repeat(LONGEST - fixed)));
        let line = command_line(&wide("x.bat"), &[Argument::Regular(wide("ok")), longest]).unwrap();
        assert_eq!(line.len(), LONGEST + 1);
        let raw_nul = command_line(&wide("x.bat"), &[Argument::Raw(vec![0])]);
        assert_eq!(raw_nul, Err(Flaw::Argument(0, NUL)));
    }

    // Fails, line by line, without the loss of dots and spaces, of what follows a colon, or of a last name of dots.
    #[test]
    fn batch_files_by_every_name_that_windows_resolves_to_one() {
        for path in [
            "x.bat",
            "X.BAT",
            "x.Cmd",
            r"C:\dir\x.bat",
            "dir/x.cmd",
            ".bat",
            "x.exe.bat",
            "C:x.bat",
            // CVE-2024-43402
            "x.bat.",
            "x.bat ",
            "x.bat. .",
            "x.cmd ...  ",
            r"C:\d\x.BAT. ",
            // Streams
            "x.bat::$DATA",
            "x.bat::$data ",
            "x.bat:s",
            "x.bat. :s:$DATA",
            "x.exe:s.bat",
            r"C:\d\x.cmd:s",
            // Resolved by GetFullPathNameW
            r"x.bat\.",
            "x.bat/. ",
            r"x.bat\y\..",
            r"x.bat\\",
            "x.bat/./.",
            r"\\?\C:\x.bat",
            r"\\?\C:\x.bat.",
            "x.bat\0",
            "x.bat\0.exe",
        ] {
            assert!(is_batch_file(&wide(path)), "{path:?}");
        }
        for path in [
            "",
            ".",
            r"C:\",
            "x.exe",
            "x.bat.exe",
            "bat",
            "x.bats",
            "xbat",
            "cmd",
            "cmd.exe",
            r"C:\x.bat\y.exe",
            "x.ba",
            "x.bаt",
            "x.bat_",
            "x.exe\0.bat",
            r"C:\a\..",
        ] {
            assert!(!is_batch_file(&wide(path)), "{path:?}");
        }
    }

    #[cfg(windows)]
    mod as_windows_resolves {
        use windows_sys::Win32::Storage::FileSystem::GetFullPathNameW;

        use super::*;

        fn resolved(path: &[u16]) -> Vec<u16> {
            let path = [path, &[0]].concat();
            let mut full = [0; 1024];
            // SAFETY: the path ends in a NUL, the buffer is as long as said, and the part is not asked for.
            let length =
                unsafe { GetFullPathNameW(path.as_ptr(), 1024, full.as_mut_ptr(), std::ptr::null_mut()) };
            full[..length as usize].to_vec()
        }

        proptest! {
            // Fails as the test above does.
            #[test]
            fn every_path_to_a_batch_file_is_seen(
                pieces in proptest::collection::vec(
                    proptest::sample::select(&["x", ".bat", ".CMD", ".exe", ".", "..", " ", "\\", "/", ":s", "::$DATA"]),
                    1..8,
                ),
            ) {
                let path = wide(&pieces.concat());
                let full = resolved(&path);
                let batch = ends_in(&full, b".bat") || ends_in(&full, b".cmd");
                prop_assert!(is_batch_file(&path) || !batch, "{:?} is {}", pieces, String::from_utf16_lossy(&full));
                // No doubt, no more than needed. Of a folder whose name ends in dots, Wine 8 leaves out the last dot
                // and adds to the end of the whole what stands behind it in memory: "/x../.bat" shows it.
                let dotted = |name: &[u16]| name.last() == Some(&DOT) && name != [DOT] && name != [DOT, DOT];
                let doubt = path.contains(&COLON)
                    || without_end(&path).len() < path.len()
                    || path.split(|&unit| unit == BACKSLASH || unit == SLASH).any(dotted);
                if !doubt && !matches!(path.last(), Some(&(BACKSLASH | SLASH))) {
                    prop_assert_eq!(is_batch_file(&path), batch, "{:?} is {}", pieces, String::from_utf16_lossy(&full));
                }
            }
        }
    }
}
