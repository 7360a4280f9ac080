//! Several buffers in one operation: on every system, by every kind of engine and of handle.

use haft::engine::Engine;
use haft::fs::{Buffers, File, Spare};
use haft_tests::files::{Canary, block_on, engines, kinds, pattern, poll, pool_engine};
use haft_tests::{Dice, eventually, watchdog};
use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

/// A file of these bytes for each kind of engine and of handle, to read and to write.
fn each_file(folder: &Path, bytes: &[u8], mut check: impl FnMut(&str, &File)) {
    for (engine_name, engine) in engines() {
        for (kind, mut options) in kinds() {
            let path = folder.join(format!("{engine_name}-{kind}-{}", bytes.len()));
            std::fs::write(&path, bytes).unwrap();
            let file = options.write(true).engine(&engine).open(path).unwrap();
            check(&format!("{engine_name}, {kind}"), &file);
        }
    }
}

/// Parts of these lengths, filled with `fill`.
fn parts(lens: &[usize], fill: u8) -> Vec<Vec<u8>> {
    lens.iter().map(|&len| vec![fill; len]).collect()
}

// dotnet#108383, zig#9015: one call takes 1,024 buffers at most. Fails when the steps after the first begin anew
// (`advance` by 0 in engine/segments.rs), or when the first begins at an empty buffer (no `advance` before the loop).
#[test]
fn any_number_of_buffers_in_any_sizes_is_moved_whole() {
    watchdog!(120);
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(7);
    let lists: Vec<Vec<usize>> = vec![
        vec![],
        vec![0, 0, 0],
        vec![5],
        vec![1; 1025],
        vec![0; 1500],
        [vec![0; 1500], vec![3, 2]].concat(),
        (0..1500).map(|n| n % 3).collect(),
        (0..60).map(|_| dice.below(20_000) as usize).collect(),
        vec![0, 4096, 0, 0, 8192, 1, 0],
    ];
    for lens in lists {
        let total: usize = lens.iter().sum();
        let wanted = pattern(3, total);
        each_file(folder.path(), &[9; 16], |name, file| {
            let mut at = 0;
            let list: Vec<Vec<u8>> = lens
                .iter()
                .map(|&len| {
                    at += len;
                    wanted[at - len..at].to_vec()
                })
                .collect();
            let (written, list) = block_on(file.write_vectored_at_async(list, 11)).unwrap();
            assert_eq!((written, list.concat()), (total, wanted.clone()), "{name}, {} parts", lens.len());
            let mut back = vec![0; total];
            file.read_exact_at(&mut back, 11).unwrap();
            assert_eq!(back, wanted, "{name}, {} parts", lens.len());

            let (read, list) = block_on(file.read_vectored_at_async(parts(&lens, 1), 11)).unwrap();
            assert_eq!((read, list.concat()), (total, wanted.clone()), "{name}, {} parts", lens.len());
        });
    }
}

// dotnet#109826. Fails when what is left after the end is told to parts that nothing was read into.
#[test]
fn the_end_of_the_file_in_the_midst_of_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = pattern(5, 100);
    each_file(folder.path(), &bytes, |name, file| {
        for from in [0, 40, 99, 100, 101, 5000] {
            let there = bytes.get(from..).unwrap_or_default();
            let list = parts(&[10, 0, 30, 41, 60], 7);
            let (read, list) = block_on(file.read_vectored_at_async(list, from as u64)).unwrap();
            assert_eq!(read, there.len(), "{name}, from {from}");
            let all = list.concat();
            assert_eq!(all[..read], *there, "{name}, from {from}");
            assert!(all[read..].iter().all(|&byte| byte == 7), "{name}, from {from}");

            let spares: Vec<Spare> = [10, 30, 200].map(|room| Spare(Vec::with_capacity(room))).into();
            let (read, spares) = block_on(file.read_vectored_at_async(spares, from as u64)).unwrap();
            assert_eq!(read, there.len(), "{name}, from {from}");
            let all: Vec<u8> = spares.into_inner().into_iter().flat_map(|Spare(part)| part).collect();
            assert_eq!(all, *there, "{name}, from {from}");
        }
    });
}

