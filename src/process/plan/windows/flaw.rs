//! Why a launch cannot be put into data.

use crate::process::error::Stream;

/// What was refused, and why. Nothing was started, and asking Windows would not have helped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The program's name, or the path that it was found under.
    Program(&'static str),
    /// The argument of this index.
    Argument(usize, &'static str),
    /// The command line as a whole.
    CommandLine(&'static str),
    /// The environment variable of this name.
    Variable(Vec<u16>, &'static str),
    /// The working directory.
    Directory(&'static str),
    /// This standard handle.
    Stream(Stream, &'static str),
    /// The handle that is passed under this value.
    Passed(usize, &'static str),
    /// A setting, or two that do not go together. The reason names them.
    Setting(&'static str),
    /// The handle at this place among those given.
    Handle(usize, &'static str),
}

impl Flaw {
    /// Why, as the rest of a sentence that begins with what.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Flaw::Program(reason)
            | Flaw::Argument(_, reason)
            | Flaw::CommandLine(reason)
            | Flaw::Variable(_, reason)
            | Flaw::Directory(reason)
            | Flaw::Stream(_, reason)
            | Flaw::Passed(_, reason)
            | Flaw::Setting(reason)
            | Flaw::Handle(_, reason) => reason,
        }
    }
}

/// The reason for every string with a NUL: the system would see only what stands before it.
pub(crate) const NUL: &str = "it contains a NUL character";
