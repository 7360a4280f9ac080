//! Engines: their threads come and go, survive what the system refuses, keep out of the program's signals, and are
//! accounted for.

use haft::engine::{Engine, Stats};
#[cfg(target_os = "linux")]
use haft::fs::OpenOptions;
#[cfg(target_os = "linux")]
use haft_tests::files::{Fault, ends_within, poll, signals_of, takes_nowait, threads_named};
use haft_tests::files::{HeldWorkers, block_on, file_with, pattern, pool_engine};
#[cfg(target_os = "linux")]
use haft_tests::{eventually, is_root, isolated, on_a_thread, refuse};
use haft_tests::{skip, watchdog};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
const SOON: Duration = Duration::from_secs(5);

#[cfg(target_os = "linux")]
fn workers() -> usize {
    threads_named("haft-io").len()
}

#[cfg(target_os = "linux")]
#[test]
fn no_thread_starts_before_an_operation_needs_one() {
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(4);
        let file = file_with(&engine, folder.path(), b"bytes");
        file.write_all_at(b"sync", 0).unwrap();
        drop(file.read_at_async(vec![0; 4], 0));
        assert_eq!((workers(), engine.stats().threads), (0, 0));
        assert_eq!(block_on(file.len_async()).unwrap(), 5);
        assert_eq!((workers(), engine.stats().threads), (1, 1), "one, for one operation");
    });
}

// Fails when Lease::drop (engine/mod.rs) does not shut the pool down.
#[cfg(target_os = "linux")]
#[test]
fn threads_end_when_the_last_file_and_the_last_clone_are_gone() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(3);
        let file = file_with(&engine, folder.path(), b"bytes");
        HeldWorkers::hold(&engine, 3).release();
        assert_eq!((workers(), engine.stats().threads), (3, 3));
        let (clone, other) = (engine.clone(), file.clone());
        drop(engine);
        drop(file);
        drop(clone);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(workers(), 3, "a file is left");
        assert_eq!(block_on(other.read_exact_at_async(vec![0; 5], 0)).unwrap(), b"bytes");
        drop(other);
        assert!(eventually(SOON, || workers() == 0), "{} are left", workers());
        // And many, one after another.
        for _ in 0..50 {
            let file = file_with(&pool_engine(2), folder.path(), b"x");
            block_on(file.len_async()).unwrap();
        }
        assert!(eventually(SOON, || workers() == 0), "{} are left", workers());
    });
}

// The process's own engine needs none of this: it is there for good.
#[test]
fn the_default_engine_is_one_and_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = haft::fs::File::create(folder.path().join("a")).unwrap();
    let before = Engine::default().stats().queued;
    block_on(file.sync_all_async()).unwrap();
    assert!(Engine::default().stats().queued > before);
    assert!(format!("{:?}", Engine::default()).contains("inline_limit"));
}

// What waits when the limit of threads is reached waits for its turn.
#[cfg(target_os = "linux")]
#[test]
fn no_more_threads_than_asked_for() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        for (asked, most) in [(0, 1), (1, 1), (2, 2), (5, 5)] {
            let engine = pool_engine(asked);
            let file = file_with(&engine, folder.path(), &pattern(1, 4096));
            let held = HeldWorkers::hold(&engine, most);
            let mut reads: Vec<_> =
                (0..40).map(|_| Box::pin(file.read_exact_at_async(vec![0; 64], 0))).collect();
            assert!(reads.iter_mut().all(|read| poll(read.as_mut()).is_pending()));
            assert_eq!((workers(), engine.stats().threads as usize), (most, most));
            held.release();
            for read in reads {
                assert_eq!(block_on(read).unwrap(), pattern(1, 64));
            }
            drop((file, engine));
            assert!(eventually(SOON, || workers() == 0));
        }
    });
}

