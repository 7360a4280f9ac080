//! On Linux: children are reaped, by whoever it may be, and have numbers that come again.

use super::sleeper;
use haft::process::{Child, Command, Stdio};
use haft_tests::{
    Census, all_reaped, children, cpu_time, eventually, isolated, kid, skip, state_of, watchdog,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

// tokio#2685, dotnet#114847. Fails when dropping a Child does nothing.
#[test]
fn dropped_children_leave_no_zombies() {
    watchdog!();
    isolated!({
        // Still running when it is dropped: one that has ended is reaped on the spot.
        drop(Command::new(kid!()).args(["exit-after", "50", "0"]).spawn().unwrap());
        assert!(all_reaped(kid!()));
        let census = Census::new();
        for n in 0..100 {
            let child = Command::new(kid!())
                .args(["exit-after", if n % 2 == 0 { "0" } else { "20" }, "5"])
                .spawn()
                .unwrap();
            drop(child);
        }
        assert!(all_reaped(kid!()), "{:?}", children());
        census.check();
    });
}

#[test]
fn a_child_ended_by_a_signal_says_which() {
    watchdog!();
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut child = sleeper();
        // SAFETY: a child of ours that nobody has reaped.
        unsafe { libc::kill(child.id() as i32, signal) };
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (None, Some(signal)));
    }
}

// The same kind: after the wait the number may be a stranger's, and kill must not reach it.
#[test]
fn kill_after_wait_never_reaches_a_reused_number() {
    watchdog!();
    isolated!({
        let mut first = Command::new(kid!()).args(["exit", "0"]).spawn().unwrap();
        let number = first.id();
        first.wait().unwrap();
        // Take the number again, where this process may say which comes next.
        let next = "/proc/sys/kernel/ns_last_pid";
        for _ in 0..200 {
            if std::fs::write(next, (number - 1).to_string()).is_err() {
                skip!("the next process number cannot be chosen here");
            }
            let mut second = sleeper();
            let same = second.id() == number;
            if same {
                first.kill().unwrap();
                std::thread::sleep(Duration::from_millis(20));
                let alive = second.try_wait().unwrap().is_none();
                second.kill().unwrap();
                second.wait().unwrap();
                assert!(alive, "the signal reached another process of the same number");
                return;
            }
            second.kill().unwrap();
            second.wait().unwrap();
        }
        skip!("the number was never given out again");
    });
}

