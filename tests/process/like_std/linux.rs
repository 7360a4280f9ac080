//! On Linux.

use super::{Seen, seen_output, seen_status};
use haft_tests::{copy_of_kid, is_root, isolated, kid, skip};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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

// What differs from std on purpose.

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
