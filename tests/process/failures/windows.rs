//! On Windows: each step made to fail by names and handles that are wrong.

use super::{leaks_nothing, rounds};
use haft::process::{Command, LaunchError, Object, Stdio, Step, Stream};
use haft_tests::{event, isolated, kid, skip, watchdog};
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{
    ERROR_BAD_EXE_FORMAT, ERROR_FILE_NOT_FOUND, ERROR_INVALID_HANDLE, ERROR_PATH_NOT_FOUND,
};

/// A stream made from a handle that is closed by then.
fn from_a_closed_handle() -> Stdio {
    let value = event().as_raw_handle();
    // SAFETY: it is closed, and nothing has its value: calls with it give errors.
    Stdio::from_borrowed(unsafe { BorrowedHandle::borrow_raw(value) })
}

/// A command whose passed handle somebody closed, as a program does that closes a handle twice.
fn with_a_passed_handle_closed() -> (Command, usize) {
    let mut command = Command::new(kid!());
    let passed = command.pass(&event()).unwrap().value();
    // SAFETY: closes it behind the command's back. Nothing else is opened here until the command has closed it again,
    // which is then an error that nobody sees.
    drop(unsafe { OwnedHandle::from_raw_handle(passed as _) });
    command.args(["exit", "0"]).stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    (command, passed)
}

/// Makes `step` fail for real, over and over, and hands each error to `check`.
/// `None`: there is no way to make this one fail without the library's help.
pub(super) fn provoke(
    step: Step,
    shared: &File,
    check: &mut (dyn FnMut(std::io::Error) + Send),
) -> Option<Result<(), String>> {
    let full = || super::full(shared);
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.exe");
    std::fs::write(&text, "no program").unwrap();
    let mut n = 0;
    let mut make = || -> Option<Command> {
        n += 1;
        let mut command = full();
        match step {
            Step::Resolve => drop(command.arg("a\0b")),
            // The last stream, when the pipes of the others are there.
            Step::Stdio => drop(command.stderr(from_a_closed_handle())),
            Step::WorkingDirectory => drop(command.current_dir(r"C:\no such folder")),
            Step::Inheritable => command = with_a_passed_handle_closed().0,
            Step::Execute => {
                let mut other =
                    Command::new([r"C:\no such program", "haft-no-such-program", text.to_str()?][n % 3]);
                other.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                other.kill_tree(true).kill_on_parent_exit(true).pass(shared).unwrap();
                command = other;
            }
            // There is memory for them.
            Step::Job | Step::Attributes => return None,
            // Other systems have these.
            Step::Stack
            | Step::Clone
            | Step::Unshare
            | Step::Signals
            | Step::CloseDescriptors
            | Step::MoveDescriptors
            | Step::SignalMask => return None,
        }
        Some(command)
    };
    make()?;
    rounds(&mut || make().expect("as the first"), check);
    Some(Ok(()))
}

steps! {
    a_launch_that_fails_at_making_inheritable_leaves_nothing: Step::Inheritable;
    a_launch_that_fails_at_the_job_leaves_nothing: Step::Job;
    a_launch_that_fails_at_the_attributes_leaves_nothing: Step::Attributes;
}

#[test]
fn the_error_names_the_step_and_the_object() {
    watchdog!();
    let of = |c: &mut Command| {
        let e = c.spawn().unwrap_err();
        assert_eq!(e.raw_os_error(), None);
        LaunchError::of(&e).unwrap().clone()
    };
    let errno = |error: u32| Some(error as i32);

    let e = of(&mut Command::new("haft-no-such-program"));
    assert_eq!(
        (e.step(), e.errno(), e.kind()),
        (Step::Execute, errno(ERROR_FILE_NOT_FOUND), ErrorKind::NotFound)
    );
    assert_eq!(e.object(), &Object::Program("haft-no-such-program".into()));
    let e = of(&mut Command::new(r"C:\no such folder\x"));
    assert_eq!((e.step(), e.kind()), (Step::Execute, ErrorKind::NotFound));
    assert!([errno(ERROR_PATH_NOT_FOUND), errno(ERROR_FILE_NOT_FOUND)].contains(&e.errno()), "{e}");
    assert_eq!(e.object(), &Object::Program(r"C:\no such folder\x".into()));

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.exe");
    std::fs::write(&text, "no program").unwrap();
    let e = of(&mut Command::new(&text));
    assert_eq!((e.step(), e.errno()), (Step::Execute, errno(ERROR_BAD_EXE_FORMAT)));
    assert_eq!(e.object(), &Object::Program(text.clone()));

    let e = of(Command::new(kid!()).current_dir(r"C:\no such folder"));
    assert_eq!(
        (e.step(), e.object()),
        (Step::WorkingDirectory, &Object::Directory(r"C:\no such folder".into()))
    );
    // A program that is missing as well is not what is named.
    let e = of(Command::new(r"C:\no such program").current_dir(folder.path()));
    assert_eq!(e.step(), Step::Execute);

    let e = of(Command::new(kid!()).args(["one", "tw\0o"]));
    assert_eq!((e.step(), e.errno(), e.kind()), (Step::Resolve, None, ErrorKind::InvalidInput));
    assert_eq!(e.object(), &Object::Argument(1));
    let e = of(Command::new(kid!()).env("NAME", "va\0lue"));
    assert_eq!(
        (e.step(), e.kind(), e.object()),
        (Step::Resolve, ErrorKind::InvalidInput, &Object::Variable("NAME".into()))
    );
    let folder = OsString::from_wide(&[65, 0, 66]);
    let e = of(Command::new(kid!()).current_dir(&folder));
    assert_eq!((e.step(), e.object()), (Step::Resolve, &Object::Directory(folder.into())));

    let e = of(Command::new(kid!()).stdout(from_a_closed_handle()));
    assert_eq!((e.step(), e.errno()), (Step::Stdio, errno(ERROR_INVALID_HANDLE)));
    assert_eq!(e.object(), &Object::Stream(Stream::Stdout));
}

#[test]
fn a_passed_handle_that_was_closed_is_named() {
    isolated!({
        let (mut command, value) = with_a_passed_handle_closed();
        let e = command.status().unwrap_err();
        let launch = LaunchError::of(&e).unwrap();
        assert_eq!((launch.step(), launch.object()), (Step::Inheritable, &Object::Handle(value)), "{e}");
        assert_eq!(launch.errno(), Some(ERROR_INVALID_HANDLE as i32));
    });
}
