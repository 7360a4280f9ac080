//! On Linux: descriptors, by their numbers.

use haft::process::{Command, Inherit, Stdio};
use haft_tests::{
    Id, id, id_of, is_cloexec, isolated, kid, make_inheritable, parse_fds, skip, test_name, watchdog,
};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What a child launched by `command` has, by number.
fn fds_of(command: &mut Command) -> Vec<(i32, Id)> {
    let out = command.arg("fds").output().expect("kid runs");
    assert!(out.status.success(), "{out:?}");
    parse_fds(&String::from_utf8(out.stdout).unwrap()).into_iter().map(|d| (d.fd, d.id)).collect()
}

fn inheritable_file() -> File {
    let file = tempfile::tempfile().unwrap();
    make_inheritable(&file);
    file
}

/// A pipe whose ends pass to every child that is not careful.
fn careless_pipe() -> (File, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: the two new descriptors belong to nobody else.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}

/// Whether the other side of this pipe is closed by everyone: true at once or not at all.
fn at_end(pipe: &File) -> bool {
    let mut p = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, ours.
    unsafe { libc::poll(&mut p, 1, 0) };
    p.revents & libc::POLLHUP != 0 && p.revents & libc::POLLIN == 0
}

// rust#26478, corefx#32325, dotnet#13943. Fails when the child does not close what is neither source nor target.
#[test]
fn a_file_without_cloexec_is_not_in_the_child() {
    let file = inheritable_file();
    let got = fds_of(&mut Command::new(kid!()));
    assert_eq!(got.iter().map(|d| d.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(!got.iter().any(|d| d.1 == id(&file)));
    assert!(!is_cloexec(file.as_raw_fd()), "the parent's flag is the parent's");
}

#[test]
fn a_file_without_cloexec_is_in_a_child_that_inherits_all() {
    let file = inheritable_file();
    let got = fds_of(Command::new(kid!()).inherit(Inherit::All));
    assert!(got.contains(&(file.as_raw_fd(), id(&file))), "{got:?}");
    let got = fds_of(Command::new(kid!()).inherit_handles(true));
    assert!(got.contains(&(file.as_raw_fd(), id(&file))), "{got:?}");
    let got = fds_of(Command::new(kid!()).inherit_handles(true).inherit_handles(false));
    assert_eq!(got.len(), 3, "{got:?}");
}

#[test]
fn a_file_with_cloexec_is_not_in_a_child_that_inherits_all() {
    let file = tempfile::tempfile().unwrap();
    let got = fds_of(Command::new(kid!()).inherit(Inherit::All));
    assert!(!got.iter().any(|d| d.1 == id(&file)), "{got:?}");
}

#[test]
fn a_passed_file_is_in_the_child_under_its_number() {
    for cloexec in [true, false] {
        let file = tempfile::tempfile().unwrap();
        if !cloexec {
            make_inheritable(&file);
        }
        let mut command = Command::new(kid!());
        let passed = command.pass(&file).unwrap();
        let got = fds_of(&mut command);
        assert_eq!(passed.to_string(), file.as_raw_fd().to_string());
        assert_eq!(got.len(), 4, "{got:?}");
        assert!(got.contains(&(file.as_raw_fd(), id(&file))), "{got:?}");
        assert_eq!(is_cloexec(file.as_raw_fd()), cloexec, "the parent's flag is untouched");
    }
}

#[test]
fn a_passed_file_without_cloexec_flag_in_the_child() {
    // The child must be able to hand it on, so the flag is clear there.
    let file = tempfile::tempfile().unwrap();
    let mut command = Command::new(kid!());
    command.pass(&file).unwrap();
    let out = command.arg("fds").output().unwrap();
    for d in parse_fds(&String::from_utf8(out.stdout).unwrap()) {
        assert!(!d.cloexec, "{d:?}");
    }
}

// With a standard handle closed in the parent, what other launches open gets its number for a moment: pipes, pidfds, the
// null device. Fails when `keep_standard` (sys/linux/child.rs) keeps what has close-on-exec.
#[test]
fn a_closed_standard_handle_stays_closed_while_others_launch() {
    watchdog!();
    isolated!({
        // SAFETY: nobody in this process reads its standard input.
        unsafe { libc::close(0) };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let got = fds_of(Command::new(kid!()).stdin(Stdio::inherit()));
                        assert!(got.iter().all(|(number, _)| *number != 0), "{got:?}");
                    }
                });
            }
        });
        // A file of the program's own with close-on-exec is nobody's standard input either, as in std.
        let file = File::open(kid!()).unwrap();
        assert_eq!(file.as_raw_fd(), 0);
        let got = fds_of(Command::new(kid!()).stdin(Stdio::inherit()));
        assert!(got.iter().all(|(number, _)| *number != 0), "{got:?}");
        // One without is.
        make_inheritable(&file);
        let got = fds_of(Command::new(kid!()).stdin(Stdio::inherit()));
        assert!(got.contains(&(0, id(&file))), "{got:?}");
    });
}

