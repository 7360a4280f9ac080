//! Where a child's standard handles come from, and which launches may run beside one another for their sake.

use crate::process::inherit::Inherit;
use crate::room_lock::Entry;

/// Where one standard handle of a child comes from. Values are of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The parent has none to give.
    Missing,
    /// The parent's own, which other launches give on at the same time.
    Shared { value: usize, inheritable: bool },
    /// One that this launch has to itself, and that is made inheritable for it.
    Own(usize),
}

/// The room of launches that inherit by a list.
const BY_LIST: usize = 0;
/// The room of launches that inherit everything that is inheritable, and make nothing so.
const EVERYTHING: usize = 1;

/// The room of the start lock in which a launch may run.
///
/// A launch by a list makes handles inheritable and yet gives none of them to the other launches by a list. One that
/// inherits everything would get them; so it is never in the same room, and where it makes a handle inheritable itself, it is
/// alone. The rule of a reader-writer lock, which is taken for writing only by the last kind, lets it get them.
pub(crate) fn room(inherit: Inherit, streams: &[Source], passed: &[usize]) -> Entry {
    let makes_inheritable = !passed.is_empty()
        || streams
            .iter()
            .any(|source| matches!(source, Source::Own(_) | Source::Shared { inheritable: false, .. }));
    match inherit {
        Inherit::Named => Entry::Room(BY_LIST),
        Inherit::All if makes_inheritable => Entry::Alone,
        Inherit::All => Entry::Room(EVERYTHING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fails with the rule of a reader-writer lock: when a plain launch that inherits everything shares a room with
    // launches by a list.
    #[test]
    fn whoever_inherits_everything_never_meets_whoever_makes_a_handle_inheritable() {
        let shared = |inheritable| Source::Shared { value: 4, inheritable };
        let kinds = [Source::Missing, shared(true), shared(false), Source::Own(8)];
        let mut seen = Vec::new();
        for inherit in [Inherit::Named, Inherit::All] {
            for stdin in kinds {
                for stdout in kinds {
                    for passed in [&[][..], &[12]] {
                        let streams = [stdin, stdout, shared(true)];
                        let makes = !passed.is_empty()
                            || streams.contains(&shared(false))
                            || streams.contains(&Source::Own(8));
                        seen.push((inherit, makes, room(inherit, &streams, passed)));
                    }
                }
            }
        }
        for (one, _, its_room) in &seen {
            for (other, makes, other_room) in &seen {
                let meet = matches!((its_room, other_room), (Entry::Room(a), Entry::Room(b)) if a == b);
                assert!(
                    !(meet && *one == Inherit::All && *makes),
                    "{one:?} in {its_room:?} beside {other:?}"
                );
            }
            // And nobody waits without need.
            assert!(*one == Inherit::All || *its_room == Entry::Room(BY_LIST));
        }
        assert!(seen.contains(&(Inherit::All, false, Entry::Room(EVERYTHING))));
    }
}
