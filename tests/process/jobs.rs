//! Jobs: what ends together, what ends with the parent, and what does not.
#![cfg(windows)]

use haft::process::{Child, Command, Process, Stdio};
use haft_tests::{kid, table, watchdog};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// Launches a child that leaves a grandchild behind, which holds its output; the grandchild and the reader.
fn leaves_a_grandchild(command: &mut Command) -> (Child, Process) {
    let mut child = command.args(["grandchild", "50000"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.as_mut().unwrap());
    reader.read_line(&mut line).unwrap();
    let grandchild = Process::open(line.trim().parse().unwrap()).unwrap();
    (child, grandchild)
}

fn runs(process: &Process) -> bool {
    process.wait_timeout(Duration::from_millis(100)).is_err_and(|e| e.kind() == ErrorKind::TimedOut)
}

// dotnet#107992, go#23019, duct#80. Fails when the job is not in the child's attributes (`launch`).
#[test]
fn kill_tree_reaches_grandchildren_and_the_reader_sees_the_end() {
    watchdog!();
    for by_process in [false, true] {
        let (mut child, grandchild) = leaves_a_grandchild(Command::new(kid!()).kill_tree(true));
        let from = Instant::now();
        assert!(child.wait().unwrap().success(), "wait does not wait for the grandchild");
        assert!(from.elapsed() < SOON);
        assert!(runs(&grandchild));
        if by_process {
            child.process().kill_tree().unwrap()
        } else {
            child.kill_tree().unwrap()
        }
        assert_eq!(grandchild.wait_timeout(SOON).unwrap().unwrap().code(), Some(1));
        let mut rest = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
        // Nobody is left, which is no error.
        child.kill_tree().unwrap();
    }
}

#[test]
fn kill_tree_ends_the_child_too() {
    watchdog!();
    let mut command = Command::new(kid!());
    let mut child = command.args(["sleep", "50000"]).kill_tree(true).spawn().unwrap();
    child.kill_tree().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn kill_tree_is_to_be_asked_for_before_the_launch() {
    watchdog!();
    let (mut child, grandchild) = leaves_a_grandchild(Command::new(kid!()).kill_tree(true).kill_tree(false));
    let e = child.kill_tree().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("kill_tree(true)"), "{e}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(runs(&grandchild), "kill is for the child alone");
    grandchild.kill().unwrap();
}

// Each child has a job of its own. Fails with one job for all.
#[test]
fn one_tree_is_not_another() {
    watchdog!();
    let mut command = Command::new(kid!());
    command.args(["sleep", "50000"]).kill_tree(true).kill_on_parent_exit(true);
    let (mut one, mut other) = (command.spawn().unwrap(), command.spawn().unwrap());
    one.kill_tree().unwrap();
    one.wait().unwrap();
    assert!(runs(&other.process()));
    other.kill_tree().unwrap();
    other.wait().unwrap();
}

// A job that kills when it is closed must not be the Child's. Fails when the tree's job has the limit that the
// process-wide one has (sys/windows/job.rs).
#[test]
fn dropping_a_child_leaves_it_and_its_tree_alive() {
    watchdog!();
    for (tree, parent) in [(true, false), (false, true), (true, true)] {
        let mut command = Command::new(kid!());
        let (child, grandchild) = leaves_a_grandchild(command.kill_tree(tree).kill_on_parent_exit(parent));
        let sleeper = Command::new(kid!())
            .args(["sleep", "50000"])
            .kill_tree(tree)
            .kill_on_parent_exit(parent)
            .spawn()
            .unwrap();
        let process = Process::open(sleeper.id()).unwrap();
        drop((child, sleeper, command));
        assert!(runs(&process) && runs(&grandchild), "kill_tree {tree}, kill_on_parent_exit {parent}");
        process.kill().unwrap();
        grandchild.kill().unwrap();
    }
}

/// In the parent that the test starts: launches a sleeper and drops the Child, says its number and, when its own input
/// ends, exits.
fn be_the_parent(settings: &str) -> ! {
    let mut command = Command::new(kid!());
    command.args(["sleep", "50000"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_parent_exit(settings.contains("parent")).kill_tree(settings.contains("tree"));
    let child = command.spawn().unwrap();
    println!("child {}", child.id());
    drop(child);
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

// Fails when `kill_on_parent_exit` puts the child into no job.
#[test]
fn the_parents_end_is_the_childs_if_it_was_asked_for() {
    const SETTINGS: &str = "HAFT_TEST_PARENT";
    if let Ok(settings) = std::env::var(SETTINGS) {
        be_the_parent(&settings);
    }
    watchdog!(120);
    for settings in ["parent", "parent and tree", "tree", ""] {
        for killed in [false, true] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([haft_tests::test_name!(), "--exact", "--nocapture"]).env(SETTINGS, settings);
            let mut parent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let number = BufReader::new(parent.stdout.as_mut().unwrap())
                .lines()
                .map(|line| line.unwrap())
                .find_map(|line| table(&line[line.find("child ").unwrap_or(0)..]).remove("child"))
                .unwrap();
            let child = Process::open(number.parse().unwrap()).unwrap();
            assert!(runs(&child), "the parent has dropped its Child, and lives");
            if killed {
                parent.kill().unwrap();
            }
            parent.wait().unwrap();
            if settings.contains("parent") {
                assert!(child.wait_timeout(SOON).is_ok(), "{settings:?}, killed {killed}: it lives on");
            } else {
                assert!(runs(&child), "{settings:?}, killed {killed}: it has ended");
                child.kill().unwrap();
            }
        }
    }
}
