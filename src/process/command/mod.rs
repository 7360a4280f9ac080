//! [`Command`]: what to launch, and with what.

#[cfg(windows)]
mod credentials;
mod shell;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::collections::{BTreeMap, btree_map};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fmt, io, slice};

use super::child::Child;
use super::error::{Cause, LaunchError, Object, Step, Stream};
use super::inherit::Inherit;
use super::name::Name;
use super::plan::Plan;
use super::stdio::{ChildStderr, ChildStdin, ChildStdout, Kind, Stdio};
use super::sys::{self, Handle, Use, force};
use super::{ExitStatus, Output};

use shell::Shell;
pub use shell::WindowStyle;
#[cfg(unix)]
pub(crate) use unix::PassedHandle;
#[cfg(windows)]
pub use windows::Pass;
#[cfg(windows)]
pub(crate) use windows::{PassedHandle, Settings};

/// A process to launch.
///
/// The methods that [`std::process::Command`] has too are named and mean the same. What differs is listed in the
/// [chapter](crate::process).
///
/// ```
/// use haft::process::Command;
///
/// # if cfg!(windows) { return Ok(()) } // there the programs have other names
/// let output = Command::new("echo").arg("hello").output()?;
/// assert_eq!(output.stdout, b"hello\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) clear_environment: bool,
    /// Changes to the parent's environment; `None` removes.
    pub(crate) variables: BTreeMap<Name, Option<OsString>>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) stdio: [Option<Stdio>; 3],
    pub(crate) inherit: Inherit,
    pub(crate) passed: Vec<PassedHandle>,
    pub(crate) shell: Shell,
    pub(crate) window: Option<WindowStyle>,
    /// What Windows alone has.
    #[cfg(windows)]
    pub(crate) settings: Settings,
}

/// What a standard handle is if the command does not say.
#[derive(Clone, Copy)]
enum Unset {
    Inherit,
    /// As in std's `output`: nothing to read, both outputs captured.
    Capture,
}

/// A standard handle made ready for one launch.
enum Ready<'a> {
    /// One of the parent's three, which it keeps.
    Standard(Stream),
    /// Owned by the command.
    Held(&'a Handle),
    /// Made for this launch and closed in the parent after it.
    Made(Handle),
    /// Made for this launch, in place of one that the child cannot use.
    #[cfg(windows)]
    Relayed(Handle, sys::Relay),
}

impl Ready<'_> {
    fn source(&self) -> sys::Source {
        match self {
            Ready::Standard(stream) => sys::standard(*stream),
            Ready::Held(handle) => sys::source(handle),
            Ready::Made(handle) => sys::source(handle),
            #[cfg(windows)]
            Ready::Relayed(handle, _) => sys::source(handle),
        }
    }

    /// The child has it now.
    fn given(self) {
        #[cfg(windows)]
        if let Ready::Relayed(_, relay) = self {
            relay.begin();
        }
    }
}

