//! Random histories of a file, against a vector: each step by the sync or by the async twin, inline and through the
//! pool, by every kind of handle.

use haft::fs::File;
use haft_tests::files::{block_on, engines, evict, kinds, pattern};
#[cfg(target_os = "linux")]
use haft_tests::files::{file_system, overlay, takes_nowait};
use haft_tests::watchdog;
#[cfg(target_os = "linux")]
use haft_tests::{isolated, skip};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{self, ErrorKind};
use std::path::Path;

/// One step of the model test. Each is done by the sync or by the async twin.
#[derive(Clone, Debug)]
enum Step {
    Read {
        at: u64,
        len: usize,
    },
    ReadExact {
        at: u64,
        len: usize,
    },
    Write {
        at: u64,
        len: usize,
        seed: usize,
    },
    WriteAll {
        at: u64,
        len: usize,
        seed: usize,
    },
    SetLen(u64),
    Len,
    SyncAll,
    SyncData,
    /// Has the system forget cached pages of this range.
    Evict {
        at: u64,
        len: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let at = prop_oneof![4 => 0..20_000_u64, 2 => 0..200_000_u64, 1 => (0..50_u64).prop_map(|n| n * 4096)];
    let len =
        prop_oneof![1 => Just(0_usize), 5 => 1..3000_usize, 2 => 1..70_000_usize, 1 => Just(4096_usize)];
    let place = (at.clone(), len, any::<u8>());
    let step = prop_oneof![
        4 => place.clone().prop_map(|(at, len, _)| Step::Read { at, len }),
        3 => place.clone().prop_map(|(at, len, _)| Step::ReadExact { at, len }),
        2 => place.clone().prop_map(|(at, len, seed)| Step::Write { at, len, seed: seed.into() }),
        4 => place.prop_map(|(at, len, seed)| Step::WriteAll { at, len, seed: seed.into() }),
        2 => at.clone().prop_map(Step::SetLen),
        1 => Just(Step::Len),
        1 => Just(Step::SyncAll),
        1 => Just(Step::SyncData),
        1 => (at.clone(), at).prop_map(|(at, len)| Step::Evict { at, len }),
    ];
    prop::collection::vec((any::<bool>(), step), 1..40)
}

fn as_pair(read: io::Result<usize>, buffer: Vec<u8>) -> Result<(usize, Vec<u8>), ErrorKind> {
    read.map(|read| (read, buffer)).map_err(|e| e.kind())
}

/// Does `step` to the file and to the model, and compares.
fn apply(file: &File, model: &mut Vec<u8>, by_async: bool, step: &Step) {
    let rest = |at: u64, model: &[u8]| model.len().saturating_sub(at as usize);
    let write = |model: &mut Vec<u8>, at: u64, bytes: &[u8]| {
        if !bytes.is_empty() {
            let end = at as usize + bytes.len();
            if model.len() < end {
                model.resize(end, 0);
            }
            model[at as usize..end].copy_from_slice(bytes);
        }
    };
    match *step {
        Step::Read { at, len } => {
            let expected = len.min(rest(at, model));
            let mut buffer = vec![0xAA; len];
            let got = if by_async {
                block_on(file.read_at_async(buffer, at)).map_err(|e| e.kind())
            } else {
                as_pair(file.read_at(&mut buffer, at), buffer)
            };
            let (read, buffer) = got.unwrap();
            assert_eq!(read, expected, "{step:?}");
            let start = (at as usize).min(model.len());
            assert!(buffer[..read] == model[start..start + read], "{step:?}: the bytes");
            assert!(buffer[read..].iter().all(|&byte| byte == 0xAA), "{step:?}: past what was read");
        }
        Step::ReadExact { at, len } => {
            let mut buffer = vec![0xAA; len];
            let got = if by_async {
                block_on(file.read_exact_at_async(buffer, at)).map_err(|e| {
                    assert_eq!(e.done(), len.min(rest(at, model)), "{step:?}: what was read is told");
                    e.kind()
                })
            } else {
                file.read_exact_at(&mut buffer, at).map(|()| buffer).map_err(|e| e.kind())
            };
            if len <= rest(at, model) {
                let start = (at as usize).min(model.len());
                assert!(got.unwrap() == model[start..start + len], "{step:?}: the bytes");
            } else {
                assert_eq!(got.unwrap_err(), ErrorKind::UnexpectedEof, "{step:?}");
            }
        }
        Step::Write { at, len, seed } => {
            let bytes = pattern(seed, len);
            let written = if by_async {
                let (written, back) = block_on(file.write_at_async(bytes.clone(), at)).unwrap();
                assert!(back == bytes);
                written
            } else {
                file.write_at(&bytes, at).unwrap()
            };
            assert_eq!(written, len, "{step:?}");
            write(model, at, &bytes);
        }
        Step::WriteAll { at, len, seed } => {
            let bytes = pattern(seed, len);
            if by_async {
                assert!(block_on(file.write_all_at_async(bytes.clone(), at)).unwrap() == bytes);
            } else {
                file.write_all_at(&bytes, at).unwrap();
            }
            write(model, at, &bytes);
        }
        Step::SetLen(len) => {
            if by_async { block_on(file.set_len_async(len)) } else { file.set_len(len) }.unwrap();
            model.resize(len as usize, 0);
        }
        Step::Len => {
            let len = if by_async { block_on(file.len_async()) } else { file.len() }.unwrap();
            assert_eq!(len, model.len() as u64);
        }
        Step::SyncAll => if by_async { block_on(file.sync_all_async()) } else { file.sync_all() }.unwrap(),
        Step::SyncData => if by_async { block_on(file.sync_data_async()) } else { file.sync_data() }.unwrap(),
        Step::Evict { at, len } => evict(file, at as i64, len as i64),
    }
}

/// Random histories of a file in `folder`. Returns how many reads were answered inline.
fn against_the_model(folder: &Path, cases: u32) -> u64 {
    let config = ProptestConfig {
        cases: cases * haft_tests::soak(),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let engines = engines();
    TestRunner::new(config)
        .run(&steps(), |steps| {
            for ((_, engine), (name, mut options)) in
                engines.iter().flat_map(|engine| kinds().map(move |kind| (engine, kind)))
            {
                let path = folder.join(name);
                let file = options.engine(engine).truncate(true).open(&path).unwrap();
                let mut model = Vec::new();
                for (by_async, step) in &steps {
                    apply(&file, &mut model, *by_async, step);
                }
                let whole = block_on(file.read_at_async(vec![0; model.len() + 1], 0)).unwrap();
                assert_eq!(whole.0, model.len());
                assert!(whole.1[..model.len()] == model[..], "the whole file, in the end");
            }
            for entry in std::fs::read_dir(folder).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
            Ok(())
        })
        .unwrap();
    engines[0].1.stats().inline_hits
}

#[cfg(windows)]
#[test]
fn random_histories_agree_with_a_vector() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    against_the_model(folder.path(), 30);
}

#[cfg(target_os = "linux")]
#[test]
fn random_histories_agree_with_a_vector_where_temporary_files_are() {
    watchdog!();
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("probe");
    std::fs::write(&probe, b"x").unwrap();
    let inline = takes_nowait(&probe) || file_system(folder.path()) == "tmpfs";
    std::fs::remove_file(probe).unwrap();
    let hits = against_the_model(folder.path(), 50);
    assert_eq!(hits > 0, inline, "on {}", file_system(folder.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn random_histories_agree_with_a_vector_on_tmpfs() {
    watchdog!();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { skip!("/dev/shm cannot be written to") };
    if file_system(folder.path()) != "tmpfs" {
        skip!("/dev/shm is no tmpfs");
    }
    assert!(against_the_model(folder.path(), 100) > 0, "files in memory are read inline");
}

#[cfg(target_os = "linux")]
#[test]
fn random_histories_agree_with_a_vector_on_overlayfs() {
    isolated!({
        watchdog!();
        match overlay() {
            Ok((_folder, path)) => {
                assert_eq!(file_system(&path), "overlayfs");
                against_the_model(&path, 40);
            }
            Err(why) => skip!("no overlayfs can be mounted: {why}"),
        }
    });
}
