//! What a file does, held against std: sync and async, inline and through the pool, on the file
//! systems that differ.
#![cfg(target_os = "linux")]

use haft::engine::Engine;
use haft::fs::{File, OpenOptions};
use haft_tests::files::{
    Fault, HeldWorkers, block_on, engines, evict, file_system, file_with, mounted, overlay, pattern, poll,
    pool_engine, read_write, takes_nowait,
};
use haft_tests::{eventually, is_cloexec, is_root, isolated, refuse, skip, watchdog};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(5);

// ClickHouse#70299: one file system without NOWAIT must not switch it off for another.
#[test]
fn a_file_system_that_refuses_nowait_is_asked_once_a_file_and_switches_nothing_off() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cached");
        std::fs::write(&path, b"cached").unwrap();
        if !takes_nowait(&path) {
            skip!("the file system of {} refuses RWF_NOWAIT", folder.path().display());
        }
        let (_base, overlay) = match overlay() {
            Ok(mounted) => mounted,
            Err(why) => skip!("no overlayfs can be mounted: {why}"),
        };
        let engine = Engine::builder().build();
        let refusing = file_with(&engine, &overlay, b"overlaid");
        if takes_nowait(
            &overlay.join(std::fs::read_dir(&overlay).unwrap().next().unwrap().unwrap().file_name()),
        ) {
            skip!("overlayfs takes RWF_NOWAIT here");
        }
        let taking = OpenOptions::new().read(true).engine(&engine).open(&path).unwrap();
        for _ in 0..20 {
            assert_eq!(block_on(refusing.read_exact_at_async(vec![0; 8], 0)).unwrap(), b"overlaid");
            assert_eq!(block_on(taking.read_exact_at_async(vec![0; 6], 0)).unwrap(), b"cached");
        }
        let stats = engine.stats();
        assert_eq!((stats.inline_hits, stats.inline_unsupported, stats.queued), (20, 1, 20), "{stats:?}");
    });
}

// --------------------------------------------------------------------------------------------------- against std

type Told = Result<usize, (ErrorKind, Option<i32>)>;

fn told(result: io::Result<usize>) -> Told {
    result.map_err(|e| (e.kind(), e.raw_os_error()))
}

/// What a file is asked to do, on a buffer of so many bytes.
#[derive(Clone, Copy, Debug)]
enum Call {
    Read(usize, u64),
    ReadExact(usize, u64),
    Write(usize, u64),
    WriteAll(usize, u64),
    SetLen(u64),
    SyncAll,
    SyncData,
}

fn by_std(file: &std::fs::File, call: Call) -> Told {
    told(match call {
        Call::Read(len, at) => file.read_at(&mut vec![0; len], at),
        Call::ReadExact(len, at) => file.read_exact_at(&mut vec![0; len], at).map(|()| len),
        Call::Write(len, at) => file.write_at(&vec![b'w'; len], at),
        Call::WriteAll(len, at) => file.write_all_at(&vec![b'w'; len], at).map(|()| len),
        Call::SetLen(len) => file.set_len(len).map(|()| 0),
        Call::SyncAll => file.sync_all().map(|()| 0),
        Call::SyncData => file.sync_data().map(|()| 0),
    })
}

fn by_haft(file: &File, call: Call) -> Told {
    told(match call {
        Call::Read(len, at) => file.read_at(&mut vec![0; len], at),
        Call::ReadExact(len, at) => file.read_exact_at(&mut vec![0; len], at).map(|()| len),
        Call::Write(len, at) => file.write_at(&vec![b'w'; len], at),
        Call::WriteAll(len, at) => file.write_all_at(&vec![b'w'; len], at).map(|()| len),
        Call::SetLen(len) => file.set_len(len).map(|()| 0),
        Call::SyncAll => file.sync_all().map(|()| 0),
        Call::SyncData => file.sync_data().map(|()| 0),
    })
}

fn by_await(file: &File, call: Call) -> Told {
    told(block_on(async {
        Ok(match call {
            Call::Read(len, at) => file.read_at_async(vec![0; len], at).await?.0,
            Call::ReadExact(len, at) => file.read_exact_at_async(vec![0; len], at).await?.len(),
            Call::Write(len, at) => file.write_at_async(vec![b'w'; len], at).await?.0,
            Call::WriteAll(len, at) => file.write_all_at_async(vec![b'w'; len], at).await?.len(),
            Call::SetLen(len) => file.set_len_async(len).await.map(|()| 0)?,
            Call::SyncAll => file.sync_all_async().await.map(|()| 0)?,
            Call::SyncData => file.sync_data_async().await.map(|()| 0)?,
        })
    }))
}

