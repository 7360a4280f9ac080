//! Fallbacks on demand, for tests.
//!
//! Built with `--cfg haft_test`, the library reads `HAFT_FORCE` once at first use, a comma list, and behaves as on a
//! system that lacks the named things:
//!
//! | name | what is lacking |
//! |---|---|
//! | `no_clone3`, `no_close_range`, `no_pidfd`, `no_kcmp` | the system call |
//! | `no_files` | sharing the descriptor table with a child until it takes its own |
//! | `no_slots` | low numbers to bring high descriptors down to |
//! | `no_watcher` | a thread for dropped children |
//! | `no_nowait` | reading what is cached without waiting, as on a file system that refuses it |
//! | `true_nowait` | the truth from such a read: as on the kernels 5.9 and 5.10 it ends with the first page |
//! | `no_threads` | threads for the engine's pool |
//! | `short_counts` | complete transfers: half of the pool's reads and writes are cut short at random |
//!
//! Without that `cfg` all of this is the constant "no".

/// Something that a kernel, a file system or a sandbox may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    any(windows, not(all(feature = "process", feature = "fs"))),
    allow(dead_code, reason = "each half has its own, and Windows may lack few of them")
)]
pub(crate) enum Lack {
    Clone3,
    CloseRange,
    Pidfd,
    Files,
    Slots,
    Kcmp,
    Watcher,
    Nowait,
    TrueNowait,
    Threads,
    FullCounts,
}

#[cfg(not(haft_test))]
#[inline(always)]
#[cfg_attr(
    all(windows, not(feature = "fs")),
    allow(dead_code, reason = "launching on Windows has no fallbacks")
)]
pub(crate) fn lacks(_: Lack) -> bool {
    false
}

#[cfg(haft_test)]
#[cfg_attr(
    all(windows, not(feature = "fs")),
    allow(dead_code, reason = "launching on Windows has no fallbacks")
)]
pub(crate) fn lacks(what: Lack) -> bool {
    static FORCED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let name = match what {
        Lack::Clone3 => "no_clone3",
        Lack::CloseRange => "no_close_range",
        Lack::Pidfd => "no_pidfd",
        Lack::Files => "no_files",
        Lack::Slots => "no_slots",
        Lack::Kcmp => "no_kcmp",
        Lack::Watcher => "no_watcher",
        Lack::Nowait => "no_nowait",
        Lack::TrueNowait => "true_nowait",
        Lack::Threads => "no_threads",
        Lack::FullCounts => "short_counts",
    };
    FORCED.get_or_init(|| std::env::var("HAFT_FORCE").unwrap_or_default()).split(',').any(|one| one == name)
}

/// How many of `len` bytes the next system call may move.
#[cfg(feature = "fs")]
#[inline(always)]
pub(crate) fn shortened(len: usize) -> usize {
    if !lacks(Lack::FullCounts) {
        return len;
    }
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static SEED: AtomicU64 = AtomicU64::new(1);
    // Weyl's sequence, mixed: as random as this needs, and the same in every run.
    let mut x = SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    if x & 1 == 0 || len < 2 { len } else { 1 + (x >> 1) as usize % (len - 1) }
}
