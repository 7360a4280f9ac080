//! From a launcher's bare failure to an error that names its object. Runs only after a failure, so it may look at
//! the file system.

use std::io;
use std::path::PathBuf;

use windows_sys::Win32::Foundation::{
    ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND, ERROR_INVALID_NAME, ERROR_PATH_NOT_FOUND,
};

use crate::process::command::Command;
use crate::process::error::{Cause, LaunchError, Object, Step, Stream};
use crate::process::plan::Plan;
use crate::process::sys::{Failure, Os};

pub(crate) fn explain(command: &Command, plan: &Plan, failure: Failure) -> LaunchError {
    let Os::Errno(error) = failure.os;
    let mut step = failure.step;
    let object = match step {
        Step::Inheritable => match Stream::ALL.get(failure.index) {
            Some(stream) => Object::Stream(*stream),
            None => plan.passed.get(failure.index - 3).map_or(Object::Launch, |value| Object::Handle(*value)),
        },
        Step::Execute => match unusable_directory(command, error) {
            Some(directory) => {
                step = Step::WorkingDirectory;
                Object::Directory(directory)
            }
            // Who is to be logged on may not enter the directory that this process is in.
            None if plan.logon.is_some()
                && command.directory.is_none()
                && error as u32 == ERROR_DIRECTORY =>
            {
                step = Step::WorkingDirectory;
                Object::Directory(std::env::current_dir().unwrap_or_default())
            }
            None => Object::Program(plan.program.clone()),
        },
        _ => Object::Launch,
    };
    LaunchError::new(step, command.get_program(), object, Cause::Os(error))
}

/// The error of a launch by the shell.
pub(crate) fn explain_shell_execute(command: &Command, error: io::Error) -> LaunchError {
    let Some(number) = error.raw_os_error() else {
        let cause = Cause::Kept(error.kind(), error.to_string());
        return LaunchError::new(Step::Execute, command.get_program(), Object::Launch, cause);
    };
    let (step, object) = match unusable_directory(command, number) {
        Some(directory) => (Step::WorkingDirectory, Object::Directory(directory)),
        None => (Step::Execute, Object::Program(command.get_program().into())),
    };
    LaunchError::new(step, command.get_program(), object, Cause::Os(number))
}

/// The working directory, if that is what an error is about: the system has one call for it and for the program.
fn unusable_directory(command: &Command, error: i32) -> Option<PathBuf> {
    let directory = command.directory.as_ref()?;
    // The number is of the directory alone. One that is there may be too long: the system takes 258 characters.
    let usable = error as u32 != ERROR_DIRECTORY && directory.is_dir();
    (is_about_a_name(error) && !usable).then(|| directory.clone())
}

fn is_about_a_name(error: i32) -> bool {
    matches!(error as u32, ERROR_DIRECTORY | ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND | ERROR_INVALID_NAME)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // bun#24012, deno#20351. Windows says ERROR_DIRECTORY of a directory that is there and whose path is too long for a
    // process to start in; Wine has another number. Fails when `unusable_directory` asks only whether it is there.
    #[test]
    fn what_is_said_of_a_directory_is_never_said_of_the_program() {
        let there = std::env::temp_dir();
        let mut command = Command::new("x");
        assert_eq!(unusable_directory(&command, ERROR_DIRECTORY as i32), None);
        command.current_dir(&there);
        assert_eq!(unusable_directory(&command, ERROR_DIRECTORY as i32), Some(there));
        assert_eq!(unusable_directory(&command, ERROR_FILE_NOT_FOUND as i32), None);
    }
}
