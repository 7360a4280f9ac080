//! What the figures have to show: each limit beside what this run saw.

use crate::json::Row;
use crate::stats::Ratio;

/// One limit on a quotient of two figures.
pub(crate) struct Claim {
    pub(crate) figure: String,
    pub(crate) limit: f64,
    value: Ratio,
}

impl Claim {
    /// A time of one row over a time of another, round by round. None where either row is missing.
    pub(crate) fn time(
        figure: impl Into<String>,
        ours: Option<&Row>,
        limit: f64,
        theirs: Option<&Row>,
    ) -> Option<Self> {
        Some(Self { figure: figure.into(), limit, value: ours?.over(theirs?)? })
    }

    /// A figure without rounds.
    pub(crate) fn plain(figure: impl Into<String>, value: Option<f64>, limit: f64) -> Option<Self> {
        let value = value?;
        Some(Self { figure: figure.into(), limit, value: Ratio { median: value, low: value, high: value } })
    }

    /// A figure is missed only when the low end of its spread is past the limit.
    pub(crate) fn met(&self) -> bool {
        self.value.low <= self.limit
    }

    pub(crate) fn seen(&self) -> String {
        let Ratio { median, low, high } = self.value;
        if low == high { format!("{median:.2}") } else { format!("{median:.2} ({low:.2}–{high:.2})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_only_when_the_low_end_is_past_the_limit() {
        let claim =
            |low| Claim { figure: String::new(), limit: 1.1, value: Ratio { median: 1.2, low, high: 1.3 } };
        assert!(claim(1.1).met());
        assert!(!claim(1.11).met());
        assert!(Claim::plain("allocations", None, 0.0).is_none());
    }
}
