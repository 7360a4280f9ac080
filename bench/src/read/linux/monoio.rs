//! Peer `monoio`: its runtime on io_uring.

use monoio::fs::File;
use monoio::{IoUringDriver, Runtime, RuntimeBuilder};

use super::super::{Job, Peer, buffer};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct Monoio {
    // Before the runtime: it closes through it.
    file: Option<File>,
    runtime: Runtime<IoUringDriver>,
    buffer: Vec<u8>,
}

impl Monoio {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let mut runtime = RuntimeBuilder::<IoUringDriver>::new().build()?;
        let file = runtime.block_on(File::open(&job.path))?;
        Ok(Self { file: Some(file), runtime, buffer: buffer(job.block) })
    }
}

impl Peer for Monoio {
    fn name(&self) -> &'static str {
        "monoio"
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let Self { file, runtime, buffer: held } = self;
        let file = file.as_ref().expect("open until dropped");
        let mut buffer = std::mem::take(held);
        let (sample, buffer) = runtime.block_on(async {
            let mut tally = job.tally();
            loop {
                buffer.clear();
                let (count, back) = file.read_at(buffer, tally.offset()).await;
                buffer = back;
                if !tally.piece(&buffer[..count?]) {
                    return Result::Ok((tally.finish()?, buffer));
                }
            }
        })?;
        *held = buffer;
        Ok(sample)
    }
}

impl Drop for Monoio {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // A failed close of a file that was only read loses nothing.
            let _ = self.runtime.block_on(file.close());
        }
    }
}
