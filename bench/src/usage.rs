//! Processor time and context switches.

/// Whose usage counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// All threads of this process.
    Process,
    /// Those, and the children that it has waited for.
    ProcessAndChildren,
}

/// User and system time, and context switches of both kinds, as far as the system tells.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) switches: Option<u64>,
}

impl Usage {
    pub(crate) fn so_far(whose: Whose) -> Self {
        crate::sys::usage::so_far(whose)
    }

    /// What was used between `earlier` and this.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self { cpu_ns: since(self.cpu_ns, earlier.cpu_ns), switches: since(self.switches, earlier.switches) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_processor_time() {
        let before = Usage::so_far(Whose::Process);
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 60 {}
        let used = Usage::so_far(Whose::Process).since(before).cpu_ns.expect("every system tells it");
        // Windows counts in ticks of up to 16 ms.
        assert!(used >= 1_000_000, "{used} ns");
    }
}
