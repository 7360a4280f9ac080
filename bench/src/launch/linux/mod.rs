//! The peers on Linux.

mod duct;
mod floor;

use super::{Make, haft, std, tokio};

/// In the order of the table, under the names that `--peers` takes.
pub(super) const PEERS: &[(&str, Make)] = &[
    ("haft", || Ok(Box::new(haft::Haft))),
    ("std", || Ok(Box::new(std::Std))),
    ("tokio", || Ok(Box::new(tokio::Tokio::new()?))),
    ("duct", || Ok(Box::new(duct::Duct))),
    ("floor", || Ok(Box::new(floor::Floor))),
];

/// What 256 launches may take, redirected or not, over each peer's time.
pub(super) fn limits(redirected: bool) -> [(&'static str, f64); 3] {
    [("floor", if redirected { 1.15 } else { 1.10 }), ("std", 0.75), ("dotnet", 0.65)]
}
