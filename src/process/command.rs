//! [`Command`]: what to launch, and with what.

use std::collections::{BTreeMap, btree_map};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::{fmt, io, slice};

use super::child::Child;
use super::error::{Cause, LaunchError, Object, Step, Stream};
use super::inherit::{Inherit, Passed};
use super::plan::{Environment, Parent, Plan};
use super::stdio::{ChildStderr, ChildStdin, ChildStdout, Kind, Stdio};
use super::sys::{self, Use, force};
use super::{ExitStatus, Output, diagnose};

/// A process to launch.
///
/// The methods that [`std::process::Command`] has too are named and mean the same. What differs is listed in the
/// [chapter](crate::process).
///
/// ```
/// use haft::process::Command;
///
/// let output = Command::new("echo").arg("hello").output()?;
/// assert_eq!(output.stdout, b"hello\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) clear_environment: bool,
    /// Changes to the parent's environment; `None` removes.
    pub(crate) variables: BTreeMap<OsString, Option<OsString>>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) stdio: [Option<Stdio>; 3],
    pub(crate) inherit: Inherit,
    pub(crate) passed: Vec<PassedHandle>,
}

/// A duplicate that goes to the child under a number of its own.
pub(crate) struct PassedHandle {
    /// `None`: a pipe or socket that went with an earlier launch.
    fd: Option<OwnedFd>,
    target: RawFd,
}

impl PassedHandle {
    pub(crate) fn pair(&self) -> Option<(i32, i32)> {
        Some((self.fd.as_ref()?.as_raw_fd(), self.target))
    }
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
    /// A descriptor that the parent has and keeps.
    Number(RawFd),
    /// Owned by the command.
    Held(&'a OwnedFd),
    /// Made for this launch and closed in the parent after it.
    Made(OwnedFd),
}

impl Ready<'_> {
    fn number(&self) -> RawFd {
        match self {
            Ready::Number(number) => *number,
            Ready::Held(fd) => fd.as_raw_fd(),
            Ready::Made(fd) => fd.as_raw_fd(),
        }
    }
}

impl Command {
    /// A command for `program` with no arguments, the parent's environment and working directory, and no handles
    /// but the standard ones.
    ///
    /// A name without a slash is looked for in the directories of the child's `PATH`, by the rules of `execvp(3)`;
    /// there is no attempt to run it with `/bin/sh`. A relative path with a slash is relative to the child's
    /// working directory.
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
        self.variables.insert(key.as_ref().to_owned(), Some(val.as_ref().to_owned()));
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
        if self.clear_environment {
            self.variables.remove(key.as_ref());
        } else {
            self.variables.insert(key.as_ref().to_owned(), None);
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

    /// Gives the child a duplicate of `handle`, made now, under the number that `handle` has now.
    ///
    /// The original may be closed, and its number reused, before the launch. Passing the same open file under the
    /// same number again gives the same [`Passed`].
    ///
    /// # Errors
    /// * `InvalidInput` if the number is 0, 1 or 2, or was promised to another open file already (a loop that
    ///   opens, passes and drops gets one number again and again): [`map_fd`](Command::map_fd) gives it another.
    /// * What `fcntl(F_DUPFD_CLOEXEC)` says, usually that too many files are open.
    ///
    /// ```
    /// use haft::process::Command;
    ///
    /// let file = std::fs::File::open("/dev/null")?;
    /// let mut command = Command::new("ls");
    /// let number = command.pass(&file)?;
    /// let output = command.arg(format!("/proc/self/fd/{number}")).output()?;
    /// assert!(output.status.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # References
    /// * [`F_DUPFD_CLOEXEC`](https://man7.org/linux/man-pages/man2/F_DUPFD_CLOEXEC.2const.html)
    pub fn pass<H: AsFd + ?Sized>(&mut self, handle: &H) -> io::Result<Passed> {
        let number = handle.as_fd().as_raw_fd();
        if (0..3).contains(&number) {
            return Err(invalid(format!(
                "descriptor {number} is a standard handle of this process and cannot be passed under its own \
                 number; give it another with map_fd(fd, n)"
            )));
        }
        self.promise(handle, number)
    }

    /// Gives the child a duplicate of `handle`, made now, under a number of your choice, 3 or above.
    ///
    /// # Errors
    /// * `InvalidInput` if the number is negative, is 0, 1 or 2 (which [`stdin`](Command::stdin),
    ///   [`stdout`](Command::stdout) and [`stderr`](Command::stderr) set), or was promised to another open file.
    /// * What `fcntl(F_DUPFD_CLOEXEC)` says. A number above the child's `RLIMIT_NOFILE` fails at the launch.
    ///
    /// ```
    /// use haft::process::Command;
    ///
    /// let (mut reader, writer) = std::io::pipe()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo from nine >&9"]);
    /// command.map_fd(&writer, 9)?;
    /// drop(writer);
    /// assert!(command.status()?.success()); // and the command's own duplicate is closed now
    /// assert_eq!(std::io::read_to_string(&mut reader)?, "from nine\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn map_fd<H: AsFd + ?Sized>(&mut self, handle: &H, number: RawFd) -> io::Result<Passed> {
        if number < 0 {
            return Err(invalid(format!("{number} is not a descriptor number")));
        }
        if let Some(stream) = Stream::ALL.get(number as usize) {
            return Err(invalid(format!("descriptor {number} of the child is set with {stream}()")));
        }
        self.promise(handle, number)
    }

