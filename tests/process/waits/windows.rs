//! On Windows: a process is waited for by its handle, by whoever has one, and in tasks.

use super::sleeper;
use haft::process::{Child, Command, LaunchError, Process, Stdio};
use haft_tests::{Census, event, eventually, isolated, kid, under_wine, watchdog};
use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

fn exits(code: u32) -> Child {
    Command::new(kid!()).args(["exit", &code.to_string()]).spawn().unwrap()
}

// rust#29462: 259 is what the system says of a process that runs. Fails when `Pid::try_wait` or `Pid::wait_for`
// (sys/windows/pid.rs) asks for the code instead of for the end.
#[test]
fn exit_code_259_is_an_exit_code() {
    watchdog!();
    let code = Some(259);
    assert_eq!(exits(259).wait().unwrap().code(), code);
    let mut child = exits(259);
    assert!(eventually(Duration::from_secs(20), || child.try_wait().unwrap().is_some()));
    assert_eq!(child.try_wait().unwrap().unwrap().code(), code);
    assert_eq!(smol::block_on(exits(259).wait_async()).unwrap().code(), code);
    let child = exits(259);
    let ended = child.process().wait_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(ended.unwrap().code(), code);
    assert_eq!(smol::block_on(child.process().wait_async()).unwrap().unwrap().code(), code);
    assert_eq!(child.wait_with_output().unwrap().status.code(), code);
    // And one that runs has none.
    let mut child = sleeper();
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn codes_have_all_their_bits() {
    watchdog!();
    for code in [256, 65_536, 0x7fff_ffff, 0xc000_0005, u32::MAX] {
        assert_eq!(exits(code).wait().unwrap().code(), Some(code as i32));
    }
}

// go#67641, rust#112423: a process that was waited for is not there to be killed, and that is no error.
#[test]
fn kill_after_wait_is_ok_and_harms_nobody() {
    watchdog!();
    let mut child = exits(0);
    let process = child.process();
    child.wait().unwrap();
    let mut others: Vec<_> = (0..8).map(|_| sleeper()).collect();
    for _ in 0..3 {
        child.kill().unwrap();
        process.kill().unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for other in &mut others {
        assert!(other.try_wait().unwrap().is_none(), "another process was ended");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

// The number stays the process's while anybody has a handle. Fails when a Child gives its handle up after the wait.
#[test]
fn a_child_keeps_its_number_after_the_wait() {
    watchdog!();
    let mut child = exits(3);
    child.wait().unwrap();
    for _ in 0..20 {
        let mut other = exits(0);
        assert_ne!(other.id(), child.id());
        other.wait().unwrap();
    }
    assert_eq!(Process::open(child.id()).unwrap().wait().unwrap().unwrap().code(), Some(3));
}

#[test]
fn a_process_is_opened_by_its_number() {
    watchdog!();
    let mut child = sleeper();
    let process = Process::open(child.id()).unwrap();
    assert_eq!(process.id(), child.id());
    let from = Instant::now();
    let e = process.wait_timeout(Duration::from_millis(60)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TimedOut);
    let took = from.elapsed();
    assert!((60..5000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(process.wait_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(process.kill_tree().unwrap_err().kind(), ErrorKind::Unsupported);
    process.kill().unwrap();
    assert_eq!(process.wait_timeout(Duration::MAX).unwrap().unwrap().code(), Some(1));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    process.kill().unwrap();
    // Numbers are multiples of four, so there is none with this one.
    assert!(Process::open(u32::MAX - 2).is_err());
    assert!(Process::open(0).is_err());
}

#[test]
fn several_threads_wait_for_one_process_and_kill_it() {
    watchdog!();
    let mut child = sleeper();
    let process = child.process();
    std::thread::scope(|s| {
        let waiters: Vec<_> = (0..12)
            .map(|n| {
                let process = process.clone();
                s.spawn(move || match n % 4 {
                    0 => process.wait().unwrap(),
                    1 => process.wait_timeout(Duration::from_secs(50)).unwrap(),
                    2 => smol::block_on(process.wait_async()).unwrap(),
                    _ => Process::open(process.id()).unwrap().wait().unwrap(),
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        let killers: Vec<_> = (0..4).map(|_| process.clone()).collect();
        killers.into_iter().for_each(|process| drop(s.spawn(move || process.kill().unwrap())));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap().code(), Some(1));
        }
    });
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn tasks_wait_under_any_executor() {
    watchdog!();
    let launch = |code: u64| {
        Command::new(kid!()).args(["exit-after", &(code * 7 % 60).to_string(), &code.to_string()]).spawn()
    };
    // One after another, and many at once.
    assert_eq!(smol::block_on(launch(8).unwrap().wait_async()).unwrap().code(), Some(8));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..24)
            .map(|code| {
                let mut child = launch(code).unwrap();
                tokio::spawn(async move { (code, child.wait_async().await.unwrap().code()) })
            })
            .collect();
        for task in tasks {
            let (code, seen) = task.await.unwrap();
            assert_eq!(seen, Some(code as i32));
        }
        // One that does not end is given up in time, and can be waited for again.
        let mut child = sleeper();
        let limit = Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, child.wait_async()).await.is_err());
        child.kill().unwrap();
        assert_eq!(child.wait_async().await.unwrap().code(), Some(1));
        assert_eq!(child.wait_async().await.unwrap().code(), Some(1), "and again");
    });
}

/// How often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_wait_closes_the_input_wakes_once_and_wakes_the_last_waker() {
    watchdog!();
    let mut child =
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let (first, last) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let (one, two) = (Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&last)));
    let mut wait = pin!(child.wait_async());
    // The child reads to the end of its input, which comes with the wait.
    let mut polled = wait.as_mut().poll(&mut Context::from_waker(&one));
    if polled.is_pending() {
        polled = wait.as_mut().poll(&mut Context::from_waker(&two));
    }
    if polled.is_pending() {
        assert!(eventually(Duration::from_secs(20), || last.0.load(Ordering::SeqCst) == 1));
        polled = wait.as_mut().poll(&mut Context::from_waker(&two));
    }
    let Poll::Ready(Ok(status)) = polled else { panic!("woken for nothing: {polled:?}") };
    assert!(status.success());
    std::thread::sleep(Duration::from_millis(20));
    assert!(first.0.load(Ordering::SeqCst) + last.0.load(Ordering::SeqCst) <= 1);
}

// Fails when `Registration` (sys/windows/exit.rs) does not end its wait when it is dropped, or does not give up the
// wait's own reference.
#[test]
fn waits_that_are_given_up_leave_nothing() {
    watchdog!();
    isolated!({
        let mut child = sleeper();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let give_up = |child: &mut Child| {
            let mut wait = Box::pin(child.wait_async());
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        };
        give_up(&mut child);
        let census = Census::new();
        (0..1000).for_each(|_| give_up(&mut child));
        // The system's pool has threads of its own, and wakes them by events of theirs.
        census.check_within(4);
        assert!(
            eventually(Duration::from_secs(5), || Arc::strong_count(&woken) == 2),
            "{} references to the waker",
            Arc::strong_count(&woken) - 2
        );
        // Given up at the moment of the end, over and over.
        child.kill().unwrap();
        child.wait().unwrap();
        for round in 0..40 {
            let mut child = Command::new(kid!()).args(["exit-after", "1", "0"]).spawn().unwrap();
            let mut wait = Box::pin(child.wait_async());
            let _ = wait.as_mut().poll(&mut Context::from_waker(&waker));
            std::thread::sleep(Duration::from_millis(round));
            drop(wait);
            assert_eq!(smol::block_on(child.wait_async()).unwrap().code(), Some(0));
        }
        assert!(eventually(Duration::from_secs(5), || Arc::strong_count(&woken) == 2));
        census.check_within(4);
    });
}

// A waker that waits for its future to be gone must not hang the drop of that future.
#[test]
fn a_wait_may_be_dropped_while_its_waker_runs() {
    watchdog!();
    struct Slow(std::sync::Mutex<()>);
    impl Wake for Slow {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap());
        }
    }
    for _ in 0..5 {
        let slow = Arc::new(Slow(std::sync::Mutex::new(())));
        let held = slow.0.lock().unwrap();
        let waker = Waker::from(Arc::clone(&slow));
        let mut child = Command::new(kid!()).args(["exit-after", "10", "0"]).spawn().unwrap();
        let process = child.process();
        let mut wait = Box::pin(child.wait_async());
        let _ = wait.as_mut().poll(&mut Context::from_waker(&waker));
        process.wait().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        drop(wait);
        drop(held);
    }
}

