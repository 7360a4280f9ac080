//! The `haft` command, as its user meets it: launched through std, judged by what it prints and how it exits.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

fn haft() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    haft().args(args).output().expect("haft starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[track_caller]
fn assert_screen(output: &Output) {
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}\n{out}\n{}", output.status, text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(!out.contains('\x1b'), "colour in a pipe:\n{out}");
    assert!((20..=30).contains(&out.lines().count()), "{} lines:\n{out}", out.lines().count());
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert!(!out.contains("panicked"));
}

// Fails with `.inherit(Inherit::All)` on the command in `by_haft` of src/tour/inherit/mod.rs.
#[test]
fn the_tour_fits_one_screen_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["tour", "--dir", folder.path().to_str().unwrap()]);
    assert_screen(&output);
    let out = text(&output.stdout);
    let row =
        |begin: &str| out.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{out}"));
    assert!(row("  std::process").contains("leaked"), "{out}");
    assert!(row("  std::process").contains("secret.txt"), "{out}");
    assert!(!row("  haft   ").contains("secret.txt"), "{out}");
    assert!(row("  haft, pass(&file)").contains("secret.txt"), "{out}");
    assert!(out.contains("a second"), "{out}");
    for reader in ["  haft  read_at  ", "  haft  read_at_async"] {
        assert!(row(reader).ends_with(" 0"), "an allocation per read:\n{out}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_the_system_refuses_is_explained() {
    if cfg!(windows) {
        // Past the harness's capture, in one write, so that a script can count it.
        let line =
            "skipped: what_the_system_refuses_is_explained: Windows has no limit on handles to lower\n";
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    // Few descriptors, so that the column with many files open cannot be had.
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" tour", env!("CARGO_BIN_EXE_haft")])
        .output()
        .unwrap();
    assert_screen(&output);
    let out = text(&output.stdout);
    assert!(out.contains("not to be had here"), "{out}");
    assert!(out.contains("RLIMIT_NOFILE"), "{out}");
}

#[test]
fn colour_is_there_when_asked_for() {
    let mut child = haft().arg("tour").env("CLICOLOR_FORCE", "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    child.wait().unwrap();
    assert!(first.contains('\x1b'), "{first}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = haft().arg("tour").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("haft "), "{first}");
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

#[test]
fn a_failure_is_one_line_and_an_exit_code() {
    let output = run(&["tour", "--dir", "/no/such/folder"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    let err = text(&output.stderr);
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("haft: ") && err.contains("/no/such/folder"), "{err}");
}

#[test]
fn help_tells_what_there_is_and_nothing_hidden() {
    let bare = run(&[]);
    let help = run(&["--help"]);
    let tour = run(&["tour", "--help"]);
    for output in [&bare, &help, &tour] {
        assert!(output.status.success());
        assert!(!text(&output.stdout).contains("child-"), "{}", text(&output.stdout));
    }
    assert!(text(&bare.stdout).contains("tour"));
    assert!(text(&help.stdout).contains("tour"));
    assert!(text(&tour.stdout).contains("--dir"));
    let unknown = run(&["tuor"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("'tour'"), "{}", text(&unknown.stderr));
}

#[test]
fn a_child_lists_its_handles() {
    let output = run(&["child-handles"]);
    assert!(output.status.success());
    let mut lines = text(&output.stdout).lines();
    assert_eq!(lines.next(), Some(if cfg!(windows) { "0 device" } else { "0 /dev/null" }));
    assert!(lines.next().unwrap().starts_with("1 pipe"));
    assert!(run(&["child-exit"]).status.success());
}
