//! Everything at once: many threads launch in every mode, some of it meant to fail, and in the end nothing is left.
#![cfg(target_os = "linux")]

use haft::process::{Command, Inherit, Stdio};
use haft_tests::{Census, Dice, id, isolated, kid, parse_fds, watchdog};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
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
            assert_eq!(e.kind(), ErrorKind::NotFound);
        }
        4 => {
            let e = Command::new("/dev/null").stderr(Stdio::piped()).spawn().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::PermissionDenied);
        }
        5 => {
            let mut c = Command::new(kid!()).args(["sleep", "30000"]).stdout(Stdio::piped()).spawn().unwrap();
            c.kill().unwrap();
            assert_eq!(c.wait().unwrap().signal(), Some(libc::SIGKILL));
        }
        6 => {
            let text: Vec<u8> = (0..dice.below(5000)).map(|n| n as u8).collect();
            let mut c =
                Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            c.stdin.take().unwrap().write_all(&text).unwrap();
            let out = c.wait_with_output().unwrap();
            assert_eq!(out.stdout, text);
        }
        7 => {
            let mut c = Command::new(kid!());
            c.pass(shared).unwrap();
            let out = c.arg("fds").output().unwrap();
            let got = parse_fds(std::str::from_utf8(&out.stdout).unwrap());
            assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2, shared.as_raw_fd()]);
            assert_eq!(got[3].id, id(shared));
        }
        8 => {
            let out = Command::new(kid!()).inherit(Inherit::All).arg("fds").output().unwrap();
            // Nothing here is without close-on-exec, and nobody else's pipe may be either.
            let got = parse_fds(std::str::from_utf8(&out.stdout).unwrap());
            assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2]);
        }
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

#[test]
fn sixteen_threads_in_mixed_modes() {
    // The isolated run has its own limit; this one is for the process that waits for it.
    watchdog!(240);
    isolated!({
        let shared = tempfile::tempfile().unwrap();
        for kind in 0..60 {
            one(&mut Dice::new(kind), &shared);
        }
        haft_tests::all_reaped(kid!());
        let census = Census::new();
        let each = 200 * haft_tests::soak();
        std::thread::scope(|s| {
            for t in 0..16 {
                let shared = &shared;
                s.spawn(move || {
                    let mut dice = Dice::new(1000 + t);
                    (0..each).for_each(|_| one(&mut dice, shared));
                });
            }
        });
        assert!(haft_tests::all_reaped(kid!()), "{:?}", haft_tests::children());
        census.check();
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
                        for _ in 0..60 {
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
