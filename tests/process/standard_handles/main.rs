//! A child gets exactly the standard handles that were asked for, whatever the parent's are.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
