//! The plan of a launch on Windows.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::command_line::Argument;
use super::environment::Change;
use super::flaw::{Flaw, NUL};
use super::handle_list::HandleList;
use super::logon::{self, Logon};
use super::search::Places;
use super::source::{Source, room};
use super::{batch, command_line, environment, search, together, units};
use crate::process::command::{Command, PassedHandle, WindowStyle};
use crate::process::error::{Cause, LaunchError, Object, Step};
use crate::process::inherit::Inherit;
use crate::room_lock::Entry;
use crate::windows::wide;

/// What the parent brings to one launch.
pub(crate) struct Parent {
    /// Where the child's standard handles come from.
    pub(crate) streams: [Source; 3],
    /// The directory of this program.
    pub(crate) application: &'static [u16],
    pub(crate) system: &'static [u16],
    pub(crate) windows: &'static [u16],
    /// Asked for only where a program is looked for by its name alone.
    pub(crate) path: fn() -> Option<OsString>,
    /// Asked for only where the child gets another environment.
    pub(crate) variables: fn() -> std::env::VarsOs,
    /// Whether there is anything at a path, which ends in a NUL.
    pub(crate) exists: fn(&[u16]) -> bool,
    /// A path that does not depend on the working directory.
    pub(crate) absolute: fn(&Path) -> io::Result<PathBuf>,
    /// A path in the form that works whatever its length; both end in a NUL.
    pub(crate) any_length: fn(&[u16]) -> Vec<u16>,
}

/// Everything about one launch. Strings are terminated.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What is executed, for messages.
    pub(crate) program: PathBuf,
    pub(crate) application: Vec<u16>,
    pub(crate) command_line: Vec<u16>,
    /// `None`: the parent's.
    pub(crate) environment: Option<Vec<u16>>,
    /// `None`: the parent's.
    pub(crate) directory: Option<Vec<u16>>,
    pub(crate) streams: [Source; 3],
    /// Handles that the child gets besides, by value.
    pub(crate) passed: Vec<usize>,
    pub(crate) inherit: Inherit,
    /// Creation flags, but for those that the launcher sets itself.
    pub(crate) flags: u32,
    pub(crate) suspended: bool,
    pub(crate) window: Option<u16>,
    pub(crate) kill_on_parent_exit: bool,
    pub(crate) kill_tree: bool,
    /// `None`: the child is who this process is.
    pub(crate) logon: Option<Logon>,
}

impl Plan {
    /// Resolves a command against the parent that launches it.
    pub(crate) fn resolve(command: &Command, parent: &Parent) -> Result<Plan, LaunchError> {
        let refuse = |flaw| refused(command, flaw);
        together::with_user_name(&command.asked()).map_err(refuse)?;
        let logon = command.settings.logon().map_err(refuse)?;

        let changes: Vec<Change> = command
            .variables
            .iter()
            .map(|(name, value)| Change { name: wide(name.as_os_str()), value: value.as_deref().map(wide) })
            .collect();
        let program = wide(command.get_program());
        let places = Places {
            child_path: environment::set_to(&changes, &units(b"PATH")),
            application: parent.application,
            system: parent.system,
            windows: parent.windows,
            parent_path: &|| (parent.path)().as_deref().map(wide),
        };
        let candidates = search::candidates(&program, &places).map_err(refuse)?;
        let found = candidates
            .iter()
            .find(|candidate| !candidate.must_exist || (parent.exists)(candidate.terminated()))
            .ok_or_else(|| {
                LaunchError::new(
                    Step::Execute,
                    command.get_program(),
                    Object::Program(command.get_program().into()),
                    Cause::Os(ERROR_FILE_NOT_FOUND),
                )
            })?;

        let arguments = arguments(command);
        let (application, command_line) = if batch::is_batch_file(found.path()) {
            let interpreter = [parent.system, &units(br"\cmd.exe"), &[0]].concat();
            let script = without_prefix(found.path(), parent.absolute);
            (interpreter, batch::command_line(&script, &arguments).map_err(refuse)?)
        } else {
            let application = (parent.any_length)(found.terminated());
            (application, command_line::command_line(&program, &arguments).map_err(refuse)?)
        };

        if logon.is_some() {
            logon::check_command_line(&command_line).map_err(refuse)?;
        }

        let variables = || (parent.variables)().map(|(name, value)| (wide(&name), wide(&value)));
        let environment = if changes.is_empty() && !command.clear_environment {
            None
        } else {
            environment::block(variables(), command.clear_environment, &changes).map_err(refuse)?
        };

        let directory = match &command.directory {
            None => None,
            Some(directory) => {
                // A service logs the user on, whose directory is another.
                let full = if logon.is_some() { (parent.absolute)(directory).ok() } else { None };
                let mut units = wide(full.as_deref().unwrap_or(directory).as_os_str());
                if units.contains(&0) {
                    return Err(refuse(Flaw::Directory(NUL)));
                }
                units.push(0);
                Some(units)
            }
        };

        Ok(Plan {
            program: PathBuf::from(OsString::from_wide(found.path())),
            application,
            command_line,
            environment,
            directory,
            streams: parent.streams,
            passed: command.passed.iter().filter_map(PassedHandle::value).collect(),
            inherit: command.inherit,
            flags: command.settings.creation_flags(),
            suspended: command.settings.suspended,
            window: command.window.map(WindowStyle::show),
            kill_on_parent_exit: command.settings.kill_on_parent_exit,
            kill_tree: command.settings.kill_tree,
            logon,
        })
    }

