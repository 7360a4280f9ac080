//! Signals: what the child starts with, and that launching changes nothing in the parent.
#![cfg(target_os = "linux")]

use haft::process::Command;
use haft_tests::{isolated, kid, table, watchdog};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The four sets of `kid signals`, as numbers: bit n-1 is signal n. Without 32 and 33, which the C library keeps for
/// itself and which its own posix_spawn leaves ignored in every child, this test process among them.
fn sets(text: Vec<u8>) -> BTreeMap<String, u64> {
    let rows = table(&String::from_utf8(text).unwrap());
    assert!(rows.contains_key("SigBlk") && rows.contains_key("SigIgn"), "{rows:?}");
    let number = |v: &str| u64::from_str_radix(v, 16).unwrap() & !(bit(32) | bit(33));
    rows.into_iter().map(|(k, v)| (k, number(&v))).collect()
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn ours() -> BTreeMap<String, u64> {
    sets(Command::new(kid!()).arg("signals").output().unwrap().stdout)
}

fn stds() -> BTreeMap<String, u64> {
    sets(std::process::Command::new(kid!()).arg("signals").output().unwrap().stdout)
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: the set is ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &s in signals {
            libc::sigaddset(&mut set, s);
        }
        set
    }
}

/// The calling thread's mask as the kernel has it.
fn mask() -> u64 {
    let mut set = 0u64;
    // SAFETY: asks only; the kernel's set has eight bytes.
    let r = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            std::ptr::null::<u64>(),
            &mut set as *mut u64,
            8,
        )
    };
    assert_eq!(r, 0);
    set & !(bit(32) | bit(33))
}

/// On a thread of its own with these signals blocked.
fn with_blocked<T: Send>(signals: &[i32], f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| {
        s.spawn(|| {
            let set = set_of(signals);
            // SAFETY: changes this thread's mask, and the thread ends with it.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
            f()
        })
        .join()
    })
    .unwrap_or_else(|p| std::panic::resume_unwind(p))
}

fn disposition(signal: i32) -> usize {
    // SAFETY: asks only.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut old), 0);
        old.sa_sigaction
    }
}

fn install(signal: i32, handler: usize) {
    // SAFETY: the handlers of this file only count.
    unsafe {
        let mut act: libc::sigaction = std::mem::zeroed();
        act.sa_sigaction = handler;
        act.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &act, std::ptr::null_mut()), 0);
    }
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: i32) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A handler's address as sigaction takes it.
fn count_handler() -> usize {
    count as extern "C" fn(i32) as usize
}

// rust#25784, bun#38926: the test binary ignores SIGPIPE, as every Rust program does; the child must not. Fails
// when the child does not set SIGPIPE to its default.
#[test]
fn sigpipe_is_not_ignored_in_the_child() {
    isolated!({
        assert_eq!(disposition(libc::SIGPIPE), libc::SIG_IGN);
        let seen = ours();
        assert_eq!(seen["SigIgn"] & bit(libc::SIGPIPE), 0);
        assert_eq!(disposition(libc::SIGPIPE), libc::SIG_IGN, "and the parent's is untouched");
    });
}

#[test]
fn a_child_that_writes_to_nobody_is_ended_by_sigpipe() {
    use haft::process::Stdio;
    use std::os::unix::process::ExitStatusExt;
    watchdog!();
    let mut child = Command::new(kid!()).args(["flood", "10000000"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGPIPE));
}

#[test]
fn the_mask_is_the_calling_threads() {
    let (seen, theirs, own) =
        with_blocked(&[libc::SIGUSR1, libc::SIGTERM, libc::SIGCHLD], || (ours(), stds(), mask()));
    assert_eq!(seen["SigBlk"], own);
    assert_eq!(seen["SigBlk"], theirs["SigBlk"], "as std does");
    let (seen, own) = with_blocked(&[], || (ours(), mask()));
    assert_eq!(seen["SigBlk"], own);
    assert_eq!(seen["SigBlk"] & bit(libc::SIGUSR1), 0);
}

#[test]
fn ignored_signals_stay_ignored_and_handlers_are_reset() {
    isolated!({
        install(libc::SIGUSR1, libc::SIG_IGN);
        install(libc::SIGHUP, libc::SIG_IGN);
        install(libc::SIGUSR2, count_handler());
        install(libc::SIGTERM, count_handler());
        let seen = ours();
        assert_eq!(seen["SigIgn"], bit(libc::SIGUSR1) | bit(libc::SIGHUP), "{seen:x?}");
        assert_eq!(seen["SigCgt"], 0, "{seen:x?}");
        assert_eq!(seen, stds(), "as std does");
        // Nothing of it is changed in the parent, which shares its memory with the child until exec.
        assert_eq!(disposition(libc::SIGUSR1), libc::SIG_IGN);
        assert_eq!(disposition(libc::SIGUSR2), count_handler());
        assert_eq!(disposition(libc::SIGTERM), count_handler());
    });
}

#[test]
fn real_time_signals_are_treated_like_the_others() {
    isolated!({
        install(libc::SIGRTMIN() + 1, libc::SIG_IGN);
        install(libc::SIGRTMAX(), count_handler());
        let seen = ours();
        assert_eq!(seen["SigIgn"], bit(libc::SIGRTMIN() + 1), "{seen:x?}");
        assert_eq!(seen["SigCgt"], 0);
    });
}

