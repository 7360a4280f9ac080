//! Peer `std`: `std::process::Command`.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::{Job, Peer, drain, succeeded};

pub(crate) struct Std;

impl Peer for Std {
    fn name(&self) -> &'static str {
        "std"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(launch)
    }
}

fn launch(job: &Job) -> io::Result<()> {
    let mut command = Command::new(&job.program);
    command.args(job.arguments);
    if job.redirects() {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn()?;
    if let Some(stdout) = child.stdout.take() {
        drain(stdout)?;
    }
    succeeded(child.wait()?)
}