// A handler of the program must not run on a worker, and no operation ends early for a signal. 32 and 33 are the C
// library's: with them blocked, setuid() in another thread hangs. Fails when `start` (engine/thread.rs) leaves the
// mask alone.
#[cfg(target_os = "linux")]
#[test]
fn workers_have_all_signals_blocked_but_the_c_librarys() {
    isolated!({
        let folder = tempfile::tempdir().unwrap();
        let file = file_with(&pool_engine(2), folder.path(), b"x");
        // SAFETY: asks for this thread's number.
        let mine = || signals_of(unsafe { libc::gettid() }, "SigBlk").unwrap();
        let before = mine();
        block_on(file.len_async()).unwrap();
        assert_eq!(mine(), before, "the starter's own mask is as it was");
        let bit = |signal: i32| 1_u64 << (signal - 1);
        let never = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
        for worker in threads_named("haft-io") {
            let blocked = signals_of(worker, "SigBlk").unwrap();
            assert_eq!(blocked, !(never | bit(32) | bit(33)), "{blocked:016x}");
        }
        if is_root() {
            let same = || {
                // SAFETY: asks every thread of this process to stay who it is.
                assert_eq!(unsafe { libc::setresuid(0, 0, 0) }, 0);
            };
            assert!(ends_within(SOON, same), "setuid waits for every thread to answer");
        }
    });
}

/// Has a thread, which cannot start any, do some operations.
#[cfg(target_os = "linux")]
fn operations_without_new_threads(engine: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(engine, folder.path(), &pattern(3, 8192));
    for n in 0..100 {
        let read = block_on(file.read_exact_at_async(vec![0; 64], n)).unwrap();
        assert_eq!(read, pattern(3, 8192)[n as usize..n as usize + 64]);
        block_on(file.write_all_at_async(pattern(3, 64), 0)).unwrap();
    }
    block_on(file.sync_data_async()).unwrap();
    assert_eq!(block_on(file.len_async()).unwrap(), 8192);
    let mut many: Vec<_> = (0..50).map(|n| Box::pin(file.read_exact_at_async(vec![0; 8], n))).collect();
    for read in &mut many {
        let _ = poll(read.as_mut()).map(|ended| ended.unwrap());
    }
}

/// What the C library starts threads with.
#[cfg(target_os = "linux")]
const THREADS: [libc::c_long; 2] = [libc::SYS_clone3, libc::SYS_clone];

// tokio#8406. Fails when Pool::start (engine/pool.rs) leaves what waits to a worker that is not there.
#[cfg(target_os = "linux")]
#[test]
fn operations_happen_where_no_thread_can_be_started() {
    isolated!({
        watchdog!();
        let engine = pool_engine(4);
        let refused = on_a_thread(|| {
            refuse(&THREADS, libc::EAGAIN)?;
            operations_without_new_threads(&engine);
            Ok(())
        });
        if let Err(why) = refused {
            let _: &String = &why;
            skip!("no filter can be set: {why}");
        }
        let stats = engine.stats();
        assert_eq!((stats.threads, workers()), (0, 0));
        assert_eq!(stats.queued, 252, "{stats:?}");
        // Where threads can be started again, they are.
        operations_without_new_threads(&engine);
        assert!(engine.stats().threads >= 1);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn operations_happen_at_the_limit_of_the_users_threads() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(4);
        let file = file_with(&engine, folder.path(), &pattern(3, 4096));
        // SAFETY: gives this process's privileges up for good, on the thread that then does all else; the harness's
        // own threads come along.
        unsafe {
            if is_root() {
                assert_eq!(libc::setresgid(61_123, 61_123, 61_123), 0);
                assert_eq!(libc::setresuid(61_123, 61_123, 61_123), 0);
            }
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &none), 0);
        }
        if thread::Builder::new().spawn(|| {}).is_ok() {
            skip!("RLIMIT_NPROC does not keep this user from starting threads");
        }
        for n in 0..50 {
            let read = block_on(file.read_exact_at_async(vec![0; 64], n)).unwrap();
            assert_eq!(read, pattern(3, 4096)[n as usize..n as usize + 64]);
        }
        assert_eq!((engine.stats().threads, engine.stats().completed), (0, 50));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn operations_happen_where_memory_for_a_thread_is_lacking() {
    isolated!({
        watchdog!();
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(4);
        let file = file_with(&engine, folder.path(), &pattern(3, 4096));
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        // Room for a little heap, but not for a stack.
        let bytes = pages * 4096 + 1024 * 1024;
        // SAFETY: sets a limit of this process.
        unsafe {
            let most = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &most), 0);
        }
        for n in 0..50 {
            let read = block_on(file.read_exact_at_async(vec![0; 64], n)).unwrap();
            assert_eq!(read, pattern(3, 4096)[n as usize..n as usize + 64]);
        }
        assert_eq!((engine.stats().threads, engine.stats().completed), (0, 50));
    });
}