// Fails when the launcher, which blocks every signal for the launch, forgets to give the mask back on some path.
#[test]
fn the_callers_mask_is_the_same_after_a_launch() {
    with_blocked(&[libc::SIGUSR1], || {
        let before = mask();
        Command::new(kid!()).args(["exit", "0"]).status().unwrap();
        assert_eq!(mask(), before, "after a launch");
        Command::new("/no/such/program").status().unwrap_err();
        assert_eq!(mask(), before, "after a launch that failed in the child");
        Command::new(kid!()).arg("\0").status().unwrap_err();
        assert_eq!(mask(), before, "after one that failed before");
        Command::new(kid!()).arg("x").output().unwrap();
        assert_eq!(mask(), before, "after output");
    });
}

#[test]
fn pending_signals_are_not_the_childs() {
    let seen = with_blocked(&[libc::SIGUSR1], || {
        // SAFETY: to this thread alone, which has it blocked; it ends with the thread.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
        ours()
    });
    assert_eq!(seen["SigPnd"], 0);
}

// A handler must never run in the child while it shares the parent's memory: signals to a process group (a terminal
// that changes its size) reach the child as well. Fails when the launcher does not block signals and the kernel has not
// reset the handlers, as under the fallback without clone3.
#[test]
fn signals_to_the_group_during_launches_run_in_the_parent_alone() {
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    static PID: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn look(_: i32) {
        // SAFETY: a system call without pointers; safe in a handler.
        if unsafe { libc::syscall(libc::SYS_getpid) } as usize == PID.load(Ordering::Relaxed) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        } else {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
    }
    watchdog!(120);
    isolated!({
        PID.store(std::process::id() as usize, Ordering::Relaxed);
        // A signal that does nothing where there is no handler, so that kid does not mind it.
        install(libc::SIGURG, look as extern "C" fn(i32) as usize);
        // SAFETY: a group of this process's own, so that nobody else gets the signals.
        assert_eq!(unsafe { libc::setpgid(0, 0) }, 0);
        let stop = AtomicBool::new(false);
        let launch = || {
            for _ in 0..300 {
                let out = Command::new(kid!()).args(["echo", "x"]).output().unwrap();
                assert_eq!((out.status.code(), &out.stdout[..]), (Some(0), &b"x\n"[..]));
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: to the group made above.
                    unsafe { libc::kill(0, libc::SIGURG) };
                    std::thread::sleep(Duration::from_micros(20));
                }
            });
            let old_kernel =
                s.spawn(|| haft_tests::refuse(&[libc::SYS_clone3], libc::ENOSYS).map(|()| launch()));
            launch();
            let ended = old_kernel.join();
            stop.store(true, Ordering::Relaxed);
            let _ = ended.unwrap();
        });
        assert!(COUNT.load(Ordering::Relaxed) > 100, "the signals came");
        assert_eq!(WRONG.load(Ordering::Relaxed), 0, "a handler of the parent ran in a child");
    });
}

// The same without SA_RESTART: every wait and read is interrupted now and then, and goes on.
#[test]
fn interrupted_calls_go_on() {
    watchdog!();
    isolated!({
        // SAFETY: the handler only counts; the structures are ours.
        unsafe {
            let mut act: libc::sigaction = std::mem::zeroed();
            act.sa_sigaction = count_handler();
            assert_eq!(libc::sigaction(libc::SIGALRM, &act, std::ptr::null_mut()), 0);
            let every = libc::timeval { tv_sec: 0, tv_usec: 700 };
            let timer = libc::itimerval { it_interval: every, it_value: every };
            assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()), 0);
        }
        for _ in 0..60 {
            let out = Command::new(kid!()).args(["flood", "300000", "both"]).output().unwrap();
            assert_eq!((out.status.code(), out.stdout.len(), out.stderr.len()), (Some(0), 300000, 300000));
            let s = Command::new(kid!()).args(["exit-after", "5", "6"]).status().unwrap();
            assert_eq!(s.code(), Some(6));
        }
    });
}

// wait-timeout#29, pam-ssh-agent#108: a library must not touch SIGCHLD, nor cause one that is nobody's business.
#[test]
fn sigchld_is_left_alone_and_a_failed_launch_sends_none() {
    isolated!({
        install(libc::SIGCHLD, count_handler());
        for _ in 0..50 {
            Command::new("/no/such/program").spawn().unwrap_err();
            Command::new(kid!()).current_dir("/no/such/folder").spawn().unwrap_err();
        }
        assert_eq!(COUNT.load(Ordering::Relaxed), 0, "failed launches send no SIGCHLD");
        assert_eq!(disposition(libc::SIGCHLD), count_handler());
        assert!(Command::new(kid!()).args(["exit", "0"]).status().unwrap().success());
        let told = haft_tests::eventually(Duration::from_secs(5), || COUNT.load(Ordering::Relaxed) == 1);
        assert!(told, "a child that ended is told to the handler as ever: {}", COUNT.load(Ordering::Relaxed));
        assert_eq!(disposition(libc::SIGCHLD), count_handler());
    });
}
