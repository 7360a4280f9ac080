//! A program that used `std::process` behaves the same after its import is changed: every scenario here runs once
//! through std and once through haft, and status, output and kind of error must be equal.
//!
//! What differs on purpose stands at the end, each with its own test.
#![cfg(target_os = "linux")]

use haft_tests::{copy_of_kid, is_root, isolated, kid, skip, watchdog};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};

/// A result as both sides can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Ended { code: Option<i32>, signal: Option<i32>, out: Vec<String>, err: Vec<String> },
    Failed(ErrorKind),
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
            signal: o.status.signal(),
            out: lines(&o.stdout),
            err: lines(&o.stderr),
        },
        Err(e) => Seen::Failed(e.kind()),
    }
}

fn seen_status(r: io::Result<ExitStatus>) -> Seen {
    match r {
        Ok(s) => Seen::Ended { code: s.code(), signal: s.signal(), out: vec![], err: vec![] },
        Err(e) => Seen::Failed(e.kind()),
    }
}

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

#[test]
fn exit_codes_and_signals() {
    for code in ["0", "1", "42", "255"] {
        both!(code, p => seen_status(p::Command::new(kid!()).args(["exit", code]).status()));
    }
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGABRT, libc::SIGSEGV, libc::SIGPIPE] {
        let signal = signal.to_string();
        let seen =
            both!(signal, p => seen_status(p::Command::new(kid!()).args(["kill-self", &signal]).status()));
        assert!(matches!(seen, Seen::Ended { code: None, .. }), "{seen:?}");
    }
}

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
fn arguments_arrive_as_they_are() {
    let odd = OsString::from_vec(b"\xff\xfe\x01".to_vec());
    let long = "x".repeat(100_000);
    both!("args", p => {
        let mut c = p::Command::new(kid!());
        c.arg("args").arg("").arg("a b").arg("\"q\"").arg("'").arg("\n").arg("*").arg("--").arg(&odd).arg(&long);
        seen_output(c.args(["-x", "ä"]).output())
    });
    let many: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    both!("many", p => seen_output(p::Command::new(kid!()).arg("args").args(&many).output()));
    both!("more than the kernel takes", p => {
        let huge = "x".repeat(200_000);
        seen_output(p::Command::new(kid!()).arg("args").args((0..40).map(|_| &huge)).output())
    });
}

