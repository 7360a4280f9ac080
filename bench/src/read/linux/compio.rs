//! Peer `compio`: its runtime on io_uring.

use compio::buf::BufResult;
use compio::fs::File;
use compio::io::AsyncReadAt;
use compio::runtime::Runtime;

use super::super::{Job, Peer, buffer};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct Compio {
    // Before the runtime: it closes through it.
    file: Option<File>,
    runtime: Runtime,
    buffer: Vec<u8>,
}

impl Compio {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let runtime = Runtime::new()?;
        let file = runtime.block_on(File::open(&job.path))?;
        Ok(Self { file: Some(file), runtime, buffer: buffer(job.block) })
    }
}

impl Peer for Compio {
    fn name(&self) -> &'static str {
        "compio"
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let file = self.file.as_ref().expect("open until dropped");
        let mut buffer = std::mem::take(&mut self.buffer);
        let (sample, buffer) = self.runtime.block_on(async {
            let mut tally = job.tally();
            loop {
                buffer.clear();
                let BufResult(count, back) = file.read_at(buffer, tally.offset()).await;
                buffer = back;
                if !tally.piece(&buffer[..count?]) {
                    return Result::Ok((tally.finish()?, buffer));
                }
            }
        })?;
        self.buffer = buffer;
        Ok(sample)
    }
}

impl Drop for Compio {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // A failed close of a file that was only read loses nothing.
            let _ = self.runtime.block_on(file.close());
        }
    }
}
