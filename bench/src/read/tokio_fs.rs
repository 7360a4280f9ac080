//! Peer `tokio-fs`: `tokio::fs::File`, read in order from the start.

use std::io::SeekFrom;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::runtime::{Builder, Runtime};

use super::{Job, Peer, buffer};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct TokioFs {
    runtime: Runtime,
    file: File,
    buffer: Vec<u8>,
}

impl TokioFs {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let runtime = Builder::new_multi_thread().build()?;
        let file = runtime.block_on(File::open(&job.path))?;
        Ok(Self { runtime, file, buffer: buffer(job.block) })
    }
}

impl Peer for TokioFs {
    fn name(&self) -> &'static str {
        "tokio-fs"
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let Self { runtime, file, buffer } = self;
        runtime.block_on(async {
            file.seek(SeekFrom::Start(0)).await?;
            let mut tally = job.tally();
            loop {
                let count = file.read(buffer).await?;
                if !tally.piece(&buffer[..count]) {
                    return tally.finish();
                }
            }
        })
    }
}