    /// The room of the start lock in which this launch may run.
    pub(crate) fn room(&self) -> Entry {
        room(self.inherit, &self.streams, &self.passed)
    }

    /// The list of the handles that the child gets: its standard handles, by the values that it gets them under, and
    /// those that are passed. `None` where it gets all, or none.
    pub(crate) fn handle_list(&self, streams: [usize; 3]) -> Result<Option<HandleList>, Flaw> {
        match self.inherit {
            Inherit::All => Ok(None),
            Inherit::Named => {
                let standard = streams.into_iter().filter(|&value| value != 0);
                HandleList::new(standard.chain(self.passed.iter().copied()))
            }
        }
    }
}

const ERROR_FILE_NOT_FOUND: i32 = windows_sys::Win32::Foundation::ERROR_FILE_NOT_FOUND as i32;

/// The path without the prefix of [`std::fs::canonicalize`], which `cmd.exe` does not understand. It stays where the path
/// would mean something else without it.
fn without_prefix(path: &[u16], absolute: fn(&Path) -> io::Result<PathBuf>) -> Vec<u16> {
    let (start, rest) = if let Some(rest) = path.strip_prefix(&units(br"\\?\UNC\")[..]) {
        (&units(br"\\")[..], rest)
    } else if let Some(rest) = path.strip_prefix(&units(br"\\?\")[..]) {
        (&[][..], rest)
    } else {
        return path.to_vec();
    };
    let plain = PathBuf::from(OsString::from_wide(&[start, rest].concat()));
    match absolute(&plain) {
        Ok(full) if full.as_os_str() == plain.as_os_str() => wide(plain.as_os_str()),
        _ => path.to_vec(),
    }
}

/// The arguments of a command.
pub(crate) fn arguments(command: &Command) -> Vec<Argument> {
    let argument = |(index, text): (usize, &OsString)| {
        let text = wide(text);
        if command.settings.raw.binary_search(&index).is_ok() {
            Argument::Raw(text)
        } else {
            Argument::Regular(text)
        }
    };
    command.args.iter().enumerate().map(argument).collect()
}

/// The error of a command with a flaw.
pub(crate) fn refused(command: &Command, flaw: Flaw) -> LaunchError {
    let why = flaw.reason();
    let object = match flaw {
        Flaw::Program(_) => Object::Program(command.get_program().into()),
        Flaw::Argument(index, _) => Object::Argument(index),
        Flaw::Variable(name, _) => Object::Variable(OsString::from_wide(&name)),
        Flaw::Directory(_) => Object::Directory(command.directory.clone().unwrap_or_default()),
        Flaw::Stream(stream, _) => Object::Stream(stream),
        Flaw::Passed(value, _) => Object::Handle(value),
        Flaw::CommandLine(_) | Flaw::Setting(_) | Flaw::Handle(..) => Object::Launch,
    };
    LaunchError::new(Step::Resolve, command.get_program(), object, Cause::Invalid(why))
}
