//! What this process has open, its children, and its limits.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// The open file behind a descriptor, as far as fstat tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The device.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.dev, self.ino)
    }
}

/// A line of `kid fds`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Its number in the child.
    pub fd: RawFd,
    /// What it refers to.
    pub id: Id,
    /// Whether it would be closed by another exec.
    pub cloexec: bool,
    /// Whether it is in non-blocking mode.
    pub nonblock: bool,
    /// `r`, `w` or `rw`.
    pub access: String,
}

/// Reads what `kid fds` printed.
pub fn parse_fds(text: &str) -> Vec<Descriptor> {
    text.lines()
        .map(|line| {
            let w: Vec<&str> = line.split(' ').collect();
            assert_eq!(w.len(), 6, "a line of kid fds: {line:?}");
            Descriptor {
                fd: w[0].parse().expect("a number"),
                id: Id { dev: w[1].parse().expect("a device"), ino: w[2].parse().expect("an inode") },
                cloexec: w[3] == "cloexec",
                nonblock: w[4] == "nonblock",
                access: w[5].to_owned(),
            }
        })
        .collect()
}

/// The open file behind `fd`; `None` where nothing is open.
pub fn id_of(fd: RawFd) -> Option<Id> {
    // SAFETY: fstat on any number is safe; the buffer is ours.
    unsafe {
        let mut st: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut st) == 0).then_some(Id { dev: st.st_dev, ino: st.st_ino })
    }
}

/// The open file behind something that has a descriptor.
pub fn id(of: &impl AsRawFd) -> Id {
    id_of(of.as_raw_fd()).expect("an open descriptor")
}

/// The numbers of all open descriptors of this process.
pub fn open_descriptors() -> BTreeSet<RawFd> {
    let mut found = BTreeSet::new();
    // SAFETY: plain directory reading; the stream is closed once.
    unsafe {
        let dir = libc::opendir(c"/proc/self/fd".as_ptr());
        assert!(!dir.is_null(), "/proc/self/fd: {}", io::Error::last_os_error());
        let own = libc::dirfd(dir);
        loop {
            let e = libc::readdir(dir);
            if e.is_null() {
                break;
            }
            let name = std::ffi::CStr::from_ptr((*e).d_name.as_ptr());
            if let Some(n) = name.to_str().ok().and_then(|s| s.parse().ok()) {
                found.insert(n);
            }
        }
        libc::closedir(dir);
        found.remove(&own);
    }
    found
}

/// What each open descriptor of this process refers to, for messages.
pub fn describe_descriptors() -> Vec<String> {
    open_descriptors()
        .into_iter()
        .map(|fd| {
            let to = std::fs::read_link(format!("/proc/self/fd/{fd}"));
            format!("{fd} -> {}", to.map_or_else(|e| e.to_string(), |p| p.display().to_string()))
        })
        .collect()
}

/// Closes everything but the standard handles: a test in a process of its own starts from a known state whatever
/// its ancestors left open.
pub fn close_all_but_standard() {
    for fd in open_descriptors() {
        if fd > 2 {
            // SAFETY: called first thing in a fresh process, before anything there owns a descriptor.
            unsafe { libc::close(fd) };
        }
    }
}

/// The children of this process, zombies included, as (pid, state).
pub fn children() -> Vec<(i32, char)> {
    let me = std::process::id() as i32;
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc") {
        let Some(pid) = entry.ok().and_then(|e| e.file_name().to_str().and_then(|s| s.parse::<i32>().ok()))
        else {
            continue;
        };
        if let Some((state, ppid)) = state_of(pid)
            && ppid == me
        {
            found.push((pid, state));
        }
    }
    found
}

/// State and parent of a process; `None` if there is none of that number.
pub fn state_of(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    let mut rest = stat[stat.rfind(')')? + 1..].split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

/// Ends a process by its number: one that this process has started, or a child of such a one.
pub fn kill(process: u32) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(process as i32, libc::SIGKILL) };
}

/// The processor time that this process has used so far.
pub fn cpu_time() -> std::time::Duration {
    // SAFETY: the structure is ours.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t);
        t
    };
    std::time::Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Whether we run as root, to whom permissions do not apply.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Clears FD_CLOEXEC: what a careless library leaves behind.
