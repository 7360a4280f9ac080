//! The printed tables.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use serde_json::Value;

use crate::claims::Claim;
use crate::json::Row;

/// The rows as a table. Parameters that are the same in all rows stand above it, once.
pub(crate) fn print(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let shared = |name: &str, value: &Value| rows.iter().all(|row| row.parameters.get(name) == Some(value));
    if let Some(first) = rows.first() {
        let all: Vec<_> = first
            .parameters
            .iter()
            .filter(|(name, value)| shared(name, value) && !value.is_null())
            .map(parameter)
            .collect();
        println!("{}", all.join(", "));
    }
    let mut table = new_table(&[
        "Method",
        "Peer",
        "Parameters",
        "Mean",
        "Error",
        "StdDev",
        "Median",
        "Ratio (quartiles)",
        "CPU/op",
        "Switches/op",
        "Bytes/op",
        "Allocs/op",
    ]);
    for row in rows {
        let own: Vec<_> =
            row.parameters.iter().filter(|(name, value)| !shared(name, value)).map(parameter).collect();
        let ratio = row
            .spread
            .map_or("-".into(), |ratio| format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high));
        let mut cells = vec![Cell::new(row.method), Cell::new(row.peer), Cell::new(own.join(" "))];
        cells.extend(
            [
                time(row.mean_ns),
                time(row.error_ns),
                time(row.stddev_ns),
                time(row.median_ns),
                ratio,
                time(row.cpu_ns_per_op),
                plain(row.switches_per_op),
                plain(row.allocated_bytes_per_op),
                plain(row.allocations_per_op),
            ]
            .map(|text| Cell::new(text).set_alignment(CellAlignment::Right)),
        );
        table.add_row(cells);
    }
    println!("{table}");
}

/// What the figures have to show, and what they show.
pub(crate) fn print_claims(claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    let mut table = new_table(&["Figure", "Limit", "Seen (quartiles)", ""]);
    for claim in claims {
        table.add_row(vec![
            Cell::new(&claim.figure),
            Cell::new(format!("≤ {:.2}", claim.limit)).set_alignment(CellAlignment::Right),
            Cell::new(claim.seen()).set_alignment(CellAlignment::Right),
            Cell::new(if claim.met() { "met" } else { "MISSED" }),
        ]);
    }
    println!("{table}");
}

/// An empty table with this head.
pub(crate) fn new_table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(head.to_vec());
    table
}

fn parameter((name, value): (&String, &Value)) -> String {
    match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    }
}

/// A time with three or more digits that mean something.
pub(crate) fn time(ns: Option<f64>) -> String {
    match ns {
        None => "-".into(),
        Some(ns) if ns < 1e3 => format!("{ns:.1} ns"),
        Some(ns) if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        Some(ns) if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        Some(ns) => format!("{:.2} s", ns / 1e9),
    }
}

fn plain(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(value) if value < 0.01 => format!("{value:.5}"),
        Some(value) if value < 100.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_reads_best() {
        assert_eq!(time(Some(437.25)), "437.2 ns");
        assert_eq!(time(Some(45_300.0)), "45.30 µs");
        assert_eq!(time(Some(2_500_000.0)), "2.50 ms");
        assert_eq!(time(Some(3e9)), "3.00 s");
        assert_eq!(time(None), "-");
        assert_eq!(plain(Some(0.0001)), "0.00010");
    }
}
