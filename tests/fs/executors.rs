//! Any executor drives the file half, and none is needed: the same scenario under each, inline and through the pool.

use haft::engine::{Engine, Stats};
use haft::fs::{
    File, IoBuf, Len, OpError, OpenOptions, ReadAt, ReadExactAt, SetLen, SyncAll, SyncData, WriteAllAt,
    WriteAt,
};
use haft_tests::files::{Count, HeldWorkers, block_on, file_with, kinds, pattern, pool_engine, spin_on};
use haft_tests::{eventually, watchdog};
use std::future::{poll_fn, ready};
use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

const BLOCK: usize = 512;
const BLOCKS: usize = 64;

/// Writes, reads, errors, lengths; some at once and some one after another.
async fn scenario(file: File) {
    let block = |n: usize| pattern(n, BLOCK);
    let at = |n: usize| (n * BLOCK) as u64;
    file.set_len_async(0).await.unwrap();
    // Pairs at once, out of order.
    for n in (0..BLOCKS / 2).rev() {
        let (a, b) = tokio::join!(
            file.write_all_at_async(block(n), at(n)),
            file.write_at_async(block(n + BLOCKS / 2), at(n + BLOCKS / 2)),
        );
        assert_eq!(a.unwrap(), block(n));
        assert_eq!(b.unwrap(), (BLOCK, block(n + BLOCKS / 2)));
    }
    let (all, data, len) = tokio::join!(file.sync_all_async(), file.sync_data_async(), file.len_async());
    all.unwrap();
    data.unwrap();
    assert_eq!(len.unwrap(), at(BLOCKS));

    let mut buffer = vec![0; BLOCK];
    for n in 0..BLOCKS {
        buffer = file.read_exact_at_async(buffer, at(n)).await.unwrap();
        assert_eq!(buffer, block(n), "block {n}");
    }
    // Many reads in one future each, joined by hand.
    let mut reads: Vec<_> =
        (0..BLOCKS).map(|n| Box::pin(file.read_at_async(vec![0; BLOCK + 1], at(n)))).collect();
    let mut got: Vec<Option<(usize, Vec<u8>)>> = vec![None; BLOCKS];
    poll_fn(|cx| {
        for (read, got) in reads.iter_mut().zip(&mut got) {
            if got.is_none()
                && let Poll::Ready(ended) = read.as_mut().poll(cx)
            {
                *got = Some(ended.unwrap());
            }
        }
        if got.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    for (n, got) in got.into_iter().enumerate() {
        let (read, buffer) = got.unwrap();
        let last = n == BLOCKS - 1;
        assert_eq!(read, if last { BLOCK } else { BLOCK + 1 }, "short only at the end of the file");
        assert_eq!(buffer[..BLOCK], block(n)[..]);
    }
    // The end of the file.
    assert_eq!(file.read_at_async(vec![7; 9], at(BLOCKS)).await.unwrap(), (0, vec![7; 9]));
    let error = file.read_exact_at_async(vec![0; 2 * BLOCK], at(BLOCKS - 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::UnexpectedEof, BLOCK));
    assert_eq!(
        error.into_parts().2[..BLOCK],
        block(BLOCKS - 1)[..],
        "the buffer comes back with what was read"
    );
    // A part of a buffer.
    let part = file.write_all_at_async(vec![1, 2, 3, 4].slice(1..3), 0).await.unwrap();
    assert_eq!(part.into_inner(), [1, 2, 3, 4]);
    assert_eq!(file.read_exact_at_async(vec![0; 2], 0).await.unwrap(), [2, 3]);
    file.set_len_async(1).await.unwrap();
    assert_eq!(file.len_async().await.unwrap(), 1);
    assert_eq!(file.read_at_async(vec![0; 4], 0).await.unwrap(), (1, vec![2, 0, 0, 0]));
}

/// Has `run` drive the scenario on files of either kind of engine, by every kind of handle.
fn under(run: impl Fn(File)) {
    for engine in [Engine::default(), Engine::builder().build(), pool_engine(1), pool_engine(4)] {
        let folder = tempfile::tempdir().unwrap();
        for (n, (_, mut options)) in kinds().enumerate() {
            let path = folder.path().join(format!("{n}"));
            for _ in 0..5 {
                run(options.engine(&engine).open(&path).unwrap());
            }
        }
    }
}

#[test]
fn one_scenario_under_a_bare_block_on() {
    watchdog!();
    under(|file| block_on(scenario(file)));
}

#[test]
fn one_scenario_under_a_spin_with_a_waker_that_does_nothing() {
    watchdog!();
    under(|file| spin_on(scenario(file)));
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap()
}

#[test]
fn one_scenario_under_tokio_current_thread() {
    watchdog!();
    let runtime = current_thread();
    under(|file| runtime.block_on(scenario(file.clone())));
    under(|file| runtime.block_on(async { tokio::spawn(scenario(file)).await.unwrap() }));
    let local = tokio::task::LocalSet::new();
    under(|file| {
        local.block_on(&runtime, async { tokio::task::spawn_local(scenario(file)).await.unwrap() });
    });
}

#[test]
fn one_scenario_under_tokio_multi_thread() {
    watchdog!();
    let runtime = multi_thread();
    under(|file| runtime.block_on(scenario(file.clone())));
    under(|file| runtime.block_on(async { tokio::spawn(scenario(file)).await.unwrap() }));
}

#[test]
fn one_scenario_under_smol() {
    watchdog!();
    under(|file| smol::block_on(scenario(file.clone())));
    under(|file| smol::block_on(smol::spawn(scenario(file))));
    let executor = smol::LocalExecutor::new();
    under(|file| smol::block_on(executor.run(executor.spawn(scenario(file)))));
}

#[test]
fn one_executor_inside_another() {
    watchdog!();
    let runtime = multi_thread();
    under(|file| {
        runtime.block_on(async {
            tokio::task::spawn_blocking(move || smol::block_on(scenario(file))).await.unwrap();
        });
    });
}

// Fails when WakerSlot::register (engine/waker.rs) keeps the waker that is there: `Some(_) => None`.
#[test]
fn the_task_that_polled_last_is_woken() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(1);
    let file = file_with(&engine, folder.path(), b"moved");
    let held = HeldWorkers::hold(&engine, 1);
    let mut future = Box::pin(file.read_at_async(vec![0; 5], 0));
    let (first, first_waker) = Count::new();
    let (last, last_waker) = Count::new();
    assert!(future.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
    assert!(future.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| assert!(future.as_mut().poll(&mut Context::from_waker(&last_waker)).is_pending()));
    });
    held.release();
    assert!(eventually(Duration::from_secs(5), || last.get() == 1), "the last poller is woken");
    assert_eq!(first.get(), 0, "an earlier one is not");
    assert_eq!(block_on(future).unwrap().1, b"moved");
    assert_eq!(last.get(), 1, "and once is enough");
}

