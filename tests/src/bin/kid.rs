//! The helper child that the suites launch: it does one small thing and says what it saw, in lines a test can parse.
//!
//! `kid [--to PATH] COMMAND [ARGUMENT…]`. With `--to` the report goes to a new file, opened after everything was
//! looked at, so that a child whose standard handles are the subject of the test can still report.
//!
//! The program has no Rust `main`: the standard library's start-up opens the null device on closed standard
//! handles and ignores SIGPIPE, and both are things that the suites look at.
#![no_main]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::time::Duration;

/// What `kid` exits with when it was called wrongly or could not do its work.
const USAGE: i32 = 120;

/// The entry point that the C runtime calls. See the head of this file for why it is not `fn main`.
#[unsafe(no_mangle)]
pub extern "C" fn main(_argc: i32, _argv: *const *const u8) -> i32 {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let mut to = None;
    if args.len() > 2 && args[1] == "--to" {
        to = Some(args.remove(2));
        args.remove(1);
    }
    let mut report = String::new();
    let code = if args.len() < 2 {
        eprintln!("kid: which command?");
        USAGE
    } else {
        run(&args, &mut report)
    };
    match to {
        Some(path) => {
            if std::fs::write(path, &report).is_err() {
                return USAGE;
            }
        }
        None => {
            let mut out = io::stdout();
            if out.write_all(report.as_bytes()).and_then(|()| out.flush()).is_err() && code == 0 {
                return USAGE + 1;
            }
        }
    }
    code
}

fn run(args: &[OsString], report: &mut String) -> i32 {
    let text = |n: usize| args.get(n).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    let number = |n: usize| text(n).parse::<u64>().unwrap_or(0);
    match text(1).as_str() {
        // exit CODE
        "exit" => return number(2) as i32,
        // exit-after MILLISECONDS CODE
        "exit-after" => {
            std::thread::sleep(Duration::from_millis(number(2)));
            return number(3) as i32;
        }
        // echo WORD…
        "echo" => {
            let words: Vec<_> = (2..args.len()).map(text).collect();
            let _ = writeln!(report, "{}", words.join(" "));
        }
        // both OUT ERR: one line to each stream.
        "both" => {
            let _ = writeln!(report, "{}", text(2));
            eprintln!("{}", text(3));
        }
        // args: every argument, the program's own name included.
        "args" => args.iter().for_each(|a| {
            let _ = writeln!(report, "{a:?}");
        }),
        // env [NAME]: the environment, or one variable of it.
        "env" if args.len() > 2 => {
            let _ = writeln!(report, "{:?}", std::env::var_os(&args[2]));
        }
        "env" => std::env::vars_os().for_each(|(k, v)| {
            let _ = writeln!(report, "{k:?}={v:?}");
        }),
        "cwd" => {
            let _ = writeln!(report, "{:?}", std::env::current_dir());
        }
        "exe" => {
            let _ = writeln!(report, "{:?}", std::env::current_exe());
        }
        // cat: standard input to standard output, as it comes.
        "cat" => {
            let (mut from, mut into) = (io::stdin().lock(), io::stdout().lock());
            let mut buf = vec![0; 64 << 10];
            loop {
                match from.read(&mut buf) {
                    Ok(0) => break,
                    Ok(n) => {
                        if let Err(e) = into.write_all(&buf[..n]) {
                            eprintln!("kid: write: {e}");
                            return 3;
                        }
                    }
                    Err(e) => {
                        eprintln!("kid: read: {e}");
                        return 2;
                    }
                }
            }
            if into.flush().is_err() {
                return 3;
            }
        }
        // read N: reads N bytes of standard input, and says how many came.
        "read" => {
            let mut got = Vec::new();
            match io::stdin().lock().take(number(2)).read_to_end(&mut got) {
                Ok(n) => {
                    let _ = writeln!(report, "{n}");
                }
                Err(e) => {
                    eprintln!("kid: read: {e}");
                    return 2;
                }
            }
        }
        // flood N [out|err|both]: N bytes on each of the streams named, 8 KiB at a time in turn.
        "flood" => {
            let which = text(3);
            let block = [b'x'; 8192];
            let mut left = number(2) as usize;
            while left > 0 {
                let n = left.min(block.len());
                if which != "err" && io::stdout().write_all(&block[..n]).is_err() {
                    return 3;
                }
                if (which == "err" || which == "both") && io::stderr().write_all(&block[..n]).is_err() {
                    return 3;
                }
                left -= n;
            }
            let _ = io::stdout().flush();
        }
        // sleep MILLISECONDS
        "sleep" => std::thread::sleep(Duration::from_millis(number(2))),
        // say-sleep WORD MILLISECONDS: says it at once.
        "say-sleep" => {
            println!("{}", text(2));
            let _ = io::stdout().flush();
            std::thread::sleep(Duration::from_millis(number(3)));
        }
        // open PATH: tries to open it for reading.
        "open" => {
            let _ = match std::fs::File::open(&args[2]) {
                Ok(_) => writeln!(report, "open ok"),
                Err(e) => writeln!(report, "open errno {}", e.raw_os_error().unwrap_or(0)),
            };
        }
        // grandchild MILLISECONDS: leaves a child of its own behind that holds every stream for that long; prints
        // its number.
        "grandchild" => {
            let exe = std::env::current_exe().expect("this program's path");
            match std::process::Command::new(exe).arg("sleep").arg(&args[2]).spawn() {
                Ok(c) => {
                    let _ = writeln!(report, "{}", c.id());
                }
                Err(e) => {
                    eprintln!("kid: grandchild: {e}");
                    return USAGE;
                }
            }
        }
        other => return system::run(other, args, report),
    }
    0
}

