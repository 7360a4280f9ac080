//! Waiting: one status for each child, no zombies, no hang whoever else reaps, and no signal to a stranger.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use haft::pipe::{PipeReader, PipeWriter};
use haft::process::{Child, Command, ExitStatus, Stdio};
use haft_tests::{cpu_time, eventually, isolated, kid, watchdog};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn sleeper() -> Child {
    Command::new(kid!()).args(["sleep", "30000"]).spawn().unwrap()
}

/// Waits until the child has ended, without reaping it.
fn ended(child: &Child) -> bool {
    #[cfg(target_os = "linux")]
    let is = || haft_tests::state_of(child.id() as i32).is_none_or(|s| s.0 == 'Z');
    #[cfg(windows)]
    let is = || haft_tests::is_signaled(child);
    eventually(Duration::from_secs(10), is)
}

/// Whether this is the end of a child that was killed.
fn is_killed(status: ExitStatus) -> bool {
    #[cfg(target_os = "linux")]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGKILL);
    #[cfg(windows)]
    return status.code() == Some(1);
}

#[test]
fn dropping_a_child_does_not_kill_it() {
    watchdog!();
    let mut child =
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut into, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    drop(child);
    std::thread::sleep(Duration::from_millis(30));
    into.write_all(b"still there").unwrap();
    drop(into);
    let mut got = String::new();
    from.read_to_string(&mut got).unwrap();
    assert_eq!(got, "still there");
}

#[test]
fn every_exit_code_is_told() {
    watchdog!();
    for code in (0..256).step_by(if cfg!(windows) { 51 } else { 15 }) {
        let status = Command::new(kid!()).args(["exit", &code.to_string()]).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn try_wait_tells_without_waiting() {
    watchdog!();
    let mut child = sleeper();
    let from = Instant::now();
    assert!(child.try_wait().unwrap().is_none());
    assert!(from.elapsed() < Duration::from_secs(5));
    child.kill().unwrap();
    assert!(eventually(Duration::from_secs(10), || child.try_wait().unwrap().is_some()));
    assert!(is_killed(child.try_wait().unwrap().unwrap()));
    assert!(is_killed(child.wait().unwrap()));
}

// go#13987, go#67641, rust#112423. Fails when kill does not look whether the child was reaped. What Windows says then,
// and Wine does not, has a test in sys/windows/pid.rs.
#[test]
fn kill_after_exit_is_ok() {
    watchdog!();
    let mut child = Command::new(kid!()).args(["exit", "3"]).spawn().unwrap();
    assert!(ended(&child));
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "it came too late to change that");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

// rust#45572, assert_cmd#42: one loop must feed and drain at once. Fails when one stream is read to its end before
// the other.
#[test]
fn output_takes_a_mebibyte_from_both_streams() {
    watchdog!();
    let out = Command::new(kid!()).args(["flood", "1048576", "both"]).output().unwrap();
    assert_eq!((out.status.code(), out.stdout.len(), out.stderr.len()), (Some(0), 1 << 20, 1 << 20));
    let out = Command::new(kid!()).args(["flood", "1048576", "err"]).output().unwrap();
    assert_eq!((out.stdout.len(), out.stderr.len()), (0, 1 << 20));
}

#[test]
fn a_mebibyte_in_while_a_mebibyte_comes_out() {
    watchdog!();
    let mut child =
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let data: Vec<u8> = (0..1 << 20).map(|n: u32| ((n * 31) >> 3) as u8).collect();
    let mut into = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let data = data.clone();
        move || into.write_all(&data)
    });
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success());
    assert_eq!(out.stdout, data);
}

// assert_cmd#42, rust#45572, by tasks of one thread. Fails when one operation is seen to its end before another begins (on
// Linux: one thread in the process's engine).
#[test]
fn tasks_feed_and_drain_a_child_at_once() {
    watchdog!();
    let mut command = Command::new(kid!());
    let piped = || Stdio::piped().asynchronous(true);
    let mut child = command.arg("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
    let data: Vec<u8> = (0..1 << 20).map(|n: u32| ((n * 31) >> 3) as u8).collect();
    let into = PipeWriter::from(child.stdin.take().unwrap());
    let from = PipeReader::from(child.stdout.take().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let fed = data.clone();
    let out = runtime.block_on(async move {
        let feed = async move {
            into.write_all_async(fed).await.unwrap();
            drop(into);
        };
        let drain = async {
            let (mut out, mut buffer) = (Vec::new(), vec![0; 10_000]);
            loop {
                let (read, back) = from.read_async(buffer).await.unwrap();
                if read == 0 {
                    return out;
                }
                out.extend_from_slice(&back[..read]);
                buffer = back;
            }
        };
        tokio::join!(feed, drain).1
    });
    assert!(child.wait().unwrap().success());
    assert_eq!(out, data);
}

#[test]
fn wait_with_output_closes_the_input_first() {
    watchdog!();
    let child = Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn wait_closes_the_input_first() {
    watchdog!();
    let mut child =
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_child_is_waited_for_on_another_thread() {
    watchdog!();
    let mut child = Command::new(kid!()).args(["exit-after", "30", "8"]).spawn().unwrap();
    let status = std::thread::spawn(move || child.wait().unwrap()).join().unwrap();
    assert_eq!(status.code(), Some(8));
}

#[test]
fn waiting_takes_no_processor_time() {
    watchdog!();
    isolated!({
        let mut child = Command::new(kid!()).args(["sleep", "600"]).spawn().unwrap();
        let before = cpu_time();
        assert!(child.wait().unwrap().success());
        let used = cpu_time() - before;
        assert!(used < Duration::from_millis(200), "{used:?} while waiting 600 ms");
    });
}

#[test]
fn many_children_end_in_any_order() {
    watchdog!(120);
    let mut children: Vec<(i32, Child)> = (0..60)
        .map(|n| {
            let code = n % 250;
            let after = ((n * 37) % 60).to_string();
            let c = Command::new(kid!()).args(["exit-after", &after, &code.to_string()]).spawn().unwrap();
            (code, c)
        })
        .collect();
    for (code, child) in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(*code));
    }
}

// dotnet#51277: a timeout, or any other reason to kill, must not lose what was written before.
#[test]
fn what_was_written_before_the_kill_can_be_read_after_it() {
    watchdog!();
    for both in [false, true] {
        let mut command = Command::new(kid!());
        command.args(["say-sleep", "in time", "30000"]).stdout(Stdio::piped());
        if both {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        // It has written once the first byte is there.
        let mut got = vec![0];
        child.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
        child.kill().unwrap();
        assert!(is_killed(child.wait().unwrap()));
        let out = child.wait_with_output().unwrap();
        got.extend(out.stdout);
        assert_eq!(String::from_utf8(got).unwrap().trim_end(), "in time");
        assert!(out.stderr.is_empty());
    }
}
