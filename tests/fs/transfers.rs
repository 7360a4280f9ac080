//! What a transfer does at the end of a file and elsewhere, and who may see what when: on every system.

use haft::engine::Engine;
use haft::fs::File;
use haft_tests::files::{
    Count, HeldWorkers, block_on, ends_within, engines, file_with, kinds, pattern, pool_engine,
};
use haft_tests::{eventually, skip, watchdog};
use std::io::ErrorKind;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Context;
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

/// In the folder for temporary files, and in memory where that is another.
fn each_folder(check: impl Fn(&Path)) {
    check(tempfile::tempdir().unwrap().path());
    if let Ok(folder) = tempfile::tempdir_in("/dev/shm") {
        check(folder.path());
    }
}

/// A file of these bytes for each kind of engine and of handle.
fn files(folder: &Path, bytes: &[u8]) -> Vec<(String, Engine, File)> {
    let mut files = Vec::new();
    for (engine_name, engine) in engines() {
        for (kind, mut options) in kinds() {
            let path = folder.join(format!("{engine_name}-{kind}-{}", bytes.len()));
            std::fs::write(&path, bytes).unwrap();
            let file = options.engine(&engine).open(path).unwrap();
            files.push((format!("{engine_name}, {kind}"), engine.clone(), file));
        }
    }
    files
}

#[test]
fn holes_read_as_zeros() {
    // NTFS sets room aside for what a file may hold, unless it is told not to.
    const LEN: u64 = if cfg!(windows) { 1 << 26 } else { 1 << 40 };
    const ISLAND: u64 = LEN / 1024;
    each_folder(|folder| {
        for (name, _engine, file) in files(folder, b"") {
            file.set_len(LEN).unwrap();
            block_on(file.write_all_at_async(b"island", ISLAND)).unwrap();
            let around = block_on(file.read_exact_at_async(vec![1; 20_006], ISLAND - 10_000)).unwrap();
            assert!(around[..10_000].iter().all(|&b| b == 0), "{name}");
            assert_eq!(&around[10_000..10_006], b"island", "{name}");
            assert!(around[10_006..].iter().all(|&b| b == 0), "{name}");
            let last = block_on(file.read_at_async(vec![1; 10], LEN - 4)).unwrap();
            assert_eq!((last.0, &last.1[..4], &last.1[4..]), (4, &[0; 4][..], &[1; 6][..]), "{name}");
        }
    });
}

#[test]
fn the_end_of_the_file_and_past_it() {
    each_folder(|folder| {
        for len in [1_usize, 4095, 4096, 4097] {
            for (name, _engine, file) in files(folder, &pattern(1, len)) {
                let at = len as u64;
                for offset in [at, at + 1, at + 4096, 1 << 40, 1 << 42] {
                    assert_eq!(
                        block_on(file.read_at_async(vec![3; 9], offset)).unwrap(),
                        (0, vec![3; 9]),
                        "{name}"
                    );
                    assert_eq!(file.read_at(&mut [0; 9], offset).unwrap(), 0);
                    let error = block_on(file.read_exact_at_async(vec![0; 9], offset)).unwrap_err();
                    assert_eq!((error.kind(), error.done()), (ErrorKind::UnexpectedEof, 0), "{name}");
                }
                let (read, bytes) = block_on(file.read_at_async(vec![0; len + 10], 0)).unwrap();
                assert_eq!((read, &bytes[..len]), (len, &pattern(1, len)[..]), "{name}");
                assert_eq!(block_on(file.read_exact_at_async(vec![0; len], 0)).unwrap(), pattern(1, len));
            }
        }
    });
}

// Fails when sys::allocate makes the file longer, or, on Windows, asks for less room than it has: that cuts it.
#[test]
fn allocating_changes_no_length() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for (name, _engine, file) in files(folder.path(), &pattern(1, 5000)) {
        for len in [1 << 20, 0, 1, 4999, 5000] {
            let results = [file.allocate(len), block_on(file.allocate_async(len))];
            if results
                .iter()
                .any(|result| matches!(result, Err(error) if error.kind() == ErrorKind::Unsupported))
            {
                skip!("the file system cannot set room aside");
            }
            results.into_iter().for_each(|result| result.unwrap());
            assert_eq!(file.len().unwrap(), 5000, "{name}");
        }
        assert_eq!(block_on(file.read_exact_at_async(vec![0; 5000], 0)).unwrap(), pattern(1, 5000));
        assert!(file.allocate(u64::MAX).is_err());
    }
}

#[test]
fn buffers_of_no_length() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for (name, _engine, file) in files(folder.path(), b"bytes") {
        for at in [0, 3, 5, 100] {
            assert_eq!(file.read_at(&mut [], at).unwrap(), 0);
            assert_eq!(file.write_at(&[], at).unwrap(), 0);
            file.read_exact_at(&mut [], at).unwrap();
            file.write_all_at(&[], at).unwrap();
            assert_eq!(block_on(file.read_at_async(Vec::new(), at)).unwrap(), (0, vec![]), "{name}");
            assert_eq!(block_on(file.read_exact_at_async(Vec::new(), at)).unwrap(), [], "{name}");
            assert_eq!(block_on(file.write_at_async("", at)).unwrap(), (0, ""), "{name}");
            assert_eq!(block_on(file.write_all_at_async(Vec::new(), at)).unwrap(), [], "{name}");
        }
        assert_eq!(file.len().unwrap(), 5, "and the file is no longer for it");
    }
}

