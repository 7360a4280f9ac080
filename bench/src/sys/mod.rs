//! What is asked of the operating system beside launching and reading. The folders have the same names in them; this is
//! where one is chosen.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{cpus, machine, parent, program, tiny, usage};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{cpus, machine, parent, program, tiny, usage};

#[cfg(not(any(target_os = "linux", windows)))]
compile_error!("haft-bench runs on Linux and Windows so far");
