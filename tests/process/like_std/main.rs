//! A program that used `std::process` behaves the same after its import is changed: every scenario here runs once
//! through std and once through haft, and status, output and kind of error must be equal.
//!
//! What differs on purpose stands at the end, each with its own test.
#![cfg(any(target_os = "linux", windows))]

/// `both!(WHAT, p => EXPRESSION)`: the expression with `p` as `std::process` and as `haft::process`; panics unless
/// both give the same, and gives it back.
macro_rules! both {
    ($what:expr, $p:ident => $body:expr) => {{
        let theirs = {
            #[allow(unused_imports)]
            use std::process as $p;
            $body
        };
        let ours = {
            #[allow(unused_imports)]
            use haft::process as $p;
            $body
        };
        assert_eq!(theirs, ours, "left is std, right is haft: {}", $what);
        ours
    }};
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use haft_tests::{isolated, kid, watchdog};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::process::{ExitStatus, Output};

/// A result as both sides can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// `signal` is always `None` on Windows.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        out: Vec<String>,
        err: Vec<String>,
    },
    Failed(ErrorKind),
}

fn signal(of: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&of);
    #[cfg(windows)]
    return of.code().and(None);
}

/// The lines of an output, sorted: the order of the environment is no promise.
fn lines(of: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(of).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn seen_output(r: io::Result<Output>) -> Seen {
    match r {
        Ok(o) => Seen::Ended {
            code: o.status.code(),
            signal: signal(o.status),
            out: lines(&o.stdout),
            err: lines(&o.stderr),
        },
        Err(e) => Seen::Failed(e.kind()),
    }
}

fn seen_status(r: io::Result<ExitStatus>) -> Seen {
    match r {
        Ok(s) => Seen::Ended { code: s.code(), signal: signal(s), out: vec![], err: vec![] },
        Err(e) => Seen::Failed(e.kind()),
    }
}

/// A variable of the parent's, whoever that is.
const PARENTS: &str = if cfg!(windows) { "TEMP" } else { "HOME" };

/// What differs on purpose where the environment was cleared; it has a test of its own.
fn without_system_root(what: &str, mut seen: Seen) -> Seen {
    if cfg!(windows)
        && what.contains("cleared")
        && let Seen::Ended { out, .. } = &mut seen
    {
        out.retain(|line| !line.to_lowercase().starts_with("\"systemroot\""));
    }
    seen
}

/// The environment methods of both Commands.
trait Env {
    fn set(&mut self, name: &str, value: &str);
    fn remove(&mut self, name: &str);
    fn clear(&mut self);
}

macro_rules! env_of {
    ($t:ty) => {
        impl Env for $t {
            fn set(&mut self, name: &str, value: &str) {
                self.env(name, value);
            }
            fn remove(&mut self, name: &str) {
                self.env_remove(name);
            }
            fn clear(&mut self) {
                self.env_clear();
            }
        }
    };
}
env_of!(std::process::Command);
env_of!(haft::process::Command);

#[test]
fn output_captures_both_streams_and_gives_no_input() {
    let seen =
        both!("both streams", p => seen_output(p::Command::new(kid!()).args(["both", "a", "b"]).output()));
    assert!(
        matches!(seen, Seen::Ended { code: Some(0), ref out, ref err, .. } if out == &["a"] && err == &["b"])
    );
    both!("no input", p => seen_output(p::Command::new(kid!()).arg("cat").output()));
    both!("out elsewhere", p => {
        seen_output(p::Command::new(kid!()).args(["both", "a", "b"]).stdout(p::Stdio::null()).output())
    });
    both!("err elsewhere", p => {
        seen_output(p::Command::new(kid!()).args(["both", "a", "b"]).stderr(p::Stdio::null()).output())
    });
}

#[test]
fn every_form_of_environment() {
    // Bytes, or units, that are not Unicode.
    #[cfg(unix)]
    let odd: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"\xffodd".to_vec());
    #[cfg(windows)]
    let odd: OsString = std::os::windows::ffi::OsStringExt::from_wide(&[0xd800, 0x6f, 0xdc00]);
    type Case = (&'static str, fn(&mut dyn Env));
    let cases: &[Case] = &[
        ("as it is", |_| {}),
        ("one more", |c| c.set("HAFT_A", "1")),
        ("set over", |c| {
            c.set("HAFT_A", "1");
            c.set("HAFT_A", "2");
        }),
        ("over the parent's", |c| c.set(PARENTS, "elsewhere")),
        ("removed", |c| c.remove(PARENTS)),
        ("set and removed", |c| {
            c.set("HAFT_A", "1");
            c.remove("HAFT_A");
        }),
        ("removed and set", |c| {
            c.remove(PARENTS);
            c.set(PARENTS, "back");
        }),
        ("cleared", |c| c.clear()),
        ("cleared and set", |c| {
            c.clear();
            c.set("B", "2");
            c.set("A", "1");
        }),
        ("set and cleared", |c| {
            c.set("A", "1");
            c.clear();
        }),
        ("cleared and removed", |c| {
            c.clear();
            c.remove(PARENTS);
        }),
        ("an empty value", |c| c.set("HAFT_EMPTY", "")),
        ("an equals sign in the value", |c| c.set("HAFT_EQ", "a=b=c")),
        ("a line break", |c| c.set("HAFT_NL", "a\nb")),
        #[cfg(unix)]
        ("an empty name", |c| c.set("", "x")),
        #[cfg(unix)]
        ("an equals sign in the name", |c| c.set("A=B", "x")),
        ("a leading equals sign", |c| c.set("=A", "x")),
        ("a NUL in the name", |c| c.set("A\0B", "x")),
        ("a NUL in the value", |c| c.set("A", "x\0y")),
    ];
    for (what, set) in cases {
        both!(what, p => {
            let mut c = p::Command::new(kid!());
            set(&mut c);
            without_system_root(what, seen_output(c.arg("env").output()))
        });
    }
    both!("not Unicode", p => seen_output(p::Command::new(kid!()).env("HAFT_ODD", &odd).arg("env").output()));
    both!("many", p => {
        seen_output(p::Command::new(kid!()).envs((0..500).map(|n| (format!("V{n}"), "v"))).arg("env").output())
    });
}

// The parent's environment changes between building a Command and launching: what counts is the moment of launch.
#[test]
fn the_environment_is_taken_at_launch() {
    isolated!({
        both!("taken at launch", p => {
            let mut c = p::Command::new(kid!());
            c.args(["env", "HAFT_LATE"]);
            // SAFETY: this process runs this one test, on this thread.
            unsafe { std::env::set_var("HAFT_LATE", "yes") };
            let seen = seen_output(c.output());
            // SAFETY: as above.
            unsafe { std::env::remove_var("HAFT_LATE") };
            seen
        });
    });
}

#[test]
fn nul_anywhere_is_invalid_input() {
    both!("program", p => seen_status(p::Command::new("ki\0d").status()));
    both!("argument", p => seen_status(p::Command::new(kid!()).arg("a\0b").status()));
    both!("folder", p => seen_status(p::Command::new(kid!()).arg("cwd").current_dir("/\0").status()));
    let seen = both!("name", p => seen_status(p::Command::new(kid!()).env("A\0", "b").status()));
    assert_eq!(seen, Seen::Failed(ErrorKind::InvalidInput));
}

#[test]
fn the_working_directory_is_the_childs_alone() {
    let before = std::env::current_dir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let seen =
        both!("cwd", p => seen_output(p::Command::new(kid!()).arg("cwd").current_dir(&folder).output()));
    let Seen::Ended { out, .. } = seen else { panic!("{seen:?}") };
    #[cfg(unix)]
    assert_eq!(out, [format!("Ok({:?})", folder.path().canonicalize().unwrap())]);
    #[cfg(windows)]
    assert!(out[0].contains(folder.path().file_name().unwrap().to_str().unwrap()), "{out:?}");
    assert_eq!(std::env::current_dir().unwrap(), before);
}

#[test]
fn files_pipes_and_children_as_streams() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    fs::write(&file, "from a file").unwrap();
    both!("a file as input", p => {
        seen_output(p::Command::new(kid!()).arg("cat").stdin(File::open(&file).unwrap()).output())
    });
    both!("a file as output", p => {
        let into = folder.path().join("out");
        let seen = seen_status(
            p::Command::new(kid!()).args(["both", "a", "b"]).stdout(File::create(&into).unwrap()).stderr(p::Stdio::null()).status(),
        );
        (seen, fs::read(into).unwrap())
    });
    both!("one file for both", p => {
        let into = File::create(folder.path().join("both")).unwrap();
        let seen = seen_status(
            p::Command::new(kid!()).args(["both", "a", "b"]).stdout(into.try_clone().unwrap()).stderr(into).status(),
        );
        (seen, fs::read(folder.path().join("both")).unwrap())
    });
    both!("a pipe as output", p => {
        let (mut read, write) = io::pipe().unwrap();
        let mut child = p::Command::new(kid!()).args(["echo", "through"]).stdout(write).spawn().unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        (seen_status(child.wait()), text)
    });
    both!("one child's output as another's input", p => {
        let mut first =
            p::Command::new(kid!()).args(["echo", "handed on"]).stdout(p::Stdio::piped()).spawn().unwrap();
        let second = p::Command::new(kid!()).arg("cat").stdin(first.stdout.take().unwrap()).output();
        first.wait().unwrap();
        seen_output(second)
    });
}

