//! The rows as they are printed and written: one shape for every benchmark.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::Result;
use crate::rounds::{Measured, Parameters};
use crate::stats;

/// One row. A figure that cannot be told is null; times are nanoseconds an operation.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) benchmark: &'static str,
    pub(crate) method: &'static str,
    pub(crate) peer: &'static str,
    /// Under the names of the options.
    pub(crate) parameters: Parameters,
    /// Operations in one round.
    pub(crate) ops: u64,
    pub(crate) mean_ns: Option<f64>,
    /// Half the 99.9 % confidence interval of the mean.
    pub(crate) error_ns: Option<f64>,
    pub(crate) stddev_ns: Option<f64>,
    pub(crate) median_ns: Option<f64>,
    /// This row over haft's: the median of the ratios round by round.
    pub(crate) ratio: Option<f64>,
    pub(crate) cpu_ns_per_op: Option<f64>,
    pub(crate) switches_per_op: Option<f64>,
    pub(crate) allocated_bytes_per_op: Option<f64>,
    pub(crate) allocations_per_op: Option<f64>,
    /// Entry k is the same round in every row, but for peers that run apart: there it is one entry a run.
    pub(crate) rounds_ns: Vec<f64>,
    /// The quartiles of `ratio`; they can be told from `rounds_ns`.
    #[serde(skip)]
    pub(crate) spread: Option<stats::Ratio>,
    /// The peer ran apart, so that its entries belong to no round of the others.
    #[serde(skip)]
    pub(crate) apart: bool,
}

impl Row {
    /// The row of a peer that was measured here.
    pub(crate) fn of(benchmark: &'static str, measured: Measured) -> Self {
        let Measured { label, samples } = measured;
        let rounds_ns: Vec<f64> = samples.iter().map(|sample| sample.wall_ns / sample.ops as f64).collect();
        let ops: u64 = samples.iter().map(|sample| sample.ops).sum();
        let per_op = |total: u64| (ops > 0).then(|| total as f64 / ops as f64);
        Self {
            benchmark,
            method: label.method,
            peer: label.peer,
            parameters: label.parameters,
            ops: samples.first().map_or(0, |sample| sample.ops),
            mean_ns: stats::mean(&rounds_ns),
            error_ns: stats::error(&rounds_ns),
            stddev_ns: stats::stddev(&rounds_ns),
            median_ns: stats::median(&rounds_ns),
            ratio: None,
            cpu_ns_per_op: samples.iter().map(|sample| sample.cpu_ns).sum::<Option<_>>().and_then(per_op),
            switches_per_op: samples.iter().map(|sample| sample.switches).sum::<Option<_>>().and_then(per_op),
            allocated_bytes_per_op: per_op(samples.iter().map(|sample| sample.bytes).sum()),
            allocations_per_op: per_op(samples.iter().map(|sample| sample.allocations).sum()),
            rounds_ns,
            spread: None,
            apart: false,
        }
    }

    /// This row's time over `other`'s.
    pub(crate) fn over(&self, other: &Self) -> Option<stats::Ratio> {
        if self.apart || other.apart {
            stats::ratio_by_median(&self.rounds_ns, &other.rounds_ns)
        } else {
            stats::ratio(&self.rounds_ns, &other.rounds_ns)
        }
    }
}

/// Fills in every row's ratio over the row that `base` names for it.
pub(crate) fn fill_ratios(rows: &mut [Row], base: impl Fn(&Row, &Row) -> bool) {
    let ratios: Vec<_> =
        rows.iter().map(|row| row.over(rows.iter().find(|candidate| base(row, candidate))?)).collect();
    for (row, ratio) in rows.iter_mut().zip(ratios) {
        row.ratio = ratio.map(|ratio| ratio.median);
        row.spread = ratio;
    }
}

/// Whether `path` can be written, asked before a long run and not after it.
pub(crate) fn check(path: &Path) -> Result<()> {
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

/// Writes `rows` to `path` as an array.
pub(crate) fn write<T: Serialize>(path: &Path, rows: &[T]) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut file = BufWriter::new(File::create(path).map_err(|error| failed(&error))?);
    serde_json::to_writer_pretty(&mut file, rows).map_err(|error| failed(&error))?;
    file.write_all(b"\n").and_then(|()| file.flush()).map_err(|error| failed(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Sample;
    use crate::rounds::Label;
    use serde_json::{Value, json};

    fn measured(peer: &'static str, wall_ns: &[f64]) -> Measured {
        let sample = |&wall_ns: &f64| Sample {
            ops: 10,
            wall_ns,
            cpu_ns: Some(50),
            switches: None,
            bytes: 30,
            allocations: 0,
        };
        Measured {
            label: Label {
                method: "LaunchStandard",
                peer,
                parameters: [("count".into(), json!(10)), ("open-files".into(), json!(0))].into(),
            },
            samples: wall_ns.iter().map(sample).collect(),
        }
    }

    #[test]
    fn a_row_has_the_agreed_fields_and_no_other() {
        let mut rows = vec![
            Row::of("launch", measured("haft", &[10.0, 20.0])),
            Row::of("launch", measured("std", &[20.0, 50.0])),
        ];
        fill_ratios(&mut rows, |_, candidate| candidate.peer == "haft");
        let written = serde_json::to_value(&rows).expect("rows are JSON");
        let row = written[1].as_object().expect("a row is an object");
        let mut names: Vec<_> = row.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut agreed = [
            "benchmark",
            "method",
            "peer",
            "parameters",
            "ops",
            "mean_ns",
            "error_ns",
            "stddev_ns",
            "median_ns",
            "ratio",
            "cpu_ns_per_op",
            "switches_per_op",
            "allocated_bytes_per_op",
            "allocations_per_op",
            "rounds_ns",
        ];
        agreed.sort_unstable();
        assert_eq!(names, agreed);
        assert_eq!(row["parameters"], json!({"count": 10, "open-files": 0}));
        assert_eq!(row["ops"], json!(10));
        assert_eq!(row["rounds_ns"], json!([2.0, 5.0]));
        assert_eq!(row["ratio"], json!(2.25));
        assert_eq!(row["cpu_ns_per_op"], json!(5.0));
        assert_eq!(row["switches_per_op"], Value::Null);
        assert_eq!(row["allocations_per_op"], json!(0.0));
        assert_eq!(written[0]["ratio"], json!(1.0));
    }

    #[test]
    fn what_cannot_be_told_is_null() {
        let row = Row::of("launch", measured("std", &[10.0]));
        let written = serde_json::to_value(&row).expect("a row is JSON");
        assert_eq!(written["error_ns"], Value::Null);
        assert_eq!(written["stddev_ns"], Value::Null);
        assert_eq!(written["ratio"], Value::Null);
        assert_eq!(written["mean_ns"], json!(1.0));
    }
}
