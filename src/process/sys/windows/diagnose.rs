//! From a launcher's bare failure to an error that names its object. Runs only after a failure, so it may look at
//! the file system.

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
        Step::Execute => match &command.directory {
            // The system has one call for both, and its error may mean either.
            Some(directory) if is_about_a_name(error) && !directory.is_dir() => {
                step = Step::WorkingDirectory;
                Object::Directory(directory.clone())
            }
            _ => Object::Program(plan.program.clone()),
        },
        _ => Object::Launch,
    };
    LaunchError::new(step, command.get_program(), object, Cause::Os(error))
}

fn is_about_a_name(error: i32) -> bool {
    matches!(error as u32, ERROR_DIRECTORY | ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND | ERROR_INVALID_NAME)
}
