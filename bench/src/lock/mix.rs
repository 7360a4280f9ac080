//! What kinds of launches come, and how often.

/// The kinds of launches that the start lock tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Inherits what was named; while it starts, that is inheritable.
    Isolated,
    /// Inherits everything that is inheritable, and makes nothing so.
    InheritAll,
    /// Inherits everything, and makes its ends of pipes inheritable.
    InheritAllRedirected,
}

/// Percentages of the kinds, in the order above. They come mixed, in the same order in every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mix([u64; 3]);

impl Mix {
    pub(crate) const ISOLATED: Mix = Mix([100, 0, 0]);

    /// The three percentages, if they are.
    pub(crate) fn new(percentages: &[u64]) -> Option<Mix> {
        let mix = Mix(percentages.try_into().ok()?);
        (mix.0.iter().try_fold(0_u64, |sum, &part| sum.checked_add(part)) == Some(100)).then_some(mix)
    }

    /// The kind of entry number `index`. Each hundred entries have the exact percentages: a step that has no factor in
    /// common with 100 visits every place of a hundred once.
    pub(crate) fn kind(self, index: u64) -> Kind {
        let place = (index % 100 * 37 + index / 100 * 61) % 100;
        match place {
            place if place < self.0[0] => Kind::Isolated,
            place if place < self.0[0] + self.0[1] => Kind::InheritAll,
            _ => Kind::InheritAllRedirected,
        }
    }
}

impl std::fmt::Display for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [isolated, all, redirected] = self.0;
        write!(f, "{isolated} % isolated, {all} % inherit all, {redirected} % inherit all and redirect")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hundred_has_the_percentages() {
        let mix = Mix::new(&[90, 8, 2]).expect("they add up");
        for hundred in 0..5 {
            let count = |kind| (0..100).filter(|index| mix.kind(hundred * 100 + index) == kind).count();
            let kinds = [Kind::Isolated, Kind::InheritAll, Kind::InheritAllRedirected];
            assert_eq!(kinds.map(count), [90, 8, 2]);
        }
        assert!((0..100).all(|index| Mix::ISOLATED.kind(index) == Kind::Isolated));
    }

    #[test]
    fn percentages_are_three_and_add_up() {
        assert_eq!(Mix::new(&[100]), None);
        assert_eq!(Mix::new(&[90, 8, 3]), None);
        assert_eq!(Mix::new(&[u64::MAX, 1, 100]), None);
    }
}
