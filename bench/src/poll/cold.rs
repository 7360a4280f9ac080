//! The time between two polls of a task that only yields, beside a task that reads a cold file.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use haft::engine::Engine;
use haft::fs::OpenOptions;
use hdrhistogram::Histogram;
use rustix::fs::{Advice, fadvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tokio::task::{LocalSet, yield_now};

use super::{Distribution, Options, histogram};
use crate::Result;

/// With a path: beside the reader of that file. Without: beside a task that sleeps for a second.
pub(super) fn measure(options: &Options, path: Option<&Path>) -> Result<Distribution> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (method, limit) = match path {
        Some(_) => ("ColdFile", Some(("p99.9 ≤ 1 ms", 1_000_000))),
        None => ("NoFile", None),
    };
    let mut remarks = Vec::new();
    if let Some(path) = path {
        let before = evict(path, options.file_size)?;
        remarks.push(format!("{:.2} % of the file was in the cache before, by mincore", 100.0 * before));
        if before > 0.01 {
            let histogram = Err("the file stays in the cache of this file system".into());
            return Ok(Distribution { method, limit, histogram, remarks });
        }
    }
    let ended = Rc::new(Cell::new(false));
    let tasks = LocalSet::new();
    let gaps: Result<Histogram<u64>> = tasks.block_on(&runtime, async {
        let second = tokio::task::spawn_local(yielding(Rc::clone(&ended)));
        match path {
            Some(path) => remarks.extend(read_all(options, path).await?),
            None => tokio::time::sleep(Duration::from_secs(1)).await,
        }
        ended.set(true);
        second.await?
    });
    if let Some(path) = path {
        let after = resident(path, options.file_size)?;
        remarks.push(format!("{:.2} % afterwards", 100.0 * after));
    }
    Ok(Distribution { method, limit, histogram: Ok(gaps?), remarks })
}

/// The second task.
async fn yielding(ended: Rc<Cell<bool>>) -> Result<Histogram<u64>> {
    let mut gaps = histogram()?;
    let mut last = Instant::now();
    while !ended.get() {
        yield_now().await;
        let now = Instant::now();
        gaps.saturating_record((now - last).as_nanos() as u64);
        last = now;
    }
    Ok(gaps)
}

/// The first task: every block once, in an order that no read-ahead guesses.
async fn read_all(options: &Options, path: &Path) -> Result<Vec<String>> {
    let builder = Engine::builder();
    let engine = if options.threads > 0 { builder.threads(options.threads) } else { builder }.build();
    let file = OpenOptions::new().read(true).engine(&engine).open(path)?;
    fadvise(&file, 0, None, Advice::Random)?;
    let blocks = (options.file_size / options.block) as u64;
    // A step without a common divisor visits every block once.
    let step = (blocks * 5 / 8..).find(|&step| gcd(step, blocks) == 1).unwrap_or(1);
    let mut buffer = vec![0; options.block];
    let begun = Instant::now();
    for index in 0..blocks {
        let (count, back) = file.read_at_async(buffer, index * step % blocks * options.block as u64).await?;
        buffer = back;
        if count != options.block {
            return Err(format!("a read returned {count} bytes").into());
        }
    }
    let stats = engine.stats();
    Ok(vec![format!(
        "{blocks} reads in {:.2} s: {} inline hits, {} misses, {} through the pool",
        begun.elapsed().as_secs_f64(),
        stats.inline_hits,
        stats.inline_misses,
        stats.queued
    )])
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Drops the file's pages from the cache; the share that stayed.
fn evict(path: &Path, size: usize) -> Result<f64> {
    let file = std::fs::File::open(path)?;
    // Pages that are still to be written stay; and a batch that a CPU has not filed yet needs a second call.
    file.sync_all()?;
    for _ in 0..5 {
        fadvise(&file, 0, None, Advice::DontNeed)?;
        if resident(path, size)? == 0.0 {
            return Ok(0.0);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    resident(path, size)
}

/// The share of the file's pages that are in the cache.
fn resident(path: &Path, size: usize) -> Result<f64> {
    let file = std::fs::File::open(path)?;
    let mut pages = vec![0_u8; size.div_ceil(rustix::param::page_size())];
    // SAFETY: a fresh mapping that is only asked about and unmapped; the vector has a byte for each of its
    // pages.
    let asked = unsafe {
        let at = mmap(std::ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, &file, 0)?;
        let asked = libc::mincore(at, size, pages.as_mut_ptr());
        let error = std::io::Error::last_os_error();
        munmap(at, size)?;
        if asked == 0 { Ok(()) } else { Err(error) }
    };
    asked?;
    Ok(pages.iter().filter(|&&page| page & 1 == 1).count() as f64 / pages.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_a_common_divisor() {
        assert_eq!(gcd(12, 18), 6);
        assert_eq!(gcd(10_241, 16_384), 1);
    }

    #[test]
    fn a_file_just_written_is_resident() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        crate::read::make_file(&path, 100_000).expect("made");
        assert_eq!(resident(&path, 100_000).expect("mincore answers"), 1.0);
    }
}