impl Command {
    /// A command for `program` with no arguments, the parent's environment and working directory, and no handles
    /// but the standard ones.
    ///
    /// On Unix a name without a slash is looked for in the directories of the child's `PATH`, by the rules of
    /// `execvp(3)`; there is no attempt to run it with `/bin/sh`. A relative path with a slash is relative to the
    /// child's working directory.
    ///
    /// On Windows, as in std, a name without a separator is looked for in the child's `PATH`, if the command sets one, the
    /// directory of this program, the system's and Windows' own, and the parent's `PATH`; `.exe` is appended where the name
    /// has no dot. Relative paths are relative to the parent's working directory. A batch file is run by `cmd.exe`,
    /// with arguments from which none can become a command; one for which that cannot be had is `InvalidInput`.
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        Command {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            clear_environment: false,
            variables: BTreeMap::new(),
            directory: None,
            stdio: [None, None, None],
            inherit: Inherit::Named,
            passed: Vec::new(),
            shell: Shell::default(),
            window: None,
            #[cfg(windows)]
            settings: Settings::default(),
        }
    }

    /// Adds an argument.
    pub fn arg<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable for the child.
    pub fn env<K, V>(&mut self, key: K, val: V) -> &mut Command
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.variables.insert(key.as_ref().into(), Some(val.as_ref().to_owned()));
        self
    }

    /// Sets several environment variables for the child.
    pub fn envs<I, K, V>(&mut self, vars: I) -> &mut Command
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        for (key, val) in vars {
            self.env(key, val);
        }
        self
    }

    /// Keeps an environment variable from the child, whether it was set here or is the parent's.
    pub fn env_remove<K: AsRef<OsStr>>(&mut self, key: K) -> &mut Command {
        let name = Name::from(key.as_ref());
        if self.clear_environment && !name.outlives_clear() {
            self.variables.remove(&name);
        } else {
            self.variables.insert(name, None);
        }
        self
    }

    /// Starts the child's environment from nothing: what was set here before is forgotten, and the parent's is not
    /// taken over.
    pub fn env_clear(&mut self) -> &mut Command {
        self.clear_environment = true;
        self.variables.clear();
        self
    }

    /// Sets the child's working directory.
    pub fn current_dir<P: AsRef<Path>>(&mut self, dir: P) -> &mut Command {
        self.directory = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets the child's standard input. Inherited by default; the null device for [`output`](Command::output).
    pub fn stdin<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.stdio[0] = Some(cfg.into());
        self
    }

    /// Sets the child's standard output. Inherited by default; captured for [`output`](Command::output).
    pub fn stdout<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.stdio[1] = Some(cfg.into());
        self
    }

    /// Sets the child's standard error. Inherited by default; captured for [`output`](Command::output).
    pub fn stderr<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.stdio[2] = Some(cfg.into());
        self
    }

    /// Says which of the parent's handles the child gets besides the standard ones. [`Inherit::Named`] by default.
    pub fn inherit(&mut self, inherit: Inherit) -> &mut Command {
        self.inherit = inherit;
        self
    }

    /// `true` is [`Inherit::All`], `false` is [`Inherit::Named`].
    pub fn inherit_handles(&mut self, all: bool) -> &mut Command {
        self.inherit(if all { Inherit::All } else { Inherit::Named })
    }

    /// Launches the child; standard handles are inherited by default.
    ///
    /// When this returns, the child runs the program, and nothing that it was not given is open in it.
    ///
    /// # Errors
    /// Whatever step of the launch fails: [`LaunchError::of`] tells which, on what, and why. If it fails, no child
    /// is left and the command is as it was.
    ///
    /// After a success the command drops the pipes and sockets that it held, so that their readers see the end;
    /// a second launch with them is `InvalidInput` and names the stream. Files and devices stay.
    ///
    /// # References
    /// * [`clone(2)`](https://man7.org/linux/man-pages/man2/clone.2.html),
    ///   [`close_range(2)`](https://man7.org/linux/man-pages/man2/close_range.2.html),
    ///   [`execve(2)`](https://man7.org/linux/man-pages/man2/execve.2.html)
    /// * [`CreateProcessW`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw)
    pub fn spawn(&mut self) -> io::Result<Child> {
        Ok(self.start(Unset::Inherit)?)
    }

    /// Launches the child, waits for its end and gives its status; standard handles are inherited by default.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn) and [`Child::wait`].
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.start(Unset::Inherit)?.wait()
    }

    /// Launches the child, waits for its end and gives its status and what it wrote; by default both outputs are
    /// captured and standard input is the null device.
    ///
    /// One loop reads both outputs on the calling thread: over `poll(2)`, or over overlapped reads.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn) and [`Child::wait_with_output`].
    pub fn output(&mut self) -> io::Result<Output> {
        self.start(Unset::Capture)?.wait_with_output()
    }

    /// The program's name as it was given.
    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments, without the program's name.
    pub fn get_args(&self) -> CommandArgs<'_> {
        CommandArgs(self.args.iter())
    }

    /// The changes to the environment, sorted by name; `None` for a variable that is removed.
    pub fn get_envs(&self) -> CommandEnvs<'_> {
        CommandEnvs(self.variables.iter())
    }

    /// The child's working directory, if it was set.
    pub fn get_current_dir(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn error(&self, step: Step, object: Object, cause: Cause) -> LaunchError {
        LaunchError::new(step, &self.program, object, cause)
    }

    fn start(&mut self, unset: Unset) -> Result<Child, LaunchError> {
        self.without_shell()?;
        self.launch(unset)
    }

    fn launch(&mut self, unset: Unset) -> Result<Child, LaunchError> {
        if let Some(spent) = self.passed.iter().find_map(PassedHandle::spent) {
            return Err(self.error(Step::Stdio, spent, Cause::Invalid(SPENT)));
        }

        let (stdin, stdin_end) = self.ready(Stream::Stdin, unset)?;
        let (stdout, stdout_end) = self.ready(Stream::Stdout, unset)?;
        self.injected(Step::Stdio)?;
        let (stderr, stderr_end) = self.ready(Stream::Stderr, unset)?;
        let parent = self.parent([stdin.source(), stdout.source(), stderr.source()]);
        self.injected(Step::Resolve)?;
        let plan = Plan::resolve(self, &parent)?;
        let launched = sys::launch(&plan).map_err(|failure| sys::explain(self, &plan, failure))?;
        for ready in [stdin, stdout, stderr] {
            ready.given();
        }
        self.let_go();
        Ok(Child::new(
            launched,
            stdin_end.map(|end| ChildStdin(end.into())),
            stdout_end.map(|end| ChildStdout(end.into())),
            stderr_end.map(|end| ChildStderr(end.into())),
        ))
    }

    /// A failure that a test asked for.
    fn injected(&self, step: Step) -> Result<(), LaunchError> {
        match force::failing(step) {
            None => Ok(()),
            Some(errno) => Err(self.error(step, Object::Launch, Cause::Os(errno))),
        }
    }

    /// What this stream of the child is to be.
    fn kind(&self, stream: Stream, unset: Unset) -> &Kind {
        const INHERIT: &Kind = &Kind::Inherit;
        const NULL: &Kind = &Kind::Null;
        const PIPED: &Kind = &Kind::Piped { asynchronous: false };
        match (&self.stdio[stream as usize], unset) {
            (Some(stdio), _) => &stdio.0,
            #[cfg(windows)]
            (None, Unset::Inherit) if self.settings.detached => NULL,
            (None, Unset::Inherit) => INHERIT,
            (None, Unset::Capture) if stream == Stream::Stdin => NULL,
            (None, Unset::Capture) => PIPED,
        }
    }

    /// Whether this launch itself reads several pipes at once. Ends that go to the caller are for calls that wait,
    /// unless asked for: they may go to another child.
    fn drains_several(&self, unset: Unset) -> bool {
        let piped = |stream| matches!(self.kind(stream, unset), Kind::Piped { .. });
        matches!(unset, Unset::Capture) && piped(Stream::Stdout) && piped(Stream::Stderr)
    }

    /// Makes a standard handle: the child's side of it, and the parent's if it is a pipe.
    fn ready(&self, stream: Stream, unset: Unset) -> Result<(Ready<'_>, Option<Handle>), LaunchError> {
        let fail = |cause| self.error(Step::Stdio, Object::Stream(stream), cause);
        let child = if stream == Stream::Stdin { Use::Reads } else { Use::Writes };
        let ready = match self.kind(stream, unset) {
            Kind::Inherit => Ready::Standard(stream),
            Kind::Standard(stream) => Ready::Standard(*stream),
            #[cfg(unix)]
            Kind::Owned(handle) => Ready::Held(handle),
            #[cfg(windows)]
            Kind::Owned(handle) => match sys::relay(child, handle).map_err(|error| fail(kept(&error)))? {
                None => Ready::Held(handle),
                Some((theirs, relay)) => Ready::Relayed(theirs, relay),
            },
            Kind::Null => Ready::Made(sys::null(child).map_err(|error| fail(kept(&error)))?),
            Kind::Piped { asynchronous } => {
                let overlapped = *asynchronous || self.drains_several(unset);
                let (theirs, ours) = sys::pipe(child, overlapped).map_err(|error| fail(kept(&error)))?;
                return Ok((Ready::Made(theirs), Some(ours)));
            }
            Kind::Failed(error) => return Err(fail(kept(error))),
            Kind::Spent => return Err(fail(Cause::Invalid(SPENT))),
        };
        Ok((ready, None))
    }

    /// Drops the pipes and sockets that the command holds.
    fn let_go(&mut self) {
        for stdio in self.stdio.iter_mut().flatten() {
            if let Kind::Owned(handle) = &stdio.0
                && sys::has_other_end(handle)
            {
                stdio.0 = Kind::Spent;
            }
        }
        self.passed.iter_mut().for_each(PassedHandle::let_go);
    }
}