const MAX: u64 = i64::MAX as u64;

const CALLS: [Call; 24] = [
    Call::Read(8, 0),
    Call::Read(8, 1000),
    Call::Read(0, 0),
    Call::ReadExact(8, 0),
    Call::ReadExact(8, 1000),
    Call::Write(8, 0),
    Call::Write(0, 0),
    Call::WriteAll(8, 0),
    Call::SyncAll,
    Call::SyncData,
    Call::SetLen(4096),
    // Offsets around the largest, and what a careless sum makes of them.
    Call::Read(8, MAX),
    Call::Read(8, MAX - 8),
    Call::Read(8, MAX - 7),
    Call::Read(8, MAX + 1),
    Call::Read(8, u64::MAX - 7),
    Call::ReadExact(8, MAX + 1),
    Call::Write(8, MAX),
    Call::Write(8, MAX + 1),
    Call::WriteAll(8, u64::MAX - 3),
    Call::SetLen(MAX + 1),
    Call::SetLen(u64::MAX),
    // preadv2 takes this one, -1, for "where the cursor is".
    Call::Read(8, u64::MAX),
    Call::ReadExact(8, u64::MAX),
];

/// Where errors must agree in kind only: std finds out without the system that a length is too large, and then has no
/// number to tell.
fn comparable(call: Call, told: Told) -> Told {
    match (call, told) {
        (Call::SetLen(len), Err((kind, _))) if len > MAX => Err((kind, None)),
        (_, told) => told,
    }
}

/// Compares every call on what `open` opens, and panics with a table of what differs.
fn like_std(what: &str, open: impl Fn() -> OwnedFd) {
    let mut table = String::new();
    for call in CALLS {
        let expected = comparable(call, by_std(&std::fs::File::from(open()), call));
        let mut compare = |how: &str, got: Told| {
            let got = comparable(call, got);
            if got != expected {
                table += &format!("\n{what}, {call:?}: std {expected:?}, haft {how} {got:?}");
            }
        };
        compare("sync", by_haft(&Engine::default().adopt(open()), call));
        for (name, engine) in engines() {
            compare(name, by_await(&engine.adopt(open()), call));
        }
    }
    assert!(table.is_empty(), "{table}");
}

/// A file of some kilobytes, opened anew with these flags each time.
fn opens(path: &Path, flags: i32) -> impl Fn() -> OwnedFd + use<'_> {
    move || {
        let access = flags & libc::O_ACCMODE;
        std::fs::OpenOptions::new()
            .read(access != libc::O_WRONLY)
            .write(access != libc::O_RDONLY)
            .custom_flags(flags)
            .open(path)
            .unwrap()
            .into()
    }
}

fn some_file(folder: &Path) -> PathBuf {
    let path = folder.join("some");
    std::fs::write(&path, pattern(1, 4096)).unwrap();
    path
}

/// On each file system that there is.
fn each_folder(check: impl Fn(&Path)) {
    check(tempfile::tempdir().unwrap().path());
    if let Ok(folder) = tempfile::tempdir_in("/dev/shm") {
        check(folder.path());
    }
}

#[test]
fn errors_are_stds_on_a_file_to_read_and_write() {
    each_folder(|folder| like_std("read and write", opens(&some_file(folder), libc::O_RDWR)));
}