#[test]
fn a_future_begun_in_one_task_ends_in_another() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for engine in [pool_engine(2), Engine::builder().build()] {
        let file: &'static File = Box::leak(Box::new(file_with(&engine, folder.path(), &pattern(1, 4096))));
        for runtime in [current_thread(), multi_thread()] {
            runtime.block_on(async {
                for n in 0..200_u64 {
                    let mut future = Box::pin(file.read_exact_at_async(vec![0; 64], n));
                    let begun = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
                    let bytes = match begun {
                        Poll::Ready(ended) => ended.unwrap(),
                        Poll::Pending => tokio::spawn(future).await.unwrap().unwrap(),
                    };
                    assert_eq!(bytes, pattern(1, 4096)[n as usize..n as usize + 64]);
                }
            });
        }
    }
}

// tokio#1529, pearl#48: no cursor is shared, and operations on one file go on side by side.
#[test]
fn many_tasks_on_one_file_each_see_their_own_bytes() {
    watchdog!();
    const TASKS: usize = 64;
    const REGION: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    for engine in [pool_engine(4), Engine::builder().threads(4).build()] {
        let file = file_with(&engine, folder.path(), b"");
        let task = |task: usize, file: File| async move {
            let base = (task * REGION) as u64;
            for round in 0..20 {
                let bytes = pattern(task * 100 + round, REGION);
                let bytes = file.write_all_at_async(bytes, base).await.unwrap();
                let got = file.read_exact_at_async(vec![0; REGION], base).await.unwrap();
                assert!(got == bytes, "task {task}, round {round}");
            }
        };
        multi_thread().block_on(async {
            let tasks: Vec<_> = (0..TASKS).map(|n| tokio::spawn(task(n, file.clone()))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(block_on(file.len_async()).unwrap(), (TASKS * REGION) as u64);
        let at_rest = |stats: Stats| stats.queued == stats.completed + stats.cancelled + stats.abandoned;
        assert!(at_rest(engine.stats()), "{:?}", engine.stats());
        file.try_into_std().expect("all clones are gone with their tasks");
    }
}

#[test]
fn a_file_moves_into_tasks_as_a_clone() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(&pool_engine(2), folder.path(), b"shared");
    let spawned = {
        let file = file.clone();
        smol::spawn(
            async move { file.read_exact_at_async(vec![0; 6], 0).await.map_err(std::io::Error::from) },
        )
    };
    assert_eq!(smol::block_on(spawned).unwrap(), b"shared");
    assert_eq!(file.len().unwrap(), 6);
}

// Every branch of a select loses in turn; what loses is dropped in whatever state it is.
#[test]
fn losers_of_a_select_take_nothing_with_them() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for engine in [pool_engine(1), pool_engine(4), Engine::builder().build()] {
        let expected = pattern(3, 64 * 1024);
        let file = file_with(&engine, folder.path(), &expected);
        for runtime in [current_thread(), multi_thread()] {
            runtime.block_on(async {
                for n in 0..300_usize {
                    let (a, b) = (n * 97 % 60_000, n * 31 % 60_000);
                    tokio::select! {
                        read = file.read_exact_at_async(vec![0; 4000], a as u64) => {
                            assert!(read.unwrap() == expected[a..a + 4000]);
                        }
                        read = file.read_exact_at_async(vec![0; 100], b as u64) => {
                            assert!(read.unwrap() == expected[b..b + 100]);
                        }
                        () = tokio::task::yield_now(), if n % 3 == 0 => {}
                        () = ready(()), if n % 7 == 0 => {}
                    }
                }
            });
        }
        let raced =
            smol::future::or(async { file.read_exact_at_async(vec![0; 8], 0).await.unwrap() }, async {
                file.read_exact_at_async(vec![0; 8], 8).await.unwrap()
            });
        let won = smol::block_on(raced);
        assert!(won == expected[..8] || won == expected[8..16]);
        let last = block_on(file.read_exact_at_async(vec![0; 64 * 1024], 0)).unwrap();
        assert!(last == expected, "the file is as it was");
    }
}

#[test]
fn a_timeout_ends_a_wait_for_an_operation_that_cannot_begin() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(1);
    let file = file_with(&engine, folder.path(), b"before");
    let held = HeldWorkers::hold(&engine, 1);
    current_thread().block_on(async {
        let write = file.write_all_at_async(b"after!", 0);
        tokio::time::timeout(Duration::from_millis(30), write).await.unwrap_err();
    });
    held.release();
    assert_eq!(engine.stats().cancelled, 1);
    let content = block_on(file.read_exact_at_async(vec![0; 6], 0)).unwrap();
    assert_eq!(content, b"before", "it never happened");
}