#[test]
fn the_life_of_a_child() {
    watchdog!();
    both!("streams are there when piped", p => {
        let mut c = p::Command::new(kid!());
        let mut child = c.arg("cat").stdin(p::Stdio::piped()).stdout(p::Stdio::piped()).spawn().unwrap();
        let there = (child.stdin.is_some(), child.stdout.is_some(), child.stderr.is_some());
        child.stdin.take().unwrap().write_all(b"abc").unwrap();
        let out = child.wait_with_output().unwrap();
        (there, seen_output(Ok(out)))
    });
    both!("wait closes the input", p => {
        let mut child = p::Command::new(kid!()).arg("cat").stdin(p::Stdio::piped()).spawn().unwrap();
        seen_status(child.wait())
    });
    both!("wait again", p => {
        let mut child = p::Command::new(kid!()).args(["exit", "3"]).spawn().unwrap();
        (seen_status(child.wait()), seen_status(child.wait()), child.try_wait().unwrap().and_then(|s| s.code()))
    });
    both!("kill, and kill after the end", p => {
        let mut child = p::Command::new(kid!()).args(["sleep", "20000"]).spawn().unwrap();
        let running = child.try_wait().unwrap().is_none();
        let killed = child.kill().is_ok();
        let end = seen_status(child.wait());
        (running, killed, end, child.kill().is_ok())
    });
    both!("wait_with_output without pipes", p => {
        let child = p::Command::new(kid!()).args(["exit", "4"]).stdout(p::Stdio::null()).spawn().unwrap();
        seen_output(child.wait_with_output())
    });
    both!("a Command launches again", p => {
        let mut c = p::Command::new(kid!());
        c.args(["echo", "x"]);
        (seen_output(c.output()), seen_output(c.output()), seen_output(c.arg("y").output()))
    });
    both!("the defaults of spawn, status and output do not stick", p => {
        let mut c = p::Command::new(kid!());
        c.args(["exit", "0"]);
        let first = seen_output(c.output());
        let child = c.spawn().unwrap();
        let piped = (child.stdin.is_some(), child.stdout.is_some(), child.stderr.is_some());
        (first, piped, seen_output(child.wait_with_output()))
    });
}

#[test]
fn what_a_command_says_of_itself() {
    both!("getters", p => {
        let mut c = p::Command::new("prog");
        c.arg("a").args(["b", "c"]).env("X", "1").env_remove("Y").current_dir("/tmp");
        let args: Vec<_> = c.get_args().map(|a| a.to_owned()).collect();
        let envs: Vec<_> = c.get_envs().map(|(k, v)| (k.to_owned(), v.map(|v| v.to_owned()))).collect();
        (c.get_program().to_owned(), args, envs, c.get_current_dir().map(|d| d.to_owned()))
    });
}

#[test]
fn differs_a_failed_launch_has_no_raw_os_error() {
    let e = haft::process::Command::new("/no/such/program").spawn().unwrap_err();
    assert_eq!(e.raw_os_error(), None);
    assert_eq!(e.kind(), ErrorKind::NotFound);
}