#[cfg(unix)]
mod system {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    struct Seen {
        fd: i32,
        dev: u64,
        ino: u64,
        cloexec: bool,
        nonblock: bool,
        access: i32,
    }

    /// Looks at one descriptor; `None` if it is not open.
    fn look(fd: i32) -> Option<Seen> {
        // SAFETY: fcntl and fstat on any number at all are safe; the buffer is ours.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            let status = libc::fcntl(fd, libc::F_GETFL);
            let mut st: libc::stat = std::mem::zeroed();
            if flags < 0 || libc::fstat(fd, &mut st) != 0 {
                return None;
            }
            Some(Seen {
                fd,
                dev: st.st_dev,
                ino: st.st_ino,
                cloexec: flags & libc::FD_CLOEXEC != 0,
                nonblock: status & libc::O_NONBLOCK != 0,
                access: status & libc::O_ACCMODE,
            })
        }
    }

    /// Every open descriptor but the directory handle that looking takes.
    fn descriptors() -> Vec<Seen> {
        let mut numbers = Vec::new();
        let own;
        // SAFETY: plain directory reading through the C library; the stream is closed once.
        unsafe {
            let dir = libc::opendir(c"/proc/self/fd".as_ptr());
            if dir.is_null() {
                return (0..1024).filter_map(look).collect();
            }
            own = libc::dirfd(dir);
            loop {
                let e = libc::readdir(dir);
                if e.is_null() {
                    break;
                }
                let name = std::ffi::CStr::from_ptr((*e).d_name.as_ptr()).to_bytes();
                if let Some(n) = std::str::from_utf8(name).ok().and_then(|s| s.parse::<i32>().ok()) {
                    numbers.push(n);
                }
            }
            libc::closedir(dir);
        }
        numbers.retain(|&n| n != own);
        numbers.sort_unstable();
        numbers.into_iter().filter_map(look).collect()
    }

    fn proc_status(names: &[&str], report: &mut String) {
        let all = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        for line in all.lines() {
            if let Some((name, value)) = line.split_once(':')
                && names.contains(&name)
            {
                let _ = writeln!(report, "{name} {}", value.trim());
            }
        }
    }

    pub(super) fn run(command: &str, args: &[OsString], report: &mut String) -> i32 {
        let number =
            |n: usize| args.get(n).and_then(|a| a.to_string_lossy().parse::<i64>().ok()).unwrap_or(0);
        match command {
            // fds: `FD DEV INO [cloexec] [nonblock] ACCESS`, a line for each open descriptor.
            "fds" => {
                for d in descriptors() {
                    let _ = writeln!(
                        report,
                        "{} {} {} {} {} {}",
                        d.fd,
                        d.dev,
                        d.ino,
                        if d.cloexec { "cloexec" } else { "-" },
                        if d.nonblock { "nonblock" } else { "-" },
                        ["r", "w", "rw", "?"][d.access as usize & 3],
                    );
                }
            }
            // expect FD=DEV:INO…: 0 if exactly these are open, else 9 and what is open instead goes to the file that
            // KID_REPORT names. Costs no file when all is well, so that thousands of launches can be checked.
            "expect" => {
                let mut open: Vec<String> =
                    descriptors().iter().map(|d| format!("{}={}:{}", d.fd, d.dev, d.ino)).collect();
                let mut wanted: Vec<String> =
                    args[2..].iter().map(|a| a.to_string_lossy().into_owned()).collect();
                open.sort();
                wanted.sort();
                if open != wanted {
                    if let Some(path) = std::env::var_os("KID_REPORT") {
                        let _ = std::fs::write(path, open.join(" "));
                    }
                    return 9;
                }
            }
            // put FD TEXT: writes to a descriptor by number.
            "put" => {
                let text = args[3].as_bytes();
                // SAFETY: the buffer outlives the call; a bad number is an error, not a fault.
                let n = unsafe { libc::write(number(2) as i32, text.as_ptr().cast(), text.len()) };
                if n != text.len() as isize {
                    return 3;
                }
            }
            // signals: mask and dispositions as the kernel has them.
            "signals" => proc_status(&["SigBlk", "SigIgn", "SigCgt", "SigPnd"], report),
            // status: what belongs to the thread that launched us.
            "status" => {
                proc_status(
                    &[
                        "Cpus_allowed_list",
                        "NoNewPrivs",
                        "Seccomp",
                        "Seccomp_filters",
                        "Uid",
                        "Gid",
                        "Groups",
                    ],
                    report,
                );
                // SAFETY: no pointers are involved.
                let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
                let _ = writeln!(report, "nice {nice}");
            }
            // personality: a system call that nothing else here makes, so that a filter can refuse it.
            "personality" => {
                // SAFETY: 0xffffffff asks without changing anything.
                let r = unsafe { libc::syscall(libc::SYS_personality, 0xffff_ffffu32) };
                let e = io::Error::last_os_error().raw_os_error().unwrap_or(0);
                let _ = writeln!(report, "personality {}", if r < 0 { e } else { 0 });
            }
            // ids: `pid ppid pgid sid`
            "ids" => {
                // SAFETY: these calls take and change nothing.
                let ids = unsafe { [libc::getpid(), libc::getppid(), libc::getpgid(0), libc::getsid(0)] };
                let _ = writeln!(report, "{} {} {} {}", ids[0], ids[1], ids[2], ids[3]);
            }
            // limits: the soft and hard limit of open files.
            "limits" => {
                // SAFETY: the structure is ours.
                unsafe {
                    let mut l: libc::rlimit = std::mem::zeroed();
                    libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
                    let _ = writeln!(report, "{} {}", l.rlim_cur, l.rlim_max);
                }
            }
            // kill-self SIGNAL
            "kill-self" => {
                // SAFETY: raising a signal at ourselves; no core is wanted.
                unsafe {
                    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                    libc::setrlimit(libc::RLIMIT_CORE, &none);
                    libc::raise(number(2) as i32);
                }
                return 121;
            }
            // traceable MILLISECONDS CODE: lets anyone trace it, says so, sleeps, exits.
            "traceable" => {
                // SAFETY: PR_SET_PTRACER takes numbers only.
                #[cfg(target_os = "linux")]
                unsafe {
                    libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
                }
                println!("ready");
                let _ = io::stdout().flush();
                std::thread::sleep(Duration::from_millis(number(2) as u64));
                return number(3) as i32;
            }
            // trace PID MILLISECONDS: traces a process, says `traced` or `refused ERRNO`, and after that time lets
            // it go. While it is traced its end is seen by its parent only once the tracer has taken note of it,
            // which this one does not until it lets go.
            #[cfg(target_os = "linux")]
            "trace" => {
                // SAFETY: ptrace by number; no memory of ours is touched.
                unsafe {
                    let none = std::ptr::null_mut::<libc::c_void>();
                    if libc::ptrace(libc::PTRACE_SEIZE, number(2) as i32, none, none) != 0 {
                        println!("refused {}", io::Error::last_os_error().raw_os_error().unwrap_or(0));
                        return 1;
                    }
                }
                println!("traced");
                let _ = io::stdout().flush();
                std::thread::sleep(Duration::from_millis(number(3) as u64));
            }
            other => {
                eprintln!("kid: no command {other}");
                return USAGE;
            }
        }
        0
    }
}

