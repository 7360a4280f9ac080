//! The peers on Windows.

mod floor;

use super::{Make, haft, std, tokio};

/// In the order of the table, under the names that `--peers` takes.
pub(super) const PEERS: &[(&str, Make)] = &[
    ("haft", || Ok(Box::new(haft::Haft))),
    ("haft-inherit-all", || Ok(Box::new(haft::InheritAll))),
    ("std", || Ok(Box::new(std::Std))),
    ("tokio", || Ok(Box::new(tokio::Tokio::new()?))),
    ("floor", || Ok(Box::new(floor::Floor))),
];

/// What 256 launches may take, redirected or not, over each peer's time. The system's own work is most of it, so it is
/// enough to be ahead of those who hold a lock over every launch.
pub(super) fn limits(redirected: bool) -> [(&'static str, f64); 3] {
    [("floor", if redirected { 1.15 } else { 1.10 }), ("std", 1.0), ("dotnet", 1.0)]
}
