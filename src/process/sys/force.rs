//! Failing steps on demand, for tests.
//!
//! Built with `--cfg haft_test`, `HAFT_FAIL=STEP:ERRNO`, read at every launch, makes that [`Step`] fail; a negative
//! number lets the child die of that signal there instead. Without that `cfg` no step fails by itself.

use super::Step;
#[cfg(unix)]
pub(crate) use crate::force::{Lack, lacks};

#[cfg(not(haft_test))]
#[inline(always)]
pub(crate) fn failing(_: Step) -> Option<i32> {
    None
}

#[cfg(haft_test)]
pub(crate) fn failing(step: Step) -> Option<i32> {
    let wanted = std::env::var("HAFT_FAIL").ok()?;
    let (name, errno) = wanted.split_once(':')?;
    (name == step.name()).then(|| errno.parse().expect("HAFT_FAIL=STEP:ERRNO"))
}