#[cfg(windows)]
mod system {
    use super::*;
    use haft_tests::{Handle, look, own_handles};
    use std::os::windows::io::{FromRawHandle, FromRawSocket};
    use std::ptr::{null_mut, with_exposed_provenance_mut};
    use windows_sys::Win32::Foundation::{WAIT_OBJECT_0, WAIT_TIMEOUT};
    use windows_sys::Win32::System::Console::{
        GetConsoleProcessList, GetConsoleWindow, GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE,
        STD_OUTPUT_HANDLE,
    };
    use windows_sys::Win32::System::Environment::GetCommandLineW;
    use windows_sys::Win32::System::JobObjects::IsProcessInJob;
    use windows_sys::Win32::System::Threading::{
        GetCurrentProcess, GetPriorityClass, GetStartupInfoW, STARTUPINFOW, SetEvent, WaitForSingleObject,
    };

    /// A line about a handle value: what it refers to, or `none`.
    fn describe(value: usize) -> String {
        look(value).map_or_else(|| format!("{value} none"), |handle| handle.to_string())
    }

    pub(super) fn run(command: &str, args: &[OsString], report: &mut String) -> i32 {
        let text = |n: usize| args.get(n).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
        let number = |n: usize| text(n).parse::<usize>().unwrap_or(0);
        let handle = |n: usize| with_exposed_provenance_mut::<core::ffi::c_void>(number(n));
        // A handle that was passed is this process's to close.
        // SAFETY: nothing else here uses a handle of that value; one that is not open gives errors.
        let file = |n: usize| unsafe { std::fs::File::from_raw_handle(handle(n)) };
        match command {
            // handles VALUE…: `VALUE KIND inherit|- ABOUT` or `VALUE none`, a line for each.
            "handles" => args[2..].iter().for_each(|value| {
                let value = value.to_string_lossy().parse().unwrap_or(0);
                let _ = writeln!(report, "{}", describe(value));
            }),
            // all-handles: the same of every handle that is open.
            "all-handles" => own_handles().iter().for_each(|handle| {
                let _ = writeln!(report, "{handle}");
            }),
            // pipes: exits with the number of pipe ends that are open, so that hundreds of children can be asked.
            "pipes" => {
                let is_pipe = |handle: &&Handle| handle.kind == "File" && handle.about.starts_with("pipe");
                return own_handles().iter().filter(is_pipe).count() as i32;
            }
            // std: the same of the three standard handles, each line with its stream in front.
            "std" => {
                let streams = [
                    ("stdin", STD_INPUT_HANDLE),
                    ("stdout", STD_OUTPUT_HANDLE),
                    ("stderr", STD_ERROR_HANDLE),
                ];
                for (name, which) in streams {
                    // SAFETY: reads a value of this process's.
                    let value = unsafe { GetStdHandle(which) };
                    let _ = writeln!(report, "{name} {}", describe(value.addr()));
                }
            }
            // write-handle VALUE TEXT: to a file or a pipe.
            "write-handle" => {
                if let Err(e) = file(2).write_all(text(3).as_bytes()) {
                    eprintln!("kid: write-handle: {e}");
                    return 3;
                }
            }
            // read-handle VALUE: to its end, and says what came.
            "read-handle" => {
                if let Err(e) = io::read_to_string(file(2)).map(|got| report.push_str(&got)) {
                    eprintln!("kid: read-handle: {e}");
                    return 2;
                }
            }
            // send-socket VALUE TEXT
            "send-socket" => {
                // Any use of the standard library's sockets loads the system's.
                let loaded = std::net::UdpSocket::bind(("127.0.0.1", 0));
                // SAFETY: a socket that was passed is this process's; another value gives an error.
                let mut socket = unsafe { std::net::TcpStream::from_raw_socket(number(2) as _) };
                if let Err(e) = loaded.and_then(|_| socket.write_all(text(3).as_bytes())) {
                    eprintln!("kid: send-socket: {e}");
                    return 3;
                }
            }
            // signal-event VALUE
            "signal-event" => {
                // SAFETY: a value that is no event is an error.
                if unsafe { SetEvent(handle(2)) } == 0 {
                    eprintln!("kid: signal-event: {}", io::Error::last_os_error());
                    return 3;
                }
            }
            // wait-handle VALUE MILLISECONDS: for an event or a process; says `signaled` or `timeout`.
            "wait-handle" => {
                // SAFETY: a value that cannot be waited for is an error.
                let _ = match unsafe { WaitForSingleObject(handle(2), number(3) as u32) } {
                    WAIT_OBJECT_0 => writeln!(report, "signaled"),
                    WAIT_TIMEOUT => writeln!(report, "timeout"),
                    _ => writeln!(report, "{}", io::Error::last_os_error()),
                };
            }
            // jobs: `job 1` in a job, else `job 0`.
            "jobs" => {
                let mut inside = 0;
                // SAFETY: the place is this frame's; without a job any job is asked about.
                let done = unsafe { IsProcessInJob(GetCurrentProcess(), null_mut(), &mut inside) };
                if done == 0 {
                    return 2;
                }
                let _ = writeln!(report, "job {inside}");
            }
            // command-line: as it came, not taken apart.
            "command-line" => {
                // SAFETY: the string is terminated and stays while the process lives.
                let line = unsafe {
                    let start = GetCommandLineW();
                    let length = (0..).take_while(|&n| *start.add(n) != 0).count();
                    std::slice::from_raw_parts(start, length)
                };
                let _ = writeln!(report, "{}", String::from_utf16_lossy(line));
            }
            // startup: what the launch asked for: flags, window and priority class.
            "startup" => {
                // SAFETY: the structure is this frame's, and zeroes are a value of it.
                let (startup, priority) = unsafe {
                    let mut startup: STARTUPINFOW = std::mem::zeroed();
                    GetStartupInfoW(&mut startup);
                    (startup, GetPriorityClass(GetCurrentProcess()))
                };
                let _ = writeln!(report, "flags {}", startup.dwFlags);
                let _ = writeln!(report, "show {}", startup.wShowWindow);
                let _ = writeln!(report, "priority {priority}");
            }
            // console: how many processes share this one's console, 0 without one, and whether it has a window.
            "console" => {
                let mut one = 0;
                // SAFETY: the place is this frame's and has room for one number; how many there are is said anyway.
                let (shared, window) = unsafe { (GetConsoleProcessList(&mut one, 1), GetConsoleWindow()) };
                let _ = writeln!(report, "processes {shared}\nwindow {}", u8::from(!window.is_null()));
            }
            other => {
                eprintln!("kid: no command {other}");
                return USAGE;
            }
        }
        0
    }
}
