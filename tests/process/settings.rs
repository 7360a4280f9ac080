//! What a command on Windows can be told besides: creation flags, consoles, raw arguments, and a child that waits.
#![cfg(windows)]

use haft::process::{Command, Stdio};
use haft_tests::{Handle, kid, table, watchdog};
use std::io::{ErrorKind, Read};
use std::os::windows::process::CommandExt;
use std::path::Path;
use windows_sys::Win32::System::Threading::{
    BELOW_NORMAL_PRIORITY_CLASS, CREATE_NEW_CONSOLE, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW,
    DETACHED_PROCESS, IDLE_PRIORITY_CLASS,
};

fn text(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    comparable(out.stdout)
}

/// How many share a console with others, such as the children of other tests, is a matter of the moment.
fn comparable(out: Vec<u8>) -> String {
    let line = |line: &str| match line.strip_prefix("processes ") {
        Some(count) if count.parse::<u32>().unwrap() > 1 => "processes several\n".to_owned(),
        _ => format!("{line}\n"),
    };
    String::from_utf8(out).unwrap().lines().map(line).collect()
}

/// What std's command says after the same.
fn std_text(set: impl FnOnce(&mut std::process::Command) -> &mut std::process::Command) -> String {
    let mut command = std::process::Command::new(kid!());
    comparable(set(&mut command).output().unwrap().stdout)
}

