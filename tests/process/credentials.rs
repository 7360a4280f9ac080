//! Launches as another user.
//!
//! Wine has the call for it, `CreateProcessWithLogonW`, in name alone, and no test knows a user's password. So what is
//! tested everywhere is the way to the call and what is refused before it; its arguments are looked at in
//! `plan/windows/logon.rs`. The one real launch needs no account and is skipped under Wine.
#![cfg(windows)]

use haft::process::{Command, Inherit, LaunchError, Object, Step};
use haft_tests::{is_inheritable, isolated, kid, skip};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, ErrorKind};
use std::os::windows::io::AsRawHandle;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ERROR_CALL_NOT_IMPLEMENTED: i32 = 120;

/// The message of a launch that was refused before anything was started.
fn refused<T>(result: io::Result<T>) -> String {
    let error = result.err().expect("this launch is refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let launch = LaunchError::of(&error).expect("a launch error");
    assert_eq!((launch.step(), launch.errno()), (Step::Resolve, None), "{error}");
    error.to_string()
}

/// As nobody that a computer knows.
fn as_nobody() -> Command {
    let mut command = Command::new(kid!());
    command.args(["exit", "7"]).user_name("haft-nobody").password("tomato-in-utf16").inherit(Inherit::All);
    command
}

// Fails without the first refusal in `with_user_name`.
#[test]
fn without_inherit_all_the_error_names_both_settings_and_the_line_to_add() {
    let mut command = as_nobody();
    command.inherit(Inherit::Named);
    let messages = [
        refused(command.spawn()),
        refused(command.status()),
        refused(command.output()),
        refused(command.spawn_suspended()),
        refused(as_nobody().inherit_handles(false).spawn()),
    ];
    for message in messages {
        for part in ["user_name", "inherit(Inherit::Named)", "add .inherit(Inherit::All)"] {
            assert!(message.contains(part), "{message}");
        }
    }
}

// Each line fails without its refusal.
#[test]
fn what_the_call_does_not_take_is_refused_by_name() {
    let file = tempfile::tempfile().unwrap();
    let mut passing = as_nobody();
    let passed = passing.pass(&file).unwrap();
    assert!(refused(passing.spawn()).contains("pass"));
    assert_eq!(is_inheritable(passed.value()), Some(false));
    assert!(refused(as_nobody().detached(true).spawn()).contains("detached(true)"));
    assert!(refused(as_nobody().create_no_window(true).spawn()).contains("create_no_window(true)"));
    assert!(refused(as_nobody().creation_flags(0x0100_0000).spawn()).contains("creation_flags"));
    assert!(refused(as_nobody().domain("A").user_name("ada@example.org").spawn()).contains("domain(..)"));
    let mut both = as_nobody();
    both.load_user_profile(true).network_credentials_only(true);
    assert!(refused(both.spawn()).contains("load_user_profile(true)"));
    assert!(refused(Command::new(kid!()).password("x").spawn()).contains("user_name is not"));
    assert!(refused(Command::new(kid!()).domain("x").spawn()).contains("user_name is not"));
}

// Fails with another LONGEST in `logon.rs`.
#[test]
fn a_command_line_has_at_most_1024_characters() {
    let fixed = kid!().len() + 2 + " exit 7 ".len();
    let line = |length: usize| {
        let mut command = as_nobody();
        command.arg("x".repeat(length - fixed));
        command
    };
    assert!(refused(line(1_025).spawn()).contains("1,024"));
    let error = line(1_024).spawn().unwrap_err();
    assert_eq!(LaunchError::of(&error).unwrap().step(), Step::Execute, "{error}");
}

// Fails without SetLastError in `sys/windows/logon.rs`, under Wine, and anywhere when a flag is left as it was lent.
#[test]
fn under_wine_the_launch_ends_at_the_call_and_leaves_no_handle_inheritable() {
    let file = tempfile::tempfile().unwrap();
    let own = file.try_clone().unwrap();
    let value = own.as_raw_handle() as usize;
    let mut command = as_nobody();
    command.stdin(own).kill_tree(true).kill_on_parent_exit(true).load_user_profile(true);
    for _ in 0..2 {
        let error = command.output().unwrap_err();
        let launch = LaunchError::of(&error).unwrap();
        assert_eq!(launch.step(), Step::Execute, "{error}");
        assert_eq!(launch.object(), &Object::Program(kid!().into()));
        // ERROR_LOGON_FAILURE, and what Windows says where the service for it is off.
        assert!(matches!(launch.errno(), Some(ERROR_CALL_NOT_IMPLEMENTED | 1326 | 1058)), "{error}");
        assert_eq!(is_inheritable(value), Some(false));
    }
}

#[test]
fn no_debug_output_has_the_password() {
    let command = as_nobody();
    for text in [format!("{command:?}"), format!("{command:#?}")] {
        assert!(!text.contains("tomato"), "{text}");
    }
}

/// Windows does not look at such credentials, so no account is needed.
#[test]
fn network_credentials_only_is_a_real_launch_but_under_wine() {
    let mut command = as_nobody();
    command.args(["exit", "7"]).domain("HAFT-NOWHERE").network_credentials_only(true).kill_tree(true);
    match command.output() {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(7));
            let mut command = Command::new(kid!());
            command.args(["echo", "hello"]).user_name("haft-nobody").domain("HAFT-NOWHERE");
            command.network_credentials_only(true).inherit(Inherit::All);
            assert_eq!(command.output().unwrap().stdout, b"hello\n");
        }
        Err(error) if LaunchError::of(&error).unwrap().errno() == Some(ERROR_CALL_NOT_IMPLEMENTED) => {
            skip!("Wine has no CreateProcessWithLogonW");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Looks through every block of memory that is given back for the password that is looked for.
struct Watching;

static LOOKING: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// What a freed block must not have: "tomato-in" in UTF-16, put together so that it is nowhere else.
fn has_password(block: &[u8]) -> bool {
    let password = b"tomato-in".map(|letter| [letter, 0]);
    block.windows(password.as_flattened().len()).any(|window| window == password.as_flattened())
}

// SAFETY: the system's allocator does the work, and what is freed is only looked at before.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: it is not freed yet, and was zeroed when it was allocated.
        let freed = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        if LOOKING.load(Ordering::Relaxed) && has_password(freed) {
            FOUND.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

// Fails with a `Secret` that is a plain `Vec<u16>`, or that grows while it is filled.
#[test]
fn no_freed_memory_has_the_password() {
    isolated!({
        LOOKING.store(true, Ordering::Relaxed);
        // The look sees what is to be seen.
        drop("tomato-in-utf16".encode_utf16().collect::<Vec<u16>>());
        assert_ne!(FOUND.swap(0, Ordering::Relaxed), 0);

        let mut command = as_nobody();
        let _ = command.spawn();
        let _ = command.output();
        command.password("tomato-in-utf16, another");
        let _ = format!("{command:#?}");
        let _ = command.network_credentials_only(true).output();
        drop(command);
        LOOKING.store(false, Ordering::Relaxed);
        assert_eq!(FOUND.load(Ordering::Relaxed), 0);
    });
}
