//! On Windows: handles, by their values. A handle of the parent's that the tests look for in a child has a value that
//! the child has no handle of by itself ([`high`]).

use haft::process::{Command, Inherit, Passed, Stdio};
use haft_tests::{
    Handle, despite_wine, event, high, is_inheritable, is_signaled, isolated, kid, look, make_inheritable,
    own_handles, parse_handles, under_wine, watchdog,
};
use std::io::{ErrorKind, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::windows::io::{AsHandle, AsRawHandle, AsRawSocket, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::IO::CreateIoCompletionPort;

fn value(of: &impl AsRawHandle) -> usize {
    of.as_raw_handle() as usize
}

/// A socket as a handle, which the system's own sockets are.
fn as_handle(socket: &impl AsRawSocket) -> BorrowedHandle<'_> {
    // SAFETY: borrowed no longer than the socket.
    unsafe { BorrowedHandle::borrow_raw(socket.as_raw_socket() as usize as _) }
}

/// What these values refer to in a child launched by `command`.
fn seen(command: &mut Command, values: &[usize]) -> Vec<Option<Handle>> {
    command.arg("handles").args(values.iter().map(usize::to_string));
    let out = despite_wine(|| command.output()).unwrap();
    assert!(out.status.success(), "{out:?}");
    parse_handles(&String::from_utf8(out.stdout).unwrap()).into_iter().map(|(_, handle)| handle).collect()
}

/// How many of these values are open in the child.
fn open_in(command: &mut Command, values: &[usize]) -> usize {
    seen(command, values).into_iter().flatten().count()
}

/// The number of pipe ends in a child, which says so by its exit code.
fn pipes_in(command: &mut Command) -> i32 {
    command.arg("pipes");
    despite_wine(|| command.status()).unwrap().code().unwrap()
}

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

// rust#26478, corefx#32325, dotnet#13943. Fails when `launch` leaves the list of handles out of the attributes.
#[test]
fn what_is_inheritable_reaches_only_a_child_that_inherits_all() {
    watchdog!();
    // Alone: what std launches for another test would inherit these.
    isolated!({
        let (file, (socket, _other), event) = high(|| (tempfile::tempfile().unwrap(), connected(), event()));
        let values = [value(&file), socket.as_raw_socket() as usize, value(&event)];
        let kid = || Command::new(kid!());
        assert_eq!(open_in(kid().inherit_handles(true), &values), 0, "not inheritable yet");
        make_inheritable(&file);
        make_inheritable(&as_handle(&socket));
        make_inheritable(&event);
        assert_eq!(open_in(&mut kid(), &values), 0);
        // Nor beside something that is passed, nor with the parent's standard handles.
        let mut command = kid();
        command.pass(&std::io::stdin()).unwrap();
        assert_eq!(open_in(&mut command, &values), 0);
        let report = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut command = kid();
        command.arg("--to").arg(&report).arg("handles").args(values.map(|value| value.to_string()));
        assert!(command.status().unwrap().success());
        let none = parse_handles(&std::fs::read_to_string(&report).unwrap());
        assert_eq!(none, values.map(|value| (value, None)));

        let all = seen(kid().inherit(Inherit::All), &values);
        for (handle, value) in all.into_iter().zip(values) {
            assert_eq!(handle.map(|handle| handle.kind), look(value).map(|handle| handle.kind), "{value}");
        }
        assert_eq!(open_in(kid().inherit_handles(true).inherit_handles(false), &values), 0);
        assert!(values.iter().all(|&value| is_inheritable(value) == Some(true)), "the flag is the parent's");
    });
}

// rust#26478: a port cannot be bound again while a child lives that inherited the listener. Fails as the one above.
#[test]
fn a_port_can_be_bound_again_while_the_child_lives() {
    watchdog!();
    isolated!({
        for (inherit, free) in [(Inherit::Named, true), (Inherit::All, false)] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            make_inheritable(&as_handle(&listener));
            let port = listener.local_addr().unwrap().port();
            let mut child = Command::new(kid!()).args(["sleep", "20000"]).inherit(inherit).spawn().unwrap();
            drop(listener);
            let again = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(again.is_ok(), free, "{inherit:?}: {again:?}");
        }
    });
}

