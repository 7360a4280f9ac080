//! Everything at once: many threads launch in every mode, some of it meant to fail, and in the end nothing is left.
#![cfg(any(target_os = "linux", windows))]

use haft::process::{Command, Inherit, LaunchError, Stdio, Step};
use haft_tests::{Census, Dice, isolated, kid, watchdog};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// One launch, of the kind that the dice give.
fn one(dice: &mut Dice, shared: &File) {
    match dice.below(12) {
        0 => {
            let code = dice.below(200).to_string();
            let s = Command::new(kid!()).args(["exit", &code]).status().unwrap();
            assert_eq!(s.code().unwrap().to_string(), code);
        }
        1 => {
            let n = dice.below(200_000);
            let out = Command::new(kid!()).args(["flood", &n.to_string(), "both"]).output().unwrap();
            assert_eq!((out.stdout.len() as u64, out.stderr.len() as u64), (n, n));
            assert!(out.status.success());
        }
        2 => {
            let e = Command::new("/no/such/program")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap_err();
            assert_eq!(e.kind(), ErrorKind::NotFound);
        }
        3 => {
            let e = Command::new(kid!()).current_dir("/no/such/folder").output().unwrap_err();
            assert_eq!(LaunchError::of(&e).unwrap().step(), Step::WorkingDirectory);
        }
        4 => {
            // There it is, and cannot be executed.
            let e = Command::new(std::env::current_exe().unwrap().parent().unwrap())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap_err();
            assert_eq!(LaunchError::of(&e).unwrap().step(), Step::Execute);
        }
        5 => {
            let mut c = Command::new(kid!()).args(["sleep", "30000"]).stdout(Stdio::piped()).spawn().unwrap();
            c.kill().unwrap();
            assert!(!c.wait().unwrap().success());
        }
        6 => {
            let text: Vec<u8> = (0..dice.below(5000)).map(|n| n as u8).collect();
            let mut c =
                Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            c.stdin.take().unwrap().write_all(&text).unwrap();
            let out = c.wait_with_output().unwrap();
            assert_eq!(out.stdout, text);
        }
        7 => passes(shared),
        8 => inherits_all(),
        9 => drop(Command::new(kid!()).args(["exit-after", "3", "1"]).stdin(Stdio::piped()).spawn().unwrap()),
        10 => {
            let (mut read, write) = std::io::pipe().unwrap();
            let mut c = Command::new(kid!());
            c.args(["both", "o", "e"]).stdout(write.try_clone().unwrap()).stderr(write);
            assert!(c.status().unwrap().success());
            let mut text = String::new();
            read.read_to_string(&mut text).unwrap();
            assert_eq!(text.len(), 4);
        }
        _ => {
            let mut c = Command::new(kid!()).args(["exit-after", "2", "77"]).spawn().unwrap();
            let s = loop {
                if let Some(s) = c.try_wait().unwrap() {
                    break s;
                }
                std::thread::yield_now();
            };
            assert_eq!(s.code(), Some(77));
        }
    }
}

/// Launches with a handle that is passed, and the child has it and nothing else.
#[cfg(unix)]
fn passes(shared: &File) {
    use std::os::fd::AsRawFd;
    let mut c = Command::new(kid!());
    c.pass(shared).unwrap();
    let out = c.arg("fds").output().unwrap();
    let got = haft_tests::parse_fds(std::str::from_utf8(&out.stdout).unwrap());
    assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2, shared.as_raw_fd()]);
    assert_eq!(got[3].id, haft_tests::id(shared));
}

#[cfg(windows)]
fn passes(shared: &File) {
    let mut c = Command::new(kid!());
    c.pass(shared).unwrap();
    let out = c.arg("all-handles").output().unwrap();
    let got = haft_tests::parse_handles(std::str::from_utf8(&out.stdout).unwrap());
    let with = |about| {
        let is = |handle: &haft_tests::Handle| handle.inheritable && handle.about.starts_with(about);
        got.iter().filter(|(_, handle)| handle.as_ref().is_some_and(is)).count()
    };
    assert_eq!((with("pipe "), with("disk ")), (2, 1), "{got:?}");
}

/// Launches with everything that is inheritable. Nothing is here, and what others launch with is not among it.
#[cfg(unix)]
fn inherits_all() {
    let out = Command::new(kid!()).inherit(Inherit::All).arg("fds").output().unwrap();
    let got = haft_tests::parse_fds(std::str::from_utf8(&out.stdout).unwrap());
    assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2]);
}

#[cfg(windows)]
fn inherits_all() {
    let status = Command::new(kid!()).inherit(Inherit::All).arg("pipes").status().unwrap();
    assert_eq!(status.code(), Some(0));
    let status =
        Command::new(kid!()).inherit(Inherit::All).arg("pipes").stderr(Stdio::piped()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

/// Waits until no child of an earlier launch is left that would still be seen.
fn settled() {
    #[cfg(unix)]
    assert!(haft_tests::all_reaped(kid!()), "{:?}", haft_tests::children());
}

#[test]
fn sixteen_threads_in_mixed_modes() {
    // The isolated run has its own limit; this one is for the process that waits for it.
    watchdog!(240);
    isolated!({
        let shared = tempfile::tempfile().unwrap();
        for kind in 0..60 {
            one(&mut Dice::new(kind), &shared);
        }
        settled();
        let census = Census::new();
        // A launch costs a hundred times as much under Wine.
        let each = if cfg!(windows) { 25 } else { 200 } * haft_tests::soak();
        std::thread::scope(|s| {
            for t in 0..16 {
                let shared = &shared;
                s.spawn(move || {
                    let mut dice = Dice::new(1000 + t);
                    (0..each).for_each(|_| one(&mut dice, shared));
                });
            }
        });
        settled();
        census.check();
        #[cfg(unix)]
        census.check_none_lost();
    });
}

// rust#64718: setenv in another thread during a launch deadlocks or crashes. Fails when the environment is read raw.
#[test]
fn the_environment_changes_during_launches() {
    watchdog!(240);
    isolated!({
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..2)
                .map(|t| {
                    let stop = &stop;
                    s.spawn(move || {
                        let mut n = 0;
                        while !stop.load(Ordering::Relaxed) {
                            n += 1;
                            let name = format!("HAFT_CHANGING_{t}_{}", n % 64);
                            // SAFETY: everyone in this process goes through the standard library's lock.
                            unsafe {
                                if n % 3 == 0 {
                                    std::env::remove_var(name);
                                } else {
                                    std::env::set_var(name, "x".repeat(n % 200));
                                }
                            }
                        }
                    })
                })
                .collect();
            let launchers: Vec<_> = (0..4)
                .map(|_| {
                    s.spawn(|| {
                        for _ in 0..if cfg!(windows) { 25 } else { 60 } {
                            let out = Command::new(kid!())
                                .args(["env", "HAFT_FIXED"])
                                .env("HAFT_FIXED", "1")
                                .output();
                            assert_eq!(out.unwrap().stdout, b"Some(\"1\")\n");
                        }
                    })
                })
                .collect();
            let ends: Vec<_> = launchers.into_iter().map(|l| l.join()).collect();
            stop.store(true, Ordering::Relaxed);
            writers.into_iter().for_each(|w| w.join().unwrap());
            ends.into_iter().for_each(|e| e.unwrap());
        });
    });
}
