//! A parent with thousands of open files launches as well as any other, and its files are as they were afterwards.
#![cfg(target_os = "linux")]

use haft::process::{Command, Inherit, Stdio};
use haft_tests::{Id, hold, id, id_of, isolated, kid, open_descriptors, parse_fds, skip, watchdog};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const MANY: usize = 10_000;

/// Raises the soft limit; how much it is then.
fn raise_limit() -> u64 {
    // SAFETY: the structure is ours.
    unsafe {
        let mut l: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        l.rlim_cur = l.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &l);
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        l.rlim_cur
    }
}

fn set_soft_limit(soft: u64) {
    // SAFETY: the structure is ours.
    unsafe {
        let mut l: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        l.rlim_cur = soft;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &l), 0);
    }
}

/// Thousands of duplicates of one file, every third without close-on-exec; `None` where the limit does not allow it.
fn open_many() -> Option<Vec<OwnedFd>> {
    if raise_limit() < MANY as u64 + 200 {
        return None;
    }
    let file = tempfile::tempfile().unwrap();
    let mut many: Vec<OwnedFd> = (0..MANY)
        .map(|n| {
            let how = if n % 3 == 0 { libc::F_DUPFD } else { libc::F_DUPFD_CLOEXEC };
            // SAFETY: a new descriptor, owned by nobody else.
            unsafe {
                let fd = libc::fcntl(file.as_raw_fd(), how, 3);
                assert!(fd >= 0);
                OwnedFd::from_raw_fd(fd)
            }
        })
        .collect();
    // Not dropped: its low number would be free again.
    many.push(file.into());
    Some(many)
}

fn table() -> Vec<(RawFd, Option<Id>)> {
    open_descriptors().into_iter().map(|fd| (fd, id_of(fd))).collect()
}

macro_rules! many {
    () => {
        match open_many() {
            Some(many) => many,
            None => skip!("RLIMIT_NOFILE does not allow {MANY} open files"),
        }
    };
}

/// One launch whose sources all have high numbers; checks what the child has.
fn launch_with_high_sources(high: &File) {
    let mut command = Command::new(kid!());
    command.stdin(Stdio::from(high.try_clone().unwrap()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.pass(high).unwrap();
    let out = command.arg("fds").spawn().unwrap().wait_with_output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let got = parse_fds(std::str::from_utf8(&out.stdout).unwrap());
    let numbers: Vec<_> = got.iter().map(|d| d.fd).collect();
    assert_eq!(numbers, [0, 1, 2, high.as_raw_fd()]);
    assert_eq!((got[0].id, got[3].id), (id(high), id(high)));
}

#[test]
fn launches_among_many_open_files_restore_everything() {
    watchdog!(120);
    isolated!({
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        assert!(high.as_raw_fd() >= MANY as RawFd);
        launch_with_high_sources(&high);
        let before = table();
        for _ in 0..50 {
            launch_with_high_sources(&high);
        }
        assert!(before == table(), "the parent's descriptors are what they were");
        drop(many);
    });
}

#[test]
fn launches_among_many_open_files_with_numbers_reserved_before() {
    watchdog!(120);
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        let before = table();
        for _ in 0..50 {
            launch_with_high_sources(&high);
        }
        assert!(before == table(), "the parent's descriptors are what they were");
        drop(many);
    });
}

#[test]
fn launches_on_many_threads_among_many_open_files() {
    watchdog!(120);
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        launch_with_high_sources(&high);
        let before = table();
        std::thread::scope(|s| {
            for t in 0..24 {
                let high = &high;
                s.spawn(move || {
                    for n in 0..25 {
                        match (t + n) % 4 {
                            0 => {
                                Command::new("/no/such/program").stdin(Stdio::piped()).spawn().unwrap_err();
                            }
                            1 => {
                                let out = Command::new(kid!()).args(["echo", "x"]).output().unwrap();
                                assert_eq!(out.stdout, b"x\n");
                            }
                            _ => launch_with_high_sources(high),
                        }
                    }
                });
            }
        });
        assert!(before == table(), "the parent's descriptors are what they were");
        drop(many);
    });
}

