//! On Linux: each step made to fail by limits and filters.

use super::{ROUNDS, full, leaks_nothing, rounds};

use haft::process::{Command, LaunchError, Object, Stdio, Step};
use haft_tests::{Census, hold, isolated, kid, kill_on, on_a_thread, refuse, skip, watchdog};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

fn raised_limit(soft: u64) -> u64 {
    // SAFETY: the structure is ours.
    unsafe {
        let mut l: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        let was = l.rlim_cur;
        l.rlim_cur = soft;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &l), 0);
        was
    }
}

/// Makes `step` fail for real, over and over, and hands each error to `check`.
/// `None`: there is no way to make this one fail without the library's help.
pub(super) fn provoke(
    step: Step,
    shared: &File,
    check: &mut (dyn FnMut(std::io::Error) + Send),
) -> Option<Result<(), String>> {
    let mut rounds = |make: &mut dyn FnMut() -> Command| rounds(make, check);
    // Refused on a thread of its own, and for what that thread starts.
    let mut filtered = |calls: &[libc::c_long], errno: i32, make: &mut (dyn FnMut() -> Command + Send)| {
        on_a_thread(|| {
            refuse(calls, errno)?;
            rounds(make);
            Ok(())
        })
    };
    match step {
        Step::Resolve => {
            rounds(&mut || {
                let mut c = full(shared);
                c.arg("a\0b");
                c
            });
            Some(Ok(()))
        }
        Step::Stdio => {
            // Not one descriptor more: a pipe cannot be made.
            let command = &mut full(shared);
            let was = raised_limit(3);
            for n in 0..ROUNDS {
                let result = match n % 3 {
                    0 => command.spawn().map(drop),
                    1 => command.status().map(drop),
                    _ => command.output().map(drop),
                };
                match result {
                    Err(e) => check(e),
                    Ok(()) => {
                        raised_limit(was);
                        panic!("this launch was to fail");
                    }
                }
            }
            raised_limit(was);
            Some(Ok(()))
        }
        // Stacks are kept and used again, so a lack of memory shows at most once.
        Step::Stack => None,
        Step::Clone => Some(filtered(
            &[libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork],
            libc::EAGAIN,
            &mut || full(shared),
        )),
        // The library may do without either call, by a plain clone.
        Step::Unshare => None,
        // Only a call with arguments that are wrong could fail.
        Step::Signals | Step::SignalMask => None,
        // Windows has these.
        Step::Inheritable | Step::Job | Step::Attributes => None,
        Step::WorkingDirectory => {
            rounds(&mut || {
                let mut c = full(shared);
                c.current_dir("/no such folder");
                c
            });
            Some(Ok(()))
        }
        Step::CloseDescriptors => {
            Some(filtered(&[libc::SYS_close_range, libc::SYS_getdents64], libc::EPERM, &mut || full(shared)))
        }
        Step::MoveDescriptors => {
            // A number that no table can hold.
            rounds(&mut || {
                let mut c = full(shared);
                c.map_fd(shared, i32::MAX - 1).unwrap();
                c
            });
            Some(Ok(()))
        }
        Step::Execute => {
            rounds(&mut || {
                let mut c = Command::new("/no such program");
                c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                c.pass(shared).unwrap();
                c
            });
            Some(Ok(()))
        }
    }
}

steps! {
    a_launch_that_fails_at_clone_leaves_nothing: Step::Clone;
    a_launch_that_fails_at_closing_leaves_nothing: Step::CloseDescriptors;
    a_launch_that_fails_at_moving_leaves_nothing: Step::MoveDescriptors;
}

#[test]
fn the_error_names_the_step_and_the_object() {
    let of = |c: &mut Command| {
        let e = c.spawn().unwrap_err();
        LaunchError::of(&e).unwrap().clone()
    };
    let e = of(&mut Command::new("/no such program"));
    assert_eq!((e.step(), e.errno()), (Step::Execute, Some(libc::ENOENT)));
    assert_eq!(e.object(), &Object::Program("/no such program".into()));
    assert_eq!(e.program(), "/no such program");

    let e = of(Command::new(kid!()).current_dir("/no such folder"));
    assert_eq!((e.step(), e.errno()), (Step::WorkingDirectory, Some(libc::ENOENT)));
    assert_eq!(e.object(), &Object::Directory("/no such folder".into()));

    let e = of(Command::new(kid!()).args(["one", "tw\0o"]));
    assert_eq!((e.step(), e.errno(), e.kind()), (Step::Resolve, None, ErrorKind::InvalidInput));
    assert_eq!(e.object(), &Object::Argument(1));

    let e = of(Command::new(kid!()).env("NAME", "va\0lue"));
    assert_eq!((e.step(), e.kind()), (Step::Resolve, ErrorKind::InvalidInput));
    assert_eq!(e.object(), &Object::Variable("NAME".into()));

    let file = tempfile::tempfile().unwrap();
    let mut c = Command::new(kid!());
    c.map_fd(&file, i32::MAX - 1).unwrap();
    let e = of(&mut c);
    assert_eq!((e.step(), e.errno()), (Step::MoveDescriptors, Some(libc::EBADF)));
    assert_eq!(e.object(), &Object::Descriptor(i32::MAX - 1));

    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no such interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let e = of(&mut Command::new(&script));
    assert_eq!((e.step(), e.errno()), (Step::Execute, Some(libc::ENOENT)));
    assert!(
        matches!(e.object(), Object::Interpreter { program, interpreter }
        if program == &script && interpreter.starts_with("/no")),
        "{:?}",
        e.object()
    );

    let e = of(&mut Command::new("/"));
    assert_eq!(
        (e.step(), e.errno(), e.kind()),
        (Step::Execute, Some(libc::EACCES), ErrorKind::PermissionDenied)
    );
    assert_eq!(e.object(), &Object::Program(Path::new("/").into()));
}

