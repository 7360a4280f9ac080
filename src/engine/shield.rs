//! Foreign code (wakers, the drop of buffers) on the engine's threads: its panics end here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `foreign`; a panic in it must not cost the pool its thread or the store its cell. Its message has been
/// printed by then. The payload's own drop may panic too, and is not given a third chance.
pub(crate) fn shielded(foreign: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(foreign))
        && let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        std::mem::forget(again);
    }
}