// Fails when `launch` does not set CREATE_SUSPENDED, and when it does so for the launches after.
#[test]
fn a_suspended_child_runs_once_it_is_resumed() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let mut command = Command::new(kid!());
    command.arg("--to").arg(&marker).args(["echo", "x"]);
    let mut child = command.spawn_suspended().unwrap();
    // Time enough for several that run.
    for _ in 0..8 {
        assert!(Command::new(kid!()).args(["exit", "0"]).status().unwrap().success());
    }
    assert!(child.try_wait().unwrap().is_none() && !marker.exists(), "it runs");
    child.resume().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(marker.exists());
    assert_eq!(child.resume().unwrap_err().kind(), ErrorKind::InvalidInput);

    std::fs::remove_file(&marker).unwrap();
    let mut child = command.spawn().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(marker.exists());
    assert_eq!(child.resume().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_suspended_child_has_its_pipes_and_can_be_killed() {
    watchdog!();
    let mut command = Command::new(kid!());
    command.args(["echo", "late"]).stdout(Stdio::piped()).kill_tree(true);
    let mut child = command.spawn_suspended().unwrap();
    child.resume().unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "late\n");
    child.wait().unwrap();
    for tree in [false, true] {
        let mut child = command.spawn_suspended().unwrap();
        if tree {
            child.kill_tree().unwrap()
        } else {
            child.kill().unwrap()
        }
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn creation_flags_are_stds() {
    watchdog!();
    for flags in [
        0,
        BELOW_NORMAL_PRIORITY_CLASS,
        CREATE_NEW_PROCESS_GROUP | IDLE_PRIORITY_CLASS,
        CREATE_NO_WINDOW,
        DETACHED_PROCESS,
    ] {
        for command in ["startup", "console"] {
            let theirs = std_text(|c| c.arg(command).creation_flags(flags));
            let ours = text(Command::new(kid!()).arg(command).creation_flags(flags));
            assert_eq!(theirs, ours, "{command} with {flags:#x}");
        }
    }
    // The last call counts.
    for flags in
        [[DETACHED_PROCESS, 0], [IDLE_PRIORITY_CLASS, DETACHED_PROCESS | BELOW_NORMAL_PRIORITY_CLASS]]
    {
        for command in ["startup", "console"] {
            let theirs = std_text(|c| c.arg(command).creation_flags(flags[0]).creation_flags(flags[1]));
            let mut ours = Command::new(kid!());
            ours.arg(command).creation_flags(flags[0]).creation_flags(flags[1]);
            assert_eq!(theirs, text(&mut ours), "{command} with {flags:x?}");
        }
    }
}

#[test]
fn the_named_settings_are_their_flags() {
    watchdog!();
    type Setting = fn(&mut Command, bool) -> &mut Command;
    let settings: [(u32, Setting); 3] = [
        (CREATE_NO_WINDOW, Command::create_no_window),
        (CREATE_NEW_PROCESS_GROUP, Command::create_new_process_group),
        (DETACHED_PROCESS, Command::detached),
    ];
    for (flag, set) in settings {
        let theirs = std_text(|c| c.arg("console").creation_flags(flag));
        let ours = text(set(Command::new(kid!()).arg("console"), true));
        assert_eq!(theirs, ours, "{flag:#x}");
        // Beside flags, before or after; and taken back.
        for ask in ["startup", "console"] {
            let both = std_text(|c| c.arg(ask).creation_flags(flag | IDLE_PRIORITY_CLASS));
            let mut command = Command::new(kid!());
            set(&mut command, true).creation_flags(IDLE_PRIORITY_CLASS).arg(ask);
            assert_eq!(text(&mut command), both, "{flag:#x}");
        }
        let plain = text(Command::new(kid!()).arg("console"));
        let mut command = Command::new(kid!());
        set(set(&mut command, true), false).arg("console");
        assert_eq!(text(&mut command), plain);
    }
    let none = text(Command::new(kid!()).arg("console").detached(true));
    assert_eq!(table(&none)["processes"], "0", "a detached child has no console");
}

/// What the standard handles of a child are, each in its words.
fn standard_handles(command: &mut Command, report: &Path) -> Vec<Option<Handle>> {
    assert!(command.arg("--to").arg(report).arg("std").status().unwrap().success());
    std::fs::read_to_string(report)
        .unwrap()
        .lines()
        .map(|line| line.split_once(' ').unwrap().1)
        .map(|handle| (!handle.ends_with("none")).then(|| handle.parse().unwrap()))
        .collect()
}

// Fails when `Command::kind` does not look for `detached`.
#[test]
fn a_detached_child_has_the_null_device_where_nothing_is_set() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let file = std::fs::File::create(folder.path().join("out")).unwrap();
    let seen = standard_handles(Command::new(kid!()).detached(true).stdout(file), &report);
    let about: Vec<_> = seen.into_iter().map(|handle| handle.expect("it is there").about).collect();
    assert_eq!((&*about[0], &*about[2]), ("char sync", "char sync"));
    assert!(about[1].starts_with("disk sync "), "{about:?}");
    // And the parent's where that is asked for.
    let seen = standard_handles(Command::new(kid!()).detached(true).stdin(Stdio::inherit()), &report);
    let plain = standard_handles(&mut Command::new(kid!()), &report);
    let about = |handles: &[Option<Handle>]| handles[0].as_ref().map(|handle| handle.about.clone());
    assert_eq!(about(&seen), about(&plain));
}

#[test]
fn raw_arguments_are_stds() {
    watchdog!();
    let line = ["/c", r#""a b"#, r#"c"d"#, "", r"\\", r#"x" & y"#];
    let theirs = std_text(|c| {
        c.arg("command-line").arg("an argument");
        line.into_iter().fold(c, |c, raw| c.raw_arg(raw)).arg("last one")
    });
    let mut command = Command::new(kid!());
    command.arg("command-line").arg("an argument");
    for raw in line {
        command.raw_arg(raw);
    }
    assert_eq!(theirs, text(command.arg("last one")));
}

#[test]
fn a_console_of_its_own_is_a_flag() {
    watchdog!();
    let theirs = std_text(|c| c.arg("console").creation_flags(CREATE_NEW_CONSOLE));
    assert_eq!(theirs, text(Command::new(kid!()).arg("console").creation_flags(CREATE_NEW_CONSOLE)));
}
