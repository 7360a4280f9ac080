//! A launch by the shell: what `ShellExecuteExW` takes, and what it says.
//! <https://learn.microsoft.com/windows/win32/api/shellapi/ns-shellapi-shellexecuteinfow>

use super::batch;
use super::command_line::{self, Argument};
use super::flaw::{Flaw, NUL};

/// What the shell is asked for. Strings are terminated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) file: Vec<u16>,
    pub(crate) parameters: Option<Vec<u16>>,
    /// `None`: the default of the kind of file.
    pub(crate) verb: Option<Vec<u16>>,
    /// `None`: the parent's.
    pub(crate) directory: Option<Vec<u16>>,
    pub(crate) show: i32,
}

impl Execution {
    pub(crate) fn new(
        target: &[u16],
        arguments: &[Argument],
        verb: Option<&[u16]>,
        directory: Option<&[u16]>,
        show: u16,
    ) -> Result<Execution, Flaw> {
        let nul = |string: Option<&[u16]>| string.is_some_and(|string| string.contains(&0));
        if target.is_empty() {
            return Err(Flaw::Program("it names nothing to open"));
        }
        if nul(Some(target)) {
            return Err(Flaw::Program(NUL));
        }
        if nul(verb) {
            return Err(Flaw::Setting("verb contains a NUL character"));
        }
        if nul(directory) {
            return Err(Flaw::Directory(NUL));
        }
        // The shell makes the line for cmd.exe by itself, and out of that arguments could break.
        let regular = |argument: &Argument| matches!(argument, Argument::Regular(_));
        if batch::is_batch_file(target)
            && let Some(index) = arguments.iter().position(regular)
        {
            return Err(Flaw::Argument(
                index,
                "it cannot be passed to a batch file safely together with shell_execute(true); launch it with spawn()",
            ));
        }
        let terminated = |string: &[u16]| [string, &[0]].concat();
        Ok(Execution {
            file: terminated(target),
            parameters: command_line::parameters(arguments)?,
            verb: verb.map(terminated),
            directory: directory.map(terminated),
            show: i32::from(show),
        })
    }
}

/// The system's number for what went wrong: the calling thread's last error, and where there is none, what the shell
/// left in `hInstApp` in numbers of its own, some of which mean something else to the system.
pub(crate) fn error(last: u32, instance: usize) -> u32 {
    const OUT_OF_MEMORY: u32 = 8;
    match (last, instance) {
        (0, 26) => 32,           // SE_ERR_SHARE, ERROR_SHARING_VIOLATION
        (0, 27 | 31) => 1155,    // SE_ERR_ASSOCINCOMPLETE, SE_ERR_NOASSOC, ERROR_NO_ASSOCIATION
        (0, 28..=30) => 1156,    // SE_ERR_DDE…, ERROR_DDE_FAIL
        (0, 32) => 1157,         // SE_ERR_DLLNOTFOUND, ERROR_DLL_NOT_FOUND
        (0, 0) => OUT_OF_MEMORY, // as ShellExecuteW
        (0, _) => u32::try_from(instance).unwrap_or(OUT_OF_MEMORY),
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wide;
    use super::*;

    fn regular(text: &str) -> Argument {
        Argument::Regular(wide(text))
    }

    #[test]
    fn the_arguments_of_the_shell() {
        let arguments =
            [regular("plain"), regular("two words"), regular(r#"a "b""#), Argument::Raw(wide("/x"))];
        let execution =
            Execution::new(&wide("a b.doc"), &arguments, Some(&wide("print")), Some(&wide(r"C:\d e")), 3)
                .unwrap();
        let wanted = Execution {
            file: wide("a b.doc\0"),
            parameters: Some(wide("plain \"two words\" \"a \\\"b\\\"\" /x\0")),
            verb: Some(wide("print\0")),
            directory: Some(wide("C:\\d e\0")),
            show: 3,
        };
        assert_eq!(execution, wanted);
        let bare = Execution::new(&wide("https://example.org"), &[], None, None, 1).unwrap();
        assert_eq!((bare.parameters, bare.verb, bare.directory), (None, None, None));
    }

    #[test]
    fn what_is_refused() {
        let flaw = |target: &str, argument: &str, verb: &str, directory: &str| {
            let (verb, directory) = (wide(verb), wide(directory));
            Execution::new(&wide(target), &[regular(argument)], Some(&verb), Some(&directory), 1).unwrap_err()
        };
        assert!(matches!(flaw("", "", "", ""), Flaw::Program(_)));
        assert_eq!(flaw("a\0", "", "", ""), Flaw::Program(NUL));
        assert_eq!(flaw("a", "\0", "", ""), Flaw::Argument(0, NUL));
        assert!(matches!(flaw("a", "", "\0", ""), Flaw::Setting(reason) if reason.contains("verb")));
        assert_eq!(flaw("a", "", "", "\0"), Flaw::Directory(NUL));
        assert!(
            matches!(flaw("x.BAT .", "&calc", "", ""), Flaw::Argument(0, reason) if reason.contains("spawn()"))
        );
        // Whoever gives raw text vouches for it.
        assert!(Execution::new(&wide("x.bat"), &[Argument::Raw(wide("/x"))], None, None, 1).is_ok());
        assert!(matches!(flaw("a", &"x".repeat(40_000), "", ""), Flaw::CommandLine(_)));
    }

    #[test]
    fn the_shell_s_own_numbers_become_the_system_s() {
        for (last, instance, wanted) in [
            (5, 26, 5),
            (0, 2, 2),
            (0, 3, 3),
            (0, 5, 5),
            (0, 8, 8),
            (0, 26, 32),
            (0, 27, 1155),
            (0, 28, 1156),
            (0, 29, 1156),
            (0, 30, 1156),
            (0, 31, 1155),
            (0, 32, 1157),
            (0, 0, 8),
        ] {
            assert_eq!(error(last, instance), wanted, "{last} {instance}");
        }
    }

    #[cfg(windows)]
    #[test]
    fn numbers_are_those_of_the_system() {
        use windows_sys::Win32::Foundation as system;
        use windows_sys::Win32::UI::Shell as shell;
        for (theirs, wanted) in [
            (shell::SE_ERR_FNF, system::ERROR_FILE_NOT_FOUND),
            (shell::SE_ERR_PNF, system::ERROR_PATH_NOT_FOUND),
            (shell::SE_ERR_ACCESSDENIED, system::ERROR_ACCESS_DENIED),
            (shell::SE_ERR_OOM, system::ERROR_NOT_ENOUGH_MEMORY),
            (shell::SE_ERR_SHARE, system::ERROR_SHARING_VIOLATION),
            (shell::SE_ERR_ASSOCINCOMPLETE, system::ERROR_NO_ASSOCIATION),
            (shell::SE_ERR_NOASSOC, system::ERROR_NO_ASSOCIATION),
            (shell::SE_ERR_DDETIMEOUT, system::ERROR_DDE_FAIL),
            (shell::SE_ERR_DDEFAIL, system::ERROR_DDE_FAIL),
            (shell::SE_ERR_DDEBUSY, system::ERROR_DDE_FAIL),
            (shell::SE_ERR_DLLNOTFOUND, system::ERROR_DLL_NOT_FOUND),
        ] {
            assert_eq!(error(0, theirs as usize), wanted, "{theirs}");
        }
    }
}
