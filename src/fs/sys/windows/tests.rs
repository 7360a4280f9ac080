//! What the handles of files are found to be, and what every way to read and write one has in common.

use super::{EMPTY, Errno, is_interruption, read_segments, received};
use crate::{
    engine::{Engine, Segment},
    fs::{File, OpenOptions},
    pipe::{self, PipeReader},
};
use std::{
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    os::windows::{
        fs::OpenOptionsExt,
        io::{AsHandle, AsRawHandle, OwnedHandle},
    },
    path::Path,
    pin::{Pin, pin},
    ptr::null_mut,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};
use windows_sys::Win32::{
    Foundation::{ERROR_BROKEN_PIPE, INVALID_HANDLE_VALUE},
    Storage::FileSystem::{FILE_FLAG_OVERLAPPED, ReadFile},
    System::IO::{CreateIoCompletionPort, GetOverlappedResult, OVERLAPPED},
};

struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Release);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !unpark.1.swap(false, Acquire) {
            thread::park();
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + (n >> 8) * 17 + 7) as u8).collect()
}

/// A port that is not haft's, and keeps a handle to itself.
fn bind_elsewhere(file: &impl AsHandle) -> OwnedHandle {
    // SAFETY: the handle is open, and the port is made here.
    unsafe {
        let port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 0);
        assert!(!port.is_null());
        assert!(!CreateIoCompletionPort(file.as_handle().as_raw_handle(), port, 7, 0).is_null());
        crate::windows::owned(port)
    }
}

fn std_overlapped(path: &Path) -> std::fs::File {
    std::fs::OpenOptions::new().read(true).write(true).custom_flags(FILE_FLAG_OVERLAPPED).open(path).unwrap()
}

/// Every kind of handle to a new file in `folder`, with what it is to be found: overlapped, and bound.
fn kinds(folder: &Path) -> Vec<(&'static str, File, (bool, bool))> {
    let path = |name: &str| {
        let path = folder.join(name);
        std::fs::write(&path, b"").unwrap();
        path
    };
    let both = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options
    };
    let elsewhere = std_overlapped(&path("elsewhere"));
    std::mem::forget(bind_elsewhere(&elsewhere));
    vec![
        ("plain", both().open(path("plain")).unwrap(), (false, false)),
        ("asynchronous", both().asynchronous(true).open(path("asynchronous")).unwrap(), (true, true)),
        (
            "asynchronous by flag",
            both().custom_flags(FILE_FLAG_OVERLAPPED).open(path("flag")).unwrap(),
            (true, true),
        ),
        ("write through", both().write_through(true).open(path("through")).unwrap(), (false, false)),
        (
            "std's plain",
            std::fs::File::options().read(true).write(true).open(path("std")).unwrap().into(),
            (false, false),
        ),
        ("std's overlapped", std_overlapped(&path("adopted")).into(), (true, true)),
        ("bound elsewhere", elsewhere.into(), (true, false)),
    ]
}

// Fails when `learn` takes every adopted handle for an overlapped one, or `bind` does not look at what the system says.
#[test]
fn handles_are_found_to_be_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for (name, file, expected) in kinds(folder.path()) {
        let ways = file.handle.ways;
        assert_eq!((ways.overlapped, ways.bound), expected, "{name}");
        assert!(!ways.stream, "{name}");
    }
}

