//! What only Linux tells or lets one do: the page cache's answers, file systems, threads, and memory that stalls whoever
//! touches it.

use haft::fs::{File, IoBuf, IoBufMut};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// Whether the file system of `path` answers `preadv2(RWF_NOWAIT)` from the page cache, and the library is not asked
/// to do without it. The file must hold a byte.
pub fn takes_nowait(path: &Path) -> bool {
    if crate::forced("no_nowait") {
        return false;
    }
    let file = std::fs::File::open(path).expect("the file opens");
    let mut byte = [0_u8];
    // SAFETY: the arguments are ours and outlive the call.
    unsafe {
        libc::pread(file.as_raw_fd(), byte.as_mut_ptr().cast(), 1, 0);
        let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        libc::preadv2(file.as_raw_fd(), &part, 1, 0, libc::RWF_NOWAIT) == 1
    }
}

/// The name of the file system of `path`, as far as these suites tell them apart.
pub fn file_system(path: &Path) -> &'static str {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: the structure is ours.
    let kind = unsafe {
        let mut fs: libc::statfs = std::mem::zeroed();
        assert_eq!(libc::statfs(path.as_ptr(), &mut fs), 0, "{}", io::Error::last_os_error());
        fs.f_type
    };
    match kind as i64 {
        0xEF53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x794C_7630 => "overlayfs",
        _ => "another",
    }
}

/// The threads of this process that have this name.
pub fn threads_named(name: &str) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| {
            std::fs::read_to_string(format!("/proc/self/task/{tid}/comm"))
                .is_ok_and(|comm| comm.trim() == name)
        })
        .collect()
}

/// A mask of signals of one thread, from its status: `SigBlk`, `SigPnd`.
pub fn signals_of(tid: i32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// `struct uffdio_api`.
#[repr(C)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`, and `struct uffdio_zeropage` too.
#[repr(C)]
struct UffdRange {
    start: u64,
    len: u64,
    mode: u64,
    result: u64,
}

/// `struct uffdio_copy`.
#[repr(C)]
struct UffdCopy {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

// _IOWR(0xAA, number, structure), on the architectures that haft runs on.
const fn uffdio<T>(number: u64) -> u64 {
    0xC000_0000 | (size_of::<T>() as u64) << 16 | 0xAA00 | number
}

/// Memory that nobody has provided yet: whoever touches it, the kernel on a worker's behalf too, stays in that
/// access until the test provides it. This is how a worker is stalled in the middle of a system call.
pub struct Fault {
    uffd: OwnedFd,
    at: usize,
    len: usize,
    life: Arc<FaultLife>,
}

/// What became of the buffer over a [`Fault`]'s memory.
#[derive(Default)]
pub struct FaultLife {
    drops: AtomicUsize,
    provided: AtomicBool,
    early: AtomicBool,
}

impl FaultLife {
    /// How often the buffer was dropped.
    pub fn drops(&self) -> usize {
        self.drops.load(Acquire)
    }

    /// Whether it was dropped while somebody was still in it.
    pub fn was_early(&self) -> bool {
        self.early.load(Acquire)
    }
}

/// The memory of a [`Fault`], as a buffer to read into or to write from. `BULK` makes the value larger.
pub struct FaultBuffer<const BULK: usize> {
    at: usize,
    len: usize,
    life: Arc<FaultLife>,
    panics: bool,
    _bulk: [u8; BULK],
}

/// What a test says where the system does not let it stall anybody.
pub type Refused = String;

impl Fault {
    /// So many bytes, a multiple of the page's size.
    ///
    /// # Errors
    /// Why it cannot be had: without privileges, the kernel's own accesses may not be stalled.
    pub fn new(len: usize) -> Result<Fault, Refused> {
        let failed = |what: &str| format!("{what}: {}", io::Error::last_os_error());
        // SAFETY: the calls concern a descriptor and a mapping of our own. The mapping is never unmapped: whoever
        // used it too late would else hit what took its place.
        unsafe {
            let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK);
            if fd < 0 {
                return Err(failed("userfaultfd"));
            }
            let uffd = OwnedFd::from_raw_fd(fd as i32);
            let mut api = UffdApi { api: 0xAA, features: 0, ioctls: 0 };
            if libc::ioctl(uffd.as_raw_fd(), uffdio::<UffdApi>(0x3F) as _, &mut api) != 0 {
                return Err(failed("UFFDIO_API"));
            }
            let at = libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(failed("mmap"));
            }
            // UFFDIO_REGISTER_MODE_MISSING
            let mut range = UffdRange { start: at as u64, len: len as u64, mode: 1, result: 0 };
            if libc::ioctl(uffd.as_raw_fd(), uffdio::<UffdRange>(0) as _, &mut range) != 0 {
                return Err(failed("UFFDIO_REGISTER"));
            }
            Ok(Fault { uffd, at: at as usize, len, life: Arc::default() })
        }
    }

    /// The buffer, and the record of its life. To be called once.
    pub fn buffer<const BULK: usize>(&self) -> (Arc<FaultLife>, FaultBuffer<BULK>) {
        let life = Arc::clone(&self.life);
        (Arc::clone(&life), FaultBuffer { at: self.at, len: self.len, life, panics: false, _bulk: [0; BULK] })
    }

    /// Waits until somebody is stalled.
    pub fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.uffd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure is ours. The message is not read: it stays until the page is there.
        let ready = unsafe { libc::poll(&mut poll, 1, 10_000) };
        assert_eq!(ready, 1, "nobody touched the memory within 10 s");
    }

    /// Whether somebody is stalled now.
    pub fn is_touched(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.uffd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure is ours.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    /// Provides the memory, holding `bytes` and then zeros: whoever is stalled goes on.
    pub fn provide(&self, bytes: &[u8]) {
        let mut whole = vec![0_u8; self.len];
        whole[..bytes.len()].copy_from_slice(bytes);
        self.life.provided.store(true, SeqCst);
        let mut copy = UffdCopy {
            to: self.at as u64,
            from: whole.as_ptr() as u64,
            len: self.len as u64,
            mode: 0,
            copied: 0,
        };
        // SAFETY: both ranges are ours and of that length.
        let r = unsafe { libc::ioctl(self.uffd.as_raw_fd(), uffdio::<UffdCopy>(3) as _, &mut copy) };
        assert_eq!(r, 0, "UFFDIO_COPY: {}", io::Error::last_os_error());
    }

    /// What the memory holds, once it was provided.
    pub fn bytes(&self) -> Vec<u8> {
        assert!(self.life.provided.load(SeqCst), "the memory is not there yet");
        // SAFETY: the mapping stays for ever.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.len).to_vec() }
    }
}