#[test]
fn what_a_child_used_is_told_with_its_status() {
    watchdog!();
    let mut child = Command::new(kid!()).args(["flood", "2000000"]).stdout(Stdio::null()).spawn().unwrap();
    let (status, usage) = child.wait_with_usage().unwrap();
    assert!(status.success());
    // Wine does not know of a process that has ended.
    assert!(usage.peak_memory > 100_000 || under_wine(), "{usage:?}");
    assert!(usage.user + usage.system < Duration::from_secs(20), "{usage:?}");
    let again = child.wait_with_usage().unwrap();
    assert_eq!(again.0, status);
}

#[test]
fn a_child_gives_its_handle_away() {
    watchdog!();
    use std::os::windows::io::OwnedHandle;
    let child = exits(0);
    let process = child.process();
    let handle = OwnedHandle::from(child);
    process.wait().unwrap();
    assert!(haft_tests::is_signaled(&handle));
    let handle = OwnedHandle::from(exits(0));
    assert!(eventually(Duration::from_secs(20), || haft_tests::is_signaled(&handle)));
}

#[test]
fn children_and_processes_go_from_thread_to_thread() {
    fn both<T: Send + Sync + 'static>() {}
    fn send<T: Send>(_: &T) {}
    both::<Child>();
    both::<Process>();
    both::<LaunchError>();
    let (mut child, _event) = (exits(0), event());
    send(&child.wait_async());
    child.wait().unwrap();
}
