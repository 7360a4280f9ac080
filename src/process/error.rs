//! What a failed launch says: which step, on what, and why.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::{error, fmt, io};

/// The steps of a launch, in the order in which they are taken.
///
/// The numbers are those of the protocol chapters at the head of each launcher. Not every launch takes every step:
/// the working directory, for example, is only changed when the command asks for it. Some belong to one system alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// The descriptors for standard input, output and error are made: pipes, the null device, duplicates.
    Stdio = 1,
    /// The command is turned into a plan: strings checked, the environment merged, `PATH` split into candidates.
    Resolve = 2,
    /// A stack is found for the child to run on until it executes the program.
    Stack = 3,
    /// The child is made.
    Clone = 4,
    /// The child gets a descriptor table of its own.
    Unshare = 5,
    /// Signal handlers and `SIGPIPE` go back to their defaults.
    Signals = 6,
    /// The working directory is changed.
    WorkingDirectory = 7,
    /// Descriptors that the child was not given are closed.
    CloseDescriptors = 8,
    /// The descriptors that the child was given are put in their places.
    MoveDescriptors = 9,
    /// The caller's signal mask is put back.
    SignalMask = 10,
    /// Windows: the handles that the child is given are made inheritable.
    Inheritable = 11,
    /// Windows: a job object for the child is made.
    Job = 12,
    /// Windows: the attributes of the new process are put together, the list of its handles among them.
    Attributes = 13,
    /// The program is executed. On Windows this makes the child as well.
    Execute = 14,
}

impl Step {
    /// Every step that launches on this system take, in order.
    #[cfg(unix)]
    pub const ALL: [Step; 11] = [
        Step::Stdio,
        Step::Resolve,
        Step::Stack,
        Step::Clone,
        Step::Unshare,
        Step::Signals,
        Step::WorkingDirectory,
        Step::CloseDescriptors,
        Step::MoveDescriptors,
        Step::SignalMask,
        Step::Execute,
    ];

    /// Every step that launches on this system take, in order.
    #[cfg(windows)]
    pub const ALL: [Step; 7] = [
        Step::Stdio,
        Step::Resolve,
        Step::WorkingDirectory,
        Step::Inheritable,
        Step::Job,
        Step::Attributes,
        Step::Execute,
    ];

    /// The step's name as it stands in the enum.
    pub fn name(self) -> &'static str {
        match self {
            Step::Resolve => "Resolve",
            Step::Stdio => "Stdio",
            Step::Stack => "Stack",
            Step::Clone => "Clone",
            Step::Unshare => "Unshare",
            Step::Signals => "Signals",
            Step::WorkingDirectory => "WorkingDirectory",
            Step::CloseDescriptors => "CloseDescriptors",
            Step::MoveDescriptors => "MoveDescriptors",
            Step::SignalMask => "SignalMask",
            Step::Execute => "Execute",
            Step::Inheritable => "Inheritable",
            Step::Job => "Job",
            Step::Attributes => "Attributes",
        }
    }

    /// The step as an action, for "cannot …".
    fn action(self) -> &'static str {
        match self {
            Step::Resolve => "prepare",
            Step::Stdio => "set up",
            Step::Stack => "map a stack for the child",
            Step::Clone => "create the process",
            Step::Unshare => "give the child a descriptor table of its own",
            Step::Signals => "reset the child's signal handlers",
            Step::WorkingDirectory => "change to",
            Step::CloseDescriptors => "close what the child was not given",
            Step::MoveDescriptors => "give the child",
            Step::SignalMask => "restore the signal mask",
            Step::Execute => "execute",
            Step::Inheritable => "make inheritable",
            Step::Job => "make a job object for the child",
            Step::Attributes => "put the attributes of the child together",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One of the three standard handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    pub(crate) const ALL: [Stream; 3] = [Stream::Stdin, Stream::Stdout, Stream::Stderr];
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stream::Stdin => "stdin",
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        })
    }
}

