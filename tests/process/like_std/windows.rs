//! On Windows.

use super::{Seen, seen_output, seen_status};
use haft_tests::{copy_of_kid, isolated, kid, under_wine, watchdog};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[test]
fn exit_codes() {
    for code in ["0", "1", "42", "255", "256", "259", "3221225477", "4294967295"] {
        both!(code, p => seen_status(p::Command::new(kid!()).args(["exit", code]).status()));
    }
}

#[test]
fn arguments_arrive_as_they_are() {
    watchdog!();
    let odd = OsString::from_wide(&[0xd800, 0x61, 0xdc00]);
    let long = "x".repeat(20_000);
    let special = [
        "",
        " ",
        "a b",
        "\t",
        "\"",
        "\"q\"",
        "a\"b",
        r"\",
        r"\\",
        r"a\",
        r"a b\",
        r"a b\\",
        r#"\""#,
        r#"a\"b"#,
        r#"\\" \\"#,
        r#"" \"" "#,
        "'",
        "*",
        "--",
        "-x",
        "ä",
        "\u{1d4b3}",
        "%PATH%",
        "^",
        "&",
        "|",
        "\n",
        "\r\n",
        "/?",
        "a=b",
        ";",
        ",",
        "(",
        "\u{b}",
        "\u{a0}",
    ];
    both!("args", p => {
        let mut c = p::Command::new(kid!());
        seen_output(c.arg("args").args(special).arg(&odd).arg(&long).output())
    });
    for one in special {
        both!(format!("{one:?}"), p => {
            seen_output(p::Command::new(kid!()).args(["command-line", one]).output())
        });
    }
    let many: Vec<String> = (0..4000).map(|n| n.to_string()).collect();
    both!("many", p => seen_output(p::Command::new(kid!()).arg("args").args(&many).output()));
}

// rust#31259, dotnet#42029: names that differ in case are one name, and the block is sorted. std is where the rule is
// taken from, so the child must see the same lines in the same order. Fails when `environment::block` keeps the names
// in the order of the calls, or compares them as they are spelled.
#[test]
fn the_environment_is_stds_line_by_line() {
    watchdog!();
    let raw = |out: std::io::Result<std::process::Output>| {
        String::from_utf8_lossy(&out.unwrap().stdout).into_owned()
    };
    let said = both!("several names", p => {
        let mut c = p::Command::new(kid!());
        c.env("haft_b", "1").env("HAFT_A", "2").env("HAFT_B", "3").env("haft_a", "4").env("Haft_Z", "5");
        c.env("HAFT_z", "6").env_remove("hAFT_Z").env("zeta", "z").env("_", "u").env("a_b", "7").env("ab", "8");
        c.env("É", "9").env("é", "10").env("ß", "11");
        raw(c.arg("env").output())
    });
    for line in ["\"haft_b\"=\"3\"", "\"HAFT_A\"=\"4\"", "\"É\"=\"10\""] {
        assert!(said.lines().any(|seen| seen == line), "{line} is not in {said}");
    }
    assert!(!said.to_lowercase().contains("haft_z"), "{said}");
    both!("the parent's names in another case", p => {
        let mut c = p::Command::new(kid!());
        c.env("systemROOT", std::env::var_os("SystemRoot").unwrap()).env("tEmP", r"C:\x").env_remove("TmP");
        raw(c.arg("env").output())
    });
    both!("getters", p => {
        let mut c = p::Command::new("x");
        c.env("b", "1").env("B", "2").env("a", "3").env_remove("A").env("_", "4").env("Z", "5").env_remove("y");
        c.get_envs().map(|(k, v)| (k.to_owned(), v.map(|v| v.to_owned()))).collect::<Vec<_>>()
    });
    both!("getters after a clear", p => {
        let mut c = p::Command::new("x");
        c.env("b", "1").env_clear().env("C", "2").env_remove("c").env("d", "3");
        c.get_envs().map(|(k, v)| (k.to_owned(), v.map(|v| v.to_owned()))).collect::<Vec<_>>()
    });
}

/// A folder with things in it that cannot be executed, each for its own reason, and one that can.
fn things() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_owned();
    fs::create_dir(at.join("folder")).unwrap();
    fs::create_dir(at.join("folder.exe")).unwrap();
    fs::write(at.join("plain"), "no program").unwrap();
    fs::write(at.join("plain.exe"), "no program").unwrap();
    fs::write(at.join("text.txt"), "no program").unwrap();
    fs::write(at.join("empty.exe"), "").unwrap();
    copy_of_kid(kid!(), at.join("kid.exe"));
    copy_of_kid(kid!(), at.join("bare"));
    copy_of_kid(kid!(), at.join("other.name"));
    (folder, at)
}

