//! Peer `tokio`: `tokio::process::Command` on a multi-thread runtime, launches spread over as many tasks as
//! the other peers have threads.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::crew::is_wines;
use super::{Job, Peer, succeeded};

pub(crate) struct Tokio {
    runtime: Runtime,
}

impl Tokio {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { runtime: Builder::new_multi_thread().enable_all().build()? })
    }
}

impl Peer for Tokio {
    fn name(&self) -> &'static str {
        "tokio"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        self.runtime.block_on(async {
            let taken = Arc::new(AtomicUsize::new(0));
            if job.threads == 1 {
                return work(Arc::clone(job), taken).await;
            }
            let mut tasks = JoinSet::new();
            for _ in 0..job.threads {
                tasks.spawn(work(Arc::clone(job), Arc::clone(&taken)));
            }
            while let Some(done) = tasks.join_next().await {
                done.map_err(io::Error::other)??;
            }
            Ok(())
        })
    }
}

async fn work(job: Arc<Job>, taken: Arc<AtomicUsize>) -> io::Result<()> {
    while taken.fetch_add(1, Ordering::Relaxed) < job.count {
        while let Err(error) = launch(&job).await {
            if !is_wines(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn launch(job: &Job) -> io::Result<()> {
    let mut command = Command::new(&job.program);
    command.args(job.arguments);
    if job.redirects() {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn()?;
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = [0; 4096];
        while stdout.read(&mut buffer).await? > 0 {}
    }
    succeeded(child.wait().await?)
}
