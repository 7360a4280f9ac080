//! Peer `duct`: its expressions, `run` and, with redirection, `reader` (which waits when it has read to the
//! end).

use std::io;
use std::sync::Arc;

use super::super::{Job, Peer, drain, succeeded};

pub(crate) struct Duct;

impl Peer for Duct {
    fn name(&self) -> &'static str {
        "duct"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(launch)
    }
}

fn launch(job: &Job) -> io::Result<()> {
    let expression = duct::cmd(&job.program, job.arguments);
    if job.redirects() {
        // Dropping the reader after the end of the stream reaps the child; a bad status is an error of the
        // last read.
        drain(expression.reader()?)
    } else {
        succeeded(expression.run()?.status)
    }
}