#[test]
fn errors_are_stds_on_a_file_to_read_only() {
    each_folder(|folder| {
        let path = some_file(folder);
        like_std("read only", opens(&path, libc::O_RDONLY));
        let file = haft::fs::File::open(&path).unwrap();
        assert_eq!(file.write_at(b"x", 0).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(file.set_len(1).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn errors_are_stds_on_a_file_to_write_only() {
    each_folder(|folder| like_std("write only", opens(&some_file(folder), libc::O_WRONLY)));
}

#[test]
fn errors_are_stds_on_a_directory() {
    each_folder(|folder| {
        like_std("a directory", opens(folder, libc::O_RDONLY));
        let file = File::open(folder).unwrap();
        for engine in [Engine::default(), pool_engine(1)] {
            let file =
                OpenOptions::new().read(true).engine(&engine).open(folder).map(|_| file.clone()).unwrap();
            assert_eq!(
                block_on(file.read_at_async(vec![0; 1], 0)).unwrap_err().kind(),
                ErrorKind::IsADirectory
            );
        }
    });
}

// node#15497
#[test]
fn errors_are_stds_on_pipes_sockets_and_terminals() {
    watchdog!();
    let pipe = || std::io::pipe().unwrap();
    like_std("the reading end of a pipe", || pipe().0.into());
    like_std("the writing end of a pipe", || pipe().1.into());
    like_std("a socket", || std::os::unix::net::UnixStream::pair().unwrap().0.into());
    let (reader, writer) = pipe();
    let file = File::from(OwnedFd::from(reader));
    assert_eq!(file.read_at(&mut [0], 0).unwrap_err().kind(), ErrorKind::NotSeekable);
    assert_eq!(
        block_on(file.read_at_async(vec![0], 0)).unwrap_err().error().raw_os_error(),
        Some(libc::ESPIPE)
    );
    drop(writer);
    if let Ok(terminal) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx") {
        like_std("a terminal", || terminal.try_clone().unwrap().into());
    }
}

#[test]
fn errors_are_stds_on_devices() {
    like_std("/dev/null", opens(Path::new("/dev/null"), libc::O_RDWR));
    like_std("/dev/zero", opens(Path::new("/dev/zero"), libc::O_RDWR));
    like_std("/dev/full", opens(Path::new("/dev/full"), libc::O_RDWR));
    let full = read_write().create(false).open("/dev/full").unwrap();
    let error = block_on(full.write_all_at_async(vec![0; 100], 0)).unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::StorageFull, 0));
}

// An offset that preadv2 takes for "at the cursor". Fails when `read_nowait` (fs/sys/unix/mod.rs) hands u64::MAX on.
#[test]
fn the_largest_offset_is_an_error_and_never_the_cursor() {
    each_folder(|folder| {
        for (name, engine) in engines() {
            let file = file_with(&engine, folder, b"from the start");
            // SAFETY: asks where the cursor is.
            let cursor = || unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_CUR) };
            let ended = block_on(file.read_at_async(vec![0; 4], u64::MAX));
            let kind = ended.map(|(_, bytes)| bytes).map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::InvalidInput), "{name}");
            assert_eq!(cursor(), 0, "{name}: the cursor moved");
        }
    });
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    io::Write::write_all(&mut writer, b"not to be taken").unwrap();
    let file = File::from(OwnedFd::from(reader.try_clone().unwrap()));
    let ended = block_on(file.read_at_async(vec![0; 4], u64::MAX));
    assert_eq!(ended.map(|(_, bytes)| bytes).map_err(|e| e.kind()), Err(ErrorKind::InvalidInput), "as pread");
    drop(writer);
    assert_eq!(io::read_to_string(&mut reader).unwrap(), "not to be taken");
}

// A wrong offset says nothing about the file system. Fails when `unusual` (engine/inline.rs) takes the EINVAL of a wrong
// offset for a refusal of RWF_NOWAIT, and never tries again on this handle.
#[test]
fn a_refused_offset_does_not_switch_inline_reads_off() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder().build();
    let file = file_with(&engine, folder.path(), b"cached bytes");
    block_on(file.read_at_async(vec![0; 4], 0)).unwrap();
    if engine.stats().inline_hits == 0 {
        skip!("the file system of {} refuses RWF_NOWAIT", folder.path().display());
    }
    for offset in [MAX + 1, MAX, u64::MAX - 1] {
        let kind = block_on(file.read_at_async(vec![0; 4], offset)).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidInput));
    }
    let before = engine.stats();
    block_on(file.read_exact_at_async(vec![0; 4], 0)).unwrap();
    let after = engine.stats();
    assert_eq!(after.inline_hits, before.inline_hits + 1, "{after:?}");
    assert_eq!(after.inline_unsupported, 0, "{after:?}");
}

// -------------------------------------------------------------------------------------------------- file systems

// rayforce#572, go#72080: the size is 0, or a page, and the content is another thing.
#[test]
fn files_of_proc_and_sys_are_read_whole() {
    watchdog!();
    let paths = [
        "/proc/self/maps",
        "/proc/cpuinfo",
        "/proc/self/limits",
        "/proc/filesystems",
        "/proc/sys/kernel/ostype",
        "/proc/kallsyms",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ];
    for path in paths {
        let Ok(expected) = std::fs::read(path) else { continue };
        for (name, engine) in engines() {
            let file = OpenOptions::new().read(true).engine(&engine).open(path).unwrap();
            let room = (expected.len() + 64 * 1024).max(100_000);
            for _ in 0..2 {
                let (read, bytes) = block_on(file.read_at_async(vec![0; room], 0)).unwrap();
                if path.contains("maps") {
                    // It changes; but it comes whole, to the last line.
                    assert!(bytes[..read].ends_with(b"\n") && read > 1000, "{path}, {name}");
                } else {
                    assert_eq!(read, expected.len(), "{path}, {name}");
                    assert!(bytes[..read] == expected[..], "{path}, {name}");
                }
            }
            let part = block_on(file.read_at_async(vec![0; 5], 2)).unwrap();
            assert_eq!(part.1[..part.0], expected[2..2 + part.0], "{path}, {name}");
        }
    }
}