// Measured elsewhere: a child that is killed before exec looks like a launch that worked. Fails when what the shared
// memory says is believed without asking the kernel whether the child ran the program.
#[test]
fn a_child_killed_before_exec_is_a_failed_launch() {
    watchdog!();
    isolated!({
        let shared = tempfile::tempfile().unwrap();
        full(&shared).output().unwrap();
        let census = Census::new();
        let seen = on_a_thread(|| {
            kill_on(&[libc::SYS_execve, libc::SYS_execveat])?;
            let errors = (0..200).map(|_| full(&shared).spawn().map(drop).expect_err("it never ran"));
            Ok::<_, String>(errors.collect::<Vec<_>>())
        });
        match seen {
            Err(why) => skip!("no filter can be set: {why}"),
            Ok(errors) => {
                for e in errors {
                    let l = LaunchError::of(&e).unwrap();
                    assert_eq!((l.step(), l.signal()), (Step::Execute, Some(libc::SIGSYS)), "{e}");
                    assert!(e.to_string().contains("signal 31"), "{e}");
                }
            }
        }
        census.check();
    });
}

// The opposite: a child that ran its program and was killed the next moment is a launch that worked.
#[test]
fn a_child_killed_right_after_exec_is_a_launch_that_worked() {
    use std::os::unix::process::ExitStatusExt;
    watchdog!();
    for _ in 0..200 {
        let s = Command::new(kid!()).args(["kill-self", "9"]).status().unwrap();
        assert_eq!(s.signal(), Some(libc::SIGKILL));
    }
}

// EMFILE anywhere on the way: an error and no orphan, never a child that nobody knows of (bun#40080).
#[test]
fn running_out_of_descriptors_at_any_point_orphans_nothing() {
    watchdog!(120);
    isolated!({
        let shared = tempfile::tempfile().unwrap();
        full(&shared).output().unwrap();
        let before = haft_tests::open_descriptors();
        let highest = *before.iter().last().unwrap() as u64 + 1;
        let was = raised_limit(1024);
        let mut worked = 0;
        for room in 0..24 {
            for round in 0..20 {
                raised_limit(highest + room);
                let mut command = Command::new(kid!());
                command
                    .args(["exit", "0"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                let result = command.spawn();
                match result {
                    Ok(child) if round % 2 == 0 => {
                        assert!(child.wait_with_output().unwrap().status.success());
                        worked += 1;
                    }
                    Ok(child) => drop(child),
                    Err(e) => assert!(LaunchError::of(&e).is_some(), "{e}"),
                }
                drop(command);
                raised_limit(1024);
            }
        }
        raised_limit(was);
        assert!(worked > 0, "with room enough it works");
        let gone = haft_tests::all_reaped(kid!());
        assert!(gone, "{:?}", haft_tests::children());
        let more: Vec<_> = haft_tests::open_descriptors().difference(&before).copied().collect();
        // The watcher of dropped children opens what it needs once.
        assert!(more.len() <= 4, "{more:?} of {:?}", haft_tests::describe_descriptors());
    });
}

// go#22315, dotnet#58964, rust#114554: a program is written and run while another thread launches: the child of that
// one has the file open for writing for a moment, and the kernel says ETXTBSY. Here that moment is held open. Fails
// when the launch is not tried again once the other is through.
#[test]
fn a_program_just_written_can_be_run_while_another_launch_is_under_way() {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    watchdog!();
    isolated!({
        Command::new(kid!()).args(["exit", "0"]).status().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&path).unwrap();
        file.write_all(&std::fs::read(kid!()).unwrap()).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let outcome: Result<_, String> = std::thread::scope(|s| {
            let other = s.spawn(move || {
                sender.send(hold(libc::SYS_chdir)?).expect("the test waits for it");
                // Its pipe is opened after the file, so that what its child takes over reaches above the file.
                let mut c = Command::new(kid!());
                Ok(c.args(["exit", "0"]).current_dir("/").stdin(Stdio::piped()).status().unwrap())
            });
            let mut ours = None;
            if let Ok(held) = receiver.recv() {
                held.next(|| {
                    drop(file);
                    ours = Some(s.spawn(|| Command::new(&path).args(["exit", "5"]).status()));
                    std::thread::sleep(std::time::Duration::from_millis(30));
                });
            }
            let other = other.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
            other.map(|status: std::process::ExitStatus| {
                assert!(status.success());
                ours.expect("it was started").join().expect("no panic")
            })
        });
        match outcome {
            Err(why) => skip!("no filter can be set: {why}"),
            Ok(status) => assert_eq!(status.expect("tried again").code(), Some(5)),
        }
    });
}
