//! What must hold of a launch whichever of the kernel's newer calls there are: run by the suites under every fallback.

use crate::{Census, children, eventually, forced, id, make_inheritable, parse_fds};
use haft::process::{Command, Inherit, LaunchError, Stdio, Step};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

/// Runs every check. Panics at the first that fails. The process must be one of its own.
pub fn run(kid: &str) {
    once(kid);
    if forced("no_watcher") {
        // Who reaps dropped children then has a test of its own.
        return once(kid);
    }
    assert!(eventually(Duration::from_secs(5), || children().is_empty()), "{:?}", children());
    let census = Census::new();
    for _ in 0..5 {
        once(kid);
    }
    census.check();
    census.check_none_lost();
}

fn once(kid: &str) {
    handles(kid);
    failures(kid);
    waits(kid);
    captures(kid);
}

fn fds(command: &mut Command) -> Vec<(i32, crate::Id)> {
    let out = command.arg("fds").output().expect("kid runs");
    assert!(out.status.success(), "{out:?}");
    parse_fds(std::str::from_utf8(&out.stdout).expect("text")).into_iter().map(|d| (d.fd, d.id)).collect()
}

fn handles(kid: &str) {
    let careless = tempfile::tempfile().expect("a file");
    make_inheritable(&careless);
    let given = tempfile::tempfile().expect("a file");
    let numbers = |of: Vec<(i32, crate::Id)>| of.into_iter().map(|d| d.0).collect::<Vec<_>>();

    assert_eq!(numbers(fds(&mut Command::new(kid))), [0, 1, 2], "standard handles and nothing else");
    // With every stream the parent's, the highest source is stderr: what the child leaves behind with the table is
    // all that is above it.
    let report = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new(kid).arg("--to").arg(report.path()).arg("fds").status().expect("kid runs");
    assert!(status.success(), "{status}");
    let got = parse_fds(&std::fs::read_to_string(report.path()).expect("a report"));
    assert!(got.iter().all(|d| d.fd < 3), "standard handles and nothing else: {got:?}");
    let all = fds(Command::new(kid).inherit(Inherit::All));
    assert!(all.contains(&(careless.as_raw_fd(), id(&careless))), "everything, when asked for: {all:?}");
    let mut command = Command::new(kid);
    command.pass(&given).expect("an open file");
    let got = fds(&mut command);
    assert_eq!(got.len(), 4, "the standard handles and what was passed: {got:?}");
    assert!(got.contains(&(given.as_raw_fd(), id(&given))), "{got:?}");
    let mut command = Command::new(kid);
    command.map_fd(&given, 700).expect("an open file");
    command.stdin(Stdio::from(given.try_clone().expect("a duplicate")));
    let got = fds(&mut command);
    assert!(got.contains(&(0, id(&given))) && got.contains(&(700, id(&given))), "{got:?}");

    // What the parent closes after spawn is closed everywhere.
    let (mut read, write) = std::io::pipe().expect("a pipe");
    make_inheritable(&write);
    let mut child = Command::new(kid).args(["sleep", "30000"]).spawn().expect("kid runs");
    drop(write);
    let mut byte = [0];
    let n = read.read(&mut byte).expect("the end");
    assert_eq!(n, 0);
    child.kill().expect("kill");
    child.wait().expect("wait");
}

fn failures(kid: &str) {
    let step = |e: &std::io::Error| LaunchError::of(e).expect("a launch error").step();
    let e = Command::new("/no/such/program").stdin(Stdio::piped()).spawn().expect_err("no program");
    assert_eq!((e.kind(), step(&e)), (ErrorKind::NotFound, Step::Execute));
    let e = Command::new(kid).current_dir("/no/such/folder").output().expect_err("no folder");
    assert_eq!((e.kind(), step(&e)), (ErrorKind::NotFound, Step::WorkingDirectory));
    let e = Command::new(kid).arg("a\0b").output().expect_err("a NUL");
    assert_eq!((e.kind(), step(&e)), (ErrorKind::InvalidInput, Step::Resolve));
}

fn waits(kid: &str) {
    let status = Command::new(kid).args(["exit", "41"]).status().expect("kid runs");
    assert_eq!(status.code(), Some(41));
    let mut child = Command::new(kid).args(["sleep", "30000"]).spawn().expect("kid runs");
    assert!(child.try_wait().expect("try_wait").is_none());
    child.kill().expect("kill");
    assert_eq!(child.wait().expect("wait").signal(), Some(libc::SIGKILL));
    assert_eq!(child.wait().expect("wait again").signal(), Some(libc::SIGKILL));
    child.kill().expect("kill after wait");
    let mut child = Command::new(kid).args(["exit-after", "10", "3"]).spawn().expect("kid runs");
    assert!(eventually(Duration::from_secs(10), || child.try_wait().expect("try_wait").is_some()));
    assert_eq!(child.wait().expect("wait").code(), Some(3));
    // Nobody waits for this one: no zombie may be left.
    drop(Command::new(kid).args(["exit-after", "5", "0"]).spawn().expect("kid runs"));
}

fn captures(kid: &str) {
    let out = Command::new(kid).args(["flood", "300000", "both"]).output().expect("kid runs");
    assert_eq!((out.status.code(), out.stdout.len(), out.stderr.len()), (Some(0), 300_000, 300_000));
    let mut child =
        Command::new(kid).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kid runs");
    let mut into = child.stdin.take().expect("a pipe");
    let writer = std::thread::Builder::new().spawn(move || into.write_all(&vec![7; 300_000]));
    // Where not even a thread can be started (a filter refuses it) the input was dropped with the closure.
    let out = child.wait_with_output().expect("output");
    if let Ok(writer) = writer {
        writer.join().expect("no panic").expect("all written");
        assert_eq!(out.stdout.len(), 300_000);
    }
    assert!(out.status.success());
}