// Fails when `read_end` does not take ERROR_HANDLE_EOF for the end; when `begin` leaves the offset out; when a step of
// BUFFERED_STEP ends the transfer.
#[test]
fn every_kind_of_handle_reads_and_writes_alike() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = pattern(3 << 20);
    for (name, file, _) in kinds(folder.path()) {
        block_on(async {
            // It extends the file, and then lies within it.
            for _ in 0..2 {
                let (written, _) = file.write_at_async(bytes.clone(), 5).await.unwrap();
                assert_eq!(written, bytes.len(), "{name}");
            }
            assert_eq!(file.len_async().await.unwrap(), bytes.len() as u64 + 5);
            let (read, back) = file.read_at_async(vec![1; bytes.len() + 100], 0).await.unwrap();
            assert_eq!(read, bytes.len() + 5, "{name}");
            assert!(back[..5] == [0; 5] && back[5..read] == bytes, "{name}");

            let end = file.len().unwrap();
            for offset in [end, end + 1, end + (1 << 33), i64::MAX as u64 - 16] {
                assert_eq!(file.read_at(&mut [0; 8], offset).unwrap(), 0, "{name}, sync, {offset}");
                let (read, _) = file.read_at_async(vec![0; 8], offset).await.unwrap();
                assert_eq!(read, 0, "{name}, async, {offset}");
            }
            assert_eq!(file.read_at(&mut [0; 8], end - 3).unwrap(), 3, "{name}");
            assert_eq!(file.read_at_async(vec![0; 8], end - 3).await.unwrap().0, 3, "{name}");

            for offset in [i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
                let refused = |result: io::Result<usize>| {
                    assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput, "{name}, {offset}");
                };
                refused(file.read_at(&mut [0; 8], offset));
                refused(file.write_at(&[0; 8], offset));
                refused(
                    file.read_at_async(vec![0; 8], offset).await.map(|(n, _)| n).map_err(io::Error::from),
                );
                refused(
                    file.write_at_async(vec![0; 8], offset).await.map(|(n, _)| n).map_err(io::Error::from),
                );
            }
            assert_eq!(file.len().unwrap(), end, "{name}: a refused write wrote");

            file.write_all_at(b"sync", 1 << 20).unwrap();
            let part = file.read_exact_at_async(vec![0; 4], 1 << 20).await.unwrap();
            assert_eq!(part, b"sync", "{name}");
            file.append(b"tail").unwrap();
            assert_eq!(file.len().unwrap(), end + 4, "{name}");
            let mut tail = [0; 4];
            file.read_exact_at(&mut tail, end).unwrap();
            assert_eq!(&tail, b"tail", "{name}");
            file.set_len_async(10).await.unwrap();
            file.sync_all_async().await.unwrap();
            file.sync_data().unwrap();
            assert_eq!(file.len().unwrap(), 10);
            assert_eq!(file.set_len(1 << 63).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        });
    }
}

// Fails when reads of a bound handle are routed to the pool.
#[test]
fn operations_within_an_overlapped_file_need_no_thread_of_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder().build();
    let path = folder.path().join("a");
    std::fs::write(&path, pattern(4096)).unwrap();
    let file =
        OpenOptions::new().read(true).write(true).asynchronous(true).engine(&engine).open(path).unwrap();
    block_on(async {
        for n in 0..100 {
            let (_, buffer) = file.read_at_async(vec![0; 1024], n * 7).await.unwrap();
            file.write_all_at_async(buffer, n * 7).await.unwrap();
        }
        assert_eq!(engine.stats().threads, 0);
        file.write_all_at_async(vec![0; 10], 4090).await.unwrap();
        assert_eq!(engine.stats().threads, 1);
    });
}