// More descriptors passed than there are reserved numbers: the launch must take another way, not wait or fail.
#[test]
fn more_handles_passed_than_numbers_are_reserved() {
    watchdog!(120);
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let many = many!();
        let files: Vec<OwnedFd> = many.iter().rev().take(150).map(|f| f.try_clone().unwrap()).collect();
        let before = table();
        let mut command = Command::new(kid!());
        for f in &files {
            command.pass(f).unwrap();
        }
        let out = command.arg("fds").output().unwrap();
        drop(command);
        let got = parse_fds(std::str::from_utf8(&out.stdout).unwrap());
        let mut wanted: Vec<RawFd> =
            [0, 1, 2].into_iter().chain(files.iter().map(AsRawFd::as_raw_fd)).collect();
        wanted.sort_unstable();
        assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), wanted);
        assert!(before == table());
    });
}

#[test]
fn everything_inherited_among_many_open_files() {
    watchdog!();
    isolated!({
        let many = many!();
        let kept = many.iter().enumerate().filter(|(n, _)| n % 3 == 0).count();
        let out = Command::new(kid!()).inherit(Inherit::All).arg("fds").output().unwrap();
        let got = parse_fds(std::str::from_utf8(&out.stdout).unwrap());
        assert_eq!(got.len(), 3 + kept);
        drop(many);
    });
}

// A program that closes "everything" (daemons do) also closes the numbers that the library keeps, and then has its
// own files there. Fails when the library does not look whether the number is still its own before it uses it.
#[test]
fn a_program_that_closed_everything_keeps_its_own_files() {
    watchdog!(120);
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let reserved = open_descriptors();
        for &fd in reserved.iter().filter(|&&fd| fd > 2) {
            // SAFETY: what such programs do; nothing of this test is open yet.
            unsafe { libc::close(fd) };
        }
        let mut own: Vec<File> = (0..reserved.len() + 20).map(|_| tempfile::tempfile().unwrap()).collect();
        for (n, f) in own.iter_mut().enumerate() {
            write!(f, "file {n}").unwrap();
        }
        let before: Vec<_> = own.iter().map(|f| (f.as_raw_fd(), id(f))).collect();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..20).for_each(|_| launch_with_high_sources(&high)));
            }
        });
        for (n, (fd, was)) in before.iter().enumerate() {
            assert_eq!(id_of(*fd), Some(*was), "file {n} at {fd}");
            let mut text = String::new();
            own[n].rewind().unwrap();
            own[n].read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("file {n}"));
        }
        drop(many);
    });
}

// The same while launches go on: between two of them the program takes one of the numbers for itself.
#[test]
fn a_number_taken_over_between_launches_is_given_up() {
    watchdog!(120);
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let reserved: Vec<RawFd> = open_descriptors().into_iter().filter(|&fd| fd > 2).collect();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        launch_with_high_sources(&high);
        let mut taken = Vec::new();
        for &fd in reserved.iter().take(70) {
            let own = tempfile::tempfile().unwrap();
            if own.as_raw_fd() != fd {
                // SAFETY: what a program does that hands out numbers as it pleases.
                assert_eq!(unsafe { libc::dup3(own.as_raw_fd(), fd, libc::O_CLOEXEC) }, fd);
            }
            launch_with_high_sources(&high);
            assert_eq!(id_of(fd), Some(id(&own)), "descriptor {fd} is the program's own now");
            taken.push(own);
        }
        drop(many);
    });
}

/// Does `meanwhile` while a launch with high sources is held just before it executes the program.
fn while_a_launch_is_held(high: &File, meanwhile: impl FnOnce()) -> Result<(), String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|s| {
        let launch = s.spawn(move || {
            let held = hold(libc::SYS_execve)?;
            sender.send(held).expect("the test waits for it");
            launch_with_high_sources(high);
            Ok(())
        });
        if let Ok(held) = receiver.recv() {
            held.next(meanwhile);
        }
        launch.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
    })
}

