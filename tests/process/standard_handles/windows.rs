//! On Windows: whether the parent has any, has lost them, or has such as no child could inherit.

use haft::process::{Command, Inherit, Stdio};
use haft_tests::{
    Handle, despite_wine, event, high, is_inheritable, is_signaled, isolated, kid, look, make_inheritable,
    watchdog,
};
use std::fs::File;
use std::io::Read;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};

/// What the standard handles of a child are, as it reports to a file.
fn seen(command: &mut Command, report: &Path) -> Vec<Option<Handle>> {
    let status = command.arg("--to").arg(report).arg("std").spawn().unwrap().wait().unwrap();
    assert!(status.success(), "{status}");
    parse(&std::fs::read_to_string(report).unwrap())
}

fn parse(text: &str) -> Vec<Option<Handle>> {
    let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line.0).collect::<Vec<_>>(), ["stdin", "stdout", "stderr"]);
    let handles = lines.into_iter().map(|line| line.1);
    handles.map(|handle| (!handle.ends_with("none")).then(|| handle.parse().unwrap())).collect()
}

fn abouts(seen: &[Option<Handle>]) -> Vec<&str> {
    seen.iter().map(|handle| handle.as_ref().map_or("none", |handle| &handle.about)).collect()
}

/// This process's standard handles, which are again what they were when it is dropped: the harness has words to say.
struct Own([usize; 3]);

const WHICH: [u32; 3] = [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE];

impl Own {
    fn new() -> Own {
        // SAFETY: reads values of this process's.
        Own(WHICH.map(|which| unsafe { GetStdHandle(which) } as usize))
    }

    fn set(&self, values: [usize; 3]) {
        for (which, value) in WHICH.into_iter().zip(values) {
            // SAFETY: changes a value of this process's, which runs this one test.
            assert_ne!(unsafe { SetStdHandle(which, value as _) }, 0);
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.set(self.0);
    }
}

/// A value that was a handle's and is nobody's.
fn stale() -> usize {
    let handle = high(event);
    // What is closed after it is given out before it.
    let _later: Vec<_> = (0..1000).map(|_| event()).collect();
    let value = handle.as_raw_handle() as usize;
    drop(handle);
    value
}

// go#42098, go#48040, stellar-core#1987: a NULL in the list makes Windows inherit nothing, and Wine leave it out. Fails
// when `standard` (sys/windows/handles.rs) does not ask whether the handle is open.
#[test]
fn a_missing_standard_handle_does_not_keep_the_others_from_the_child() {
    watchdog!(120);
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let file = File::create(folder.path().join("file")).unwrap();
        make_inheritable(&file);
        // What the parent does not give to children, and yet is its standard handle.
        let private = File::create(folder.path().join("private")).unwrap();
        let own = Own::new();
        let event = event();
        let values = [
            0,
            INVALID_HANDLE_VALUE as usize,
            stale(),
            file.as_raw_handle() as usize,
            private.as_raw_handle() as usize,
        ];
        let name = |kind: usize| ["", "", "", "file", "private"][kind];
        for round in 0..30_usize {
            let kinds = [round % 5, round / 5 % 5, (round * 2 + round / 10) % 5];
            own.set(kinds.map(|kind| values[kind]));
            let mut command = Command::new(kid!());
            let passed = command.pass(&event).unwrap();
            let seen = seen(&mut command, &report);
            for (about, kind) in abouts(&seen).into_iter().zip(kinds) {
                let right = match name(kind) {
                    "" => about == "none",
                    name => about.starts_with("disk ") && about.ends_with(name),
                };
                assert!(right, "{kinds:?}: {seen:?}");
            }
            if round % 5 == 0 {
                // The list is whole: what is passed arrives beside them.
                let mut command = Command::new(kid!());
                let again = command.pass(&event).unwrap();
                assert_ne!(again, passed);
                command.arg("--to").arg(&report).arg("signal-event").arg(again.to_string());
                assert!(command.status().unwrap().success(), "{kinds:?}");
                assert!(is_signaled(&event), "{kinds:?}");
            }
            // And redirected ones.
            let mut child = Command::new(kid!()).args(["echo", "x"]).stdout(Stdio::piped()).spawn().unwrap();
            let mut text = String::new();
            child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            child.wait().unwrap();
            assert_eq!(text, "x\n", "{kinds:?}");
        }
        assert_eq!(is_inheritable(file.as_raw_handle() as usize), Some(true), "the flag is the parent's");
        assert_eq!(is_inheritable(private.as_raw_handle() as usize), Some(false), "the flag is the parent's");
    });
}