impl Drop for Fault {
    /// A test that fails must not leave a thread behind that nobody can end.
    fn drop(&mut self) {
        if !self.life.provided.load(SeqCst) {
            self.provide(&[]);
        }
    }
}

impl<const BULK: usize> std::fmt::Debug for FaultBuffer<BULK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultBuffer").finish_non_exhaustive()
    }
}

impl<const BULK: usize> FaultBuffer<BULK> {
    /// Its drop panics, after it was counted.
    pub fn panicking(mut self) -> Self {
        self.panics = true;
        self
    }
}

impl<const BULK: usize> Drop for FaultBuffer<BULK> {
    fn drop(&mut self) {
        if !self.life.provided.load(SeqCst) {
            self.life.early.store(true, SeqCst);
        }
        self.life.drops.fetch_add(1, AcqRel);
        assert!(!self.panics, "the drop of this buffer panics");
    }
}

// SAFETY: the mapping stays where it is.
unsafe impl<const BULK: usize> IoBuf for FaultBuffer<BULK> {
    fn as_io_ptr(&self) -> *const u8 {
        self.at as *const u8
    }

    fn io_len(&self) -> usize {
        self.len
    }
}

// SAFETY: as above; it is writable.
unsafe impl<const BULK: usize> IoBufMut for FaultBuffer<BULK> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.at as *mut u8
    }

    fn io_room(&self) -> usize {
        self.len
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

/// A private mount namespace, with `kind` mounted on the folder that comes back.
///
/// # Errors
/// Why it cannot be mounted.
pub fn mounted(
    kind: &str,
    options: impl Fn(&Path) -> String,
) -> Result<(tempfile::TempDir, PathBuf), String> {
    let folder = tempfile::tempdir().unwrap();
    let failed = |what: &str| format!("{what}: {}", io::Error::last_os_error());
    for name in ["lower", "upper", "work", "mount"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let c = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let target = folder.path().join("mount");
    let (kind, options) = (c(Path::new(kind)), c(Path::new(&options(folder.path()))));
    // SAFETY: the strings outlive the calls. The namespace is this thread's, in a process of its own.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) != 0 {
            return Err(failed("unshare"));
        }
        let root = c"/".as_ptr();
        if libc::mount(
            std::ptr::null(),
            root,
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        ) != 0
        {
            return Err(failed("making mounts private"));
        }
        if libc::mount(kind.as_ptr(), c(&target).as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) != 0 {
            return Err(failed("mount"));
        }
    }
    Ok((folder, target))
}

/// An overlay file system, mounted in a namespace of its own.
///
/// # Errors
/// Why it cannot be mounted.
pub fn overlay() -> Result<(tempfile::TempDir, PathBuf), String> {
    mounted("overlay", |base| {
        let base = base.display();
        format!("lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work")
    })
}

/// Has the system forget cached pages of this range.
pub fn evict(file: &File, at: i64, len: i64) {
    file.sync_all().expect("it is on the device");
    // SAFETY: an advice on an open file.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), at, len, libc::POSIX_FADV_DONTNEED) };
}