#[test]
fn a_passed_file_works_in_the_child() {
    let (mut read, write) = careless_pipe();
    let mut command = Command::new(kid!());
    let passed = command.pass(&write).unwrap();
    command.arg("put").arg(passed.to_string()).arg("through the handle");
    drop(write);
    assert!(command.status().unwrap().success());
    drop(command);
    let mut got = String::new();
    read.read_to_string(&mut got).unwrap();
    assert_eq!(got, "through the handle");
}

// `pass` duplicates at the call. Fails when it only remembers the number.
#[test]
fn what_is_passed_cannot_go_stale() {
    isolated!({
        let first = tempfile::tempfile().unwrap();
        let (number, wanted) = (first.as_raw_fd(), id(&first));
        let mut command = Command::new(kid!());
        command.pass(&first).unwrap();
        drop(first);
        let second = loop {
            let f = tempfile::tempfile().unwrap();
            if f.as_raw_fd() == number {
                break f;
            }
            std::mem::forget(f);
        };
        assert_ne!(id(&second), wanted);
        let got = fds_of(&mut command);
        assert!(got.contains(&(number, wanted)), "{got:?}");
        assert!(!got.iter().any(|d| d.1 == id(&second)), "{got:?}");
    });
}

#[test]
fn passing_a_standard_handle_is_invalid_input() {
    let mut command = Command::new(kid!());
    let e = command.pass(&std::io::stderr()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("map_fd"), "the message names the way out: {e}");
}

#[test]
fn passing_two_files_of_one_number_is_invalid_input() {
    isolated!({
        let mut command = Command::new(kid!());
        let first = tempfile::tempfile().unwrap();
        let number = first.as_raw_fd();
        let a = command.pass(&first).unwrap();
        let b = command.pass(&first).unwrap();
        assert_eq!(a.to_string(), b.to_string(), "the same open file again is the same handle");
        drop(first);
        let second = loop {
            let f = tempfile::tempfile().unwrap();
            if f.as_raw_fd() == number {
                break f;
            }
            std::mem::forget(f);
        };
        let e = command.pass(&second).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains("map_fd"), "{e}");
        assert_eq!(fds_of(&mut command).len(), 4);
    });
}

// rust#26478: a port cannot be bound again while a child lives that inherited the listener.
#[test]
fn a_port_can_be_bound_again_while_the_child_lives() {
    // Beside other tests here the listener would be in their children that inherit everything.
    isolated!({
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        make_inheritable(&listener);
        let port = listener.local_addr().unwrap().port();
        let mut child = Command::new(kid!()).args(["sleep", "20000"]).spawn().unwrap();
        drop(listener);
        let again = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        child.kill().unwrap();
        child.wait().unwrap();
        again.unwrap();
    });
}

// rust#38227, dotnet#19569, corefx#33069, sccache#86.
#[test]
fn concurrent_launches_never_receive_each_others_pipes() {
    watchdog!(120);
    const THREADS: usize = 12;
    const ROUNDS: usize = 40;
    std::thread::scope(|s| {
        for t in 0..THREADS {
            s.spawn(move || {
                for round in 0..ROUNDS {
                    let (read, write) = careless_pipe();
                    let mut command = Command::new(kid!());
                    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                    let out = command.arg("fds").spawn().unwrap().wait_with_output().unwrap();
                    let got = parse_fds(&String::from_utf8(out.stdout).unwrap());
                    let numbers: Vec<_> = got.iter().map(|d| d.fd).collect();
                    assert_eq!(numbers, [0, 1, 2], "thread {t} round {round}");
                    drop(write);
                    drop(read);
                }
            });
        }
    });
}

// The kernel lets a vfork parent go on inside exec, before close-on-exec files are closed. Fails when the child
// leaves its moved sources, or what it was not given, to close-on-exec instead of closing them.
#[test]
fn spawn_returned_means_nothing_leaked_is_open_in_the_child() {
    // Another test's children must not hold the pipe; none can, but this one is about the child alone.
    isolated!({
        for round in 0..400 {
            let (read, write) = if round % 2 == 0 {
                careless_pipe()
            } else {
                let (r, w) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
                (File::from(r), w)
            };
            // Opened later, so that the pipe lies between numbers that the child needs, or above them all.
            let stdin =
                if round % 4 < 2 { Stdio::from(File::open("/dev/null").unwrap()) } else { Stdio::null() };
            let mut child = Command::new(kid!()).args(["sleep", "20000"]).stdin(stdin).spawn().unwrap();
            drop(write);
            let ended = at_end(&read);
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(ended, "round {round}: the pipe is still open somewhere when spawn has returned");
        }
    });
}