// To Wine an empty list means everything, to Windows it is an error; so there must be none, and no inheritance either.
// Fails when `launch` sets `bInheritHandles` where there is nothing to inherit.
#[test]
fn a_child_with_nothing_to_inherit_inherits_nothing() {
    watchdog!();
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let event = high(event);
        make_inheritable(&event);
        let own = Own::new();
        own.set([0; 3]);
        let ask = |command: &mut Command| {
            let value = (event.as_raw_handle() as usize).to_string();
            let status = command.arg("--to").arg(&report).arg("handles").arg(value).status().unwrap();
            assert!(status.success());
            std::fs::read_to_string(&report).unwrap()
        };
        assert!(ask(&mut Command::new(kid!())).ends_with(" none\n"));
        assert!(ask(Command::new(kid!()).inherit(Inherit::All)).contains(" Event "));
    });
}

// rust#38811: a child reads and writes without an OVERLAPPED, and an overlapped end breaks it. Fails when `pipe`
// (sys/windows/handles.rs) makes the child's end overlapped too.
#[test]
fn the_childs_end_of_a_pipe_is_synchronous() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    for piped in 1..8_u32 {
        for asynchronous in [0, piped, piped & 0b010] {
            let mut command = Command::new(kid!());
            let stdio = |stream: u32| match piped >> stream & 1 {
                0 => Stdio::null(),
                _ => Stdio::piped().asynchronous(asynchronous >> stream & 1 == 1),
            };
            command.stdin(stdio(0)).stdout(stdio(1)).stderr(stdio(2));
            command.arg("--to").arg(&report).arg("std");
            let mut child = command.spawn().unwrap();
            let ends: [Option<BorrowedHandle<'_>>; 3] = [
                child.stdin.as_ref().map(AsHandle::as_handle),
                child.stdout.as_ref().map(AsHandle::as_handle),
                child.stderr.as_ref().map(AsHandle::as_handle),
            ];
            for (stream, end) in ends.into_iter().enumerate() {
                assert_eq!(end.is_some(), piped >> stream & 1 == 1, "{piped:03b}");
                let Some(end) = end else { continue };
                let ours = look(end.as_raw_handle() as usize).unwrap();
                let about = ["pipe sync", "pipe overlapped"][(asynchronous >> stream & 1) as usize];
                assert_eq!(
                    (&*ours.about, ours.inheritable),
                    (about, false),
                    "{piped:03b} {asynchronous:03b}"
                );
            }
            assert!(child.wait().unwrap().success());
            let seen = parse(&std::fs::read_to_string(&report).unwrap());
            let wanted = [0, 1, 2].map(|stream| ["char sync", "pipe sync"][(piped >> stream & 1) as usize]);
            assert_eq!(abouts(&seen), wanted, "{piped:03b} {asynchronous:03b}");
        }
    }
}