// Fails when `receive` sends the end on as an error, when `begin` does not wait for the port where it has to, or when
// an empty write ends a read.
#[test]
fn pipes_carry_bytes_between_every_two_kinds_of_ends() {
    let bytes = pattern(300_000);
    for (async_reader, async_writer) in [(false, false), (true, false), (false, true), (true, true)] {
        let make =
            || pipe::Builder::new().async_reader(async_reader).async_writer(async_writer).build().unwrap();
        let sent = bytes.clone();

        let (reader, writer) = make();
        let asynchronous = thread::spawn(move || {
            block_on(async {
                writer.write_all_async("").await.unwrap();
                writer.write_all_async(sent).await.unwrap();
            });
        });
        let mut seen = Vec::new();
        block_on(async {
            let mut buffer = vec![0; 10_000];
            loop {
                let (read, back) = reader.read_async(buffer).await.unwrap();
                if read == 0 {
                    break;
                }
                seen.extend_from_slice(&back[..read]);
                buffer = back;
            }
        });
        asynchronous.join().unwrap();
        assert!(seen == bytes, "async, {async_reader} {async_writer}");

        let (mut reader, mut writer) = make();
        let sent = bytes.clone();
        let sync = thread::spawn(move || writer.write_all(&sent).unwrap());
        seen.clear();
        reader.read_to_end(&mut seen).unwrap();
        sync.join().unwrap();
        assert!(seen == bytes, "sync, {async_reader} {async_writer}");

        let (reader, writer) = make();
        drop(reader);
        assert_eq!((&writer).write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let error = block_on(writer.write_all_async("x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{async_reader} {async_writer}");
    }
}

// Wine hands no empty write on, Windows does: so the rule itself is looked at too. Fails when `received` takes no bytes
// for the end.
#[test]
fn an_empty_write_is_not_the_end() {
    assert_eq!(received(Ok(0), 4), Err(EMPTY));
    assert_eq!(received(Ok(0), 0), Ok(0));
    assert_eq!(received(Err(Errno(ERROR_BROKEN_PIPE)), 4), Ok(0));
    assert!(is_interruption(EMPTY));
    for asynchronous in [false, true] {
        let (mut reader, writer) = pipe::Builder::new().async_reader(asynchronous).build().unwrap();
        let other = writer.try_into_std().unwrap();
        let thread = thread::spawn(move || {
            // write_all would not ask the system at all.
            assert_eq!((&other).write(&[]).unwrap(), 0);
            thread::sleep(Duration::from_millis(20));
            (&other).write_all(b"more").unwrap();
        });
        let mut buffer = [0; 10];
        assert_eq!(reader.read(&mut buffer).unwrap(), 4);
        thread.join().unwrap();
        assert_eq!(block_on(reader.read_async(vec![0; 10])).unwrap().0, 0);
    }
}

// Named pipes with data end at once, under Wine too. Fails when `begin` waits for the port then: it hears nothing.
#[test]
fn what_a_pipe_holds_is_read_at_once() {
    let engine = Engine::builder().build();
    let (reader, mut writer) = pipe::Builder::new().async_reader(true).engine(&engine).build().unwrap();
    assert!(reader.handle.ways.bound && reader.handle.ways.skips);
    let mut buffer = vec![0; 16];
    for n in 0..100_u8 {
        writer.write_all(&[n; 10]).unwrap();
        let Poll::Ready(read) = poll(pin!(reader.read_async(buffer))) else { panic!("not at once") };
        let (read, back) = read.unwrap();
        assert_eq!(back[..read], [n; 10]);
        buffer = back;
    }
    let stats = engine.stats();
    assert_eq!((stats.inline_hits, stats.queued, stats.cells), (100, 0, 32));
}

/// A buffer that counts its drops.
struct Canary(Vec<u8>, Arc<AtomicUsize>);

impl Drop for Canary {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

// SAFETY: a vector's elements are on the heap.
unsafe impl crate::fs::IoBufMut for Canary {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn io_room(&self) -> usize {
        self.0.len()
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

// Fails when `cancel` does not call CancelIoEx: the buffer stays until there is something to read, and the read takes it.
#[test]
fn a_dropped_read_of_an_empty_pipe_is_cancelled_and_takes_nothing() {
    let (reader, mut writer) = pipe::Builder::new().async_reader(true).build().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    for n in 1..=50 {
        {
            let mut read = pin!(reader.read_async(Canary(vec![0; 10], Arc::clone(&drops))));
            assert!(poll(read.as_mut()).is_pending());
        }
        soon("the buffer is dropped", || drops.load(SeqCst) == n);
    }
    writer.write_all(b"kept").unwrap();
    let (read, buffer) = block_on(reader.read_async(vec![0; 10])).unwrap();
    assert_eq!(&buffer[..read], b"kept");
    soon("no operation holds the pipe", || reader.handle.clone().into_owned().is_err());
    assert!(reader.try_into_std().is_ok());
}

// Fails when `serve` takes every address that it is told for a cell's.
#[test]
fn the_port_hears_of_others_operations_and_leaves_them_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, b"0123456789").unwrap();
    let file = OpenOptions::new().read(true).asynchronous(true).open(path).unwrap();
    // As much as a cell has, so that nothing else is hit.
    #[repr(C)]
    struct Foreign(OVERLAPPED, [u8; 512]);
    let mut foreign = Box::new(Foreign(OVERLAPPED::default(), [0; 512]));
    foreign.0.Anonymous.Anonymous.Offset = 3;
    let mut buffer = [0; 4];
    let mut moved = 0;
    // SAFETY: all stays until the operation has ended.
    unsafe {
        let handle = file.as_raw_handle();
        ReadFile(handle, buffer.as_mut_ptr(), 4, null_mut(), &raw mut foreign.0);
        soon("it ends", || GetOverlappedResult(handle, &raw const foreign.0, &raw mut moved, 0) != 0);
    }
    assert_eq!((&buffer, moved), (b"3456", 4));
    // The port has heard of that one before it hears of these.
    for _ in 0..100 {
        let (_, buffer) = block_on(file.read_at_async(vec![0; 2], 8)).unwrap();
        assert_eq!(buffer, b"89");
    }
    assert!(foreign.1 == [0; 512], "it was taken for a cell");
}

// Fails when `positioned` does not look at `stream`.
#[test]
fn pipes_have_no_offsets_and_the_null_device_takes_all() {
    let (reader, _writer) = io::pipe().unwrap();
    let file = File::from(OwnedHandle::from(reader));
    assert_eq!(file.read_at(&mut [0; 4], 0).unwrap_err().kind(), ErrorKind::NotSeekable);
    assert_eq!(file.write_at(b"x", 7).unwrap_err().kind(), ErrorKind::NotSeekable);
    let error = block_on(file.read_at_async(vec![0; 4], 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable);
    for asynchronous in [false, true] {
        let null = OpenOptions::new().read(true).write(true).asynchronous(asynchronous).open("NUL").unwrap();
        assert_eq!(null.read_at(&mut [0; 4], 1 << 40).unwrap(), 0);
        assert_eq!(null.write_at(b"gone", 1 << 40).unwrap(), 4);
        assert_eq!(block_on(null.read_at_async(vec![0; 4], 5)).unwrap().0, 0);
        block_on(null.write_all_at_async("gone", 5)).unwrap();
    }
}

// Fails when the conversion closes or duplicates the handle.
#[test]
fn a_pipe_is_stds_again() {
    let (reader, writer) = io::pipe().unwrap();
    let raw = reader.as_raw_handle();
    let reader = PipeReader::from(reader);
    (&writer).write_all(b"abc").unwrap();
    let (read, _) = block_on(reader.read_async(vec![0; 10])).unwrap();
    assert_eq!(read, 3);
    let mut reader = reader.try_into_std().unwrap();
    assert_eq!(reader.as_raw_handle(), raw);
    drop(writer);
    assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
}

// Fails when `open` leaves the truncation after OPEN_ALWAYS out, or `disposition` one of its lines.
#[test]
fn opening_is_as_in_std() {
    let folder = tempfile::tempdir().unwrap();
    let flags = |n: u32| std::array::from_fn::<bool, 6, _>(|bit| n >> bit & 1 == 1);
    for (n, existing) in (0..64).flat_map(|n| [(n, false), (n, true)]) {
        let [read, write, append, truncate, create, create_new] = flags(n);
        let path = |name: &str| {
            let path = folder.path().join(format!("{name}-{n}-{existing}"));
            if existing {
                std::fs::write(&path, b"content").unwrap();
            }
            path
        };
        let (ours, stds) = (path("ours"), path("stds"));
        let mine = OpenOptions::new()
            .read(read)
            .write(write)
            .append(append)
            .truncate(truncate)
            .create(create)
            .create_new(create_new)
            .open(&ours);
        let std = std::fs::OpenOptions::new()
            .read(read)
            .write(write)
            .append(append)
            .truncate(truncate)
            .create(create)
            .create_new(create_new)
            .open(&stds);
        let kind = |result: Result<(), io::Error>| result.err().map(|error| error.kind());
        let case = format!("{:?} existing {existing}", flags(n));
        assert_eq!(
            kind(mine.as_ref().map(drop).map_err(|e| e.kind().into())),
            kind(std.as_ref().map(drop).map_err(|e| e.kind().into())),
            "{case}"
        );
        assert_eq!(std::fs::read(&ours).ok(), std::fs::read(&stds).ok(), "{case}");
        if let Ok(mine) = mine
            && append
        {
            assert_eq!(mine.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::InvalidInput, "{case}");
            // Adopted, it is known for what it is too.
            let std = File::from(std.unwrap());
            assert_eq!(std.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::InvalidInput, "{case}, adopted");
            mine.append(b"end").unwrap();
            assert!(std::fs::read(&ours).unwrap().ends_with(b"end"), "{case}");
        }
    }
}

// Fails when `unlimited` leaves the prefix out, or the path relative.
#[test]
fn long_paths_open_and_paths_with_a_nul_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut path = std::fs::canonicalize(folder.path()).unwrap();
    for _ in 0..8 {
        path.push("a-folder-with-a-name-of-some-length-in-it");
    }
    std::fs::create_dir_all(&path).unwrap();
    path.push("file");
    assert!(path.as_os_str().len() > 300);
    std::fs::write(&path, b"deep").unwrap();
    let plain = path.to_str().unwrap().strip_prefix(r"\\?\").unwrap().to_owned();
    assert_eq!(File::open(&plain).unwrap().len().unwrap(), 4);
    assert_eq!(File::open(&path).unwrap().len().unwrap(), 4);
    assert_eq!(File::open("a\0b").unwrap_err().kind(), ErrorKind::InvalidInput);
}

// Fails when `bits` leaves a flag out, or the attributes are given to every open.
#[test]
fn further_options_reach_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = OpenOptions::new().write(true).create(true).delete_on_close(true).open(&path).unwrap();
    assert!(path.exists());
    drop(file);
    assert!(!path.exists());

    let mine = OpenOptions::new().write(true).create(true).share_mode(0).open(&path).unwrap();
    assert!(std::fs::File::open(&path).is_err());
    drop(mine);
    assert!(std::fs::File::open(&path).is_ok());

    let inherits = |file: &File| {
        let mut flags = 0;
        // SAFETY: the handle is open.
        unsafe { windows_sys::Win32::Foundation::GetHandleInformation(file.as_raw_handle(), &raw mut flags) };
        flags & 1 == 1
    };
    assert!(!inherits(&OpenOptions::new().read(true).open(&path).unwrap()));
    assert!(inherits(&OpenOptions::new().read(true).inheritable(true).open(&path).unwrap()));
    let hidden = folder.path().join("hidden");
    drop(OpenOptions::new().write(true).create_new(true).attributes(2).open(&hidden).unwrap());
    // An existing hidden file is cut, where CREATE_ALWAYS would be refused.
    std::fs::write(folder.path().join("plain"), b"x").unwrap();
    File::create(&hidden).unwrap();
    let unbuffered = OpenOptions::new().read(true).asynchronous(true).unbuffered(true).open(&path).unwrap();
    assert!(unbuffered.handle.ways.unbuffered && unbuffered.handle.ways.bound);
}

// The sync methods never look at the position, though the system moves it. Fails when `call` leaves the offset out.
#[test]
fn a_plain_handle_s_position_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, b"0123456789").unwrap();
    let mut std = std::fs::File::open(path).unwrap();
    std.seek(SeekFrom::Start(9)).unwrap();
    let file = File::from(std);
    let mut two = [0; 2];
    file.read_exact_at(&mut two, 0).unwrap();
    assert_eq!(&two, b"01");
    file.read_exact_at(&mut two, 4).unwrap();
    assert_eq!(&two, b"45");
    assert_eq!(file.try_into_std().unwrap().stream_position().unwrap(), 6);
}

/// Two pages, aligned as such.
#[repr(align(4096))]
struct Pages([u8; 8192]);

// SAFETY: the pages are on the heap.
unsafe impl crate::fs::IoBufMut for Box<Pages> {
    fn as_io_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn io_room(&self) -> usize {
        8192
    }

    unsafe fn set_filled(&mut self, _: usize) {}
}

// dotnet#62851. Fails when `read_end` does not take ERROR_HANDLE_EOF for the end.
#[test]
fn the_end_of_an_unbuffered_file_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for len in [0, 4096, 5000, 8192] {
        let bytes = pattern(len);
        std::fs::write(&path, &bytes).unwrap();
        for asynchronous in [false, true] {
            let mut options = OpenOptions::new();
            let file = options.read(true).unbuffered(true).asynchronous(asynchronous).open(&path).unwrap();
            for offset in [0, 4096, 8192, 1 << 40] {
                let there = len.saturating_sub(offset);
                let case = format!("{asynchronous}, {offset} of {len}");
                let mut pages = Box::new(Pages([0; 8192]));
                assert_eq!(file.read_at(&mut pages.0, offset as u64).unwrap(), there, "{case}");
                assert!(there == 0 || pages.0[..there] == bytes[offset..], "{case}");
                let (read, pages) = block_on(file.read_at_async(pages, offset as u64)).unwrap();
                assert_eq!(read, there, "{case}, async");
                assert!(there == 0 || pages.0[..there] == bytes[offset..], "{case}, async");
            }
        }
    }
}