#[test]
fn every_form_of_environment() {
    let odd = OsString::from_vec(b"\xffodd".to_vec());
    type Case = (&'static str, fn(&mut dyn Env));
    let cases: &[Case] = &[
        ("as it is", |_| {}),
        ("one more", |c| c.set("HAFT_A", "1")),
        ("set over", |c| {
            c.set("HAFT_A", "1");
            c.set("HAFT_A", "2");
        }),
        ("over the parent's", |c| c.set("HOME", "elsewhere")),
        ("removed", |c| c.remove("HOME")),
        ("set and removed", |c| {
            c.set("HAFT_A", "1");
            c.remove("HAFT_A");
        }),
        ("removed and set", |c| {
            c.remove("HOME");
            c.set("HOME", "back");
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
            c.remove("HOME");
        }),
        ("an empty value", |c| c.set("HAFT_EMPTY", "")),
        ("an equals sign in the value", |c| c.set("HAFT_EQ", "a=b=c")),
        ("a line break", |c| c.set("HAFT_NL", "a\nb")),
        ("an empty name", |c| c.set("", "x")),
        ("an equals sign in the name", |c| c.set("A=B", "x")),
        ("a leading equals sign", |c| c.set("=A", "x")),
        ("a NUL in the name", |c| c.set("A\0B", "x")),
        ("a NUL in the value", |c| c.set("A", "x\0y")),
    ];
    for (what, set) in cases {
        both!(what, p => {
            let mut c = p::Command::new(kid!());
            set(&mut c);
            seen_output(c.arg("env").output())
        });
    }
    both!("not UTF-8", p => seen_output(p::Command::new(kid!()).env("HAFT_ODD", &odd).arg("env").output()));
    both!("many", p => {
        seen_output(p::Command::new(kid!()).envs((0..500).map(|n| (format!("V{n}"), "v"))).arg("env").output())
    });
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

/// A folder with things in it that cannot be executed, each for its own reason, and one that can.
fn things() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = folder.path().to_owned();
    fs::create_dir(at.join("folder")).unwrap();
    fs::write(at.join("plain"), "not executable").unwrap();
    fs::set_permissions(at.join("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink("loop", at.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", at.join("dangling")).unwrap();
    fs::write(at.join("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(at.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    copy_of_kid(kid!(), at.join("kid"));
    (folder, at)
}

#[test]
fn what_cannot_be_executed() {
    let (_folder, at) = things();
    let path = |name: &str| at.join(name);
    let cases = [
        ("a name that PATH does not have", PathBuf::from("haft-no-such-program")),
        ("an absolute path to nothing", PathBuf::from("/no/such/program")),
        ("a relative path to nothing", PathBuf::from("no/such/program")),
        ("no name", PathBuf::new()),
        ("a folder", path("folder")),
        ("the root", PathBuf::from("/")),
        ("a dot", PathBuf::from(".")),
        ("a trailing slash", path("kid").join("")),
        ("no permission", path("plain")),
        ("through a file", path("plain").join("x")),
        ("a loop of links", path("loop")),
        ("a dangling link", path("dangling")),
        ("a script without its interpreter", path("script")),
        ("a name that is too long", PathBuf::from("x".repeat(300))),
        ("a path that is too long", PathBuf::from("/x".repeat(3000))),
    ];
    for (what, program) in cases {
        let seen = both!(what, p => seen_status(p::Command::new(&program).status()));
        assert!(matches!(seen, Seen::Failed(_)), "{what}: {seen:?}");
    }
}

// bun#24012, deno#20351. Fails when the step of the failure is not looked at.
#[test]
fn a_missing_working_directory_is_never_a_missing_program() {
    let (_folder, at) = things();
    let cases = [
        ("missing", PathBuf::from("/no/such/folder")),
        ("a file", at.join("plain")),
        ("a loop", at.join("loop")),
        ("empty", PathBuf::new()),
    ];
    for (what, folder) in cases {
        both!(what, p => seen_status(p::Command::new(kid!()).args(["exit", "0"]).current_dir(&folder).status()));
        let e = haft::process::Command::new(kid!()).current_dir(&folder).status().unwrap_err();
        let (said, folder) = (e.to_string(), folder.display().to_string());
        assert!(said.contains(&folder), "{what}: the message names the folder: {said}");
        assert!(said.contains("working directory") && !said.contains("execute"), "{what}: {said}");
        let e = haft::process::Command::new("/no/such/program").status().unwrap_err();
        assert!(e.to_string().contains("/no/such/program"), "{e}");
    }
}

#[test]
fn a_working_directory_without_permission() {
    if is_root() {
        skip!("root may enter any folder");
    }
    let (_folder, at) = things();
    fs::set_permissions(at.join("folder"), fs::Permissions::from_mode(0o000)).unwrap();
    let seen = both!("closed folder", p => {
        seen_status(p::Command::new(kid!()).args(["exit", "0"]).current_dir(at.join("folder")).status())
    });
    fs::set_permissions(at.join("folder"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(seen, Seen::Failed(ErrorKind::PermissionDenied));
}

// rust#37868: on Unix a relative program is looked for from the child's folder.
#[test]
fn a_relative_program_with_a_working_directory() {
    let (_folder, at) = things();
    let inner = at.join("folder");
    copy_of_kid(kid!(), inner.join("inner-kid"));
    for (program, folder) in [
        ("./kid", &at),
        ("./kid", &inner),
        ("../kid", &inner),
        ("./inner-kid", &at),
        ("./inner-kid", &inner),
        ("folder/inner-kid", &at),
        ("kid", &at),
    ] {
        both!(format!("{program} in {}", folder.display()), p => {
            seen_output(p::Command::new(program).arg("cwd").current_dir(folder).output())
        });
    }
}

#[test]
fn the_working_directory_is_the_childs_alone() {
    let before = std::env::current_dir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let seen =
        both!("cwd", p => seen_output(p::Command::new(kid!()).arg("cwd").current_dir(&folder).output()));
    let Seen::Ended { out, .. } = seen else { panic!("{seen:?}") };
    assert_eq!(out, [format!("Ok({:?})", folder.path().canonicalize().unwrap())]);
    assert_eq!(std::env::current_dir().unwrap(), before);
}

// rust#122660, #137286: which PATH finds the program when the child's differs.
#[test]
fn which_path_finds_the_program() {
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let d = folder.path().join(name);
            fs::create_dir(&d).unwrap();
            d
        };
        let (ours, theirs, bad, empty) = (make("ours"), make("theirs"), make("bad"), make("empty"));
        copy_of_kid(kid!(), ours.join("only-ours"));
        copy_of_kid(kid!(), theirs.join("only-theirs"));
        for d in [&ours, &theirs] {
            copy_of_kid(kid!(), d.join("in-both"));
        }
        fs::write(bad.join("in-both"), "no permission").unwrap();
        fs::set_permissions(bad.join("in-both"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(bad.join("only-bad"), "no permission").unwrap();
        fs::set_permissions(bad.join("only-bad"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(bad.join("only-ours")).unwrap();
        let file = folder.path().join("file");
        File::create(&file).unwrap();
        // SAFETY: this process runs this one test, on this thread.
        unsafe { std::env::set_var("PATH", &ours) };

        let s = |p: &Path| p.to_str().unwrap().to_owned();
        let paths: Vec<Option<String>> = vec![
            None,
            Some(String::new()),
            Some(s(&theirs)),
            Some(s(&empty)),
            Some("/no/such/folder".into()),
            Some(s(&file)),
            Some(format!("{}:{}", s(&theirs), s(&ours))),
            Some(format!("{}:{}", s(&bad), s(&ours))),
            Some(format!("{}:{}", s(&bad), s(&empty))),
            Some(format!("{}:{}", s(&empty), s(&bad))),
            Some(format!("{}:{}", s(&file), s(&theirs))),
            Some(format!("/no/such/folder:{}", s(&theirs))),
            Some(":".into()),
            Some(format!(":{}", s(&theirs))),
            Some(format!("{}:", s(&empty))),
            Some("theirs".into()),
            Some("../theirs:.".into()),
            Some(format!("{}:{}", "/x".repeat(3000), s(&theirs))),
        ];
        let folders = [None, Some(folder.path().to_owned()), Some(theirs.clone())];
        for program in ["only-ours", "only-theirs", "in-both", "only-bad", "in-neither"] {
            for path in &paths {
                for cwd in &folders {
                    for clear in [false, true] {
                        both!(format!("{program}, PATH {path:?}, folder {cwd:?}, cleared {clear}"), p => {
                            let mut c = p::Command::new(program);
                            if clear {
                                c.env_clear();
                            }
                            if let Some(path) = path {
                                c.env("PATH", path);
                            }
                            if let Some(cwd) = cwd {
                                c.current_dir(cwd);
                            }
                            seen_output(c.arg("exe").output())
                        });
                    }
                }
            }
            both!(format!("{program}, PATH removed"), p => {
                seen_output(p::Command::new(program).env_remove("PATH").arg("exe").output())
            });
        }
        // And with no PATH in the parent either.
        // SAFETY: as above.
        unsafe { std::env::remove_var("PATH") };
        for program in ["only-ours", "in-neither"] {
            both!(format!("{program}, no PATH at all"), p => seen_status(p::Command::new(program).status()));
            both!(format!("{program}, PATH of the child only"), p => {
                seen_output(p::Command::new(program).env("PATH", &ours).arg("exe").output())
            });
        }
    });
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

// What differs from std on purpose.

#[test]
fn differs_a_failed_launch_has_no_raw_os_error() {
    let e = haft::process::Command::new("/no/such/program").spawn().unwrap_err();
    assert_eq!(e.raw_os_error(), None);
    assert_eq!(e.kind(), ErrorKind::NotFound);
}

#[test]
fn differs_no_shell_is_tried_for_a_file_without_a_format() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "exit 0\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let e = haft::process::Command::new(&script).status().unwrap_err();
    let said = e.to_string();
    assert!(said.contains(script.to_str().unwrap()), "{said}");
}

#[test]
fn differs_a_missing_interpreter_is_named() {
    let (_folder, at) = things();
    let e = haft::process::Command::new(at.join("script")).status().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("/no/such/interpreter"), "{e}");
}
