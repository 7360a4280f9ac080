//! Peer `haft`: `haft::process::Command`, isolated as it is by default.

use std::io;
use std::sync::Arc;

use haft::process::{Command, Stdio};

use super::{Job, Peer, drain, succeeded};

pub(crate) struct Haft;

impl Peer for Haft {
    fn name(&self) -> &'static str {
        "haft"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(launch)
    }
}

fn launch(job: &Job) -> io::Result<()> {
    let mut command = Command::new(&job.program);
    if job.redirects() {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn()?;
    if let Some(stdout) = child.stdout.take() {
        drain(stdout)?;
    }
    succeeded(child.wait()?)
}

/// Takes haft's low slots while low numbers are free.
pub(crate) fn reserve() -> crate::Result<()> {
    haft::process::reserve()?;
    Ok(())
}