// A runtime that goes away drops its tasks, and their operations, in whatever state they are.
#[test]
fn a_runtime_goes_away_with_operations_under_way() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    for engine in [pool_engine(1), pool_engine(3)] {
        let file = file_with(&engine, folder.path(), &pattern(5, 8192));
        for _ in 0..20 {
            let runtime = multi_thread();
            for n in 0..50 {
                let file = file.clone();
                runtime.spawn(async move {
                    loop {
                        file.read_exact_at_async(vec![0; 512], n * 100).await.unwrap();
                    }
                });
            }
            thread::sleep(Duration::from_millis(2));
            drop(runtime);
        }
        let last = block_on(file.read_exact_at_async(vec![0; 8192], 0)).unwrap();
        assert!(last == pattern(5, 8192));
        assert!(
            eventually(Duration::from_secs(5), || file.clone().try_into_std().is_err()),
            "a clone cannot be taken over while this one is here"
        );
        let mut file = Some(file);
        let alone = || match file.take().unwrap().try_into_std() {
            Ok(_) => true,
            Err(back) => {
                file = Some(back);
                false
            }
        };
        assert!(eventually(Duration::from_secs(5), alone), "no dropped operation holds the file for ever");
    }
}

// `Send` and the rest, told by the compiler.
#[test]
fn what_may_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    fn task<F: Future + Send + 'static>(_: impl FnOnce(File) -> F) {}
    send::<(File, Engine, OpenOptions, OpError<Vec<u8>>)>();
    sync::<(File, Engine, OpenOptions)>();
    send::<(
        ReadAt<'_, Vec<u8>>,
        ReadExactAt<'_, Box<[u8]>>,
        WriteAt<'_, String>,
        WriteAllAt<'_, &'static str>,
    )>();
    send::<(Len<'_>, SetLen<'_>, SyncAll<'_>, SyncData<'_>)>();
    task(|file| async move {
        let _ = file.read_at_async(vec![0; 8], 0).await;
        let _ = file.write_all_at_async(vec![0; 8], 0).await;
        let _ = file.sync_all_async().await;
    });
    task(scenario);
}

/// Compiles only if the type is not `Unpin`: if it were, both implementations would apply.
macro_rules! not_unpin {
    ($($type:ty),*) => {$({
        trait Ambiguous<A> {
            fn check() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        struct Is;
        impl<T: ?Sized + Unpin> Ambiguous<Is> for T {}
        let _ = <$type as Ambiguous<_>>::check;
    })*};
}

// A future that may be moved while a worker writes into its buffer would be unsound.
#[test]
fn futures_stay_where_they_are() {
    not_unpin!(
        ReadAt<'static, Vec<u8>>,
        ReadExactAt<'static, Vec<u8>>,
        WriteAt<'static, Vec<u8>>,
        WriteAllAt<'static, Vec<u8>>,
        Len<'static>,
        SetLen<'static>,
        SyncAll<'static>,
        SyncData<'static>
    );
    // What is not pinned yet may move, of course.
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(&Engine::default(), folder.path(), b"x");
    let future = file.read_at_async(vec![0; 1], 0);
    let moved = Box::new(future);
    assert_eq!(block_on(*moved).unwrap(), (1, b"x".to_vec()));
}

#[test]
#[should_panic(expected = "polled again")]
fn a_finished_future_says_that_it_is_polled_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(&Engine::default(), folder.path(), b"x");
    let mut future = pin!(file.read_at_async(vec![0; 1], 0));
    block_on(future.as_mut()).unwrap();
    let _ = block_on(future);
}