// A short count is not the end of the file: tokio#3803, ClickHouse#39800. Fails when `unusual` (engine/inline.rs) believes
// a short count.
#[test]
fn a_range_that_is_cached_in_part_comes_whole() {
    watchdog!();
    const PAGES: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let expected = pattern(1, PAGES * 4096);
    let mut partials = 0;
    for keep in [1_u64, 3, 17, 40] {
        for at in [0_u64, 100, 4095] {
            let engine = Engine::builder().inline_limit(1 << 20).build();
            let file = file_with(&engine, folder.path(), b"");
            // Page by page, so that the cache holds pages and no larger units.
            for page in 0..PAGES {
                let from = page * 4096;
                file.write_all_at(&expected[from..from + 4096], from as u64).unwrap();
            }
            // What comes before is kept, what comes after is not; and the other way round.
            evict(&file, (keep * 4096) as i64, 0);
            let len = PAGES * 4096 - at as usize;
            let (read, bytes) = block_on(file.read_at_async(vec![0; len], at)).unwrap();
            assert_eq!(read, len);
            assert!(bytes == expected[at as usize..]);
            partials += engine.stats().inline_partials;
            evict(&file, 0, (keep * 4096) as i64);
            let bytes = block_on(file.read_exact_at_async(vec![0; len], at)).unwrap();
            assert!(bytes == expected[at as usize..]);
        }
    }
    if file_system(folder.path()) == "ext4" && !haft_tests::forced("no_nowait") {
        assert!(partials > 0, "some attempts brought a part");
    }
}

fn available_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap_or("0 kB");
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() * 1024
}

// dotnet#108322, rust#38590: one system call moves 0x7ffff000 bytes at most.
#[test]
fn more_than_two_gib_at_once() {
    watchdog!(120);
    const LEN: usize = 0x7fff_f000 + 50 * 1024 * 1024;
    let folder = match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) if file_system(folder.path()) == "tmpfs" => folder,
        _ => skip!("no tmpfs at /dev/shm, and a file on disk takes too long"),
    };
    if available_memory() < 6 << 30 {
        skip!("{} MiB of memory are available, of 6 GiB", available_memory() >> 20);
    }
    let engine = pool_engine(1);
    let file = file_with(&engine, folder.path(), b"first");
    file.write_all_at(b"after the seam", 0x7fff_f000 - 5).unwrap();
    file.write_all_at(b"last", LEN as u64 - 4).unwrap();
    let whole = block_on(file.read_exact_at_async(vec![0; LEN], 0)).unwrap();
    assert_eq!(&whole[..5], b"first");
    assert_eq!(&whole[0x7fff_f000 - 5..0x7fff_f000 + 9], b"after the seam");
    assert_eq!(&whole[LEN - 4..], b"last");
    // Sync, it is one system call.
    let mut whole = whole;
    assert_eq!(file.read_at(&mut whole, 0).unwrap(), 0x7fff_f000);
    // A sink, so that writing it costs no memory.
    let null = OpenOptions::new().write(true).engine(&engine).open("/dev/null").unwrap();
    let (written, whole) = block_on(null.write_at_async(whole, 0)).unwrap();
    assert_eq!((written, whole.len()), (LEN, LEN));
}

// ------------------------------------------------------------------------------------------------------- opening

#[test]
fn every_combination_of_options_does_what_stds_does() {
    // What std finds wrong by itself has no number in newer versions.
    let number = |e: &io::Error| e.raw_os_error().filter(|_| e.kind() != ErrorKind::InvalidInput);
    let outcome = |result: io::Result<()>| result.map_err(|e| (e.kind(), number(&e)));
    for bits in 0..32_u32 {
        for exists in [true, false] {
            let on = |n: u32| bits & 1 << n != 0;
            let run = |open: &dyn Fn(&Path) -> io::Result<()>| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("it");
                if exists {
                    std::fs::write(&path, b"before").unwrap();
                }
                let opened = outcome(open(&path));
                (opened, std::fs::read(&path).ok())
            };
            let std = run(&|path| {
                std::fs::OpenOptions::new()
                    .read(on(0))
                    .write(on(1))
                    .truncate(on(2))
                    .create(on(3))
                    .create_new(on(4))
                    .open(path)
                    .map(drop)
            });
            let haft = run(&|path| {
                OpenOptions::new()
                    .read(on(0))
                    .write(on(1))
                    .truncate(on(2))
                    .create(on(3))
                    .create_new(on(4))
                    .open(path)
                    .map(drop)
            });
            assert_eq!(haft, std, "options {bits:05b}, the file exists: {exists}");
        }
    }
}

