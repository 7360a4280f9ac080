//! What a read costs.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::{INLINE, STD_READ, open, std_read};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows::{INLINE, STD_READ, open, std_read};

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use haft::engine::Engine;
use haft::fs::File;

use super::machine;
use super::screen::{FAINT, GOOD, STRONG, Screen, WARN, grouped, median, paint, per_operation, percent};
use crate::Error;
use crate::alloc::allocations;
use crate::block_on::block_on;

const SIZE: usize = 10_000_000;
const PIECE: usize = 1024;
const ROUNDS: usize = 31;
/// Fewer rounds where they take longer than this.
const PATIENCE: Duration = Duration::from_secs(4);

/// One way to read the file, and what its rounds took.
#[derive(Default)]
struct Figures {
    /// Per operation.
    nanoseconds: Vec<f64>,
    allocations: u64,
    operations: u64,
}

impl Figures {
    /// What a round of so many operations took, since `begin`.
    fn add(&mut self, operations: u64, (begin, allocated): (Instant, u64)) {
        let taken = begin.elapsed();
        self.allocations += allocations() - allocated;
        self.nanoseconds.push(taken.as_nanos() as f64 / operations as f64);
        self.operations += operations;
    }

    fn allocations(&self) -> f64 {
        self.allocations as f64 / self.operations as f64
    }
}

/// What all rounds came to.
struct Answer {
    std: Figures,
    sync: Figures,
    asynchronous: Figures,
    /// The share of async reads that were answered on the calling thread.
    inline: f64,
    /// The file system does not take the attempt, where one is made.
    refused: bool,
}

pub(crate) fn show(screen: &mut Screen, folder: &Path) -> Result<(), Error> {
    screen.section(3, "What a read costs")?;
    let answer = match measure(&folder.join("data")) {
        Ok(answer) => answer,
        Err(error) => return Ok(screen.absent("reads", &error.to_string())?),
    };
    let system = machine::file_system(folder);
    screen.line(format_args!(
        "  {} bytes of a file on {}, read in pieces of 1 KiB:",
        grouped(SIZE as u64),
        system.as_deref().unwrap_or("a file system unknown to us"),
    ))?;
    screen
        .line(paint(STRONG, format_args!("  {:<24}{:>12}{:>24}", "", "time a read", "allocations a read")))?;
    for (name, figures) in [
        (STD_READ, &answer.std),
        ("haft  read_at", &answer.sync),
        ("haft  read_at_async", &answer.asynchronous),
    ] {
        let time = format!("{:.0} ns", median(&figures.nanoseconds));
        let allocations = per_operation(figures.allocations());
        let style = if figures.allocations == 0 && name.starts_with("haft") { GOOD } else { STRONG };
        screen.line(format_args!(
            "{}{time:>12}{}",
            paint(STRONG, format_args!("  {name:<24}")),
            paint(style, format_args!("{allocations:>24}")),
        ))?;
    }
    let inline = paint(FAINT, format_args!("  {} {INLINE}", percent(answer.inline)));
    screen.line(inline)?;
    if answer.refused {
        let system = system.as_deref().unwrap_or("This file system");
        screen.line(paint(
            WARN,
            format_args!("  {system} refuses RWF_NOWAIT: reads go to haft's threads. Try --dir elsewhere."),
        ))?;
    }
    Ok(())
}

fn measure(path: &Path) -> io::Result<Answer> {
    std::fs::write(path, vec![0x5a; SIZE])?;
    let engine = Engine::builder().build();
    let std_file = std::fs::File::open(path)?;
    let [file, file_for_async] = open(path, &engine)?;
    // One for all: what a copy costs depends on where the buffer lies in its pages.
    let mut buffer = vec![0; PIECE];
    let (mut by_std, mut sync, mut asynchronous) =
        (Figures::default(), Figures::default(), Figures::default());

    // One round of each to warm up, which brings the file into memory and starts what is started at first use.
    read_by_std(&std_file, &mut buffer)?;
    read_sync(&file, &mut buffer)?;
    buffer = block_on(read_async(&file_for_async, buffer))?.1;

    let before = engine.stats();
    let begin = Instant::now();
    while by_std.nanoseconds.is_empty() || by_std.nanoseconds.len() < ROUNDS && begin.elapsed() < PATIENCE {
        let start = begin_round();
        let operations = read_by_std(&std_file, &mut buffer)?;
        by_std.add(operations, start);

        let start = begin_round();
        let operations = read_sync(&file, &mut buffer)?;
        sync.add(operations, start);

        // The executor is not what is measured: it has made its waker when the round begins.
        buffer = block_on(async {
            let start = begin_round();
            let (operations, buffer) = read_async(&file_for_async, buffer).await?;
            asynchronous.add(operations, start);
            io::Result::Ok(buffer)
        })?;
    }
    let after = engine.stats();
    Ok(Answer {
        inline: (after.inline_hits - before.inline_hits) as f64 / asynchronous.operations as f64,
        refused: after.inline_unsupported > 0 && after.inline_hits == 0,
        std: by_std,
        sync,
        asynchronous,
    })
}

fn begin_round() -> (Instant, u64) {
    let allocated = allocations();
    (Instant::now(), allocated)
}

// The three loops are alike: read until nothing comes, and count.

#[inline(never)]
fn read_by_std(file: &std::fs::File, buffer: &mut [u8]) -> io::Result<u64> {
    let (mut offset, mut operations) = (0, 0);
    loop {
        operations += 1;
        match std_read(file, buffer, offset)? {
            0 => return whole(offset, operations),
            read => offset += read as u64,
        }
    }
}

#[inline(never)]
fn read_sync(file: &File, buffer: &mut [u8]) -> io::Result<u64> {
    let (mut offset, mut operations) = (0, 0);
    loop {
        operations += 1;
        match file.read_at(buffer, offset)? {
            0 => return whole(offset, operations),
            read => offset += read as u64,
        }
    }
}

async fn read_async(file: &File, mut buffer: Vec<u8>) -> io::Result<(u64, Vec<u8>)> {
    let (mut offset, mut operations) = (0, 0);
    loop {
        operations += 1;
        let (read, back) = file.read_at_async(buffer, offset).await?;
        buffer = back;
        match read {
            0 => return Ok((whole(offset, operations)?, buffer)),
            read => offset += read as u64,
        }
    }
}

/// The number of operations, if they brought the whole file.
fn whole(bytes: u64, operations: u64) -> io::Result<u64> {
    if bytes == SIZE as u64 {
        return Ok(operations);
    }
    Err(io::Error::other(format!("the file ended after {} bytes", grouped(bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_do_the_same_work() {
        let folder = tempfile::tempdir().unwrap();
        let answer = measure(&folder.path().join("data")).unwrap();
        let operations = SIZE.div_ceil(PIECE) as u64 + 1;
        for figures in [&answer.std, &answer.sync, &answer.asynchronous] {
            assert_eq!(figures.operations, operations * figures.nanoseconds.len() as u64);
        }
        assert!((0.0..=1.0).contains(&answer.inline), "{}", answer.inline);
    }
}
