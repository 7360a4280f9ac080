//! What a reader of the figures has to know about the machine.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::file_system;
#[cfg(target_os = "linux")]
use linux::{busy, system};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(super) use windows::file_system;
#[cfg(windows)]
use windows::{busy, system};

/// The system and the number of CPUs.
pub(crate) fn describe() -> String {
    let cpus = cpus();
    let plural = if cpus == 1 { "" } else { "s" };
    format!("{}, {}, {cpus} CPU{plural}", system(), std::env::consts::ARCH)
}

/// How busy the machine has been, in CPUs' worth of work, where that spoils figures.
pub(crate) fn load() -> Option<f64> {
    busy().filter(|load| *load > 0.5 * cpus() as f64)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