/// What a step of a launch was working on when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// The launch as a whole.
    Launch,
    /// A program: the path that was executed, or its name where none was found.
    Program(PathBuf),
    /// A program is there, but what its first line or header names to run it is not.
    Interpreter {
        /// The program that was found.
        program: PathBuf,
        /// The interpreter or dynamic loader that was not.
        interpreter: PathBuf,
    },
    /// The working directory.
    Directory(PathBuf),
    /// The argument at this index; 0 is the first after the program's name.
    Argument(usize),
    /// The environment variable of this name.
    Variable(OsString),
    /// A standard handle.
    Stream(Stream),
    /// The descriptor that the child was to see under this number.
    Descriptor(i32),
    /// The handle that the child was to see under this value.
    Handle(usize),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Launch => Ok(()),
            Object::Program(path) => write!(f, " {path:?}"),
            Object::Interpreter { program, interpreter } => {
                write!(f, " {program:?}: its interpreter {interpreter:?} cannot be used")
            }
            Object::Directory(path) => write!(f, " the working directory {path:?}"),
            Object::Argument(index) => write!(f, " argument {index}"),
            Object::Variable(name) => write!(f, " environment variable {name:?}"),
            Object::Stream(stream) => write!(f, " {stream}"),
            Object::Descriptor(number) => write!(f, " descriptor {number}"),
            Object::Handle(value) => write!(f, " handle {value:#x}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The system refused.
    Os(i32),
    /// The child died of this signal before it executed the program.
    #[cfg_attr(windows, allow(dead_code, reason = "Windows has no signals"))]
    Signal(i32),
    /// The command asks for something that cannot be; nothing was started.
    Invalid(&'static str),
    /// An error without a number, kept from an earlier call.
    Kept(io::ErrorKind, String),
}

/// Why a launch failed: the step, what it was working on, and the system's error.
///
/// Methods that carry the names of `std::process` return [`io::Error`] with the [kind](io::Error::kind) that std would
/// give; [`LaunchError::of`] finds the details in it. [`io::Error::raw_os_error`] of such an error is `None`:
/// [`errno`](LaunchError::errno) has the number.
///
/// ```
/// use haft::process::{Command, LaunchError, Step};
///
/// let program = std::env::current_exe()?;
/// let error = Command::new(program).current_dir("/no/such/place").spawn().unwrap_err();
/// let launch = LaunchError::of(&error).unwrap();
/// assert_eq!(launch.step(), Step::WorkingDirectory); // not "program not found"
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct LaunchError(Box<Details>);

/// In a box: a result is as large as its error.
#[derive(Clone)]
struct Details {
    step: Step,
    program: OsString,
    object: Object,
    cause: Cause,
}

impl LaunchError {
    pub(crate) fn new(step: Step, program: &OsStr, object: Object, cause: Cause) -> LaunchError {
        LaunchError(Box::new(Details { step, program: program.to_owned(), object, cause }))
    }

    /// The same of another program: one is launched on behalf of what the command names.
    #[cfg(unix)]
    pub(crate) fn of_program(mut self, program: &OsStr) -> LaunchError {
        self.0.program = program.to_owned();
        self
    }

    /// The details inside an error that a launch returned; `None` for an error that comes from elsewhere.
    pub fn of(error: &io::Error) -> Option<&LaunchError> {
        error.get_ref()?.downcast_ref()
    }

    /// The step that failed.
    pub fn step(&self) -> Step {
        self.0.step
    }

    /// What the step was working on.
    pub fn object(&self) -> &Object {
        &self.0.object
    }

    /// The program's name as it was given to the command.
    pub fn program(&self) -> &OsStr {
        &self.0.program
    }

    /// The system's error number, if the system refused.
    pub fn errno(&self) -> Option<i32> {
        match self.0.cause {
            Cause::Os(errno) => Some(errno),
            _ => None,
        }
    }

    /// The signal that killed the child before it executed the program, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.0.cause {
            Cause::Signal(signal) => Some(signal),
            _ => None,
        }
    }

    /// The kind that the [`io::Error`] around it has: what std would give for the same failure.
    pub fn kind(&self) -> io::ErrorKind {
        match self.0.cause {
            Cause::Os(errno) => io::Error::from_raw_os_error(errno).kind(),
            Cause::Signal(_) => io::ErrorKind::Other,
            Cause::Invalid(_) => io::ErrorKind::InvalidInput,
            Cause::Kept(kind, _) => kind,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { step, program, object, cause } = &*self.0;
        write!(f, "cannot launch {program:?}: ")?;
        if let Cause::Signal(signal) = cause {
            return write!(
                f,
                "the child was killed by signal {signal} before it ran the program (step {step})"
            );
        }
        write!(f, "cannot {}{object}", step.action())?;
        match cause {
            Cause::Os(errno) => write!(f, ": {}", io::Error::from_raw_os_error(*errno)),
            Cause::Invalid(why) => write!(f, ": {why}"),
            Cause::Kept(_, why) => write!(f, ": {why}"),
            Cause::Signal(_) => Ok(()),
        }
    }
}

/// The parts of it.
impl fmt::Debug for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { step, program, object, cause } = &*self.0;
        f.debug_struct("LaunchError")
            .field("step", step)
            .field("program", program)
            .field("object", object)
            .field("cause", cause)
            .finish()
    }
}

impl error::Error for LaunchError {}

impl From<LaunchError> for io::Error {
    fn from(error: LaunchError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}
