//! What the suites share: where the helper child is, tests in a process of their own, skipped tests that can be
//! counted, a limit in time for tests that could hang, and what is open in this process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
#[cfg(not(windows))]
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

// A process that std launches there inherits what haft has made inheritable for another test's child at that moment.
#[cfg(windows)]
use haft::process::{Command, Stdio};

#[cfg(target_os = "linux")]
pub mod battery;
pub mod files;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;

/// The path of `kid`, the helper child. A macro, because cargo tells it only to integration tests.
#[macro_export]
macro_rules! kid {
    () => {
        env!("CARGO_BIN_EXE_kid")
    };
}

/// The name of the test function that this is written in, as the test harness knows it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        fn name_of<T>(_: T) -> &'static str {
            std::any::type_name::<T>()
        }
        // "suite::module::test::here": the harness leaves the first part out.
        let name = name_of(here).trim_end_matches("::here").trim_end_matches("::{{closure}}");
        name.split_once("::").map_or(name, |(_, rest)| rest)
    }};
}

/// Ends the test early and prints `skipped: NAME: WHY` past the harness's capture, so that a script can count it.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        $crate::report_skip($crate::test_name!(), &format!($($why)*));
        return;
    }};
}

/// Runs the rest of the test in a process of its own: `isolated!({ … })` or, with more environment,
/// `isolated!([("NAME", "value")], { … })`.
#[macro_export]
macro_rules! isolated {
    ($body:block) => {
        $crate::isolated!([], $body)
    };
    ($env:expr, $body:block) => {{
        let env: &[(&str, &str)] = &$env;
        $crate::run_isolated($crate::test_name!(), env, || $body)
    }};
}

/// The line that [`skip!`] prints. One write, so that lines of several tests do not mix.
pub fn report_skip(name: &str, why: &str) {
    let line = format!("skipped: {name}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// [`run_isolated`] once for each of several environments: in the process of its own `body` runs once.
pub fn run_isolated_each(name: &str, environments: &[Vec<(&str, &str)>], body: impl Fn()) {
    for env in environments {
        run_isolated(name, env, &body);
        if std::env::var_os(ISOLATED).is_some() {
            return;
        }
    }
}

/// How long a test in a process of its own may take before it counts as hung.
const ISOLATED_LIMIT: Duration = Duration::from_secs(180);

/// How many times as much as usual a test that repeats itself is to do: `HAFT_SOAK`, or 1. Time limits grow with it.
pub fn soak() -> u32 {
    std::env::var("HAFT_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// The variable that tells a re-executed test binary which test it is for.
const ISOLATED: &str = "HAFT_TEST_ISOLATED";

/// Runs `body` in a process of its own: this test binary, executed again for the one test `name`.
///
/// In that process `body` runs on the only thread but the harness's own, nothing but the standard handles is open
/// when it starts, and standard input is the null device. It is killed, and the test fails, when it has not ended
/// after three minutes (see [`soak`]). Use it through [`isolated!`].
pub fn run_isolated(name: &str, env: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(ISOLATED).as_deref() == Some(OsStr::new(name)) {
        #[cfg(unix)]
        close_all_but_standard();
        return body();
    }
    let exe = std::env::current_exe().expect("the path of this test binary");
    // A file and not a pipe: what a stray grandchild holds open must not make this test wait.
    let log = tempfile::NamedTempFile::new().expect("a temporary file");
    let out = || Stdio::from(log.as_file().try_clone().expect("a duplicate"));
    let mut child = Command::new(exe)
        .args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(ISOLATED, name)
        .env("RUST_BACKTRACE", "0")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(out())
        .stderr(out())
        .spawn()
        .expect("this test binary starts again");
    let limit = ISOLATED_LIMIT * soak();
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the isolated test can be waited for") {
            break Some(status);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = String::from_utf8_lossy(&std::fs::read(log.path()).unwrap_or_default()).into_owned();
    let (skipped, said): (Vec<_>, Vec<_>) = text.lines().partition(|l| l.contains("skipped: "));
    for line in skipped {
        let line = &line[line.find("skipped: ").unwrap_or(0)..];
        let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
    }
    match status {
        Some(s) if s.success() => {
            assert!(text.contains("1 passed"), "no test {name} ran in the process of its own:\n{text}");
        }
        Some(s) => panic!("in a process of its own: {s}\n{}", said.join("\n")),
        None => panic!("still running after {limit:?} in a process of its own\n{}", said.join("\n")),
    }
}

/// Ends the whole test process if it is not dropped in time. Bind it to a name.
pub struct Watchdog {
    done: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A limit in time for a test that could hang: past it, the process says which test it was and aborts.
pub fn watchdog(name: &'static str, limit: Duration) -> Watchdog {
    let (done, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        if wait.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            let line = format!("hung: {name}: nothing after {limit:?}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            std::process::abort();
        }
    });
    Watchdog { done: Some(done), thread: Some(thread) }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.done.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// [`watchdog!`] with this test's name and a minute, or as many seconds as given.
#[macro_export]
macro_rules! watchdog {
    () => {
        $crate::watchdog!(60)
    };
    ($seconds:expr) => {
        let _watchdog =
            $crate::watchdog($crate::test_name!(), std::time::Duration::from_secs($seconds) * $crate::soak());
    };
}

/// A small generator of numbers that a test can repeat: the same seed gives the same numbers on every machine.
pub struct Dice(u64);

impl Dice {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(2) + 1)
    }

    /// The next number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }
}

/// Lines of `NAME VALUE` as `kid` prints them.
pub fn table(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// An executable copy of `kid` under another name or in another folder.
pub fn copy_of_kid(kid: &str, to: PathBuf) -> PathBuf {
    // A link where that is allowed. A file just copied may still be open for writing in a child that another test is
    // launching at this moment, and cannot be executed until that child has closed it.
    if std::fs::hard_link(kid, &to).is_err() {
        std::fs::copy(kid, &to).expect("kid can be copied");
        let busy = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ExecutableFileBusy;
        let runs = || !Command::new(&to).args(["exit", "0"]).status().is_err_and(|e| busy(&e));
        assert!(eventually(Duration::from_secs(10), runs), "the copy of kid stays busy");
    }
    to
}

/// Launches, and once more where Wine 8 says that an internal error kept it from making the process, as it does once in
/// some thousand launches on a busy machine.
pub fn despite_wine<T>(mut launch: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    #[cfg(windows)]
    for _ in 0..2 {
        const ERROR_INTERNAL_ERROR: i32 = 1359;
        let errno = |e: &std::io::Error| haft::process::LaunchError::of(e).and_then(|launch| launch.errno());
        match launch() {
            Err(e) if errno(&e) == Some(ERROR_INTERNAL_ERROR) && under_wine() => {}
            launched => return launched,
        }
    }
    launch()
}

/// Whether the library was asked to do without something, so that a test of the fast path itself can say so.
pub fn forced(name: &str) -> bool {
    std::env::var("HAFT_FORCE").is_ok_and(|list| list.split(',').any(|f| f.trim() == name))
}

/// Runs `body` on a thread of its own, so that what it sets for its thread goes away with it.
pub fn on_a_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| s.spawn(body).join()).unwrap_or_else(|p| std::panic::resume_unwind(p))
}

/// Tries until it is true, for at most that long; false when it never was.
pub fn eventually(limit: Duration, mut is: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if is() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
