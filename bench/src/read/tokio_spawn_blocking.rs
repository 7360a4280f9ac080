//! Peer `tokio-spawn-blocking`: std's positioned read in `spawn_blocking`, what programs do by hand.

use std::fs::File;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use super::{Job, Peer, buffer, here};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct TokioSpawnBlocking {
    runtime: Runtime,
    file: Arc<File>,
    buffer: Vec<u8>,
}

impl TokioSpawnBlocking {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let runtime = Builder::new_multi_thread().build()?;
        Ok(Self { runtime, file: Arc::new(File::open(&job.path)?), buffer: buffer(job.block) })
    }
}

impl Peer for TokioSpawnBlocking {
    fn name(&self) -> &'static str {
        "tokio-spawn-blocking"
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let (sample, buffer) = self.runtime.block_on(async {
            let mut tally = job.tally();
            loop {
                let (file, offset) = (Arc::clone(&self.file), tally.offset());
                let (count, back) = spawn_blocking(move || {
                    let count = here::read_at(&file, &mut buffer, offset);
                    (count, buffer)
                })
                .await?;
                buffer = back;
                if !tally.piece(&buffer[..count?]) {
                    return crate::Result::Ok((tally.finish()?, buffer));
                }
            }
        })?;
        self.buffer = buffer;
        Ok(sample)
    }
}
