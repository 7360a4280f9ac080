//! Batch files: no argument becomes a command, whatever it says, and whatever the file is called.
#![cfg(windows)]

use haft::process::Command;
use haft_tests::{kid, watchdog};
use std::fs;
use std::io::ErrorKind;
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};

/// A folder with a batch file that hands its arguments to `kid args`.
fn scripts() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_owned();
    let kid = std::path::absolute(kid!()).unwrap();
    for name in ["script.bat", "with blank.cmd", "100%.bat", "a&b.bat"] {
        fs::write(at.join(name), format!("@\"{}\" args %*\r\n", kid.display())).unwrap();
    }
    (folder, at)
}

/// What a batch file was given, as std and as haft launch it; `Err` with the kind of error.
fn both_ways(script: &Path, arguments: &[&str], folder: &Path) -> [Result<String, ErrorKind>; 2] {
    let text = |out: std::io::Result<std::process::Output>| {
        out.map(|out| {
            format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
        })
        .map_err(|e| e.kind())
    };
    [
        text(std::process::Command::new(script).args(arguments).current_dir(folder).output()),
        text(Command::new(script).args(arguments).current_dir(folder).output()),
    ]
}

/// Arguments that have broken out of a quoting, each with what it would run.
fn hostile() -> Vec<String> {
    let run = "echo x>marker";
    [
        "&RUN",
        "\"&RUN",
        "\"&RUN&\"",
        "\"\"&RUN",
        "a\"&RUN&rem \"",
        "\\\"&RUN",
        "\\\\\"&RUN",
        "^&RUN",
        "\"^&RUN",
        "|RUN",
        "\"|RUN",
        "&&RUN",
        "\"&&RUN",
        "||RUN",
        "\"||RUN",
        ">marker",
        "\">marker",
        ">>marker",
        "2>marker",
        "%CMDCMDLINE:~-1%&RUN",
        "%CMDCMDLINE:~-1%&RUN&rem %CMDCMDLINE:~-1%",
        "%PATH:~0,0%&RUN",
        "\"%PATH:~0,0%&RUN",
        "%COMSPEC%",
        "%%cd:~,%",
        "!COMSPEC!",
        "!CMDCMDLINE:~-1!&RUN",
        ")&RUN",
        "(RUN)",
        "\"(RUN)",
        "a b&RUN",
        "\u{ff02}&RUN",
        "\u{a0}&RUN",
        "\t&RUN",
        "\\",
        "a\\",
        "a b\\",
        "=",
        ";&RUN",
        ",&RUN",
        "",
    ]
    .into_iter()
    .map(|pattern| pattern.replace("RUN", run))
    .collect()
}

// CVE-2024-24576, rust#123682, swift-subprocess#298. Fails when arguments of a batch file are quoted as those of a
// program (`Plan::resolve`).
#[test]
fn no_argument_of_a_batch_file_becomes_a_command() {
    watchdog!(150);
    let (folder, at) = scripts();
    let marker = folder.path().join("marker");
    let mut differ = Vec::new();
    for argument in hostile() {
        for arguments in [&[&*argument][..], &["plain", &argument, "last"]] {
            let [theirs, ours] = both_ways(&at.join("script.bat"), arguments, folder.path());
            assert!(!marker.exists(), "{arguments:?} ran a command: {ours:?}");
            if theirs != ours {
                differ.push(format!("{arguments:?}: std {theirs:?}, haft {ours:?}"));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn this_suite_sees_an_injection_when_there_is_one() {
    let (folder, at) = scripts();
    let line = format!("/d /c \"\"{}\" &echo x>marker\"", at.join("script.bat").display());
    Command::new("cmd").raw_arg(line).current_dir(folder.path()).output().unwrap();
    assert!(folder.path().join("marker").exists());
}

#[test]
fn line_breaks_are_refused() {
    let (folder, at) = scripts();
    for argument in ["a\nb", "a\r\nb", "\r", "\n&echo x>marker"] {
        let [theirs, ours] = both_ways(&at.join("script.bat"), &["ok", argument], folder.path());
        assert_eq!(
            (theirs, ours),
            (Err(ErrorKind::InvalidInput), Err(ErrorKind::InvalidInput)),
            "{argument:?}"
        );
    }
    let e = Command::new(at.join("script.bat")).args(["ok", "a\nb"]).output().unwrap_err();
    assert!(e.to_string().contains("argument 1"), "{e}");
    assert!(!folder.path().join("marker").exists());
}

// CVE-2024-43402: Windows leaves dots and blanks at the end of a name out. Fails there when `is_batch_file` compares the
// end of the path as it is. Wine finds no file by such a name; which names count has its test in plan/windows/batch.rs.
#[test]
fn a_batch_file_is_one_by_whatever_name() {
    watchdog!();
    let (folder, at) = scripts();
    let marker = folder.path().join("marker");
    for end in ["", ".", " ", ". .", "...  ", "::$DATA", "\\.", "/."] {
        for name in ["script.bat", "SCRIPT.BAT", "with blank.cmd"] {
            let script = format!("{}{end}", at.join(name).display());
            for argument in ["\"&echo x>marker", "%CMDCMDLINE:~-1%&echo x>marker"] {
                // Where the system knows the file by that name, it is run with the argument as it is, else not at all.
                let [_, ours] = both_ways(Path::new(&script), &[argument], folder.path());
                assert!(!marker.exists(), "{script:?} {argument:?}: {ours:?}");
                if let Ok(said) = ours.as_ref()
                    && said.contains("args")
                {
                    assert!(said.contains("echo x>marker"), "{script:?}: {said}");
                }
            }
        }
    }
}

#[test]
fn batch_files_of_odd_names_run() {
    watchdog!();
    let (folder, at) = scripts();
    for name in ["script.bat", "with blank.cmd", "a&b.bat"] {
        let [theirs, ours] = both_ways(&at.join(name), &["one", "t w o"], folder.path());
        assert_eq!(theirs, ours, "{name}");
        let said = ours.unwrap();
        assert!(said.ends_with("\"one\"\n\"t w o\"\n"), "{name}: {said}");
    }
}

// What `canonicalize` gives, `cmd.exe` takes for no path at all, on Windows as on Wine. Fails when the path goes onto the
// command line without `without_prefix`.
#[test]
fn a_batch_file_runs_by_its_canonical_path() {
    watchdog!();
    let (folder, at) = scripts();
    let script = fs::canonicalize(at.join("with blank.cmd")).unwrap();
    assert!(script.as_os_str().to_string_lossy().starts_with(r"\\?\"), "{script:?}");
    let [theirs, ours] = both_ways(&script, &["one"], folder.path());
    assert_eq!(theirs, ours);
    assert!(ours.as_ref().is_ok_and(|said| said.ends_with("\"one\"\n")), "{ours:?}");
}

// Whoever gives a raw argument vouches for it, as with std.
#[test]
fn raw_arguments_of_a_batch_file_are_stds() {
    watchdog!();
    let (folder, at) = scripts();
    for raw in ["a  b", "\"a b\" c", "\"x\"y", "a^b"] {
        let script = at.join("script.bat");
        let theirs = std::process::Command::new(&script).raw_arg(raw).arg("last one").output().unwrap();
        let ours = Command::new(&script).raw_arg(raw).arg("last one").output().unwrap();
        assert_eq!((theirs.status, theirs.stdout), (ours.status, ours.stdout), "{raw}");
    }
    drop(folder);
}
