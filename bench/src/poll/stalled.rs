//! The time inside one poll while a worker is stuck.

use std::path::Path;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use haft::engine::Engine;
use haft::fs::{File, OpenOptions};

use super::userfault::UserFault;
use super::{Distribution, Options, histogram};
use crate::Result;
use crate::block_on::block_on;

/// An operation that has no result after so many polls is dropped.
const PATIENCE: u32 = 64;

/// One operation's place: the operation, pinned, and its polls so far.
struct Slot<F> {
    operation: Pin<Box<F>>,
    polls: u32,
}

pub(super) fn measure(options: &Options, path: &Path) -> Result<Distribution> {
    let limit = Some(("p99.9 ≤ 10 µs", 10_000));
    let method = "StalledWorker";
    let (fault, stalling) = match UserFault::new(64 << 10) {
        Ok(made) => made,
        Err(reason) => {
            let why = format!("no worker can be stalled here: {reason}");
            return Ok(Distribution { method, limit, histogram: Err(why), remarks: Vec::new() });
        }
    };
    let builder = Engine::builder().inline_limit(0);
    let engine = if options.threads > 0 { builder.threads(options.threads) } else { builder }.build();
    let file = OpenOptions::new().read(true).engine(&engine).open(path)?;

    let mut stalled = pin!(file.read_at_async(stalling, 0));
    let mut context = Context::from_waker(Waker::noop());
    if stalled.as_mut().poll(&mut context).is_ready() {
        return Err("the operation that should stall did not".into());
    }
    fault.wait()?;

    let mut histogram = histogram()?;
    let mut counts = Counts::default();
    let blocks = (options.file_size / options.block) as u64;
    polls(options, &file, blocks, &mut context, |ns, outcome| {
        histogram.saturating_record(ns);
        counts.count(outcome);
    })?;

    if stalled.as_mut().poll(&mut context).is_ready() {
        return Err("the stalled worker was not stalled to the end".into());
    }
    fault.resolve()?;
    let (count, buffer) = block_on(stalled)?;
    if count != buffer.filled().len() || buffer.filled() != &std::fs::read(path)?[..count] {
        return Err("the stalled operation read something else".into());
    }

    let stats = engine.stats();
    let remarks = vec![
        format!(
            "of the polls {} had the result, {} dropped the operation after {PATIENCE} polls",
            counts.ready, counts.dropped
        ),
        format!(
            "pool: {} operations queued, {} completed, {} abandoned; one was stalled all the time",
            stats.queued, stats.completed, stats.abandoned
        ),
    ];
    Ok(Distribution { method, limit, histogram: Ok(histogram), remarks })
}

#[derive(Clone, Copy)]
enum Outcome {
    Ready,
    Pending,
    Dropped,
}

#[derive(Default)]
struct Counts {
    ready: u64,
    dropped: u64,
}

impl Counts {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ready => self.ready += 1,
            Outcome::Dropped => self.dropped += 1,
            Outcome::Pending => {}
        }
    }
}

/// Polls operations in turns, and tells the nanoseconds of every poll.
fn polls(
    options: &Options,
    file: &File,
    blocks: u64,
    context: &mut Context<'_>,
    mut tell: impl FnMut(u64, Outcome),
) -> Result<()> {
    let mut place = 0_u64;
    let mut offset = || {
        // A step that is odd meets every block.
        place = place.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (place >> 20) % blocks * options.block as u64
    };
    let mut slots: Vec<_> = (0..options.depth)
        .map(|_| Slot {
            operation: Box::pin(file.read_at_async(vec![0_u8; options.block], offset())),
            polls: 0,
        })
        .collect();
    let mut done = 0;
    loop {
        for slot in &mut slots {
            if done == options.polls {
                return Ok(());
            }
            done += 1;
            let begun = Instant::now();
            let polled = slot.operation.as_mut().poll(context);
            let ns = begun.elapsed().as_nanos() as u64;
            slot.polls += 1;
            let (buffer, outcome) = match polled {
                Poll::Ready(result) => {
                    let (count, buffer) = result?;
                    if count != options.block {
                        return Err(format!("an operation read {count} bytes").into());
                    }
                    (buffer, Outcome::Ready)
                }
                Poll::Pending if slot.polls == PATIENCE => (vec![0; options.block], Outcome::Dropped),
                Poll::Pending => {
                    tell(ns, Outcome::Pending);
                    continue;
                }
            };
            tell(ns, outcome);
            slot.operation.set(file.read_at_async(buffer, offset()));
            slot.polls = 0;
        }
    }
}
