//! A password, in the one form in which it is kept.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// A password in UTF-16, with the NUL that ends it. The last owner overwrites it with zeros, and no message shows it.
#[derive(Clone)]
pub(crate) struct Secret(Arc<Zeroizing<Vec<u16>>>);

impl Secret {
    /// The room is measured first: a vector that grows leaves what it held behind.
    pub(crate) fn new(units: impl Iterator<Item = u16> + Clone) -> Secret {
        let mut room = Zeroizing::new(Vec::with_capacity(units.clone().count() + 1));
        room.extend(units);
        room.push(0);
        Secret(Arc::new(room))
    }

    /// As calls take it.
    pub(crate) fn terminated(&self) -> &[u16] {
        &self.0
    }

    /// Whether the system would take only a part of it for the password.
    pub(crate) fn contains_nul(&self) -> bool {
        self.0[..self.0.len() - 1].contains(&0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shows_it() {
        let secret = Secret::new("opensesame".encode_utf16());
        assert_eq!(format!("{secret:?} {:?}", secret.clone()), "Secret(..) Secret(..)");
        assert_eq!(secret.terminated().len(), "opensesame".len() + 1);
        assert!(!secret.contains_nul());
        assert!(Secret::new("open\0sesame".encode_utf16()).contains_nul());
        assert!(Secret::new("opensesame\0".encode_utf16()).contains_nul());
        assert_eq!(Secret::new("".encode_utf16()).terminated(), [0]);
    }
}