#[test]
fn opening_fails_as_in_std() {
    let folder = tempfile::tempdir().unwrap();
    let file = some_file(folder.path());
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    let paths = [
        folder.path().join("missing"),
        folder.path().join("missing/below"),
        file.join("below a file"),
        folder.path().join("loop"),
        folder.path().join("n".repeat(256)),
        folder.path().to_owned(),
        PathBuf::from(""),
        PathBuf::from("/proc/1/mem"),
    ];
    for path in paths {
        for write in [false, true] {
            let std = std::fs::OpenOptions::new().read(true).write(write).open(&path).map(drop);
            let haft = OpenOptions::new().read(true).write(write).open(&path).map(drop);
            let number = |r: io::Result<()>| r.map_err(|e| (e.kind(), e.raw_os_error()));
            assert_eq!(number(haft), number(std), "{}, to write: {write}", path.display());
        }
    }
}

#[test]
fn paths_of_any_length_and_without_nul() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    // Up to 384 bytes a path is terminated on the stack; names have 255 at most.
    for len in [200, 382, 383, 384, 385, 386, 1000, 4095, 4096, 5000] {
        let mut path = base.to_owned();
        while path.as_os_str().len() + 202 < len {
            path.push("d".repeat(200));
        }
        let made = std::fs::create_dir_all(&path);
        let left = len - path.as_os_str().len() - 1;
        path.push("f".repeat(left.min(255)));
        let len = path.as_os_str().len();
        let std = std::fs::File::create(&path).map(drop).map_err(|e| e.raw_os_error());
        let haft = File::create(&path).map(drop).map_err(|e| e.raw_os_error());
        assert_eq!(haft, std, "a path of {len} bytes, {made:?}");
        assert_eq!(haft.is_ok(), len < 4096, "a path of {len} bytes");
        if haft.is_ok() {
            let file = read_write().open(&path).unwrap();
            file.write_all_at(b"x", 0).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"x");
        }
    }
    for len in [1, 100, 382, 383, 384, 385, 1000] {
        for at in [0, len / 2, len - 1] {
            let mut bytes = vec![b'p'; len];
            bytes[at] = 0;
            let error = File::open(OsStr::from_bytes(&bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "NUL at {at} of {len}");
        }
    }
}

#[test]
fn descriptors_are_not_inherited() {
    let folder = tempfile::tempdir().unwrap();
    let path = some_file(folder.path());
    for file in [
        File::open(&path).unwrap(),
        File::create(folder.path().join("new")).unwrap(),
        read_write().custom_flags(libc::O_APPEND).open(&path).unwrap(),
    ] {
        assert!(is_cloexec(file.as_raw_fd()));
    }
}

#[test]
fn the_mode_of_a_new_file() {
    isolated!({
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: sets the mask of this process.
        unsafe { libc::umask(0o022) };
        for (mode, expected) in
            [(None, 0o644), (Some(0o600), 0o600), (Some(0o777), 0o755), (Some(0o400), 0o400)]
        {
            let path = folder.path().join(format!("{mode:?}"));
            let mut options = read_write();
            if let Some(mode) = mode {
                options.mode(mode);
            }
            options.open(&path).unwrap().write_all_at(b"x", 0).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, expected);
        }
    });
}

