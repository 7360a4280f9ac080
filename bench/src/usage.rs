//! Processor time and context switches, from `getrusage`.

use std::mem::MaybeUninit;

/// Whose usage counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// All threads of this process.
    Process,
    /// Those, and the children that it has waited for.
    ProcessAndChildren,
}

/// User and system time, and context switches of both kinds.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) switches: u64,
}

impl Usage {
    pub(crate) fn so_far(whose: Whose) -> Self {
        let own = Self::of(libc::RUSAGE_SELF);
        match whose {
            Whose::Process => own,
            Whose::ProcessAndChildren => {
                let children = Self::of(libc::RUSAGE_CHILDREN);
                Self { cpu_ns: own.cpu_ns + children.cpu_ns, switches: own.switches + children.switches }
            }
        }
    }

    fn of(who: libc::c_int) -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage writes one rusage to memory of that size.
        let done = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
        assert_eq!(done, 0, "getrusage takes RUSAGE_SELF and RUSAGE_CHILDREN");
        // SAFETY: zeroed, and then filled in by the kernel; every bit pattern is a value of its integers.
        let usage = unsafe { usage.assume_init() };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_processor_time() {
        let before = Usage::so_far(Whose::Process);
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 30 {}
        let after = Usage::so_far(Whose::Process);
        assert!(after.cpu_ns - before.cpu_ns >= 1_000_000, "{} ns", after.cpu_ns - before.cpu_ns);
    }
}