// dotnet#33297, #79540. Fails when the wait takes ECHILD for "not yet".
#[test]
fn somebody_else_reaped_the_child() {
    watchdog!();
    isolated!({
        for way in 0..3 {
            let mut child = Command::new(kid!()).args(["exit", "7"]).spawn().unwrap();
            let mut status = 0;
            // SAFETY: the only child of this process; this is what a careless SIGCHLD handler does.
            let reaped = unsafe { libc::waitpid(-1, &mut status, 0) };
            assert_eq!(reaped, child.id() as i32);
            let from = Instant::now();
            // The status where the kernel still knows it, else an error; never a hang, never a made-up status.
            let said = match way {
                0 => child.wait().map(Some),
                1 => child.try_wait(),
                _ => child.wait_with_output().map(|o| Some(o.status)),
            };
            assert!(from.elapsed() < Duration::from_secs(10));
            match said {
                Ok(Some(s)) => assert_eq!(s.code(), Some(7)),
                Ok(None) => panic!("way {way}: says it is running"),
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
        // Where the kernel does not tell (before 6.15; here the request is refused) it must be an error.
        let untold = haft_tests::on_a_thread(|| {
            haft_tests::refuse(&[libc::SYS_ioctl], libc::ENOTTY).ok()?;
            Some([0, 1].map(|way| {
                let mut child = Command::new(kid!()).args(["exit", "7"]).spawn().unwrap();
                // SAFETY: as above.
                unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
                if way == 0 { child.wait().map(Some) } else { child.try_wait() }
            }))
        });
        for said in untold.into_iter().flatten() {
            let e = said.expect_err("nobody knows the status");
            assert!(e.to_string().contains("reaped"), "the error says why: {e}");
        }
        // And it can be killed and dropped without harm.
        let mut child = Command::new(kid!()).args(["exit", "7"]).spawn().unwrap();
        // SAFETY: as above.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        let _ = child.kill();
        drop(child);
    });
}

// The same kind: a process that ignores SIGCHLD has its children reaped by the kernel.
#[test]
fn a_parent_that_ignores_sigchld() {
    watchdog!();
    isolated!({
        // SAFETY: this process runs this one test.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        for args in [["exit", "7"], ["sleep", "50"]] {
            let mut child = Command::new(kid!()).args(args).spawn().unwrap();
            match child.wait() {
                Ok(s) => assert_eq!(s.code(), Some(if args[0] == "exit" { 7 } else { 0 })),
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
        // Its own failures are seen nevertheless.
        let e = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!(e.kind(), std::io::ErrorKind::NotFound);
        let out = Command::new(kid!()).args(["echo", "x"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        let mut out = out;
        out.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "x\n");
    });
}

// A failed launch leaves a child for a moment. Nobody else's wait for any child may see it.
#[test]
fn a_failed_launch_is_nobodys_child() {
    watchdog!(120);
    isolated!({
        let stop = Arc::new(AtomicBool::new(false));
        let thief = std::thread::spawn({
            let stop = stop.clone();
            move || {
                let mut stolen = 0;
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: takes whatever child there is, as an init process does.
                    if unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {
                        stolen += 1;
                    }
                }
                stolen
            }
        });
        for _ in 0..500 {
            let e = Command::new("/no/such/program").spawn().unwrap_err();
            assert_eq!(e.kind(), std::io::ErrorKind::NotFound);
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(thief.join().unwrap(), 0);
        assert!(children().is_empty(), "{:?}", children());
    });
}

// And a launch that works is not spoilt when the child is reaped by somebody else the moment it ends.
#[test]
fn a_thief_of_statuses_never_makes_a_launch_fail() {
    watchdog!(120);
    isolated!({
        let stop = Arc::new(AtomicBool::new(false));
        let thief = std::thread::spawn({
            let stop = stop.clone();
            move || {
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: as above.
                    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
                }
            }
        });
        for _ in 0..300 {
            let mut child = Command::new(kid!()).args(["exit", "9"]).spawn().expect("the launch itself");
            match child.wait() {
                Ok(s) => assert_eq!(s.code(), Some(9)),
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
        stop.store(true, Ordering::Relaxed);
        thief.join().unwrap();
    });
}

/// Launches `kid traceable`, and once it says so runs `trace` on it from a process of its own.
fn traced(milliseconds: &str, code: &str, hold: &str) -> Result<(Child, std::process::Child), String> {
    let mut child =
        Command::new(kid!()).args(["traceable", milliseconds, code]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut tracer = std::process::Command::new(kid!())
        .args(["trace", &child.id().to_string(), hold])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    line.clear();
    BufReader::new(tracer.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line != "traced\n" {
        tracer.wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        return Err(format!("tracing is not allowed here: {}", line.trim()));
    }
    Ok((child, tracer))
}

// tokio#7144: the pidfd of a traced child is readable before its parent may reap it. Fails when the wait polls the
// pidfd and tries again at once.
#[test]
fn a_traced_child_that_has_ended_does_not_make_the_wait_spin() {
    watchdog!();
    isolated!({
        let (mut child, mut tracer) = match traced("50", "6", "900") {
            Ok(both) => both,
            Err(why) => skip!("{why}"),
        };
        let (before, from) = (cpu_time(), Instant::now());
        let status = child.wait().unwrap();
        let (used, took) = (cpu_time() - before, from.elapsed());
        tracer.wait().unwrap();
        assert_eq!(status.code(), Some(6));
        assert!(took > Duration::from_millis(300), "the tracer held it back: {took:?}");
        assert!(used < Duration::from_millis(150), "{used:?} of processor time in {took:?} of waiting");
    });
}

// The same kind: a stop that this process's own tracing causes is no end of the child.
#[test]
fn a_stop_of_a_child_that_we_trace_is_not_its_end() {
    watchdog!();
    isolated!({
        let mut child = Command::new(kid!()).args(["sleep", "400"]).spawn().unwrap();
        let pid = child.id() as i32;
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: a child of ours; no memory is read or written.
        unsafe {
            if libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) != 0 {
                let e = std::io::Error::last_os_error();
                child.wait().unwrap();
                skip!("tracing is not allowed here: {e}");
            }
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, pid, none, none), 0);
        }
        assert!(eventually(Duration::from_secs(5), || state_of(pid).is_some_and(|s| s.0 == 't')));
        let before = cpu_time();
        for _ in 0..20 {
            assert!(child.try_wait().unwrap().is_none(), "stopped, not ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(cpu_time() - before < Duration::from_millis(100));
        // A wait on another thread of the tracer sees the stop as well. It must neither end nor spin.
        let before = cpu_time();
        let waiter = std::thread::spawn(move || child.wait());
        std::thread::sleep(Duration::from_millis(300));
        let (early, used) = (waiter.is_finished(), cpu_time() - before);
        // SAFETY: lets it go on.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, none, none) };
        let status = waiter.join().unwrap().unwrap();
        assert!(!early, "wait returned at a stop");
        assert!(used < Duration::from_millis(100), "{used:?} of processor time while it was stopped");
        assert!(status.success());
    });
}

#[test]
fn a_stopped_child_is_not_an_ended_one() {
    watchdog!();
    let mut child = sleeper();
    let pid = child.id() as i32;
    // SAFETY: a child of ours that nobody has reaped.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    assert!(eventually(Duration::from_secs(5), || state_of(pid).is_some_and(|s| s.0 == 'T')));
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

/// Drops a child that runs for a moment yet, so that the watcher has to reap it.
fn drop_running() {
    drop(Command::new(kid!()).args(["exit-after", "100", "0"]).spawn().unwrap());
}

// A program that closes "everything" gets the numbers of the watcher's own descriptors for its files. Fails when the
// watcher is woken by a write that does not look where it goes, when it reads there, or closes a number that was a
// dropped child's.
#[test]
fn a_program_that_takes_over_the_watchers_numbers_keeps_its_files_and_its_children_are_reaped() {
    watchdog!();
    // At once, each number going from us to the program's file, or all closed first.
    let modes = ["at once", "closed first"].map(|mode| vec![("MODE", mode)]);
    haft_tests::run_isolated_each(haft_tests::test_name!(), &modes, || {
        let mode = std::env::var("MODE").unwrap();
        let own: Vec<std::fs::File> = (0..3)
            .map(|_| {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(b"the program's").unwrap();
                std::io::Seek::rewind(&mut file).unwrap();
                file
            })
            .collect();
        let theirs = haft_tests::open_descriptors();
        drop(Command::new(kid!()).args(["exit-after", "1000", "0"]).spawn().unwrap());
        // The watcher runs, and has what it needs.
        std::thread::sleep(Duration::from_millis(200));
        let ours: Vec<i32> = haft_tests::open_descriptors().difference(&theirs).copied().collect();
        assert!(!ours.is_empty());
        let use_for = |fd: i32| {
            use std::os::fd::AsRawFd;
            // SAFETY: what a program does that hands out numbers as it pleases.
            assert_eq!(unsafe { libc::dup2(own[fd as usize % 3].as_raw_fd(), fd) }, fd);
        };
        if mode == "closed first" {
            for &fd in &ours {
                // SAFETY: as above.
                unsafe { libc::close(fd) };
            }
        }
        ours.iter().for_each(|&fd| use_for(fd));
        for _ in 0..3 {
            drop_running();
        }
        let reaped = eventually(Duration::from_secs(10), || children().is_empty());
        assert!(reaped, "{:?}", children());
        // And once more, with whatever watches by now.
        drop_running();
        assert!(eventually(Duration::from_secs(10), || children().is_empty()), "{:?}", children());
        for &fd in &ours {
            assert_eq!(haft_tests::id_of(fd), Some(haft_tests::id(&own[fd as usize % 3])), "{fd}");
        }
        for mut file in own {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "the program's");
        }
    });
}

/// Runs `body` in a forked process; whether it said true there.
fn in_a_fork(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the C library's allocator and threads work in the child process.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: ends the child process.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

/// Drops a running child and waits until no child is left, zombies included.
fn is_reaped_here() -> bool {
    drop_running();
    eventually(Duration::from_secs(10), || {
        // SAFETY: looks only; the structure is ours.
        let seen = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
            libc::waitid(libc::P_ALL, 0, &mut info, flags)
        };
        seen == -1
    })
}

#[test]
fn a_forked_process_reaps_the_children_that_it_drops() {
    watchdog!();
    isolated!({
        assert!(is_reaped_here());
        assert!(in_a_fork(is_reaped_here));
    });
}

// Both are number 1 of their namespaces. Fails when the watcher's process is known by its number.
#[test]
fn a_forked_process_of_the_same_number_reaps_the_children_that_it_drops() {
    watchdog!();
    isolated!({
        // SAFETY: takes no pointer.
        let into_new_namespace = || unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0;
        if !into_new_namespace() {
            skip!("no process namespace can be made: {}", std::io::Error::last_os_error());
        }
        assert!(in_a_fork(|| {
            assert_eq!(std::process::id(), 1);
            assert!(is_reaped_here());
            assert!(into_new_namespace());
            in_a_fork(|| std::process::id() == 1 && is_reaped_here())
        }));
    });
}