    fn promise<H: AsFd + ?Sized>(&mut self, handle: &H, target: RawFd) -> io::Result<Passed> {
        let earlier = self.passed.iter_mut().find(|passed| passed.target == target);
        if let Some(PassedHandle { fd: Some(fd), .. }) = &earlier {
            if !sys::same_file(fd.as_fd(), handle.as_fd()) {
                return Err(invalid(format!(
                    "number {target} of the child was promised to another open file already; give this one \
                     another with map_fd(fd, n)"
                )));
            }
            return Ok(Passed { number: target });
        }
        let fd = Some(sys::duplicate(handle.as_fd())?);
        match earlier {
            // What went with an earlier launch is gone; the number is free.
            Some(spent) => spent.fd = fd,
            None => self.passed.push(PassedHandle { fd, target }),
        }
        Ok(Passed { number: target })
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
    /// One loop over `poll(2)` reads both outputs on the calling thread.
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
        if let Some(spent) = self.passed.iter().find(|passed| passed.fd.is_none()) {
            return Err(self.error(Step::Stdio, Object::Descriptor(spent.target), Cause::Invalid(SPENT)));
        }

        let (stdin, stdin_end) = self.ready(Stream::Stdin, unset)?;
        let (stdout, stdout_end) = self.ready(Stream::Stdout, unset)?;
        self.injected(Step::Stdio)?;
        let (stderr, stderr_end) = self.ready(Stream::Stderr, unset)?;
        let parent = Parent {
            environment: if self.clear_environment {
                Environment::default()
            } else {
                Environment::capture(std::env::vars_os())
            },
            streams: [stdin.number(), stdout.number(), stderr.number()],
        };
        self.injected(Step::Resolve)?;
        let plan = Plan::resolve(self, &parent)?;
        let launched = sys::launch(&plan).map_err(|failure| diagnose::explain(self, &plan, failure))?;
        drop((stdin, stdout, stderr));
        self.let_go();
        Ok(Child::new(
            launched,
            stdin_end.map(|fd| ChildStdin(fd.into())),
            stdout_end.map(|fd| ChildStdout(fd.into())),
            stderr_end.map(|fd| ChildStderr(fd.into())),
        ))
    }

    /// A failure that a test asked for.
    fn injected(&self, step: Step) -> Result<(), LaunchError> {
        match force::failing(step) {
            None => Ok(()),
            Some(errno) => Err(self.error(step, Object::Launch, Cause::Os(errno))),
        }
    }

