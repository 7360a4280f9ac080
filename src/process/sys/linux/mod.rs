//! Linux: one `clone` that shares memory, on the calling thread. [`launch`](mod@launch) has the protocol.

mod busy;
mod child;
mod close;
mod diagnose;
mod drain;
mod generation;
mod handles;
mod handover;
mod launch;
mod pid;
mod raw;
mod same_file;
mod signals;
mod slot_map;
mod slots;
mod stack;
mod watcher;

pub(crate) use std::io::{PipeReader as ReadEnd, PipeWriter as WriteEnd};
pub(crate) use std::os::fd::{AsFd as AsHandle, OwnedFd as Handle};

pub(crate) use diagnose::explain;
pub(crate) use drain::drain_both;
#[cfg(feature = "fs")]
pub(crate) use handles::is_overlapped;
pub(crate) use handles::{Source, duplicate, has_other_end, null, pipe, source, standard};
pub(crate) use launch::{Launched, launch};
pub(crate) use pid::{Pid, Seen};
pub(crate) use same_file::same_file;
pub(crate) use slots::reserve;
pub(crate) use watcher::watch;