// rust#38227, dotnet#19569, corefx#33069, sccache#86. Fails when `launch` leaves the list of handles out of the
// attributes.
#[test]
fn concurrent_launches_never_receive_each_others_pipes() {
    watchdog!(120);
    isolated!({
        std::thread::scope(|s| {
            for thread in 0..8 {
                s.spawn(move || {
                    for round in 0..40 {
                        let mut command = Command::new(kid!());
                        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                        command.arg("pipes");
                        let mut child = despite_wine(|| command.spawn()).unwrap();
                        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
                        let status = child.wait().unwrap();
                        // The child is gone: whoever has its ends now got them by mistake.
                        let from = Instant::now();
                        for reader in [&mut out as &mut dyn Read, &mut err] {
                            assert_eq!(reader.read(&mut [0]).unwrap(), 0);
                        }
                        assert!(from.elapsed() < Duration::from_secs(2), "{:?} for the end", from.elapsed());
                        assert_eq!(status.code(), Some(3), "thread {thread} round {round}: pipes");
                    }
                });
            }
        });
    });
}

// The pull request's lock lets this happen: a plain launch that inherits everything comes while the pipe of a
// redirected, isolated one is inheritable. Fails with the reader-writer rule, that is when `room`
// (plan/windows/source.rs) says `Inherit::All => Entry::Room(BY_LIST)`.
#[test]
fn a_launch_that_inherits_all_never_receives_the_pipe_of_an_isolated_one() {
    watchdog!(150);
    isolated!({
        const ROUNDS: usize = 300;
        let (wrong, started) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for thread in 0..3 {
                let (wrong, started, done) = (&wrong, &started, &done);
                s.spawn(move || {
                    let mut long_lived = Vec::new();
                    while started.fetch_add(1, Ordering::Relaxed) < ROUNDS {
                        if thread == 0 && long_lived.len() < 40 {
                            let mut command = Command::new(kid!());
                            command.args(["sleep", "140000"]).inherit(Inherit::All);
                            long_lived.push(despite_wine(|| command.spawn()).unwrap());
                        }
                        let pipes = pipes_in(Command::new(kid!()).inherit(Inherit::All));
                        wrong.fetch_add(pipes as usize, Ordering::Relaxed);
                    }
                    done.store(true, Ordering::Relaxed);
                    // They held on to whatever they got while the others read.
                    for mut child in long_lived {
                        child.kill().unwrap();
                        child.wait().unwrap();
                    }
                });
            }
            for _ in 0..4 {
                let (wrong, done) = (&wrong, &done);
                s.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let mut command = Command::new(kid!());
                        command.args(["echo", "x"]).stdin(Stdio::piped()).stdout(Stdio::piped());
                        let mut child = despite_wine(|| command.spawn()).unwrap();
                        let mut out = child.stdout.take().unwrap();
                        child.wait().unwrap();
                        let (from, mut text) = (Instant::now(), String::new());
                        out.read_to_string(&mut text).unwrap();
                        assert_eq!(text, "x\n");
                        if from.elapsed() > Duration::from_secs(5) {
                            wrong.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(wrong.into_inner(), 0, "pipe ends in children that inherit all, or readers kept waiting");
    });
}

// The third kind, beside the other two. Fails when `room` (plan/windows/source.rs) gives it the room of those that
// inherit all and make nothing inheritable.
#[test]
fn redirected_launches_that_inherit_all_keep_their_pipes_to_themselves() {
    watchdog!(120);
    isolated!({
        std::thread::scope(|s| {
            for thread in 0..6 {
                s.spawn(move || {
                    for _ in 0..25 {
                        let mut command = Command::new(kid!());
                        command.inherit_handles(thread < 4);
                        let own = match thread % 2 {
                            0 => 0,
                            _ => {
                                command.stdin(Stdio::piped()).stderr(Stdio::piped());
                                2
                            }
                        };
                        command.arg("pipes");
                        let mut child = despite_wine(|| command.spawn()).unwrap();
                        let pipes = child.wait().unwrap().code();
                        assert_eq!(pipes, Some(own), "thread {thread}");
                    }
                });
            }
        });
    });
}

#[test]
fn this_suite_sees_a_leak_when_there_is_one() {
    isolated!({
        let (read, write) = high(|| std::io::pipe().unwrap());
        make_inheritable(&write);
        let mut command = std::process::Command::new(kid!());
        assert_eq!(command.arg("pipes").status().unwrap().code(), Some(1));
        assert_eq!(pipes_in(Command::new(kid!()).inherit(Inherit::All)), 1);
        assert_eq!(pipes_in(&mut Command::new(kid!())), 0);
        drop(read);
    });
}

/// The child uses a handle that was passed, and it is of this kind there.
fn uses(command: &mut Command, passed: Passed, how: &[&str]) -> String {
    let out = command.arg(how[0]).arg(passed.to_string()).args(&how[1..]).output().unwrap();
    assert!(out.status.success(), "{how:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn every_kind_of_handle_can_be_passed_and_used() {
    watchdog!();
    isolated!({
        let launch = || Command::new(kid!());

        let mut file = tempfile::tempfile().unwrap();
        let mut command = launch();
        let passed = command.pass(&file).unwrap();
        uses(&mut command, passed, &["write-handle", "to a file"]);
        file.rewind().unwrap();
        assert_eq!(std::io::read_to_string(file).unwrap(), "to a file");

        let (read, write) = std::io::pipe().unwrap();
        let mut command = launch();
        let passed = command.pass(&write).unwrap();
        drop(write);
        uses(&mut command, passed, &["write-handle", "to a pipe"]);
        assert_eq!(std::io::read_to_string(read).unwrap(), "to a pipe", "and it ends with the child");
        let (read, mut write) = std::io::pipe().unwrap();
        write.write_all(b"from a pipe").unwrap();
        drop(write);
        let mut command = launch();
        let passed = command.pass(&read).unwrap();
        assert_eq!(uses(&mut command, passed, &["read-handle"]), "from a pipe");

        let (ours, mut theirs) = connected();
        let mut command = launch();
        let passed = command.pass(&ours).unwrap();
        drop(ours);
        // Wine's sockets work by their handles in a child, but its calls for sockets know none that was inherited.
        let how = if under_wine() { "write-handle" } else { "send-socket" };
        uses(&mut command, passed, &[how, "to a socket"]);
        drop(command);
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "to a socket");

        // Types that need no more than to be there. Fails to build when `handles!` (command/windows.rs) lacks one of them.
        let (read, write) = haft::pipe::pipe().unwrap();
        let mut command = launch();
        command.pass(&read).unwrap();
        command.pass(&std::io::stdin().lock()).unwrap();
        command.pass(&std::io::stdout().lock()).unwrap();
        command.pass(&std::io::stderr().lock()).unwrap();
        let passed = command.pass(&write).unwrap();
        drop(write);
        uses(&mut command, passed, &["write-handle", "to haft's pipe"]);
        assert_eq!(std::io::read_to_string(read).unwrap(), "to haft's pipe");

        let event = event();
        let mut command = launch();
        let passed = command.pass(&event).unwrap();
        assert!(!is_signaled(&event));
        uses(&mut command, passed, &["signal-event"]);
        assert!(is_signaled(&event), "the child has set it");

        let mut other = launch().args(["sleep", "20000"]).spawn().unwrap();
        let mut command = launch();
        let passed = command.pass(&other).unwrap();
        assert_eq!(uses(&mut command, passed, &["wait-handle", "0"]), "timeout\n");
        let mut command = launch();
        let passed = command.pass(&other.process()).unwrap();
        let seen = seen(&mut command, &[passed.value()]).pop().unwrap().unwrap();
        assert_eq!((seen.kind.as_str(), seen.about), ("Process", other.id().to_string()));
        other.kill().unwrap();
        other.wait().unwrap();
        let mut command = launch();
        let passed = command.pass(&other).unwrap();
        assert_eq!(uses(&mut command, passed, &["wait-handle", "0"]), "signaled\n");

        let thread = std::thread::spawn(|| std::thread::sleep(Duration::from_millis(1)));
        let mut command = launch();
        let passed = command.pass(&thread).unwrap();
        assert_eq!(seen_kind(&mut command, passed), "Thread");
        thread.join().unwrap();
    });
}

fn seen_kind(command: &mut Command, passed: Passed) -> String {
    seen(command, &[passed.value()]).pop().unwrap().expect("it is open in the child").kind
}

// Fails when `Command::pass` does not look what a handle is.
#[test]
fn a_completion_port_is_refused_by_name() {
    // SAFETY: makes a port that is nobody else's.
    let port = unsafe {
        let port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1);
        assert!(!port.is_null());
        OwnedHandle::from_raw_handle(port)
    };
    let e = Command::new(kid!()).pass(&port).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("completion port"), "{e}");
}

