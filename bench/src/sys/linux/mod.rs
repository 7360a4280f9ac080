//! Linux.

pub(crate) mod cpus;
pub(crate) mod machine;
pub(crate) mod parent;
pub(crate) mod program;
pub(crate) mod tiny;
pub(crate) mod usage;