// rust#113627, tokio-uring#92: Linux would append, whatever the offset. Fails when `traits` (fs/open_options.rs) says
// that no handle appends.
#[test]
fn positioned_writes_on_appending_handles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = some_file(folder.path());
    let appending = || std::fs::OpenOptions::new().read(true).append(true).open(&path).unwrap();
    let files = [
        File::from(appending()),
        Engine::default().adopt(OwnedFd::from(appending())),
        pool_engine(1).adopt(appending()),
        read_write().custom_flags(libc::O_APPEND).open(&path).unwrap(),
    ];
    for file in files {
        let refused = |kind: ErrorKind| assert_eq!(kind, ErrorKind::InvalidInput);
        refused(file.write_at(b"x", 0).unwrap_err().kind());
        refused(file.write_all_at(b"x", 0).unwrap_err().kind());
        let error = block_on(file.write_at_async(b"x", 0)).unwrap_err();
        assert!(error.to_string().contains("O_APPEND"), "{error}");
        refused(error.kind());
        let (error, done, buffer) =
            block_on(file.write_all_at_async(vec![7; 3], 9)).unwrap_err().into_parts();
        refused(error.kind());
        assert_eq!((done, buffer), (0, vec![7; 3]), "the buffer comes back");
        assert_eq!(file.len().unwrap(), 4096, "and nothing was written");
        assert_eq!(block_on(file.read_exact_at_async(vec![0; 4], 0)).unwrap(), pattern(1, 4));
        file.set_len(4096).unwrap();
    }
}

/// A buffer whose bytes begin where a device wants them.
fn aligned(len: usize) -> haft::fs::Slice<Vec<u8>> {
    use haft::fs::IoBuf;
    let buffer = vec![0_u8; len + 4096];
    let at = buffer.as_ptr().align_offset(4096);
    buffer.slice(at..at + len)
}

// On a handle that bypasses the cache the attempt would wait for the device. Fails when `traits` (fs/open_options.rs)
// ignores the flag.
#[test]
fn direct_handles_are_never_tried_inline() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("direct");
    std::fs::write(&path, pattern(1, 16 * 4096 + 100)).unwrap();
    let engine = Engine::builder().build();
    let Ok(file) = read_write().engine(&engine).custom_flags(libc::O_DIRECT).open(&path) else {
        skip!("{} takes no O_DIRECT", file_system(folder.path()));
    };
    let adopted = engine
        .adopt(std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap());
    for file in [&file, &adopted] {
        for page in 0..16_u64 {
            let part = block_on(file.read_exact_at_async(aligned(4096), page * 4096)).unwrap();
            let at = part.get_ref().as_ptr().align_offset(4096);
            assert!(part.get_ref()[at..at + 4096] == pattern(1, 17 * 4096)[page as usize * 4096..][..4096]);
        }
        // pearl#59: a short tail is the end of the file and no error.
        let read = block_on(file.read_at_async(aligned(8192), 16 * 4096)).map(|(read, _)| read);
        if let Ok(read) = read {
            assert_eq!(read, 100);
        }
    }
    let part = block_on(file.write_all_at_async(aligned(4096), 0)).unwrap();
    drop(part);
    // calibur#7: what the device does not take is an error with its number, and not a loop.
    let odd = block_on(file.read_at_async(aligned(100), 3)).map_err(|e| e.error().raw_os_error());
    if let Err(number) = odd {
        assert_eq!(number, Some(libc::EINVAL));
    }
    let stats = engine.stats();
    let attempts = stats.inline_hits + stats.inline_misses + stats.inline_partials + stats.inline_unsupported;
    assert_eq!(attempts, 0, "{stats:?}");
    assert!(stats.queued >= 33, "{stats:?}");
}

// /dev is a file system in memory, but reading a device in it may wait for ever. Fails when `is_in_memory`
// (fs/sys/unix/mod.rs) looks at the file system alone, and not at the kind of the file.
#[test]
fn a_device_is_never_read_plainly_on_the_calling_thread() {
    watchdog!();
    let Ok(log) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kmsg") else {
        skip!("/dev/kmsg cannot be opened");
    };
    // SAFETY: moves the cursor of our own descriptor past the last message.
    unsafe { libc::lseek(log.as_raw_fd(), 0, libc::SEEK_END) };
    let writer = log.try_clone().unwrap();
    let engine = Engine::builder().threads(1).build();
    let file = engine.adopt(log);
    let polled = std::sync::Arc::new(AtomicBool::new(false));
    let reader = {
        let polled = polled.clone();
        thread::spawn(move || {
            let mut read = Box::pin(file.read_at_async(vec![0; 8192], 0));
            let _ = poll(read.as_mut());
            polled.store(true, SeqCst);
            // The rest of what it wants may never come.
            drop(read);
        })
    };
    let returned = eventually(Duration::from_secs(1), || polled.load(SeqCst));
    // A message, so that whoever reads gets on.
    for _ in 0..3 {
        io::Write::write_all(&mut &writer, b"<7>haft: a test of reading this log").unwrap();
        if eventually(Duration::from_millis(300), || reader.is_finished()) {
            break;
        }
    }
    assert!(returned, "one poll waited for a device");
    reader.join().unwrap();
}

