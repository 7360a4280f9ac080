//! `--busy`: one spinning process for every CPU that this one may use.

use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Result;

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// The spinning processes, killed when dropped. Should this process be killed itself, their parent-death
/// signal ends them.
pub(crate) struct Busy(Vec<Child>);

impl Busy {
    pub(crate) fn start() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut busy = Self(Vec::new());
        for cpu in allowed_cpus() {
            let child = Command::new(&program)
                .args(["spin", "--cpu", &cpu.to_string(), "--parent", &std::process::id().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()?;
            busy.0.push(child);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended already; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a spinning process does.
pub(crate) fn spin(cpu: usize, parent: u32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(|parent| parent.as_raw_nonzero().get() as u32) != Some(parent) {
        // The parent ended before the line above.
        return Ok(());
    }
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one)?;
    loop {
        std::hint::spin_loop();
    }
}
