//! The CPUs that this process may use, and keeping one of them busy.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Result;

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// What a spinning process does, until its parent has ended.
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
