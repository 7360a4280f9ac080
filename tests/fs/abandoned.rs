//! What was given up keeps its file: an abandoned operation ends on the file it began on, and never on another that
//! got the same number meanwhile.

#[cfg(target_os = "linux")]
use haft_tests::files::{Fault, HeldWorkers};
use haft_tests::files::{block_on, file_with, pattern, poll, pool_engine};
#[cfg(target_os = "linux")]
use haft_tests::{Id, eventually, id, id_of, isolated, open_descriptors};
use haft_tests::{skip, watchdog};
#[cfg(target_os = "linux")]
use std::os::{fd::AsRawFd, unix::fs::MetadataExt};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
const LEN: usize = 4096;
#[cfg(target_os = "linux")]
const SOON: Duration = Duration::from_secs(5);

// design: stall a write, drop future and File, open 100 files, release: all unchanged. Fails when Operation::queue
// (fs/futures.rs) gives the cell no handle of its own, so that the descriptor closes with the File.
#[cfg(target_os = "linux")]
#[test]
fn abandoned_write_never_reaches_a_reused_descriptor() {
    isolated!({
        watchdog!();
        let fault = match Fault::new(LEN) {
            Ok(fault) => fault,
            Err(why) => skip!("{why}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(2);
        let victim = file_with(&engine, folder.path(), &pattern(1, LEN));
        let (number, victim_id) = (victim.as_raw_fd(), id(&victim));
        let (life, buffer) = fault.buffer::<0>();
        let mut write = Box::pin(victim.write_all_at_async(buffer, 0));
        assert!(poll(write.as_mut()).is_pending());
        fault.wait();
        drop(write);
        drop(victim);

        let before = open_descriptors();
        assert!(before.contains(&number), "the descriptor stays open while the write runs");
        assert_eq!(id_of(number), Some(victim_id));
        let others: Vec<_> =
            (0..100).map(|n| file_with(&engine, folder.path(), &pattern(n + 10, LEN))).collect();
        assert!(others.iter().all(|other| other.as_raw_fd() != number), "its number is not given out");
        assert_eq!(open_descriptors().len(), before.len() + 100);

        fault.provide(&pattern(2, LEN));
        assert!(eventually(SOON, || life.drops() == 1));
        assert!(!life.was_early());
        assert!(eventually(SOON, || id_of(number).is_none()), "it closes afterwards");
        assert_eq!(open_descriptors().len(), before.len() + 99);
        for (n, other) in others.iter().enumerate() {
            let content = block_on(other.read_exact_at_async(vec![0; LEN], 0)).unwrap();
            assert!(content == pattern(n + 10, LEN), "file {n} is unchanged");
        }
        let written = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).find(|entry| {
            let meta = entry.metadata().unwrap();
            (Id { dev: meta.dev(), ino: meta.ino() }) == victim_id
        });
        let content = std::fs::read(written.unwrap().path()).unwrap();
        if haft_tests::forced("short_counts") {
            skip!("an abandoned write ends after its first step, however short that is");
        }
        assert!(content == pattern(2, LEN), "the write landed in its own file");
    });
}

// The same, many times over and without privileges: the write waits in the queue, the future is forgotten and not
// dropped, and it happens when it can.
#[cfg(target_os = "linux")]
#[test]
fn forgotten_writes_never_reach_a_reused_descriptor() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(1);
        for round in 0..20 {
            let held = HeldWorkers::hold(&engine, 1);
            let before = open_descriptors();
            let path = folder.path().join(format!("victim-{round}"));
            let victim = haft_tests::files::read_write().engine(&engine).open(&path).unwrap();
            let number = victim.as_raw_fd();
            let mut write = Box::pin(victim.write_all_at_async(pattern(round, LEN), 0));
            assert!(poll(write.as_mut()).is_pending());
            std::mem::forget(write);
            drop(victim);
            assert!(open_descriptors().contains(&number), "the descriptor stays open while the write waits");
            let other = file_with(&engine, folder.path(), b"other");
            assert_ne!(other.as_raw_fd(), number);
            held.release();
            block_on(other.sync_data_async()).unwrap();
            assert!(eventually(SOON, || id_of(number) != Some(id(&other)) && id_of(number).is_none()));
            assert_eq!(std::fs::read(&path).unwrap(), pattern(round, LEN));
            assert_eq!(block_on(other.read_at_async(vec![0; 9], 0)).unwrap().0, 5);
            drop(other);
            assert!(eventually(SOON, || open_descriptors().len() < before.len()), "{before:?}");
        }
    });
}

// A cancelled operation lets go of the file at once, while its worker is still busy elsewhere.
#[cfg(target_os = "linux")]
#[test]
fn a_file_closes_at_once_when_its_queued_operations_are_dropped() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(1);
        let held = HeldWorkers::hold(&engine, 1);
        let file = file_with(&engine, folder.path(), b"bytes");
        let number = file.as_raw_fd();
        let mut reads: Vec<_> = (0..100).map(|_| Box::pin(file.read_at_async(vec![0; 5], 0))).collect();
        assert!(reads.iter_mut().all(|read| poll(read.as_mut()).is_pending()));
        drop(reads);
        drop(file);
        assert!(id_of(number).is_none());
        held.release();
    });
}

#[cfg(windows)]
#[test]
fn stalled_writes() {
    skip!("nothing stalls a system call here; the next test abandons operations in whatever state they are");
}

// Numbers are given out again at once after each close: every operation ends on the file it was made for.
#[test]
fn descriptors_reused_by_many_threads_never_mix() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(3);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (engine, folder) = (&engine, folder.path());
            scope.spawn(move || {
                for round in 0..150 {
                    let bytes = pattern(thread * 1000 + round, 512);
                    let file = file_with(engine, folder, &bytes);
                    let mut write = Box::pin(file.write_all_at_async(bytes.clone(), 0));
                    if poll(write.as_mut()).is_pending() && round % 2 == 1 {
                        block_on(write.as_mut()).unwrap();
                    }
                    drop(write);
                    let read = block_on(file.read_exact_at_async(vec![0; 512], 0)).unwrap();
                    assert!(read == bytes, "thread {thread}, round {round}");
                    // The last one, dropped in whatever state it is.
                    let mut write = Box::pin(file.write_all_at_async(bytes, 0));
                    let _ = poll(write.as_mut());
                    drop(write);
                }
            });
        }
    });
}