// And during a launch. Fails when the placeholder is put back without looking what is there now.
#[test]
fn a_number_taken_over_during_a_launch_is_not_overwritten() {
    watchdog!();
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let reserved: Vec<RawFd> = open_descriptors().into_iter().filter(|&fd| fd > 2).collect();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        launch_with_high_sources(&high);
        let mut own = None;
        let held = while_a_launch_is_held(&high, || {
            // Whichever numbers the launch borrowed; none, where a fallback does without.
            if let Some(&slot) = reserved.iter().find(|&&fd| id_of(fd) == Some(id(&high))) {
                let file = tempfile::tempfile().unwrap();
                // SAFETY: what a program does that hands out numbers as it pleases.
                assert_eq!(unsafe { libc::dup3(file.as_raw_fd(), slot, libc::O_CLOEXEC) }, slot);
                own = Some((slot, file));
            }
        });
        match (held, own) {
            (Err(why), _) => skip!("no filter can be set: {why}"),
            (Ok(()), None) => skip!("this launch borrowed no numbers"),
            (Ok(()), Some((slot, file))) => {
                assert_eq!(id_of(slot), Some(id(&file)), "the program's own file at {slot} was overwritten");
                (0..100).for_each(|_| launch_with_high_sources(&high));
                assert_eq!(
                    id_of(slot),
                    Some(id(&file)),
                    "the program's own file at {slot} was overwritten later"
                );
            }
        }
        drop(many);
    });
}

// A launch that hangs in exec (a dead network share) takes its few numbers with it, and nobody waits for them.
#[test]
fn launches_go_on_beside_one_that_hangs() {
    watchdog!();
    isolated!({
        raise_limit();
        haft::process::reserve().unwrap();
        let many = many!();
        let high = tempfile::tempfile().unwrap();
        launch_with_high_sources(&high);
        let before = table();
        let held = while_a_launch_is_held(&high, || {
            std::thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| (0..30).for_each(|_| launch_with_high_sources(&high)));
                }
            });
            for _ in 0..20 {
                Command::new("/no such program").stdin(Stdio::piped()).spawn().unwrap_err();
            }
        });
        if let Err(why) = held {
            skip!("no filter can be set: {why}");
        }
        assert!(before == table(), "the parent's descriptors are what they were");
        drop(many);
    });
}

#[test]
fn a_limit_below_the_numbers_in_use() {
    watchdog!();
    isolated!({
        for limit in [16, 64, 256, 1024] {
            let (stay, high) = {
                raise_limit();
                let stay: Vec<File> = (0..200).map(|_| tempfile::tempfile().unwrap()).collect();
                let f = tempfile::tempfile().unwrap();
                (stay, f)
            };
            // Streams are opened and duplicated before; what the child moves are numbers above its limit.
            let mut command = Command::new(kid!());
            command.arg("fds").stdin(Stdio::from(high.try_clone().unwrap()));
            let (read, write) = std::io::pipe().unwrap();
            command.stdout(Stdio::from(write)).stderr(Stdio::null());
            // Room for what the launch itself opens: there are free numbers below only after these are closed.
            drop(stay);
            set_soft_limit(limit);
            let result = command.spawn();
            raise_limit();
            let mut child = result.unwrap_or_else(|e| panic!("limit {limit}: {e}"));
            assert!(child.wait().unwrap().success());
            drop(command);
            let mut text = String::new();
            { read }.read_to_string(&mut text).unwrap();
            let got = parse_fds(&text);
            assert_eq!(got.iter().map(|d| d.fd).collect::<Vec<_>>(), [0, 1, 2], "limit {limit}");
            assert_eq!(got[0].id, id(&high));
        }
    });
}

// No number is free: an error, nothing leaked, and afterwards all is well again.
#[test]
fn no_descriptor_left() {
    watchdog!();
    isolated!({
        set_soft_limit(64);
        Command::new(kid!()).args(["exit", "0"]).status().unwrap();
        let mut hoard: Vec<File> = Vec::new();
        while let Ok(f) = File::open("/dev/null") {
            hoard.push(f);
        }
        let before = table_by_number();
        for free in 0..6 {
            for _ in 0..50 {
                match Command::new(kid!())
                    .args(["exit", "0"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                {
                    Ok(mut c) => drop(c.wait()),
                    Err(e) => {
                        assert_eq!(e.kind(), std::io::Error::from_raw_os_error(libc::EMFILE).kind(), "{e}")
                    }
                }
            }
            assert_eq!(table_by_number(), &before[..before.len() - free], "with {free} numbers free");
            hoard.pop();
        }
        drop(hoard);
        assert!(Command::new(kid!()).args(["exit", "0"]).status().unwrap().success());
        assert!(haft_tests::children().is_empty());
    });
}

/// Which numbers are open, without opening anything.
fn table_by_number() -> Vec<RawFd> {
    (0..64).filter(|&fd| id_of(fd).is_some()).collect()
}
