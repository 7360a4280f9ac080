//! Peer `floor-nowait`: a bare loop of `preadv2(RWF_NOWAIT)`, the least that an inline attempt can cost.
//! Where the page is not in the cache it asks again without the flag.

use std::fs::File;
use std::io::IoSliceMut;

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::super::{Job, Peer, buffer};
use crate::Result;
use crate::meter::Sample;

pub(crate) struct FloorNowait {
    file: File,
    buffer: Vec<u8>,
}

impl FloorNowait {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let file = File::open(&job.path)?;
        let mut byte = [0];
        match preadv2(&file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP) => Err("the file system refuses RWF_NOWAIT".into()),
            _ => Ok(Self { file, buffer: buffer(job.block) }),
        }
    }
}

impl Peer for FloorNowait {
    fn name(&self) -> &'static str {
        "floor-nowait"
    }

    fn round(&mut self, job: &Job) -> Result<Sample> {
        let mut tally = job.tally();
        let mut flags = ReadWriteFlags::NOWAIT;
        loop {
            let count =
                match preadv2(&self.file, &mut [IoSliceMut::new(&mut self.buffer)], tally.offset(), flags) {
                    Ok(count) => count,
                    Err(Errno::AGAIN) => {
                        flags = ReadWriteFlags::empty();
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
            flags = ReadWriteFlags::NOWAIT;
            if !tally.piece(&self.buffer[..count]) {
                return tally.finish();
            }
        }
    }
}
