//! Shell execute: what is handed to the desktop, what it cannot take, and who is the child.

use haft::process::{Command, Inherit, LaunchError, Object, Stdio, Step};
use haft_tests::kid;
use std::io::{self, ErrorKind};

/// The message of a launch that was refused before anything was started.
fn refused<T>(result: io::Result<T>) -> String {
    let error = result.err().expect("this launch is refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let launch = LaunchError::of(&error).expect("a launch error");
    assert_eq!((launch.step(), launch.errno()), (Step::Resolve, None), "{error}");
    error.to_string()
}

// Fails when `start` does not ask `without_shell`.
#[test]
fn each_launch_is_for_its_own_kind_of_command() {
    let mut command = Command::shell_open(kid!());
    for message in [refused(command.spawn()), refused(command.status()), refused(command.output())] {
        assert!(message.contains("shell_execute(true)") && message.contains("shell_spawn()"), "{message}");
    }
    command.shell_execute(false);
    let message = refused(command.shell_spawn());
    assert!(message.contains("shell_execute(true)") && message.contains("spawn()"), "{message}");
    command.arg("exit").arg("3").verb("runas");
    assert!(refused(command.spawn()).contains("verb needs shell_execute(true)"));
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use haft_tests::{copy_of_kid, id, is_cloexec, isolated, make_inheritable, open_descriptors, parse_fds};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    /// A folder with kid in the place of the opener: what is opened is what kid is told.
    fn desktop() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        copy_of_kid(kid!(), folder.path().join("xdg-open"));
        folder
    }

    /// What the opener wrote.
    fn opened(command: &mut Command) -> String {
        let mut child = command.stdout(Stdio::piped()).shell_spawn().unwrap().expect("a child");
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        text
    }

    #[test]
    fn the_opener_of_the_childs_path_gets_the_target_and_what_the_command_sets() {
        let desktop = desktop();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::shell_open("args");
        command.env("PATH", desktop.path()).current_dir(folder.path());
        assert_eq!(opened(&mut command), "\"xdg-open\"\n\"args\"\n");
        // The command is as it was.
        assert_eq!((command.get_program(), command.get_args().len()), ("args".as_ref(), 0));
        assert_eq!(opened(&mut command), "\"xdg-open\"\n\"args\"\n");
        assert_eq!(opened(command.verb("Open")), "\"xdg-open\"\n\"args\"\n");

        let mut command = Command::shell_open("cwd");
        command.env("PATH", desktop.path()).current_dir(folder.path());
        let real = folder.path().canonicalize().unwrap();
        assert_eq!(opened(&mut command), format!("Ok({real:?})\n"));
        let mut command = Command::shell_open("env");
        command.env_clear().env("PATH", desktop.path()).env("HAFT_X", "y").shell_execute(true);
        assert!(opened(&mut command).contains("\"HAFT_X\"=\"y\"\n"));
    }

    // Fails when `open` leaves the command's `Inherit` as it is.
    #[test]
    fn the_opener_is_isolated_whatever_the_command_says() {
        isolated!({
            haft::process::reserve().unwrap();
            let desktop = desktop();
            let leak = File::open("/dev/null").unwrap();
            make_inheritable(&leak);
            assert!(!is_cloexec(leak.as_raw_fd()));
            let shown = tempfile::tempfile().unwrap();
            let mut command = Command::shell_open("fds");
            command.env("PATH", desktop.path()).inherit(Inherit::All);
            let number = command.pass(&shown).unwrap().number();
            let before = open_descriptors();
            let seen = parse_fds(&opened(&mut command));
            assert_eq!(seen.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2, number]);
            assert_eq!(seen[3].id, id(&shown));
            assert_eq!(open_descriptors(), before);
            // It was not changed for good.
            assert!(format!("{command:#?}").contains("inherit: All"));
        });
    }

    #[test]
    fn what_the_opener_cannot_do_is_refused() {
        let desktop = desktop();
        let mut command = Command::shell_open("args");
        command.env("PATH", desktop.path()).verb("print");
        let error = command.shell_spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("verb \"print\""), "{error}");

        let mut command = Command::shell_open("args");
        command.arg("x").env("PATH", desktop.path());
        let error = command.shell_spawn().unwrap_err();
        assert_eq!(LaunchError::of(&error).unwrap().object(), &Object::Argument(0));
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(command.get_args().len(), 1);
        assert!(refused(Command::shell_open("").shell_spawn()).contains("nothing to open"));
    }

    // Fails without `of_program`.
    #[test]
    fn a_missing_opener_is_named_and_so_is_the_target() {
        let nothing = tempfile::tempdir().unwrap();
        let mut command = Command::shell_open("report.pdf");
        let error = command.env("PATH", nothing.path()).shell_spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let launch = LaunchError::of(&error).unwrap();
        assert_eq!((launch.step(), launch.errno()), (Step::Execute, Some(libc::ENOENT)));
        assert_eq!(launch.program(), "report.pdf");
        assert!(matches!(launch.object(), Object::Program(path) if path == Path::new("xdg-open")), "{error}");
        assert_eq!((command.get_program(), command.get_args().len()), ("report.pdf".as_ref(), 0));
    }
}

