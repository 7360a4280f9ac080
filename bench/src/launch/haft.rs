//! Peer `haft`: `haft::process::Command`, isolated as it is by default; `haft-inherit-all`: the same with everything
//! inherited, as std does it.

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
        job.share(|job| launch(job, &mut Command::new(&job.program)))
    }
}

#[cfg_attr(not(windows), expect(dead_code, reason = "it costs what the others cost, but on Windows"))]
pub(crate) struct InheritAll;

impl Peer for InheritAll {
    fn name(&self) -> &'static str {
        "haft-inherit-all"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(|job| launch(job, Command::new(&job.program).inherit(haft::process::Inherit::All)))
    }
}

fn launch(job: &Job, command: &mut Command) -> io::Result<()> {
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
