//! The command line of a program: one string, which the program's own runtime takes apart again.

use super::flaw::{Flaw, NUL};
use super::{BACKSLASH, QUOTE, SPACE, TAB};

/// What `CreateProcessW` takes, without the NUL at the end.
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw>
const LONGEST: usize = 32_766;

/// One argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// Arrives in the child as it is here.
    Regular(Vec<u16>),
    /// Goes into the command line as it is here, after a space.
    Raw(Vec<u16>),
}

impl Argument {
    /// The text, whichever way it goes.
    pub(crate) fn text(&self) -> &[u16] {
        match self {
            Argument::Regular(text) | Argument::Raw(text) => text,
        }
    }
}

/// The command line from which `CommandLineToArgvW` and the Microsoft C runtime get back the program's name and each
/// regular argument; with the NUL that ends it.
///
/// The name is quoted always, an argument where it is empty or has a blank in it, as std does.
/// <https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments>
pub(crate) fn command_line(program: &[u16], arguments: &[Argument]) -> Result<Vec<u16>, Flaw> {
    if program.contains(&0) {
        return Err(Flaw::Program(NUL));
    }
    // There is no way to escape it in the program's name: what follows would become arguments.
    if program.contains(&QUOTE) {
        return Err(Flaw::Program("no file's name on Windows contains a quotation mark"));
    }
    let text: usize = arguments.iter().map(|argument| argument.text().len() + 3).sum();
    let mut line = Vec::with_capacity(program.len() + text + 3);
    line.push(QUOTE);
    line.extend_from_slice(program);
    line.push(QUOTE);
    push_arguments(&mut line, arguments)?;
    finished(line)
}

/// The arguments without a program before them, quoted as on a command line; `None` where there are none.
pub(crate) fn parameters(arguments: &[Argument]) -> Result<Option<Vec<u16>>, Flaw> {
    let mut line = Vec::new();
    push_arguments(&mut line, arguments)?;
    if line.is_empty() {
        return Ok(None);
    }
    // The blank before the first.
    line.remove(0);
    finished(line).map(Some)
}

/// A blank and the argument, for each.
fn push_arguments(line: &mut Vec<u16>, arguments: &[Argument]) -> Result<(), Flaw> {
    for (index, argument) in arguments.iter().enumerate() {
        line.push(SPACE);
        match argument {
            _ if argument.text().contains(&0) => return Err(Flaw::Argument(index, NUL)),
            Argument::Regular(text) => push_escaped(line, text),
            Argument::Raw(text) => line.extend_from_slice(text),
        }
    }
    Ok(())
}

fn finished(mut line: Vec<u16>) -> Result<Vec<u16>, Flaw> {
    if line.len() > LONGEST {
        return Err(Flaw::CommandLine("it is longer than the 32,766 characters that Windows takes"));
    }
    line.push(0);
    Ok(line)
}

/// A quotation mark is escaped by a backslash; backslashes are doubled where one follows, and only there.
fn push_escaped(line: &mut Vec<u16>, argument: &[u16]) {
    let quoted = argument.is_empty() || argument.iter().any(|unit| matches!(*unit, SPACE | TAB));
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for &unit in argument {
        if unit == QUOTE {
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        line.push(unit);
    }
    if quoted {
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{any_string, crt, wide};
    use super::*;

    fn regular(text: &str) -> Argument {
        Argument::Regular(wide(text))
    }

    fn built(program: &str, arguments: &[Argument]) -> String {
        let line = command_line(&wide(program), arguments).unwrap();
        let (end, line) = line.split_last().unwrap();
        assert_eq!(*end, 0);
        String::from_utf16(line).unwrap()
    }

    /// What Windows itself makes of a command line that ends in a NUL.
    #[cfg(windows)]
    fn parsed_by_windows(line: &[u16]) -> Vec<Vec<u16>> {
        use windows_sys::Win32::Foundation::LocalFree;
        use windows_sys::Win32::UI::Shell::CommandLineToArgvW;
        assert_eq!(line.last(), Some(&0));
        let mut count = 0;
        // SAFETY: the line ends in a NUL.
        let list = unsafe { CommandLineToArgvW(line.as_ptr(), &mut count) };
        assert!(!list.is_null());
        let argument = |index| {
            // SAFETY: the list has `count` strings, each ending in a NUL.
            unsafe {
                let start = *list.add(index);
                let length = (0..).take_while(|&at| *start.add(at) != 0).count();
                std::slice::from_raw_parts(start, length).to_vec()
            }
        };
        let arguments = (0..count as usize).map(argument).collect();
        // SAFETY: this is how the list is freed, once.
        unsafe { LocalFree(list.cast()) };
        arguments
    }

    proptest! {
        // Fails with `repeat_n(BACKSLASH, backslashes)` in the place of `backslashes + 1`, without the doubling at the
        // end, and with only spaces quoted.
        #[test]
        fn every_argument_comes_back(
            program in any_string(),
            arguments in proptest::collection::vec(any_string(), 0..6),
        ) {
            let mut program = program;
            program.retain(|&unit| unit != QUOTE);
            program.insert(0, u16::from(b'p'));
            let given: Vec<_> = arguments.iter().cloned().map(Argument::Regular).collect();
            let line = command_line(&program, &given).unwrap();
            let wanted: Vec<_> = std::iter::once(program).chain(arguments).collect();
            prop_assert_eq!(crt::parse(&line[..line.len() - 1]), &wanted[..]);
            #[cfg(windows)]
            prop_assert_eq!(parsed_by_windows(&line), wanted);
        }
    }

    #[test]
    fn quoted_only_where_it_is_needed() {
        let line = built(
            r"C:\a b\c.exe",
            &[
                regular("plain"),
                regular(""),
                regular(r"C:\dir\"),
                regular(r"C:\my dir\"),
                regular(r#"say "hi""#),
                regular(r#"a\"b"#),
                Argument::Raw(wide(r#"/x "raw \"#)),
                Argument::Raw(Vec::new()),
                regular("caf\u{e9}\u{a0}"),
            ],
        );
        let wanted = "\"C:\\a b\\c.exe\" plain \"\" C:\\dir\\ \"C:\\my dir\\\\\" \"say \\\"hi\\\"\" a\\\\\\\"b \
                      /x \"raw \\  caf\u{e9}\u{a0}";
        assert_eq!(line, wanted);
    }

    #[test]
    fn what_is_refused() {
        let flaw =
            |program: &str, arguments: &[Argument]| command_line(&wide(program), arguments).unwrap_err();
        assert_eq!(flaw("a\0b", &[]), Flaw::Program(NUL));
        assert!(matches!(flaw("a\" b", &[]), Flaw::Program(reason) if reason.contains("quotation")));
        assert_eq!(flaw("a", &[regular("b"), regular("c\0")]), Flaw::Argument(1, NUL));
        assert_eq!(flaw("a", &[Argument::Raw(wide("\0"))]), Flaw::Argument(0, NUL));
        // The quoted name takes three, the space before the argument one.
        let longest = LONGEST - 4;
        assert_eq!(built("a", &[regular(&"x".repeat(longest))]).len(), LONGEST);
        let flaw = flaw("a", &[regular(&"x".repeat(longest + 1))]);
        assert!(matches!(flaw, Flaw::CommandLine(_)) && flaw.reason().contains("32,766"));
    }
}