// A thread that has to do an operation itself holds nothing up meanwhile. Fails when Pool::start (engine/pool.rs) runs
// it with the lock held: `while let Some(cell) = self.pop(&mut lock(&self.state))` keeps the guard for the body.
#[cfg(target_os = "linux")]
#[test]
fn without_threads_an_operation_under_way_holds_nobody_up() {
    isolated!({
        watchdog!();
        let fault = match Fault::new(4096) {
            Ok(fault) => fault,
            Err(why) => skip!("{why}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let engine = pool_engine(4);
        let file = file_with(&engine, folder.path(), &pattern(3, 4096));
        let (_life, buffer) = fault.buffer::<0>();
        let stalled = {
            let file = file.clone();
            thread::spawn(move || {
                refuse(&THREADS, libc::EAGAIN)?;
                block_on(file.read_at_async(buffer, 0)).map_err(|e| e.to_string()).map(|(read, _)| read)
            })
        };
        if !eventually(SOON, || fault.is_touched() || stalled.is_finished()) || stalled.is_finished() {
            skip!("no filter can be set: {:?}", stalled.join().unwrap());
        }
        // This one can start threads.
        let other = move || {
            assert_eq!(engine.stats().threads, 0);
            assert_eq!(block_on(file.len_async()).unwrap(), 4096);
        };
        let went_on = ends_within(Duration::from_secs(3), other);
        fault.provide(&[]);
        assert_eq!(stalled.join().unwrap(), Ok(4096));
        assert!(went_on, "the engine's lock was held during a system call");
    });
}

// A burst on many threads against an engine that may start few: all come to their end. tokio#7757, #8056.
#[test]
fn no_wake_up_is_lost() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for threads in [1, 2, 4] {
        let engine = pool_engine(threads);
        let file = file_with(&engine, folder.path(), &pattern(6, 4096));
        thread::scope(|scope| {
            for seed in 0..6 {
                let file = &file;
                scope.spawn(move || {
                    let mut dice = haft_tests::Dice::new(seed);
                    for _ in 0..400 {
                        // Pauses about as long as workers look before they sleep.
                        for _ in 0..dice.below(3000) {
                            std::hint::spin_loop();
                        }
                        let at = dice.below(4000);
                        let read = block_on(file.read_exact_at_async(vec![0; 8], at)).unwrap();
                        assert_eq!(read, pattern(6, 4096)[at as usize..at as usize + 8]);
                    }
                });
            }
        });
        let stats = engine.stats();
        assert_eq!((stats.queued, stats.completed), (2400, 2400), "{stats:?}");
        assert!(stats.threads as usize <= threads);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn counters_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counted");
    std::fs::write(&path, pattern(1, 4096)).unwrap();
    if !takes_nowait(&path) {
        skip!("the file system of {} refuses RWF_NOWAIT", folder.path().display());
    }
    let engine = Engine::builder().threads(1).inline_limit(1024).build();
    let file = OpenOptions::new().read(true).write(true).engine(&engine).open(&path).unwrap();
    let attempts = |stats: Stats| (stats.inline_hits, stats.inline_partials, stats.inline_misses);
    assert_eq!(engine.stats(), Stats::default());
    for _ in 0..10 {
        block_on(file.read_exact_at_async(vec![0; 1024], 0)).unwrap();
    }
    assert_eq!((attempts(engine.stats()), engine.stats().queued), ((10, 0, 0), 0));
    // The end of the file is a hit too.
    assert_eq!(block_on(file.read_at_async(vec![0; 100], 4090)).unwrap().0, 6);
    assert_eq!(block_on(file.read_at_async(vec![0; 100], 4096)).unwrap().0, 0);
    assert_eq!(block_on(file.read_at_async(vec![0; 100], 1 << 40)).unwrap().0, 0);
    assert_eq!((attempts(engine.stats()), engine.stats().queued), ((13, 0, 0), 0));
    // More than the limit is not tried.
    block_on(file.read_exact_at_async(vec![0; 1025], 0)).unwrap();
    assert_eq!((attempts(engine.stats()), engine.stats().queued), ((13, 0, 0), 1));
    block_on(file.write_all_at_async(pattern(1, 8), 0)).unwrap();
    block_on(file.len_async()).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.queued, stats.completed, stats.cancelled, stats.abandoned), (3, 3, 0, 0));
    assert_eq!((stats.threads, stats.cells), (1, 32));
    // What is not cached is a miss, and then left out now and then: hits, misses and skips make up all reads.
    let evict = |from: i64, len: i64| {
        file.sync_all().unwrap();
        // SAFETY: an advice on an open file.
        let r = unsafe {
            libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), from, len, libc::POSIX_FADV_DONTNEED)
        };
        assert_eq!(r, 0);
    };
    evict(0, 0);
    let before = engine.stats();
    block_on(file.read_exact_at_async(vec![0; 1024], 0)).unwrap();
    let after = engine.stats();
    if after.inline_misses > before.inline_misses {
        assert_eq!(after.queued, before.queued + 1, "{after:?}");
        let skipped = block_on(file.read_exact_at_async(vec![0; 1024], 0)).unwrap();
        assert_eq!(skipped, pattern(1, 1024));
        assert_eq!(engine.stats().queued, before.queued + 2, "after a miss an attempt is left out");
        block_on(file.read_exact_at_async(vec![0; 1024], 0)).unwrap();
        assert_eq!(engine.stats().inline_hits, before.inline_hits + 1, "and then made again");
    }
}