#[test]
fn what_is_passed_is_in_the_child_and_inheritable_there() {
    let event = high(event);
    let mut command = Command::new(kid!());
    let passed = command.pass(&event).unwrap();
    let seen = seen(&mut command, &[passed.value(), value(&event)]);
    // So that the child can hand it on.
    assert!(seen[0].as_ref().is_some_and(|handle| handle.kind == "Event" && handle.inheritable), "{seen:?}");
    assert!(seen[1].is_none(), "the original stays here: {seen:?}");
}

// `pass` duplicates at the call. Fails when it takes the handle itself.
#[test]
fn what_is_passed_cannot_go_stale() {
    isolated!({
        let (first, other) = (event(), event());
        let mut command = Command::new(kid!());
        let here = first.as_handle().try_clone_to_owned().unwrap();
        let passed = command.pass(&here).unwrap();
        let was = value(&here);
        drop(here);
        // Until the value is another's.
        let mut taken = Vec::new();
        while taken.last().is_none_or(|handle| value(handle) != was) {
            assert!(taken.len() < 20_000, "the value {was} does not come again");
            taken.push(other.try_clone().unwrap());
        }
        uses(&mut command, passed, &["signal-event"]);
        assert!(is_signaled(&first) && !is_signaled(&other));
    });
}

