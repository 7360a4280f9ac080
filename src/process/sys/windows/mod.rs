//! Windows: `CreateProcessW` with the list of handles that the child gets. [`launch`](mod@launch) has the protocol.

mod attributes;
mod diagnose;
mod drain;
mod exit;
mod handles;
mod inheritable;
mod job;
mod launch;
mod logon;
mod pid;
mod pipe_end;
mod relay;
mod shell;
mod surroundings;

pub(crate) use std::os::windows::io::{AsHandle, OwnedHandle as Handle};

pub(crate) use crate::process::plan::Source;
pub(crate) use diagnose::{explain, explain_shell_execute};
pub(crate) use drain::drain_both;
pub(crate) use exit::{Registration, on_exit};
pub(crate) use handles::{
    Duplicate, duplicate, duplicate_socket, has_other_end, is_completion_port, null, pipe, source, standard,
};
pub(crate) use launch::{Launched, launch};
pub(crate) use pid::Pid;
#[cfg(feature = "fs")]
pub(crate) use pipe_end::is_overlapped;
pub(crate) use pipe_end::{PipeEnd as ReadEnd, PipeEnd as WriteEnd};
pub(crate) use relay::{Relay, relay};
pub(crate) use shell::shell_execute;
pub(crate) use surroundings::parent;

/// Launches on Windows are flat in the number of open handles as they are.
pub(crate) fn reserve() -> std::io::Result<()> {
    Ok(())
}