// Fails when Claims::drop (engine/stats.rs) takes the block out of the registry instead of freeing it for others.
#[test]
fn sums_never_go_back_when_threads_end() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder().threads(2).build();
    let file = file_with(&engine, folder.path(), &pattern(1, 4096));
    let total = |stats: Stats| stats.inline_hits + stats.completed;
    let done = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !stop.load(SeqCst) {
                let least = done.load(SeqCst) as u64;
                let now = total(engine.stats());
                assert!(now >= last, "{now} after {last}");
                assert!(now >= least, "{now}, but {least} were done before");
                last = now;
            }
        });
        for _ in 0..100 {
            let threads: Vec<_> = (0..3)
                .map(|n| {
                    let (file, done) = (&file, &done);
                    scope.spawn(move || {
                        for _ in 0..5 {
                            block_on(file.read_exact_at_async(vec![0; 64], n * 8)).unwrap();
                        }
                        done.fetch_add(5, SeqCst);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(total(engine.stats()), 1500);
}

// An operation that ends in a thread which has given its counters back already, in a destructor of that thread.
#[cfg(target_os = "linux")]
#[test]
fn operations_in_a_thread_that_is_ending() {
    struct Last(haft::fs::File, bool);
    impl Drop for Last {
        fn drop(&mut self) {
            if self.1 {
                assert_eq!(block_on(self.0.read_exact_at_async(vec![0; 5], 0)).unwrap(), b"bytes");
                block_on(self.0.sync_data_async()).unwrap();
            }
        }
    }
    thread_local! {
        static FIRST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
    }
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for engine in [pool_engine(1), Engine::builder().build()] {
        let file = file_with(&engine, folder.path(), b"bytes");
        thread::spawn(move || {
            // Registered before the library's own, so that it is dropped after that.
            FIRST.set(Some(Last(file.clone(), true)));
            block_on(file.read_exact_at_async(vec![0; 5], 0)).unwrap();
        })
        .join()
        .unwrap();
        assert!(engine.stats().queued + engine.stats().inline_hits >= 1);
    }
}

// A loop of inline hits never waits, and would keep a current-thread executor to itself. Fails when `attempt`
// (engine/inline.rs) never returns Attempt::Yield.
#[cfg(target_os = "linux")]
#[test]
fn a_loop_of_inline_hits_lets_a_second_task_run() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits");
    std::fs::write(&path, pattern(1, 128 * 1024)).unwrap();
    let tmpfs = std::path::Path::new("/dev/shm");
    if !takes_nowait(&path) {
        skip!("the file system of {} refuses RWF_NOWAIT", folder.path().display());
    }
    let mut paths = vec![path];
    let in_memory = tempfile::Builder::new().tempfile_in(tmpfs).ok();
    if let Some(file) = &in_memory {
        std::fs::write(file.path(), pattern(1, 128 * 1024)).unwrap();
        paths.push(file.path().to_owned());
    }
    for path in paths {
        for len in [1, 1024, 64 * 1024] {
            let engine = Engine::builder().build();
            let file = OpenOptions::new().read(true).engine(&engine).open(&path).unwrap();
            let turns = AtomicUsize::new(0);
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
                let stop = AtomicBool::new(false);
                let reader = async {
                    let mut buffer = vec![0; len];
                    for _ in 0..3000 {
                        buffer = file.read_exact_at_async(buffer, 0).await.unwrap();
                    }
                    stop.store(true, Relaxed);
                };
                let second = async {
                    while !stop.load(Relaxed) {
                        turns.fetch_add(1, Relaxed);
                        tokio::task::yield_now().await;
                    }
                };
                // tokio::join! polls both at each turn.
                tokio::join!(reader, second);
            });
            let stats = engine.stats();
            assert_eq!(stats.inline_hits, 3000, "{stats:?}");
            // One turn for 256 small reads, more for larger ones: 17 times as many for 64 KiB.
            let least = if len > 4096 { 100 } else { 10 };
            assert!(turns.load(Relaxed) >= least, "{} turns beside reads of {len}", turns.load(Relaxed));
        }
    }
}

#[cfg(windows)]
#[test]
fn what_the_system_refuses() {
    skip!("signals, limits on threads and memory, and reads from the page cache alone are Linux's");
}

#[cfg(windows)]
#[test]
fn operations_in_a_thread_that_is_ending() {
    skip!("no thread starts while another is in such a destructor, so none may wait for one there");
}

// Threads start with the first operation that needs one, and end with the engine.
#[cfg(windows)]
#[test]
fn threads_come_when_they_are_needed() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(4);
    let file = file_with(&engine, folder.path(), &pattern(1, 4096));
    assert_eq!(engine.stats().threads, 0);
    block_on(file.len_async()).unwrap();
    assert_eq!(engine.stats().threads, 1);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..200).for_each(|_| assert_eq!(block_on(file.len_async()).unwrap(), 4096)));
        }
    });
    assert!(engine.stats().threads <= 4, "{:?}", engine.stats());
}

// Several engines in one process keep their work and their counts apart.
#[test]
fn engines_are_apart() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engines: Vec<_> = (0..8).map(|_| pool_engine(1)).collect();
    let files: Vec<_> = engines.iter().map(|engine| file_with(engine, folder.path(), b"bytes")).collect();
    let held = HeldWorkers::hold(&engines[0], 1);
    let before = engines[0].stats();
    for round in 0..50 {
        // In changing order, so that the counters used last are another engine's.
        for n in 0..8 {
            let n = (n * 3 + round) % 8;
            if n != 0 {
                assert_eq!(block_on(files[n].read_exact_at_async(vec![0; 5], 0)).unwrap(), b"bytes");
            }
        }
    }
    assert_eq!(engines[0].stats(), before, "a held engine holds no other up, and counts nothing of theirs");
    assert!(engines[1..].iter().all(|engine| engine.stats().completed == 50));
    held.release();
}