#[cfg(windows)]
mod windows {
    use super::*;
    use haft::process::WindowStyle;
    use haft_tests::{Census, isolated, watchdog};
    use std::path::Path;

    const ERROR_FILE_NOT_FOUND: i32 = 2;

    /// A wait for a child of the shell.
    fn code(command: &mut Command) -> Option<i32> {
        let mut child = command.shell_spawn().unwrap().expect("a process of its own");
        assert_ne!(child.id(), 0);
        child.wait().unwrap().code()
    }

    // Fails, as to the arguments, with `Execution::new` leaving them out, and as to the code, without
    // SEE_MASK_NOCLOSEPROCESS.
    #[test]
    fn the_shell_starts_a_program_with_arguments_and_directory() {
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let words = ["two words", r#"a "quoted" one"#, r"back\slash\", "", "&|%PATH%"];
        let mut command = Command::shell_open(kid!());
        command.arg("--to").arg(&report).arg("args").args(words);
        assert_eq!(code(&mut command), Some(0));
        let seen = std::fs::read_to_string(&report).unwrap();
        let wanted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        assert_eq!(seen.lines().skip(2).collect::<Vec<_>>(), wanted);

        let mut command = Command::shell_open(kid!());
        command.arg("--to").arg(&report).arg("cwd").current_dir(folder.path());
        assert_eq!(code(&mut command), Some(0));
        let seen = std::fs::read_to_string(&report).unwrap();
        assert!(seen.contains(folder.path().file_name().unwrap().to_str().unwrap()), "{seen}");

        assert_eq!(code(Command::shell_open("cmd").raw_arg("/c exit 7")), Some(7));
        assert_eq!(code(Command::shell_open(kid!()).args(["exit", "259"]).verb("open")), Some(259));
        // The same with the two settings that `shell_open` makes.
        let mut command = Command::new(kid!());
        command.args(["exit", "5"]).shell_execute(true).inherit(Inherit::All);
        assert_eq!(code(&mut command), Some(5));
    }

    // Fails when `shell_execute` forgets the handle of the process or of its thread.
    #[test]
    fn nothing_is_left_in_the_parent() {
        isolated!({
            watchdog!(120);
            // The libraries and the apartments keep a few of their own.
            for _ in 0..3 {
                assert_eq!(code(Command::shell_open(kid!()).args(["exit", "1"])), Some(1));
                Command::shell_open(r"C:\no\such\program.exe").shell_spawn().unwrap_err();
            }
            let census = Census::new();
            for _ in 0..16 {
                assert_eq!(code(Command::shell_open(kid!()).args(["exit", "1"])), Some(1));
                Command::shell_open(r"C:\no\such\program.exe").shell_spawn().unwrap_err();
            }
            census.check_within(4);
        });
    }

    // Fails when `error` is left out of `execute`, or `explain_shell_execute` does not look at the directory.
    #[test]
    fn what_the_shell_says_is_an_error_with_step_object_and_number() {
        watchdog!();
        let missing = r"C:\no\such\program.exe";
        let error = Command::shell_open(missing).shell_spawn().unwrap_err();
        let launch = LaunchError::of(&error).unwrap();
        assert_eq!((launch.step(), error.kind()), (Step::Execute, ErrorKind::NotFound), "{error}");
        assert_eq!(launch.object(), &Object::Program(missing.into()));
        assert!(matches!(launch.errno(), Some(2 | 3)), "{error}");

        let mut command = Command::shell_open("no-such-program-anywhere.exe");
        let error = command.current_dir(r"C:\no\such\folder").shell_spawn().unwrap_err();
        let launch = LaunchError::of(&error).unwrap();
        assert_eq!(launch.step(), Step::WorkingDirectory, "{error}");
        assert_eq!(launch.object(), &Object::Directory(r"C:\no\such\folder".into()));

        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a.haft-no-such-kind");
        std::fs::write(&odd, "x").unwrap();
        let error = Command::shell_open(&odd).shell_spawn().unwrap_err();
        let errno = LaunchError::of(&error).unwrap().errno();
        assert!(errno.is_some_and(|errno| errno != 0 && errno != ERROR_FILE_NOT_FOUND), "{error}");
    }

    // Each line fails without its refusal in `with_shell_execute`.
    #[test]
    fn what_the_shell_cannot_do_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let file = tempfile::tempfile().unwrap();
        let open = || {
            let mut command = Command::shell_open(kid!());
            command.arg("--to").arg(&started).arg("exit");
            command
        };
        let mut command = Command::new(kid!());
        let message = refused(command.args(["exit", "1"]).shell_execute(true).shell_spawn());
        for part in ["shell_execute(true)", "inherit(Inherit::Named)", ".inherit(Inherit::All)"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(refused(open().inherit_handles(false).shell_spawn()).contains("add .inherit(Inherit::All)"));
        assert!(refused(open().stdout(Stdio::piped()).shell_spawn()).contains("stdout"));
        assert!(refused(open().stdin(Stdio::null()).shell_spawn()).contains("stdin"));
        assert!(refused(open().env("A", "b").shell_spawn()).contains("env"));
        assert!(refused(open().env_clear().shell_spawn()).contains("env_clear"));
        assert!(refused(open().user_name("ada").shell_spawn()).contains("user_name"));
        assert!(refused(open().kill_tree(true).shell_spawn()).contains("kill_tree(true)"));
        assert!(refused(open().creation_flags(0x10).shell_spawn()).contains("creation_flags"));
        assert!(refused(open().create_no_window(true).shell_spawn()).contains("WindowStyle::Hidden"));
        assert!(refused(open().spawn_suspended()).contains("shell_spawn()"));
        let mut command = open();
        command.pass(&file).unwrap();
        assert!(refused(command.shell_spawn()).contains("pass"));
        assert!(refused(Command::shell_open("x.bat").arg("&calc").shell_spawn()).contains("batch file"));
        assert!(!Path::new(&started).exists());
        // What is set to this process's own is not set to anything.
        assert_eq!(code(Command::shell_open(kid!()).args(["exit", "4"]).stdout(Stdio::inherit())), Some(4));
    }

    /// What this process was told about its first window: 100 if nothing.
    fn shown() -> i32 {
        use windows_sys::Win32::System::Threading::{GetStartupInfoW, STARTF_USESHOWWINDOW, STARTUPINFOW};
        let mut startup = STARTUPINFOW::default();
        // SAFETY: the place is this frame's.
        unsafe { GetStartupInfoW(&raw mut startup) };
        if startup.dwFlags & STARTF_USESHOWWINDOW == 0 { 100 } else { i32::from(startup.wShowWindow) }
    }

    // Fails with `window: None` in `Plan::resolve`, or with a `show` of another style.
    #[test]
    fn the_first_window_of_every_kind_of_launch() {
        watchdog!();
        if std::env::var_os("HAFT_TEST_SHOWN").is_some() {
            std::process::exit(shown());
        }
        let this = std::env::current_exe().unwrap();
        let name = haft_tests::test_name!();
        let styles = [
            (None, 100),
            (Some(WindowStyle::Hidden), 0),
            (Some(WindowStyle::Normal), 1),
            (Some(WindowStyle::Minimized), 2),
            (Some(WindowStyle::Maximized), 3),
        ];
        for (style, wanted) in styles {
            let mut command = Command::new(&this);
            command.args([name, "--exact"]).env("HAFT_TEST_SHOWN", "1").stdout(Stdio::null());
            if let Some(style) = style {
                command.window_style(style);
            }
            assert_eq!(command.status().unwrap().code(), Some(wanted), "{style:?}");
        }
        // The environment of the shell's child is this process's.
        // SAFETY: the suite's other tests do not read this variable, and Windows locks the environment.
        unsafe { std::env::set_var("HAFT_TEST_SHOWN", "1") };
        for (style, wanted) in &styles[1..] {
            let mut command = Command::shell_open(&this);
            command.args([name, "--exact"]).window_style(style.unwrap());
            assert_eq!(code(&mut command), Some(*wanted), "{style:?} by the shell");
        }
        // SAFETY: as above.
        unsafe { std::env::remove_var("HAFT_TEST_SHOWN") };
    }
}
