//! Suites that cannot apply on Windows, each with its reason: a skipped test, so that the count of a run tells.
//!
//! On the other systems there is nothing here.
#![cfg(windows)]

use haft_tests::skip;

macro_rules! elsewhere {
    ($($suite:ident: $why:literal;)*) => {$(
        #[test]
        fn $suite() {
            skip!($why);
        }
    )*};
}

elsewhere! {
    caller: "a child on Windows takes nothing from the thread that launches it: neither sandbox nor affinity is a thread's \
             to hand on";
    fallbacks: "the calls that a launch needs are there since Windows Vista, and no profile refuses them";
    many_files: "a child gets a handle table of its own, not a copy of its parent's";
    signals: "Windows has no signals, masks or dispositions";
}