// A list may be long, and its future dropped in between. Fails when `read_segments` goes on to the next buffer.
#[test]
fn an_operation_on_a_list_is_asked_after_every_call() {
    let folder = tempfile::tempdir().unwrap();
    for (name, file, _) in kinds(folder.path()) {
        file.write_all_at(b"0123456789", 0).unwrap();
        let mut bytes = [0_u8; 8];
        let ptr = bytes.as_mut_ptr();
        let list =
            [Segment { ptr, len: 0 }, Segment { ptr, len: 5 }, Segment { ptr: ptr.wrapping_add(5), len: 3 }];
        // SAFETY: the buffers are this test's.
        let read = unsafe { read_segments(file.handle.opened(), &list, 1) };
        assert_eq!((read, &bytes), (Ok(5), b"12345\0\0\0"), "{name}");
    }
}

// Fails when `receive`, or `begin`, asks the system for no bytes: it waits until there is one.
#[test]
fn to_read_nothing_waits_for_nothing() {
    for asynchronous in [false, true] {
        let (mut reader, writer) = pipe::Builder::new().async_reader(asynchronous).build().unwrap();
        let (send, ended) = mpsc::channel();
        thread::spawn(move || {
            assert_eq!(reader.read(&mut []).unwrap(), 0);
            assert_eq!(block_on(reader.read_async(vec![])).unwrap().0, 0);
            send.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).expect("it waits");
        drop(writer);
    }
}

// std waits for the file itself, which nobody else does any more. Fails when `bind` sets FILE_SKIP_SET_EVENT_ON_HANDLE.
#[test]
fn an_end_that_has_become_stds_reads_what_comes_later() {
    let (reader, mut writer) = pipe::Builder::new().async_reader(true).build().unwrap();
    writer.write_all(b"first").unwrap();
    assert_eq!(block_on(reader.read_async(vec![0; 10])).unwrap().0, 5);
    let mut reader = reader.try_into_std().unwrap();
    let (send, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 10];
        send.send(reader.read(&mut buffer).unwrap()).unwrap();
    });
    thread::sleep(Duration::from_millis(50));
    writer.write_all(b"later").unwrap();
    assert_eq!(ended.recv_timeout(Duration::from_secs(10)).expect("it waits for ever"), 5);
}
