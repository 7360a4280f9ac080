//! The helper child.
fn main() {}