pub fn make_inheritable(of: &impl AsRawFd) {
    // SAFETY: changes a flag of an open descriptor.
    let r = unsafe { libc::fcntl(of.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(r, 0, "F_SETFD");
}

/// Whether FD_CLOEXEC is set.
pub fn is_cloexec(fd: RawFd) -> bool {
    // SAFETY: reads a flag.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    assert!(flags >= 0, "descriptor {fd} is not open");
    flags & libc::FD_CLOEXEC != 0
}

/// Descriptors and children of this process at one moment, to be compared with a later one.
pub struct Census {
    descriptors: BTreeSet<RawFd>,
    children: BTreeSet<i32>,
}

impl Census {
    /// Takes stock, once nothing changes any more: another thread may be about to close what it is done with. Launch
    /// something first, so that what the library opens once and keeps is counted.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Census {
        let take = || (open_descriptors(), children().into_iter().map(|c| c.0).collect());
        let mut last = take();
        for _ in 0..50 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let now = take();
            if now == last {
                break;
            }
            last = now;
        }
        Census { descriptors: last.0, children: last.1 }
    }

    /// Panics if a descriptor more is open, or a child more is there, zombies included, than when stock was taken.
    /// What other threads are about to finish is waited for.
    pub fn check(&self) {
        let more = || -> Vec<RawFd> { open_descriptors().difference(&self.descriptors).copied().collect() };
        let born = || -> Vec<(i32, char)> {
            children().into_iter().filter(|(pid, _)| !self.children.contains(pid)).collect()
        };
        let clean =
            crate::eventually(std::time::Duration::from_secs(5), || more().is_empty() && born().is_empty());
        assert!(
            clean,
            "descriptors more: {:?} of {:#?}\nchildren more: {:?}",
            more(),
            describe_descriptors(),
            born()
        );
    }

    /// Panics if a descriptor is gone that was open when stock was taken.
    pub fn check_none_lost(&self) {
        let lost: Vec<_> = self.descriptors.difference(&open_descriptors()).copied().collect();
        assert!(lost.is_empty(), "descriptors gone: {lost:?}");
    }
}

/// Makes the kernel refuse these system calls with `errno`, on this thread and what it starts from now on.
///
/// # Errors
/// Why no filter can be set here.
#[cfg(target_os = "linux")]
pub fn refuse(calls: &[libc::c_long], errno: i32) -> Result<(), String> {
    use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
    let rules = calls.iter().map(|&c| (c, vec![])).collect();
    let arch = std::env::consts::ARCH.try_into().map_err(|e| format!("{e:?}"))?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)
        .map_err(|e| e.to_string())?;
    let program: seccompiler::BpfProgram =
        filter.try_into().map_err(|e: seccompiler::BackendError| e.to_string())?;
    apply_filter(&program).map_err(|e| e.to_string())
}

/// Makes the kernel kill a process that makes one of these system calls, on this thread and what it starts.
///
/// # Errors
/// Why no filter can be set here.
#[cfg(target_os = "linux")]
pub fn kill_on(calls: &[libc::c_long]) -> Result<(), String> {
    use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
    let rules = calls.iter().map(|&c| (c, vec![])).collect();
    let arch = std::env::consts::ARCH.try_into().map_err(|e| format!("{e:?}"))?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::KillProcess, arch)
        .map_err(|e| e.to_string())?;
    let program: seccompiler::BpfProgram =
        filter.try_into().map_err(|e: seccompiler::BackendError| e.to_string())?;
    apply_filter(&program).map_err(|e| e.to_string())
}

/// Holds launches of one thread at one system call, so that a test can do something at exactly that moment.
#[cfg(target_os = "linux")]
pub struct Held {
    listener: std::os::fd::OwnedFd,
}

/// From now on `call`, made by this thread or its children, waits for [`Held::next`] on another thread.
///
/// # Errors
/// Why no filter can be set here.
#[cfg(target_os = "linux")]
pub fn hold(call: libc::c_long) -> Result<Held, String> {
    use std::os::fd::FromRawFd;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let f = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number of the system call stands first in what a filter looks at.
    let mut filter = [
        f(LOAD, 0, 0, 0),
        f(EQUAL, 0, 1, call as u32),
        f(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        f(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it; the new descriptor belongs to nobody else.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error().to_string());
        }
        let (set, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
        let fd = libc::syscall(libc::SYS_seccomp, set, flags, &program);
        if fd < 0 {
            return Err(io::Error::last_os_error().to_string());
        }
        Ok(Held { listener: std::os::fd::OwnedFd::from_raw_fd(fd as i32) })
    }
}

#[cfg(target_os = "linux")]
impl Held {
    /// Waits for the next such call, does `meanwhile` while it is held, and lets it go on.
    pub fn next(&self, meanwhile: impl FnOnce()) {
        const RECEIVE: u64 = 0xc000_2100 | (size_of::<libc::seccomp_notif>() as u64) << 16;
        const SEND: u64 = 0xc000_2101 | (size_of::<libc::seccomp_notif_resp>() as u64) << 16;
        // SAFETY: both structures are ours and of the size that the requests name.
        unsafe {
            let mut seen: libc::seccomp_notif = std::mem::zeroed();
            let r = libc::ioctl(self.listener.as_raw_fd(), RECEIVE as _, &mut seen);
            assert_eq!(r, 0, "SECCOMP_IOCTL_NOTIF_RECV: {}", io::Error::last_os_error());
            meanwhile();
            let mut answer: libc::seccomp_notif_resp = std::mem::zeroed();
            answer.id = seen.id;
            answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            let r = libc::ioctl(self.listener.as_raw_fd(), SEND as _, &mut answer);
            assert_eq!(r, 0, "SECCOMP_IOCTL_NOTIF_SEND: {}", io::Error::last_os_error());
        }
    }
}

/// Whether every dropped child is reaped in time. Where the library was told to do without its watcher, launches do
/// it, so there a launch is made at each look.
pub fn all_reaped(kid: &str) -> bool {
    crate::eventually(std::time::Duration::from_secs(20), || {
        if crate::forced("no_watcher") {
            let _ = haft::process::Command::new(kid).args(["exit", "0"]).status();
        }
        children().is_empty()
    })
}
