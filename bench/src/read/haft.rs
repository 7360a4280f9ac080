//! Peer `haft`: `read_at`, and `read_at_async` under three executors.

use std::pin::Pin;
use std::sync::{Arc, Barrier};

use haft::engine::Engine;
use haft::fs::File;
use tokio::runtime::{Builder, Runtime};

use super::tally::Tally;
use super::{Job, Peer, SYNC, buffer, here};
use crate::Result;
use crate::block_on::block_on;
use crate::meter::Sample;

/// SyncRead.
pub(crate) struct Sync {
    file: File,
    overlapped: bool,
    buffer: Vec<u8>,
}

impl Sync {
    pub(crate) fn new(job: &Job, overlapped: bool) -> Result<Self> {
        Ok(Self { file: here::options(overlapped).open(&job.path)?, overlapped, buffer: buffer(job.block) })
    }
}

impl Peer for Sync {
    fn name(&self) -> &'static str {
        "haft"
    }

    fn method(&self) -> &'static str {
        SYNC
    }

    fn overlapped(&self) -> bool {
        self.overlapped
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let mut tally = job.tally();
        loop {
            let count = self.file.read_at(&mut self.buffer, tally.offset())?;
            if !tally.piece(&self.buffer[..count]) {
                return tally.finish();
            }
        }
    }
}

/// What drives the futures.
#[derive(Clone, Copy)]
pub(crate) enum Executor {
    /// This thread alone, parked while it waits.
    BlockOn,
    TokioCurrent,
    /// The loop is a spawned task, so that a worker of the runtime polls it.
    TokioMulti,
}

impl Executor {
    fn name(self) -> &'static str {
        match self {
            Self::BlockOn => "block_on",
            Self::TokioCurrent => "tokio-current",
            Self::TokioMulti => "tokio-multi",
        }
    }
}

/// AsyncRead. Each has an engine of its own, so that each can tell its inline hits.
pub(crate) struct Async {
    executor: Executor,
    overlapped: bool,
    runtime: Option<Runtime>,
    engine: Engine,
    file: File,
    buffer: Vec<u8>,
}

type Pass = Pin<Box<dyn Future<Output = Result<(Sample, Vec<u8>)>> + Send>>;

impl Async {
    pub(crate) fn new(job: &Job, executor: Executor, overlapped: bool) -> Result<Self> {
        let builder = Engine::builder();
        let engine = if job.no_inline { builder.inline_limit(0) } else { builder }.build();
        let file = here::options(overlapped).engine(&engine).open(&job.path)?;
        let runtime = match executor {
            Executor::BlockOn => None,
            Executor::TokioCurrent => Some(Builder::new_current_thread().build()?),
            Executor::TokioMulti => {
                let runtime = Builder::new_multi_thread().build()?;
                meet_all_workers(&runtime, &file)?;
                Some(runtime)
            }
        };
        Ok(Self { executor, overlapped, runtime, engine, file, buffer: buffer(job.block) })
    }
}

impl Peer for Async {
    fn name(&self) -> &'static str {
        "haft"
    }

    fn executor(&self) -> Option<&'static str> {
        Some(self.executor.name())
    }

    fn overlapped(&self) -> bool {
        self.overlapped
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let buffer = std::mem::take(&mut self.buffer);
        let (gap, checksum) = (job.gap, job.checksum);
        let file = self.file.clone();
        // In a box, so that every executor polls the same machine code: inlined into one and not into
        // another, the same loop differs by 40 % (seen), which says nothing about executors.
        let pass: Pass =
            Box::pin(async move { read_to_end(&file, buffer, || Tally::start(checksum, gap)).await });
        let (sample, buffer) = match (self.executor, &self.runtime) {
            (Executor::TokioCurrent, Some(runtime)) => runtime.block_on(pass)?,
            (Executor::TokioMulti, Some(runtime)) => runtime.block_on(runtime.spawn(pass))??,
            _ => block_on(pass)?,
        };
        self.buffer = buffer;
        Ok(sample)
    }

    fn remark(&self) -> Option<String> {
        let stats = self.engine.stats();
        let all = stats.inline_hits + stats.queued;
        let share = 100.0 * stats.inline_hits as f64 / all.max(1) as f64;
        Some(format!(
            "haft AsyncRead ({}): {share:.2} % inline hits ({} of {all} operations)",
            self.executor.name(),
            stats.inline_hits,
        ))
    }
}

/// One operation on every worker of the runtime: what a thread needs once is no part of the steady state, and
/// the task of a round may run on any of them.
fn meet_all_workers(runtime: &Runtime, file: &File) -> Result<()> {
    let workers = runtime.metrics().num_workers();
    let all_here = Arc::new(Barrier::new(workers));
    let task = |_| {
        let (file, all_here) = (file.clone(), Arc::clone(&all_here));
        runtime.spawn(async move {
            // Blocks the worker, so that each takes one task.
            all_here.wait();
            file.read_at_async(vec![0], 0).await.map(drop)
        })
    };
    let tasks: Vec<_> = (0..workers).map(task).collect();
    for task in tasks {
        runtime.block_on(task)??;
    }
    Ok(())
}

async fn read_to_end(
    file: &File,
    mut buffer: Vec<u8>,
    begin: impl FnOnce() -> Tally,
) -> Result<(Sample, Vec<u8>)> {
    let mut tally = begin();
    loop {
        let (count, back) = file.read_at_async(buffer, tally.offset()).await?;
        buffer = back;
        if !tally.piece(&buffer[..count]) {
            return Ok((tally.finish()?, buffer));
        }
    }
}