// ------------------------------------------------------------------------------------------- limits and conditions

// The write is cut short at the limit, and the next step is the error: how much was written before is told.
#[test]
fn the_limit_of_a_files_size() {
    isolated!({
        watchdog!();
        const LIMIT: usize = 10_000;
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: a disposition and a limit of this process.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let limit = libc::rlimit { rlim_cur: LIMIT as u64, rlim_max: libc::RLIM_INFINITY };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
        for (name, engine) in engines() {
            let file = file_with(&engine, folder.path(), b"");
            let bytes = pattern(1, LIMIT + 5000);
            let (error, done, back) =
                block_on(file.write_all_at_async(bytes.clone(), 0)).unwrap_err().into_parts();
            assert_eq!(
                (error.kind(), error.raw_os_error()),
                (ErrorKind::FileTooLarge, Some(libc::EFBIG)),
                "{name}"
            );
            assert_eq!((done, back), (LIMIT, bytes.clone()), "{name}");
            let error = block_on(file.write_at_async(bytes.clone(), 4000)).unwrap_err();
            assert_eq!((error.kind(), error.done()), (ErrorKind::FileTooLarge, LIMIT - 4000), "{name}");
            assert_eq!(error.to_string(), format!("{} (after 6000 bytes)", error.error()));
            assert_eq!(file.write_at(&bytes, 0).unwrap(), LIMIT, "sync, it is one system call");
            assert_eq!(file.write_all_at(&bytes, 0).unwrap_err().raw_os_error(), Some(libc::EFBIG));
            assert_eq!(
                block_on(file.set_len_async(LIMIT as u64 + 1)).unwrap_err().kind(),
                ErrorKind::FileTooLarge
            );
            assert_eq!(file.len().unwrap(), LIMIT as u64);
        }
    });
}

// Without SIGXFSZ ignored, a sync write past the limit ends the program; on a worker every signal is blocked.
#[test]
fn a_signal_for_the_limit_does_not_end_the_program_from_a_worker() {
    isolated!({
        watchdog!();
        // More than what this process itself prints into a file.
        const LIMIT: usize = 64 * 1024;
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: a limit of this process.
        unsafe {
            let limit = libc::rlimit { rlim_cur: LIMIT as u64, rlim_max: libc::RLIM_INFINITY };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
        let file = file_with(&pool_engine(1), folder.path(), b"");
        let error = block_on(file.write_all_at_async(vec![1; LIMIT + 300], 0)).unwrap_err();
        assert_eq!((error.kind(), error.done()), (ErrorKind::FileTooLarge, LIMIT));
    });
}

#[test]
fn a_full_disk_tells_how_much_was_written() {
    isolated!({
        watchdog!();
        let (_folder, path) = match mounted("tmpfs", |_| "size=64k".to_owned()) {
            Ok(mounted) => mounted,
            Err(why) => skip!("no file system can be mounted: {why}"),
        };
        for (name, engine) in engines() {
            let file = file_with(&engine, &path, b"");
            let bytes = pattern(1, 200_000);
            let (error, done, back) =
                block_on(file.write_all_at_async(bytes.clone(), 0)).unwrap_err().into_parts();
            assert_eq!(
                (error.kind(), error.raw_os_error()),
                (ErrorKind::StorageFull, Some(libc::ENOSPC)),
                "{name}"
            );
            assert!(done > 0 && done <= 65_536 && done % 4096 == 0, "{name}: {done}");
            assert!(back == bytes);
            let there = block_on(file.read_exact_at_async(vec![0; done], 0)).unwrap();
            assert!(there == bytes[..done], "{name}: what was written is there");
            file.set_len(0).unwrap();
            let read = std::fs::read_dir(&path).unwrap().next().unwrap().unwrap().path();
            std::fs::remove_file(read).unwrap();
        }
    });
}

extern "C" fn nothing(_: libc::c_int) {
    SIGNALS.fetch_add(1, Relaxed);
}

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

// A handler without SA_RESTART, hit thousands of times: every operation does what it should all the same.
#[test]
fn a_storm_of_signals() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: installs a handler that only counts.
        let awaiting = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
            libc::pthread_self()
        };
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    // SAFETY: the thread is there until the scope ends.
                    unsafe { libc::pthread_kill(awaiting, libc::SIGUSR1) };
                    thread::sleep(Duration::from_micros(20));
                }
            });
            let end = Instant::now() + Duration::from_millis(1500);
            let engines = engines();
            let files: Vec<_> =
                engines.iter().map(|(_, engine)| file_with(engine, folder.path(), b"")).collect();
            let bytes = pattern(1, 300_000);
            while Instant::now() < end {
                for file in &files {
                    file.write_all_at(&bytes, 0).unwrap();
                    let mut back = vec![0; bytes.len()];
                    file.read_exact_at(&mut back, 0).unwrap();
                    assert!(back == bytes);
                    file.set_len(5).unwrap();
                    file.sync_data().unwrap();
                    block_on(file.write_all_at_async(bytes.clone(), 0)).unwrap();
                    let back = block_on(file.read_exact_at_async(back, 0)).unwrap();
                    assert!(back == bytes);
                    let small = block_on(file.read_exact_at_async(vec![0; 100], 77)).unwrap();
                    assert!(small == bytes[77..177]);
                    block_on(file.sync_all_async()).unwrap();
                    drop(File::open(folder.path()).unwrap());
                }
            }
            stop.store(true, SeqCst);
        });
        assert!(SIGNALS.load(Relaxed) > 500, "{} signals", SIGNALS.load(Relaxed));
    });
}

