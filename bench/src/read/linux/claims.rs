//! What the figures have to show.

use serde_json::Value;

use super::super::{ASYNC, Options, SYNC};
use crate::claims::Claim;
use crate::json::Row;

/// What the read figures have to show, by the options of this run. The limits are for 1 KiB without a gap.
pub(in crate::read) fn claims(rows: &[Row], options: &Options) -> Vec<Claim> {
    if options.block != 1024 || options.gap != 0 {
        return Vec::new();
    }
    let find = |method: &str, peer: &str, executor: Option<&str>| {
        rows.iter().find(|row| {
            row.method == method
                && row.peer == peer
                && (executor.is_none() || row.parameters.get("executor").and_then(Value::as_str) == executor)
        })
    };
    let mut claims = Vec::new();
    if !options.busy && !options.no_inline {
        let sync = find(SYNC, "haft", None);
        claims.extend(Claim::time("haft SyncRead over std", sync, 1.03, find(SYNC, "std", None)));
    }
    for executor in ["block_on", "tokio-current", "tokio-multi"] {
        let ours = find(ASYNC, "haft", Some(executor));
        let mut over = |method: &str, peer: &str, limit: f64| {
            let figure = format!("haft AsyncRead ({executor}) over {method} {peer}");
            claims.extend(Claim::time(figure, ours, limit, find(method, peer, None)));
        };
        match (options.no_inline, options.busy) {
            (false, false) => {
                over(ASYNC, "floor-nowait", 1.08);
                over(SYNC, "haft", 1.25);
                over(ASYNC, "dotnet", 0.55);
                let allocations = ours.and_then(|row| row.allocations_per_op);
                let figure = format!("haft AsyncRead ({executor}) allocations an operation");
                claims.extend(Claim::plain(figure, allocations, 0.0));
            }
            (true, false) => {
                over(ASYNC, "tokio-spawn-blocking", 0.20);
                let theirs = find(ASYNC, "tokio-spawn-blocking", None).and_then(|row| row.cpu_ns_per_op);
                let quotient =
                    ours.and_then(|row| row.cpu_ns_per_op).zip(theirs).map(|(ours, theirs)| ours / theirs);
                let figure = format!("haft AsyncRead ({executor}) CPU time over tokio-spawn-blocking's");
                claims.extend(Claim::plain(figure, quotient, 1.0));
            }
            (_, true) => over(ASYNC, "tokio-spawn-blocking", 1.03),
        }
    }
    claims
}