#[test]
fn what_can_and_what_cannot_be_executed() {
    watchdog!();
    let (_folder, at) = things();
    let path = |name: &str| at.join(name);
    let cases = [
        ("a name that PATH does not have", PathBuf::from("haft-no-such-program"), false),
        ("an absolute path to nothing", PathBuf::from(r"C:\no such program"), false),
        ("a path through nothing", PathBuf::from(r"C:\no such folder\program"), false),
        ("a relative path to nothing", PathBuf::from(r"no\such\program"), false),
        ("a share that is not there", PathBuf::from(r"C:program.that.is.not.there"), false),
        ("no name", PathBuf::new(), false),
        ("a folder", path("folder"), false),
        ("the root", PathBuf::from(r"C:\"), false),
        ("a dot", PathBuf::from("."), false),
        ("a trailing separator", path("kid.exe").join(""), false),
        ("no program", path("plain"), false),
        ("no program, without a suffix to look for", path("text.txt"), false),
        ("an empty one", path("empty"), false),
        ("through a file", path("plain").join("x"), false),
        ("a name that is too long", PathBuf::from("x".repeat(300)), false),
        ("a path that is too long", PathBuf::from(format!("C:{}", r"\x".repeat(300))), false),
        ("characters that no name has", PathBuf::from(r"C:\a<b>?.exe"), false),
        ("a program", path("kid.exe"), true),
        ("without its suffix", path("kid"), true),
        ("in capitals", path("KID.EXE"), true),
        ("with slashes", PathBuf::from(path("kid").to_str().unwrap().replace('\\', "/")), true),
        ("without any suffix", path("bare"), true),
        ("another suffix", path("other.name"), true),
    ];
    for (what, program, works) in cases {
        if what == "a path that is too long" && under_wine() {
            // It runs no program at the end of such a path, and has several errors for that.
            continue;
        }
        let seen = both!(format!("{what}: {program:?}"), p => {
            seen_status(p::Command::new(&program).args(["exit", "7"]).status())
        });
        assert_eq!(!matches!(seen, Seen::Failed(_)), works, "{what}: {seen:?}");
    }
}

// bun#24012, deno#20351. Fails when `explain` (sys/windows/diagnose.rs) does not look at the directory.
#[test]
fn a_missing_working_directory_is_never_a_missing_program() {
    watchdog!();
    let (_folder, at) = things();
    let cases = [
        ("missing", PathBuf::from(r"C:\no such folder")),
        ("a file", at.join("plain")),
        ("through a file", at.join("plain").join("x")),
        ("no such drive", PathBuf::from(r"Q:\")),
        ("a name that cannot be", PathBuf::from(r"C:\a<b>")),
    ];
    for (what, folder) in cases {
        both!(format!("{what}: {folder:?}"), p => {
            seen_status(p::Command::new(kid!()).args(["exit", "0"]).current_dir(&folder).status())
        });
        let e = haft::process::Command::new(kid!()).current_dir(&folder).status().unwrap_err();
        let (said, folder) = (e.to_string(), format!("{folder:?}"));
        assert!(said.contains(&folder), "{what}: the message names the folder: {said}");
        assert!(said.contains("working directory") && !said.contains("execute"), "{what}: {said}");
    }
    let e = haft::process::Command::new(r"C:\no such program").current_dir(&at).status().unwrap_err();
    assert!(e.to_string().contains("no such program"), "{e}");
}

// rust#37868: on Windows a relative program is looked for from the parent's folder.
#[test]
fn a_relative_program_with_a_working_directory() {
    watchdog!();
    isolated!({
        let (_folder, at) = things();
        let inner = at.join("folder");
        copy_of_kid(kid!(), inner.join("inner-kid.exe"));
        // The harness is done with its own.
        std::env::set_current_dir(&at).unwrap();
        for program in [
            r".\kid",
            "./kid.exe",
            r"..\kid",
            r".\inner-kid",
            r"folder\inner-kid",
            "kid",
            "inner-kid",
            "other.name",
        ] {
            for folder in [&at, &inner] {
                both!(format!("{program} in {}", folder.display()), p => {
                    seen_output(p::Command::new(program).arg("cwd").current_dir(folder).output())
                });
            }
        }
        std::env::set_current_dir(r"C:\").unwrap();
    });
}

// rust#122660, #137286: which PATH finds the program when the child's differs. Fails when the child's PATH is not
// searched, or first the parent's (`search::candidates`).
#[test]
fn which_path_finds_the_program() {
    watchdog!(150);
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let d = folder.path().join(name);
            fs::create_dir(&d).unwrap();
            d
        };
        let (ours, theirs, bad, empty) = (make("ours"), make("theirs"), make("bad"), make("empty;folder"));
        copy_of_kid(kid!(), ours.join("only-ours.exe"));
        copy_of_kid(kid!(), theirs.join("only-theirs.exe"));
        copy_of_kid(kid!(), theirs.join("dotted.name"));
        copy_of_kid(kid!(), empty.join("only-odd.exe"));
        for d in [&ours, &theirs] {
            copy_of_kid(kid!(), d.join("in-both.exe"));
        }
        fs::write(bad.join("in-both.exe"), "no program").unwrap();
        fs::create_dir(bad.join("only-ours.exe")).unwrap();
        // SAFETY: this process runs this one test, on this thread.
        unsafe { std::env::set_var("PATH", &ours) };

        let s = |p: &Path| p.to_str().unwrap().to_owned();
        let paths: Vec<Option<String>> = vec![
            None,
            Some(String::new()),
            Some(s(&theirs)),
            Some(format!(r"{}\", s(&theirs))),
            Some(format!("\"{}\"", s(&theirs))),
            Some(format!("\"{}\"", s(&empty))),
            Some(r"C:\no such folder".into()),
            Some(format!("{};{}", s(&theirs), s(&ours))),
            Some(format!("{};{}", s(&bad), s(&ours))),
            Some(format!(";;{}", s(&theirs))),
        ];
        for program in [
            "only-ours",
            "only-theirs",
            "in-both",
            "in-neither",
            "dotted.name",
            "only-odd",
            "only-theirs.exe",
            "cmd",
        ] {
            for path in &paths {
                for clear in [false, true] {
                    both!(format!("{program}, PATH {path:?}, cleared {clear}"), p => {
                        let mut c = p::Command::new(program);
                        if clear {
                            c.env_clear().env("SystemRoot", std::env::var_os("SystemRoot").unwrap());
                        }
                        if let Some(path) = path {
                            c.env("pAth", path);
                        }
                        if program == "cmd" { c.args(["/c", "exit 5"]) } else { c.arg("exe") };
                        seen_output(c.output())
                    });
                }
            }
            both!(format!("{program}, PATH removed"), p => {
                seen_output(p::Command::new(program).env_remove("PATH").args(["exe"]).stdin(p::Stdio::null()).output())
            });
        }
        // In the folder of this test program, which std searches too.
        both!("beside this program", p => seen_output(p::Command::new("kid").arg("exe").output()));
    });
}

// What differs from std on purpose.

// rust#31259, duct#50. Fails on Windows when `environment::block` leaves SystemRoot out. Wine gives one to every process;
// what is in the block has its test in plan/windows/environment.rs.
#[test]
fn differs_system_root_outlives_a_clear() {
    let own = std::env::var_os("SystemRoot").unwrap();
    let root = |c: &mut haft::process::Command| {
        String::from_utf8(c.args(["env", "SYSTEMROOT"]).output().unwrap().stdout).unwrap()
    };
    let kid = || haft::process::Command::new(kid!());
    assert_eq!(root(kid().env_clear()), format!("Some({own:?})\n"));
    assert_eq!(root(kid().env_clear().env("A", "1")), format!("Some({own:?})\n"));
    both!("cleared, and set to something else", p => {
        seen_output(p::Command::new(kid!()).env_clear().env("systemroot", "mine").args(["env", "SYSTEMROOT"]).output())
    });
}

#[test]
fn differs_a_name_that_the_child_would_read_as_another_is_refused() {
    for name in ["", "A=B", "==", "a\0"] {
        let e = haft::process::Command::new(kid!()).env(name, "x").status().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{name:?}");
        assert!(e.to_string().contains("environment variable"), "{name:?}: {e}");
    }
}

#[test]
fn differs_what_is_inheritable_is_not_inherited() {
    isolated!({
        let (_read, write) = haft_tests::high(|| std::io::pipe().unwrap());
        haft_tests::make_inheritable(&write);
        let pipes = std::process::Command::new(kid!()).arg("pipes").status().unwrap().code();
        assert_eq!(pipes, Some(1));
        let pipes = haft::process::Command::new(kid!()).arg("pipes").status().unwrap().code();
        assert_eq!(pipes, Some(0));
    });
}