// Old kernels and container profiles do not know preadv2, or refuse it.
#[test]
fn reads_go_on_where_preadv2_is_refused() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        for errno in [libc::EPERM, libc::ENOSYS] {
            if let Err(why) = refuse(&[libc::SYS_preadv2], errno) {
                skip!("no filter can be set: {why}");
            }
            let engine = Engine::builder().build();
            each_folder(|folder| {
                let file = file_with(&engine, folder, &pattern(1, 4096));
                for at in 0..100 {
                    let read = block_on(file.read_exact_at_async(vec![0; 64], at)).unwrap();
                    assert_eq!(read, pattern(1, 4096)[at as usize..at as usize + 64]);
                }
            });
            let file = file_with(&engine, folder.path(), b"abc");
            assert_eq!(block_on(file.read_at_async(vec![0; 5], 1)).unwrap().0, 2);
        }
    });
}

// ------------------------------------------------------------------------------------------------- taking it back

#[test]
fn try_into_std_refuses_while_clones_or_operations_are_there() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(1);
    let file = file_with(&engine, folder.path(), b"content");
    let clone = file.clone();
    let file = file.try_into_std().unwrap_err();
    assert_eq!(file.read_at(&mut [0; 7], 0).unwrap(), 7, "it comes back whole");
    drop(clone);

    // Queued: forgotten, since a future that is there borrows the file.
    let held = HeldWorkers::hold(&engine, 1);
    let mut waiting = Box::pin(file.sync_data_async());
    assert!(poll(waiting.as_mut()).is_pending());
    std::mem::forget(waiting);
    let file = file.try_into_std().unwrap_err();
    held.release();
    let mut file = Some(file);
    let mut taken = None;
    assert!(eventually(SOON, || {
        match file.take().unwrap().try_into_std() {
            Ok(std) => taken = Some(std),
            Err(back) => file = Some(back),
        }
        taken.is_some()
    }));
    let file = engine.adopt(taken.unwrap());

    // Dropped while queued, it refuses no more at once.
    let held = HeldWorkers::hold(&engine, 1);
    let mut waiting = Box::pin(file.sync_data_async());
    assert!(poll(waiting.as_mut()).is_pending());
    drop(waiting);
    let file = engine.adopt(file.try_into_std().expect("nothing uses it"));
    held.release();

    // Running, and the future gone.
    let Ok(fault) = Fault::new(4096) else {
        haft_tests::report_skip("try_into_std while an operation runs", "userfaultfd is refused");
        return;
    };
    let (life, buffer) = fault.buffer::<0>();
    let mut running = Box::pin(file.read_at_async(buffer, 0));
    assert!(poll(running.as_mut()).is_pending());
    fault.wait();
    drop(running);
    let file = file.try_into_std().unwrap_err();
    fault.provide(&[]);
    assert!(eventually(SOON, || life.drops() == 1));
    let std = file.try_into_std().expect("the operation has ended, and its buffer is freed after that");
    assert_eq!(FileExt::read_at(&std, &mut [0; 7], 0).unwrap(), 7);
}

#[test]
fn unprivileged_or_not_permissions_are_the_systems() {
    if is_root() {
        skip!("permissions do not apply to root");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed");
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&path).map(drop).unwrap();
    assert_eq!(File::open(&path).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(read_write().open(&path).unwrap_err().raw_os_error(), Some(libc::EACCES));
}