    /// Makes a standard handle: the child's side of it, and the parent's if it is a pipe.
    fn ready(&self, stream: Stream, unset: Unset) -> Result<(Ready<'_>, Option<OwnedFd>), LaunchError> {
        let fail = |cause| self.error(Step::Stdio, Object::Stream(stream), cause);
        const INHERIT: &Kind = &Kind::Inherit;
        const NULL: &Kind = &Kind::Null;
        const PIPED: &Kind = &Kind::Piped;
        let child = if stream == Stream::Stdin { Use::Reads } else { Use::Writes };
        let kind = match (&self.stdio[stream as usize], unset) {
            (Some(stdio), _) => &stdio.0,
            (None, Unset::Inherit) => INHERIT,
            (None, Unset::Capture) if stream == Stream::Stdin => NULL,
            (None, Unset::Capture) => PIPED,
        };
        let ready = match kind {
            Kind::Inherit => Ready::Number(stream as RawFd),
            Kind::Standard(number) => Ready::Number(*number),
            Kind::Owned(fd) => Ready::Held(fd),
            Kind::Null => Ready::Made(sys::null(child).map_err(|error| fail(kept(&error)))?),
            Kind::Piped => {
                let (theirs, ours) = sys::pipe(child).map_err(|error| fail(kept(&error)))?;
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
            if let Kind::Owned(fd) = &stdio.0
                && sys::has_other_end(fd.as_fd())
            {
                stdio.0 = Kind::Spent;
            }
        }
        for passed in &mut self.passed {
            passed.fd.take_if(|fd| sys::has_other_end(fd.as_fd()));
        }
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
pub struct CommandEnvs<'a>(btree_map::Iter<'a, OsString, Option<OsString>>);

impl<'a> Iterator for CommandEnvs<'a> {
    type Item = (&'a OsStr, Option<&'a OsStr>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (&**name, value.as_deref()))
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
                .field("passed", &self.passed.iter().map(|passed| passed.target).collect::<Vec<_>>())
                .finish();
        }
        if let Some(directory) = &self.directory {
            write!(f, "cd {directory:?} && ")?;
        }
        let removed = || self.variables.iter().filter(|(_, value)| value.is_none());
        if self.clear_environment {
            f.write_str("env -i ")?;
        } else if removed().next().is_some() {
            f.write_str("env ")?;
            for (name, _) in removed() {
                write!(f, "-u {} ", name.display())?;
            }
        }
        for (name, value) in &self.variables {
            if let Some(value) = value {
                write!(f, "{}={value:?} ", name.display())?;
            }
        }
        write!(f, "{:?}", self.program)?;
        for arg in &self.args {
            write!(f, " {arg:?}")?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::File;

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

    #[test]
    fn a_number_is_promised_to_one_open_file() {
        let mut command = Command::new("x");
        let file = File::open("/dev/null").unwrap();
        let same = file.try_clone().unwrap();
        // Another open file of the same device, as a loop over one path makes them.
        let other = File::open("/dev/null").unwrap();
        let number = command.pass(&file).unwrap();
        assert_eq!(number.to_string(), file.as_raw_fd().to_string());
        assert_eq!(command.pass(&file).unwrap(), number);
        assert_eq!(command.map_fd(&same, number.number()).unwrap(), number);
        assert_eq!(command.passed.len(), 1);
        let error = command.map_fd(&other, number.number()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("map_fd(fd, n)"), "{error}");
        assert_eq!(command.map_fd(&other, 77).unwrap().number(), 77);
    }

    #[test]
    fn inherit_handles_is_inherit_in_two_words() {
        for (all, inherit) in [(true, Inherit::All), (false, Inherit::Named)] {
            for before in [Inherit::All, Inherit::Named] {
                let mut command = Command::new("x");
                command.inherit(before).inherit_handles(all);
                assert_eq!(command.inherit, inherit);
                let parent = Parent { environment: Environment::default(), streams: [0, 1, 2] };
                let planned = |command: &Command| {
                    let descriptors = Plan::resolve(command, &parent).unwrap().descriptors;
                    (descriptors.inherit, descriptors.close_after)
                };
                let by_name = planned(Command::new("x").inherit(inherit));
                assert_eq!(planned(&command), by_name);
            }
        }
    }

    #[test]
    fn standard_numbers_are_refused_by_name() {
        let mut command = Command::new("x");
        let error = command.pass(&io::stdin()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("map_fd(fd, n)"), "{error}");
        let error = command.map_fd(&io::stdin(), 2).unwrap_err();
        assert!(error.to_string().contains("stderr()"), "{error}");
        assert!(command.map_fd(&io::stdin(), -1).is_err());
        assert_eq!(command.map_fd(&io::stdin(), 9).unwrap().number(), 9);
    }
}
