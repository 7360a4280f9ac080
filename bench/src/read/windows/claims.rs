//! What the figures have to show.

use serde_json::Value;

use super::super::{ASYNC, Options, USE_ASYNC};
use crate::claims::Claim;
use crate::json::Row;

/// On both kinds of handle no slower than .NET, and nothing allocated. The limits are for 1 KiB without a gap and
/// without other load.
pub(in crate::read) fn claims(rows: &[Row], options: &Options) -> Vec<Claim> {
    if options.block != 1024 || options.gap != 0 || options.busy || options.no_inline {
        return Vec::new();
    }
    let mut claims = Vec::new();
    for overlapped in ["False", "True"] {
        let find = |peer: &str, executor: Option<&str>| {
            let is = |row: &Row, name: &str, value: &str| {
                row.parameters.get(name).and_then(Value::as_str) == Some(value)
            };
            rows.iter().find(|row| {
                row.method == ASYNC
                    && row.peer == peer
                    && is(row, USE_ASYNC, overlapped)
                    && executor.is_none_or(|executor| is(row, "executor", executor))
            })
        };
        for executor in ["block_on", "tokio-current", "tokio-multi"] {
            let ours = find("haft", Some(executor));
            let figure = format!("haft AsyncRead ({executor}, UseAsync={overlapped})");
            claims.extend(Claim::time(format!("{figure} over dotnet"), ours, 1.0, find("dotnet", None)));
            let allocations = ours.and_then(|row| row.allocations_per_op);
            claims.extend(Claim::plain(format!("{figure} allocations an operation"), allocations, 0.0));
        }
    }
    claims
}