// .NET 11's rule is that two launches must not pass the same handle, and what was passed is not inheritable afterwards.
// Fails when `pass` takes the handle itself instead of a duplicate.
#[test]
fn two_launches_at_once_pass_the_same_handle() {
    watchdog!(120);
    isolated!({
        for inheritable in [false, true] {
            let (file, event) = high(|| (tempfile::tempfile().unwrap(), event()));
            if inheritable {
                make_inheritable(&file);
                make_inheritable(&event);
            }
            let original = high(|| tempfile::tempfile().unwrap());
            std::thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        for _ in 0..20 {
                            let mut command = Command::new(kid!());
                            let passed = [command.pass(&file).unwrap(), command.pass(&event).unwrap()];
                            command.stdin(Stdio::from_borrowed(&original));
                            let values = passed.map(Passed::value);
                            let kinds: Vec<_> = seen(&mut command, &[values[0], values[1], value(&original)])
                                .into_iter()
                                .map(|handle| handle.map(|handle| handle.kind))
                                .collect();
                            assert_eq!(kinds, [Some("File".into()), Some("Event".into()), None]);
                        }
                    });
                }
            });
            for handle in [value(&file), value(&event)] {
                assert_eq!(is_inheritable(handle), Some(inheritable), "the flag is as it was");
            }
            assert_eq!(is_inheritable(value(&original)), Some(false));
        }
    });
}

#[test]
fn a_stream_may_be_passed_as_well() {
    let file = tempfile::tempfile().unwrap();
    let mut command = Command::new(kid!());
    let passed = command.pass(&file).unwrap();
    command.stdin(Stdio::from_borrowed(&file));
    assert_eq!(seen_kind(&mut command, passed), "File");
}

#[test]
fn passed_pipes_go_with_the_launch_and_events_stay() {
    let ((_read, write), event) = (std::io::pipe().unwrap(), event());
    let mut command = Command::new(kid!());
    command.args(["exit", "0"]).pass(&event).unwrap();
    assert!(command.status().unwrap().success());
    assert!(command.status().unwrap().success(), "an event has no other end");
    let passed = command.pass(&write).unwrap();
    assert!(command.status().unwrap().success());
    let e = command.status().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains(&format!("{:#x}", passed.value())), "it names the handle: {e}");
}

// Fails when the thread of a suspended child is not closed as it is resumed (`Pid::resume`).
#[test]
fn launches_with_jobs_and_suspended_ones_leave_the_parents_handles_as_they_were() {
    isolated!({
        super::leaves_the_handles_as_they_were(|| {
            let mut command = Command::new(kid!());
            command.args(["exit", "0"]).kill_tree(true).kill_on_parent_exit(true).stdin(Stdio::null());
            let mut child = despite_wine(|| command.spawn_suspended()).unwrap();
            let process = child.process();
            child.resume().unwrap();
            drop(child);
            assert!(process.wait().unwrap().unwrap().success());
        });
    });
}

// Nothing of this library's is inheritable but within a launch: not the pipes, not the processes, not the jobs. Fails
// when `Inheritable` does not take the flags back.
#[test]
fn nothing_is_inheritable_outside_of_a_launch() {
    watchdog!();
    isolated!({
        let inheritable = || -> Vec<_> { own_handles().into_iter().filter(|h| h.inheritable).collect() };
        let before = inheritable();
        let (event, (_read, write)) = (event(), std::io::pipe().unwrap());
        let mut command = Command::new(kid!());
        command.args(["sleep", "20000"]).stdin(Stdio::piped()).stdout(Stdio::piped().asynchronous(true));
        command.stderr(Stdio::from(write)).kill_tree(true).kill_on_parent_exit(true);
        let passed = command.pass(&event).unwrap();
        assert_eq!(inheritable(), before, "before the launch");
        let mut child = command.spawn().unwrap();
        assert_eq!(inheritable(), before, "while the child lives");
        assert_eq!(is_inheritable(passed.value()), Some(false), "a duplicate that serves the next launch");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(inheritable(), before, "after it");
        command.stderr(Stdio::null()).current_dir(r"C:\no such folder").spawn().unwrap_err();
        assert_eq!(inheritable(), before, "after a launch that failed");
    });
}