#[test]
fn sync_lists_are_moved_as_far_as_the_system_goes() {
    let folder = tempfile::tempdir().unwrap();
    each_file(folder.path(), &pattern(1, 50), |name, file| {
        let (one, two) = (pattern(2, 20), pattern(3, 37));
        let wrote = file.write_vectored_at(&[IoSlice::new(&one), IoSlice::new(&[]), IoSlice::new(&two)], 30);
        assert_eq!(wrote.unwrap(), 57, "{name}");
        let (mut head, mut body, mut rest) = ([0; 30], [0; 20], [0; 60]);
        let mut list = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body), IoSliceMut::new(&mut rest)];
        assert_eq!(file.read_vectored_at(&mut list, 0).unwrap(), 87, "{name}");
        assert_eq!(
            (&head[..], &body[..], &rest[..37]),
            (&pattern(1, 50)[..30], &one[..], &two[..]),
            "{name}"
        );
        assert_eq!(file.read_vectored_at(&mut [], 0).unwrap(), 0, "{name}");
        assert_eq!(file.write_vectored_at(&[], 0).unwrap(), 0, "{name}");
        assert!(file.read_vectored_at(&mut [IoSliceMut::new(&mut [0])], 1 << 63).is_err(), "{name}");
    });
}

// rio#1, glommio#52. Fails when the list of an operation that was dropped is freed while a worker still reads it.
#[test]
fn a_dropped_list_is_kept_until_its_call_has_ended_and_dropped_once() {
    watchdog!(120);
    let folder = tempfile::tempdir().unwrap();
    let engine = pool_engine(2);
    let path = folder.path().join("dropped");
    let bytes = pattern(4, 64 << 10);
    std::fs::write(&path, &bytes).unwrap();
    let file = File::options().read(true).write(true).engine(&engine).open(path).unwrap();
    for round in 0..300 {
        let (records, list): (Vec<_>, Vec<_>) = (0..16).map(|_| Canary::<0>::new(&[0; 4096])).unzip();
        {
            let mut future = pin!(file.read_vectored_at_async(list, 0));
            let _ = poll(future.as_mut());
            if round % 3 == 0 {
                std::thread::yield_now();
            }
        }
        let gone = || records.iter().all(|record| record.drops() > 0);
        assert!(eventually(Duration::from_secs(10), gone), "round {round}");
        records.iter().for_each(|record| record.check());
    }
    drop(file);
}

// Whole aligned pages, of a file that is read and written without the system's cache.
#[cfg(windows)]
#[test]
fn whole_pages_of_an_unbuffered_file_go_by_scatter_and_gather() {
    /// Pages that are aligned as such.
    #[repr(align(4096))]
    #[derive(Clone)]
    struct Pages([u8; 8192]);
    struct Aligned(Box<Pages>);
    // SAFETY: the pages are on the heap.
    unsafe impl haft::fs::IoBuf for Aligned {
        fn as_io_ptr(&self) -> *const u8 {
            self.0.0.as_ptr()
        }
        fn io_len(&self) -> usize {
            8192
        }
    }
    // SAFETY: as above.
    unsafe impl haft::fs::IoBufMut for Aligned {
        fn as_io_mut_ptr(&mut self) -> *mut u8 {
            self.0.0.as_mut_ptr()
        }
        fn io_room(&self) -> usize {
            8192
        }
        unsafe fn set_filled(&mut self, _: usize) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let mut options = File::options();
    options.read(true).write(true).create(true).unbuffered(true).asynchronous(true);
    let file = options.open(folder.path().join("pages")).unwrap();
    // More than one call takes.
    let list: Vec<Aligned> = (0..200_u8).map(|n| Aligned(Box::new(Pages([n; 8192])))).collect();
    let (written, _) = block_on(file.write_vectored_at_async(list, 4096)).unwrap();
    assert_eq!(written, 200 * 8192);
    let list: Vec<Aligned> = (0..201).map(|_| Aligned(Box::new(Pages([255; 8192])))).collect();
    let (read, list) = block_on(file.read_vectored_at_async(list, 4096)).unwrap();
    assert_eq!(read, 200 * 8192);
    for (n, part) in list.iter().enumerate().take(200) {
        assert!(part.0.0.iter().all(|&byte| usize::from(byte) == n), "part {n}");
    }
}

#[test]
fn a_list_is_used_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = pattern(6, 300);
    std::fs::write(folder.path().join("again"), &bytes).unwrap();
    let file = Engine::default().adopt(std::fs::File::open(folder.path().join("again")).unwrap());
    let mut list = Buffers::from(parts(&[100, 100], 0));
    for from in [0, 50, 100] {
        let (read, back) = block_on(file.read_vectored_at_async(list, from as u64)).unwrap();
        assert_eq!((read, back.concat()), (200, bytes[from..from + 200].to_vec()));
        list = back;
        list[0].fill(0);
    }
}
