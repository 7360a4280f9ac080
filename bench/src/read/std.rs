//! Peer `std`: `FileExt::read_at`, on Windows `seek_read`.

use std::fs::File;

use super::{Job, Peer, SYNC, buffer, here};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct Std {
    file: File,
    buffer: Vec<u8>,
}

impl Std {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        Ok(Self { file: File::open(&job.path)?, buffer: buffer(job.block) })
    }
}

impl Peer for Std {
    fn name(&self) -> &'static str {
        "std"
    }

    fn method(&self) -> &'static str {
        SYNC
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let mut tally = job.tally();
        loop {
            let count = here::read_at(&self.file, &mut self.buffer, tally.offset())?;
            if !tally.piece(&self.buffer[..count]) {
                return tally.finish();
            }
        }
    }
}
