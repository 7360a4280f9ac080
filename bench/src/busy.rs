//! `--busy`: one spinning process for every CPU that this one may use.

use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::sys::cpus::allowed_cpus;

/// The spinning processes, killed when dropped. Should this process be killed itself, they end too: see `sys::cpus::spin`.
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
