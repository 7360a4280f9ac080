//! Launches that fail: the error names the step and the object, and nothing is left behind, a thousand times over.
#![cfg(any(target_os = "linux", windows))]

/// Tests that all the rounds of failures at a step leave nothing.
macro_rules! steps {
    ($($name:ident: $step:expr;)*) => {$(
        // cpython#87474, cpython PR 151186. Fails when the path of this failure forgets to close or to reap.
        #[test]
        fn $name() {
            watchdog!(200);
            isolated!({
                match leaks_nothing($step) {
                    Some(Ok(())) => {}
                    Some(Err(why)) => skip!("no filter can be set: {why}"),
                    None => skip!("step {} is made to fail only inside the library, with --cfg haft_test", $step),
                }
            });
        }
    )*};
}

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

use haft::process::{Command, LaunchError, Stdio, Step};
use haft_tests::{Census, isolated, kid, skip, watchdog};
use std::fs::File;

const ROUNDS: usize = if cfg!(windows) { 500 } else { 1000 };

/// A launch with something of everything in it: all streams piped, a handle passed, a folder set.
fn full(shared: &File) -> Command {
    let mut c = Command::new(kid!());
    c.args(["exit", "0"]).env("HAFT_X", "y").current_dir("/");
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c.pass(shared).unwrap();
    #[cfg(windows)]
    c.kill_tree(true).kill_on_parent_exit(true);
    c
}

/// The rounds for one step: spawn, status and output in turn, each of a new command, and each error to `check`.
fn rounds(make: &mut dyn FnMut() -> Command, check: &mut dyn FnMut(std::io::Error)) {
    for n in 0..ROUNDS {
        let mut command = make();
        let result = match n % 3 {
            0 => command.spawn().map(drop),
            1 => command.status().map(drop),
            _ => command.output().map(drop),
        };
        check(result.expect_err("this launch was to fail"));
    }
}

fn step_of(e: &std::io::Error) -> Step {
    LaunchError::of(e).unwrap_or_else(|| panic!("no launch error: {e:?}")).step()
}

/// All the rounds for one step, and that nothing is left of them.
fn leaks_nothing(step: Step) -> Option<Result<(), String>> {
    let shared = tempfile::tempfile().unwrap();
    // What the library opens once and keeps, it has after this.
    full(&shared).output().unwrap();
    Command::new("/no such program").spawn().unwrap_err();
    let census = Census::new();
    let mut count = 0;
    let how = system::provoke(step, &shared, &mut |e| {
        count += 1;
        assert_eq!(step_of(&e), step, "{e}");
        assert_eq!(e.raw_os_error(), None);
        assert!(!e.to_string().is_empty());
    });
    if let Some(Ok(())) = how {
        assert_eq!(count, ROUNDS);
    }
    census.check();
    #[cfg(unix)]
    census.check_none_lost();
    // And the next launch is as good as the first.
    assert!(full(&shared).output().unwrap().status.success());
    how
}

steps! {
    a_launch_that_fails_at_resolve_leaves_nothing: Step::Resolve;
    a_launch_that_fails_at_stdio_leaves_nothing: Step::Stdio;
    a_launch_that_fails_at_the_working_directory_leaves_nothing: Step::WorkingDirectory;
    a_launch_that_fails_at_exec_leaves_nothing: Step::Execute;
}

// Every step there is, made to fail inside the library: by an error, and by the child's death at that point. Fails on
// Windows when the jobs or the handles made inheritable outlive a failure (`launch`).
#[cfg(haft_test)]
#[test]
fn every_step_made_to_fail_leaves_nothing() {
    /// Whether the child takes this step, and so can die of a signal at it.
    fn in_the_child(step: Step) -> bool {
        match step {
            Step::Resolve
            | Step::Stdio
            | Step::Stack
            | Step::Clone
            | Step::Inheritable
            | Step::Job
            | Step::Attributes => false,
            Step::Unshare
            | Step::Signals
            | Step::WorkingDirectory
            | Step::CloseDescriptors
            | Step::MoveDescriptors
            | Step::SignalMask
            | Step::Execute => true,
        }
    }
    isolated!({
        let shared = tempfile::tempfile().unwrap();
        let wish = |what: Option<(Step, i32)>| {
            // SAFETY: this process runs this one test, and no other thread while this is changed.
            unsafe {
                match what {
                    Some((step, how)) => std::env::set_var("HAFT_FAIL", format!("{}:{how}", step.name())),
                    None => std::env::remove_var("HAFT_FAIL"),
                }
            }
        };
        full(&shared).output().unwrap();
        let census = Census::new();
        for step in Step::ALL {
            // There `CreateProcessW` changes it, so that nothing of its own can fail.
            if cfg!(windows) && step == Step::WorkingDirectory {
                continue;
            }
            // Numbers that nothing else fails with here. Any signal but SIGKILL is blocked at that point.
            for how in [31, -9] {
                if how < 0 && (cfg!(windows) || !in_the_child(step)) {
                    continue;
                }
                wish(Some((step, how)));
                for n in 0..if how < 0 { ROUNDS / 5 } else { ROUNDS } {
                    let mut command = full(&shared);
                    let result = match n % 3 {
                        0 => command.spawn().map(drop),
                        1 => command.status().map(drop),
                        _ => command.output().map(drop),
                    };
                    let e = result.expect_err("this launch was to fail");
                    let launch = LaunchError::of(&e).unwrap();
                    assert_eq!(launch.step(), step, "{e}");
                    if how < 0 {
                        assert_eq!(launch.signal(), Some(-how), "{e}");
                    } else {
                        assert_eq!(launch.errno(), Some(how), "{e}");
                    }
                }
                wish(None);
                census.check();
                #[cfg(unix)]
                #[cfg(unix)]
                census.check_none_lost();
                assert!(full(&shared).output().unwrap().status.success(), "the launch after {step} failed");
            }
        }
    });
}

// An error is Send, Sync and 'static, and can be looked at through the source chain.
#[test]
fn a_launch_error_travels() {
    fn travels<T: std::error::Error + Send + Sync + Clone + 'static>(_: &T) {}
    let e = Command::new("/no such program").spawn().unwrap_err();
    travels(LaunchError::of(&e).unwrap());
    let boxed: Box<dyn std::error::Error + Send + Sync> = e.into();
    let e = boxed.downcast_ref::<std::io::Error>().unwrap();
    assert!(LaunchError::of(e).is_some());
    assert!(LaunchError::of(&std::io::Error::other("something else")).is_none());
    assert!(LaunchError::of(&std::io::Error::from_raw_os_error(2)).is_none());
}

#[test]
fn steps_have_names_and_an_order() {
    assert!(Step::ALL.is_sorted());
    for step in Step::ALL {
        assert_eq!(step.to_string(), step.name());
        assert_eq!(format!("{step:?}"), step.name());
    }
}
