//! Shell execute: a file, a folder or an address is opened as the desktop opens it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::ffi::{OsStr, OsString};
use std::io;

use super::Command;
use crate::process::child::Child;
use crate::process::error::{Cause, LaunchError, Object, Step};
use crate::process::inherit::Inherit;

/// How the first window of a program is to be shown. It is up to the program to do so.
///
/// ```
/// use haft::process::{Command, WindowStyle};
///
/// let mut command = Command::new("notepad");
/// command.window_style(WindowStyle::Minimized); // says nothing but on Windows
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowStyle {
    /// As it is usual.
    #[default]
    Normal,
    /// Not at all.
    Hidden,
    /// As a button in the taskbar.
    Minimized,
    /// Over the whole screen.
    Maximized,
}

/// What a command asks of the shell.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    pub(crate) execute: bool,
    pub(crate) verb: Option<OsString>,
}

impl Command {
    /// A command that opens `target` as the desktop does when it is double-clicked: a document with its program, a folder,
    /// an address such as `https://…` with the browser. Launch it with [`shell_spawn`](Command::shell_spawn).
    ///
    /// It is [`Command::new`] with [`shell_execute(true)`](Command::shell_execute) and
    /// [`inherit(Inherit::All)`](Command::inherit). The latter says what Windows does anyway: it cannot restrict what a
    /// program inherits that the shell starts.
    ///
    /// Never open what a stranger named: on Windows it may be a program as well.
    ///
    /// ```no_run
    /// use haft::process::Command;
    ///
    /// Command::shell_open("https://www.rust-lang.org").shell_spawn()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shell_open<S: AsRef<OsStr>>(target: S) -> Command {
        let mut command = Command::new(target);
        command.shell_execute(true).inherit(Inherit::All);
        command
    }

    /// Whether the desktop's shell opens the program, or whatever else this command names, in place of the system. No by
    /// default. Such a command is launched with [`shell_spawn`](Command::shell_spawn).
    ///
    /// ```
    /// use haft::process::{Command, Inherit};
    ///
    /// let mut command = Command::new("report.pdf");
    /// command.shell_execute(true).inherit(Inherit::All);
    /// let error = command.spawn().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// assert!(error.to_string().contains("shell_spawn()"));
    /// ```
    pub fn shell_execute(&mut self, execute: bool) -> &mut Command {
        self.shell.execute = execute;
        self
    }

    /// Sets what the shell is to do: `open`, `edit`, `print`, `runas` and others that the kind of file has. By default, what a
    /// double click does.
    ///
    /// On Unix there is `open` alone. Without [`shell_execute`](Command::shell_execute) a launch with a verb is
    /// `InvalidInput`.
    ///
    /// ```no_run
    /// use haft::process::Command;
    ///
    /// Command::shell_open(r"C:\reports\may.pdf").verb("print").shell_spawn()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn verb<S: AsRef<OsStr>>(&mut self, verb: S) -> &mut Command {
        self.shell.verb = Some(verb.as_ref().to_owned());
        self
    }

    /// Sets how the first window of the program is to be shown: on Windows, for every kind of launch. It says nothing on
    /// other systems.
    pub fn window_style(&mut self, style: WindowStyle) -> &mut Command {
        self.window = Some(style);
        self
    }

    /// Has the desktop's shell open what this command names.
    ///
    /// On Windows `ShellExecuteExW` does so, on a thread of its own that is a COM apartment; this call waits for it, minutes
    /// where the shell asks the user something. Arguments are quoted as for other launches, and the working directory is set. A
    /// relative target is looked for by the shell's rules, in the working directory among other places. There is a child if
    /// the shell started a process and says which: none where a program that runs already opens the target.
    ///
    /// On Unix the child is the desktop's opener, `xdg-open` (`open` on macOS), found in the child's `PATH` and launched as any other
    /// child: it gets the standard handles and those that were passed and nothing else, whatever [`inherit`](Command::inherit)
    /// says, and with what the command sets. It ends when it has handed the target over.
    ///
    /// # Errors
    /// * `InvalidInput` without [`shell_execute(true)`](Command::shell_execute).
    /// * On Windows, `InvalidInput` with any [`Inherit`] but [`All`](Inherit::All), and together with what the shell cannot do:
    ///   standard handles that are set, [`pass`](Command::pass), changes to the environment, user credentials, jobs and creation
    ///   flags; with an argument for a batch file, which could become a command. The message names the setting.
    /// * On Unix, `InvalidInput` with arguments, and `Unsupported` with a verb but `open`.
    /// * What the shell says; [`LaunchError::errno`] has the system's number for it.
    ///
    /// ```no_run
    /// use haft::process::Command;
    ///
    /// if let Some(mut child) = Command::shell_open("notes.txt").shell_spawn()? {
    ///     child.wait()?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # References
    /// * [`ShellExecuteExW`](https://learn.microsoft.com/windows/win32/api/shellapi/nf-shellapi-shellexecuteexw),
    ///   [`SHELLEXECUTEINFOW`](https://learn.microsoft.com/windows/win32/api/shellapi/ns-shellapi-shellexecuteinfow)
    /// * [`xdg-open(1)`](https://portland.freedesktop.org/doc/xdg-open.html)
    pub fn shell_spawn(&mut self) -> io::Result<Option<Child>> {
        if !self.shell.execute {
            return Err(self
                .unsuitable(
                    "shell_spawn() is for commands with shell_execute(true); launch this one with spawn()",
                )
                .into());
        }
        Ok(self.open()?)
    }

    /// Whether this is a command for the system and not for the shell.
    pub(super) fn without_shell(&self) -> Result<(), LaunchError> {
        if self.shell.execute {
            return Err(self.unsuitable("a command with shell_execute(true) is launched with shell_spawn()"));
        }
        if self.shell.verb.is_some() {
            return Err(self.unsuitable("verb needs shell_execute(true), and shell_spawn() for the launch"));
        }
        Ok(())
    }

    fn unsuitable(&self, why: &'static str) -> LaunchError {
        self.error(Step::Resolve, Object::Launch, Cause::Invalid(why))
    }
}