// Fails when `drains_several` (command/mod.rs) says so of a launch by spawn too.
#[test]
fn a_pipe_is_synchronous_in_the_next_child_and_in_one_whose_output_is_taken() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut command = Command::new(kid!());
    command.args(["echo", "x"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut first = command.spawn().unwrap();
    let mut command = Command::new(kid!());
    command.stdin(first.stdout.take().unwrap()).stdout(first.stdin.take().unwrap()).stderr(Stdio::null());
    assert_eq!(abouts(&seen(&mut command, &report)), ["pipe sync", "pipe sync", "char sync"]);
    first.wait().unwrap();

    let out = Command::new(kid!()).arg("std").output().unwrap();
    let seen = parse(&String::from_utf8(out.stdout).unwrap());
    assert_eq!(abouts(&seen), ["char sync", "pipe sync", "pipe sync"]);
}

#[test]
fn an_asynchronous_pipe_serves_sync_calls() {
    watchdog!();
    for asynchronous in [false, true] {
        let piped = || Stdio::piped().asynchronous(asynchronous);
        let mut child = Command::new(kid!()).arg("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
        let mut into = child.stdin.take().unwrap();
        let data: Vec<u8> = (0..300_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
        std::thread::scope(|s| {
            let data = &data;
            s.spawn(move || std::io::Write::write_all(&mut into, data).unwrap());
            let mut got = Vec::new();
            child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
            assert!(got == *data, "{} bytes of {}", got.len(), data.len());
        });
        assert!(child.wait().unwrap().success());
    }
}

// One handle for two streams is in the list once. Fails when `HandleList::new` keeps doubles.
#[test]
fn streams_may_share_one_handle_and_be_each_others() {
    watchdog!();
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let [one, other] = ["one", "other"].map(|name| File::create(folder.path().join(name)).unwrap());
        for file in [&one, &other] {
            make_inheritable(file);
        }
        let value = |file: &File| file.as_raw_handle() as usize;
        let own = Own::new();
        own.set([value(&one); 3]);
        let names = |seen: Vec<Option<Handle>>| -> Vec<String> {
            let name = |about: &str| about.rsplit('\\').next().unwrap().to_owned();
            seen.into_iter().map(|handle| name(&handle.expect("it is there").about)).collect()
        };
        assert_eq!(names(seen(&mut Command::new(kid!()), &report)), ["one", "one", "one"]);
        own.set([value(&one), value(&one), value(&other)]);
        let mut command = Command::new(kid!());
        command.stdout(std::io::stderr()).stderr(std::io::stdout());
        assert_eq!(names(seen(&mut command, &report)), ["one", "other", "one"]);
        // Given by the command, twice the same open file.
        let mut command = Command::new(kid!());
        command.stdout(Stdio::from_borrowed(&other)).stderr(Stdio::from_borrowed(&other));
        assert_eq!(names(seen(&mut command, &report)), ["one", "other", "other"]);
        // And one that is not inheritable, as a duplicate.
        // SAFETY: changes a flag of an open handle.
        unsafe { SetHandleInformation(one.as_raw_handle(), HANDLE_FLAG_INHERIT, 0) };
        assert_eq!(names(seen(&mut Command::new(kid!()), &report)), ["one", "one", "other"]);
    });
}

#[test]
fn inherit_all_gives_the_same_standard_handles() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let file = File::create(folder.path().join("out")).unwrap();
    for inherit in [Inherit::Named, Inherit::All] {
        let mut command = Command::new(kid!());
        command.inherit(inherit).stdin(Stdio::null()).stdout(file.try_clone().unwrap());
        let mut child = command.stderr(Stdio::piped()).arg("--to").arg(&report).arg("std").spawn().unwrap();
        assert!(child.wait().unwrap().success());
        let seen = parse(&std::fs::read_to_string(&report).unwrap());
        let about = abouts(&seen);
        assert_eq!((about[0], about[2]), ("char sync", "pipe sync"), "{inherit:?}");
        assert!(about[1].starts_with("disk sync "), "{inherit:?}: {about:?}");
    }
}

// A program may change the flags of its standard handles while it launches, by SetHandleInformation or by launching in
// another way that does. Fails, by a launch that does not go, when `lend` gives a handle by list under its own value
// because it is inheritable at the time of the look.
#[test]
fn a_standard_handle_whose_flag_changes_during_launches_is_given_on() {
    isolated!({
        watchdog!();
        let file = tempfile::tempfile().unwrap();
        let value = file.as_raw_handle() as usize;
        let set = |flag| {
            // SAFETY: changes a flag of a handle that is open.
            unsafe { SetHandleInformation(value as _, HANDLE_FLAG_INHERIT, flag) };
        };
        let own = Own::new();
        own.set([value, own.0[1], own.0[2]]);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(Relaxed) {
                    set(HANDLE_FLAG_INHERIT);
                    set(0);
                }
            });
            let launched = std::panic::catch_unwind(|| {
                for _ in 0..60 {
                    let mut command = Command::new(kid!());
                    assert!(despite_wine(|| command.args(["exit", "0"]).status()).unwrap().success());
                }
            });
            done.store(true, Relaxed);
            launched.unwrap();
        });
    });
}

// rust#38811, in the direction in which the child writes. Fails when `is_pipe` (sys/windows/pipe_end.rs) takes an end
// that has not the right to be asked for something else than a pipe: the child hangs once it has filled the pipe.
#[test]
fn an_overlapped_end_that_is_written_to_is_relayed() {
    watchdog!();
    let (mut reader, writer) = haft::pipe::Builder::new().async_writer(true).build().unwrap();
    let mut child =
        Command::new(kid!()).args(["flood", "400000"]).stdout(Stdio::from_borrowed(&writer)).spawn().unwrap();
    drop(writer);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), 400_000);
    assert!(child.wait().unwrap().success());
}