// The same for the library's own pipe: the child has its end of it once, not a moved copy as well.
#[test]
fn spawn_returned_means_the_childs_pipe_is_there_once() {
    isolated!({
        for round in 0..200 {
            let mut child = Command::new(kid!())
                .args(["sleep", "20000"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count();
            child.kill().unwrap();
            child.wait().unwrap();
            // The dynamic loader may have one library open at this moment.
            assert!((3..=4).contains(&open), "round {round}: {open} descriptors in the child");
        }
    });
}

// trio#1707, twisted#3442.
#[test]
fn the_child_gets_blocking_pipe_ends() {
    let mut command = Command::new(kid!());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = command.arg("fds").spawn().unwrap().wait_with_output().unwrap();
    for d in parse_fds(&String::from_utf8(out.stdout).unwrap()) {
        assert!(!d.nonblock, "{d:?}");
    }
    // And the parent's ends are what std gives: blocking as well.
    let mut child =
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mode = |fd: i32| {
        // SAFETY: reads a flag of an open descriptor.
        unsafe { libc::fcntl(fd, libc::F_GETFL) }
    };
    assert_eq!(mode(child.stdin.as_ref().unwrap().as_raw_fd()) & libc::O_NONBLOCK, 0);
    assert_eq!(mode(child.stdout.as_ref().unwrap().as_raw_fd()) & libc::O_NONBLOCK, 0);
    assert!(is_cloexec(child.stdin.as_ref().unwrap().as_raw_fd()));
    assert!(is_cloexec(child.stdout.as_ref().unwrap().as_raw_fd()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn each_pipe_end_has_one_direction() {
    let mut command = Command::new(kid!());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = command.arg("fds").spawn().unwrap().wait_with_output().unwrap();
    let got = parse_fds(&String::from_utf8(out.stdout).unwrap());
    let access: Vec<_> = got.iter().map(|d| d.access.as_str()).collect();
    assert_eq!(access, ["r", "w", "w"]);
}

// .NET 11's rule is that two launches must not pass the same handle; here they may.
#[test]
fn two_launches_at_once_pass_the_same_handle() {
    watchdog!(120);
    let file = tempfile::tempfile().unwrap();
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for _ in 0..40 {
                    let mut command = Command::new(kid!());
                    command.pass(&file).unwrap();
                    let got = fds_of(&mut command);
                    assert!(got.contains(&(file.as_raw_fd(), id(&file))), "{got:?}");
                    assert_eq!(got.len(), 4, "{got:?}");
                }
            });
        }
    });
    assert!(is_cloexec(file.as_raw_fd()), "the inherit flag is as it was");
}

// A file that is passed and a stream that is the same open file, at once.
#[test]
fn a_stream_may_be_passed_as_well() {
    let file = tempfile::tempfile().unwrap();
    let mut command = Command::new(kid!());
    command.pass(&file).unwrap();
    command.stdin(Stdio::from(file.try_clone().unwrap()));
    let got = fds_of(&mut command);
    assert_eq!(got.iter().filter(|d| d.1 == id(&file)).count(), 2, "{got:?}");
    assert_eq!(got.len(), 4, "{got:?}");
}

#[test]
fn a_handle_passed_with_a_high_number_arrives_there() {
    isolated!({
        let file = tempfile::tempfile().unwrap();
        for number in [63, 64, 255, 256, 257, 900, 1023] {
            // SAFETY: duplicates to a number that is free in this process.
            let high = unsafe {
                let fd = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number);
                if fd < 0 {
                    skip!("RLIMIT_NOFILE is too low for descriptor {number}");
                }
                OwnedFd::from_raw_fd(fd)
            };
            let mut command = Command::new(kid!());
            command.pass(&high).unwrap();
            let got = fds_of(&mut command);
            assert!(got.contains(&(high.as_raw_fd(), id(&file))), "{number}: {got:?}");
            assert_eq!(got.len(), 4, "{number}: {got:?}");
        }
    });
}

#[test]
fn this_suite_sees_a_leak_when_there_is_one() {
    // std leaves a file without close-on-exec in the child: if this did not show, nothing above would mean much.
    let file = inheritable_file();
    let out = std::process::Command::new(kid!()).arg("fds").output().unwrap();
    let got = parse_fds(&String::from_utf8(out.stdout).unwrap());
    assert!(got.iter().any(|d| d.fd == file.as_raw_fd() && Some(d.id) == id_of(d.fd)), "{}", test_name!());
}
