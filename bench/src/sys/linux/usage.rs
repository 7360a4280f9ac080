//! Processor time and context switches, from `getrusage`.

use std::mem::MaybeUninit;

use crate::usage::{Usage, Whose};

pub(crate) fn so_far(whose: Whose) -> Usage {
    let (own_ns, own_switches) = of(libc::RUSAGE_SELF);
    let (children_ns, children_switches) = match whose {
        Whose::Process => (0, 0),
        Whose::ProcessAndChildren => of(libc::RUSAGE_CHILDREN),
    };
    Usage { cpu_ns: Some(own_ns + children_ns), switches: Some(own_switches + children_switches) }
}

/// Nanoseconds and switches.
fn of(who: libc::c_int) -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes one rusage to memory of that size.
    let done = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(done, 0, "getrusage takes RUSAGE_SELF and RUSAGE_CHILDREN");
    // SAFETY: zeroed, and then filled in by the kernel; every bit pattern is a value of its integers.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime) + ns(usage.ru_stime), (usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}