#[test]
fn the_file_is_cut_while_it_is_read() {
    watchdog!();
    each_folder(|folder| {
        const LEN: usize = 200_000;
        for (name, _engine, file) in files(folder, &pattern(1, LEN)) {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..40 {
                        file.set_len(1000).unwrap();
                        file.write_all_at(&pattern(1, LEN), 0).unwrap();
                    }
                    stop.store(true, SeqCst);
                });
                while !stop.load(SeqCst) {
                    let (read, bytes) = block_on(file.read_at_async(vec![0; LEN], 0)).unwrap();
                    assert!(read >= 1000, "{name}: {read}");
                    // What was cut while it was copied may read as zeros, and as nothing else.
                    let expected = pattern(1, read);
                    assert!(bytes[..read].iter().zip(&expected).all(|(b, e)| b == e || *b == 0), "{name}");
                    assert!(bytes[..1000] == expected[..1000], "{name}");
                }
            });
        }
    });
}

// The handle is let go of before the operation is done. Fails when Pool::run (engine/pool.rs) drops it after
// `complete`.
#[test]
fn who_has_seen_the_last_operation_end_owns_the_file_alone() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for (name, engine, mut file) in files(folder.path(), b"content") {
        for round in 0..1000 {
            let read = block_on(file.read_exact_at_async(vec![0; 7], 0)).unwrap();
            assert_eq!(read, b"content");
            file = engine.adopt(file.try_into_std().unwrap_or_else(|_| panic!("{name}, round {round}")));
        }
    }
}

// What was completed is written when it says so: lance#1430, tokio#6325.
#[test]
fn a_completed_write_is_there_for_everybody() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    for ((_, engine), (_, mut options)) in
        engines().iter().flat_map(|engine| kinds().map(move |kind| (engine, kind)))
    {
        let file = options.engine(engine).open(&path).unwrap();
        for round in 0..200 {
            block_on(file.write_all_at_async(pattern(round, 100), 0)).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), pattern(round, 100));
        }
    }
}

// A poll after the operation's end finds it, whoever was woken.
#[test]
fn a_waker_is_called_once_an_operation() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(1);
    let file = file_with(&engine, folder.path(), b"content");
    for _ in 0..100 {
        let held = HeldWorkers::hold(&engine, 1);
        let (count, waker) = Count::new();
        let mut read = pin!(file.read_at_async(vec![0; 7], 0));
        let mut cx = Context::from_waker(&waker);
        assert!(read.as_mut().poll(&mut cx).is_pending());
        assert!(read.as_mut().poll(&mut cx).is_pending());
        held.release();
        assert!(eventually(SOON, || count.get() == 1));
        assert!(read.as_mut().poll(&mut cx).is_ready());
        assert_eq!(count.get(), 1);
    }
    assert!(ends_within(SOON, move || drop(engine)));
}

// dotnet#53432. Fails when `append` names the offset where the file ended before.
#[test]
fn appended_records_of_several_handles_are_never_torn_or_lost() {
    #[cfg(windows)]
    if haft_tests::under_wine() {
        skip!("Wine looks for the end of the file and then writes there, in two steps");
    }
    const HANDLES: usize = 4;
    const RECORDS: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    thread::scope(|scope| {
        for handle in 0..HANDLES {
            let path = &path;
            scope.spawn(move || {
                let log = File::options().append(true).create(true).open(path).unwrap();
                for record in 0..RECORDS {
                    log.append(format!("{handle} {record:0>60}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    let mut next = [0; HANDLES];
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let (handle, record) = line.split_once(' ').expect("a whole record");
        let next = &mut next[handle.parse::<usize>().unwrap()];
        assert_eq!((record.len(), record.parse::<usize>().unwrap()), (60, *next), "{line}");
        *next += 1;
    }
    assert_eq!(next, [RECORDS; HANDLES]);
}

// dotnet#108322, rust#38590. Fails when a length is cut to its lowest 32 bits (`step` in fs/sys/windows).
#[cfg(windows)]
#[test]
fn more_than_four_gib_at_once() {
    watchdog!(170);
    const LEN: usize = (4 << 30) + 5;
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(&Engine::default(), folder.path(), b"");
    if let Err(error) = file.set_len(LEN as u64) {
        skip!("no room for a file of more than 4 GiB: {error}");
    }
    file.write_all_at(b"last", LEN as u64 - 4).unwrap();
    let mut whole: Vec<u8> = Vec::new();
    if whole.try_reserve_exact(LEN).is_err() {
        skip!("no memory for 4 GiB");
    }
    let (read, haft::fs::Spare(whole)) = block_on(file.read_at_async(haft::fs::Spare(whole), 0)).unwrap();
    assert_eq!((read, &whole[LEN - 4..]), (LEN, &b"last"[..]));
}

// Fails when the system's refusal is taken for the end of the file.
#[cfg(windows)]
#[test]
fn a_misaligned_transfer_without_the_systems_cache_is_refused() {
    if haft_tests::under_wine() {
        skip!("Wine takes any address, offset and length");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unbuffered");
    std::fs::write(&path, pattern(1, 8192)).unwrap();
    for asynchronous in [false, true] {
        let mut options = File::options();
        let file = options.read(true).unbuffered(true).asynchronous(asynchronous).open(&path).unwrap();
        assert_eq!(file.read_at(&mut [0; 100], 1).unwrap_err().kind(), ErrorKind::InvalidInput);
        let error = block_on(file.read_at_async(vec![0; 100], 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[cfg(windows)]
#[test]
fn semantics() {
    skip!(
        "the suite of that name is about Linux' file systems, devices, limits and signals; what holds everywhere is in \
         this one, in model and in vectored, and what is Windows' own beside its code"
    );
}