const SPENT: &str = "the pipe or socket went with an earlier launch of this command; give it again, or build the command anew";

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn kept(error: &io::Error) -> Cause {
    match error.raw_os_error() {
        Some(errno) => Cause::Os(errno),
        None => Cause::Kept(error.kind(), error.to_string()),
    }
}

/// The arguments of a [`Command`], from [`get_args`](Command::get_args).
#[derive(Clone, Debug)]
pub struct CommandArgs<'a>(slice::Iter<'a, OsString>);

impl<'a> Iterator for CommandArgs<'a> {
    type Item = &'a OsStr;

    fn next(&mut self) -> Option<&'a OsStr> {
        self.0.next().map(|arg| &**arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandArgs<'_> {}

/// The changes of a [`Command`] to the environment, from [`get_envs`](Command::get_envs).
#[derive(Clone, Debug)]
pub struct CommandEnvs<'a>(btree_map::Iter<'a, Name, Option<OsString>>);

impl<'a> Iterator for CommandEnvs<'a> {
    type Item = (&'a OsStr, Option<&'a OsStr>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name.as_os_str(), value.as_deref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandEnvs<'_> {}

/// As a shell would take it, in the form that std gives; `{:#?}` shows the fields.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f
                .debug_struct("Command")
                .field("program", &self.program)
                .field("args", &self.args)
                .field("clear_environment", &self.clear_environment)
                .field("variables", &self.variables)
                .field("directory", &self.directory)
                .field("stdin", &self.stdio[0])
                .field("stdout", &self.stdio[1])
                .field("stderr", &self.stdio[2])
                .field("inherit", &self.inherit)
                .field("passed", &self.passed.iter().map(PassedHandle::passed).collect::<Vec<_>>())
                .field("shell", &self.shell)
                .field("window", &self.window)
                .finish();
        }
        #[cfg(unix)]
        self.surroundings(f)?;
        write!(f, "{:?}", self.program)?;
        for arg in &self.args {
            write!(f, " {arg:?}")?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The same calls on our command and on std's.
    macro_rules! both {
        ($program:expr $(, $method:ident($($arg:expr),*))*) => {{
            let mut ours = Command::new($program);
            let mut std = std::process::Command::new($program);
            $( ours.$method($($arg),*); std.$method($($arg),*); )*
            (ours, std)
        }};
    }

    #[test]
    fn debug_and_getters_are_as_in_std() {
        for (ours, std) in [
            both!("a b", args(["x", "y \"z\""]), current_dir("/d")),
            both!("p", env("K", "v v"), env_remove("R"), env_remove("S"), env("R", "again")),
            both!("p", env("A", "1"), env_clear(), env_remove("B"), env("C", "é\n"), env_remove("C")),
            both!("p", envs([("B", "2"), ("A", "1")])),
        ] {
            assert_eq!(format!("{ours:?}"), format!("{std:?}"));
            assert_eq!(ours.get_program(), std.get_program());
            assert!(ours.get_args().eq(std.get_args()));
            assert!(ours.get_envs().eq(std.get_envs()));
            assert_eq!(ours.get_envs().len(), std.get_envs().len());
            assert_eq!(ours.get_current_dir(), std.get_current_dir());
        }
    }
}
