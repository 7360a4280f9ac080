//! .NET as a peer: running its program and reading its lines. `bench/peers/dotnet/README.md` has the
//! protocol.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// One line: `dotnet VERSION SUBCOMMAND [WORD…] key=value …`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) version: String,
    pub(crate) subcommand: String,
    values: HashMap<String, String>,
}

impl Line {
    pub(crate) fn parse(line: &str) -> Result<Self> {
        let mut words = line.split_ascii_whitespace();
        let (Some("dotnet"), Some(version), Some(subcommand)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!("not a line of the .NET peer: {line:?}").into());
        };
        let values = words
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        Ok(Self { version: version.into(), subcommand: subcommand.into(), values })
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str> {
        Ok(self.values.get(key).ok_or_else(|| format!("the .NET peer's line has no {key}: {self:?}"))?)
    }

    pub(crate) fn number(&self, key: &str) -> Result<f64> {
        let text = self.text(key)?;
        Ok(text.parse().map_err(|_| format!("the .NET peer's {key} is not a number: {text:?}"))?)
    }
}

/// The program that `--dotnet` names.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    open_files: usize,
    rss_mib: usize,
}

impl Program {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let path = crate::existing(path).map_err(|error| format!("--dotnet {error}"))?;
        Ok(Self { path, open_files: 0, rss_mib: 0 })
    }

    /// The same program that first holds so many handles open and touches so many MiB (`PEER_OPEN`,
    /// `PEER_RSS_MIB`).
    pub(crate) fn with_parent(&self, open_files: usize, rss_mib: usize) -> Self {
        Self { path: self.path.clone(), open_files, rss_mib }
    }

    /// Runs it to its end; its lines.
    pub(crate) fn run(&self, arguments: &[String]) -> Result<Vec<Line>> {
        let output = Command::new(&self.path)
            .args(arguments)
            .env("PEER_OPEN", self.open_files.to_string())
            .env("PEER_RSS_MIB", self.rss_mib.to_string())
            .output()
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let first = stderr.lines().next().unwrap_or_default();
            return Err(format!(
                "{} {}: {}: {first}",
                self.path.display(),
                arguments.join(" "),
                output.status
            )
            .into());
        }
        stdout.lines().filter(|line| line.starts_with("dotnet ")).map(Line::parse).collect()
    }
}

/// How many repetitions a run needs when one takes `ms`: a second of warm-up and at least 30 more, or as many as
/// there are in ten seconds, but three. The program gives one median of all of them, so the second that counts as
/// warm-up must stay below half: it is a third.
pub(crate) fn repetitions(ms: f64) -> u64 {
    let second = (1_000.0 / ms.max(0.001)).ceil() as u64;
    3 * second + ((10_000.0 / ms.max(0.001)) as u64).clamp(3, 30)
}

/// How many show which of two ways is quicker, when the first took `ms`.
pub(crate) fn trial(ms: f64) -> u64 {
    ((3_000.0 / ms.max(0.001)) as u64).clamp(1, 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_line() {
        let line =
            Line::parse("dotnet 11.0.0 launch redirect-none n=256 threads=16 ms=31.479 us_per_launch=123.0")
                .expect("a line");
        assert_eq!((line.version.as_str(), line.subcommand.as_str()), ("11.0.0", "launch"));
        assert_eq!(line.number("ms").expect("ms"), 31.479);
        assert_eq!(line.number("n").expect("n"), 256.0);
        assert!(line.number("allocated").is_err());
    }

    #[test]
    fn a_read_line() {
        let line = Line::parse(
            "dotnet 11.0.0 read useAsync=True sync_ms=6.295 async_ms=11.953 ratio=1.90 sync_ns=644 async_ns=1224 allocated=128",
        )
        .expect("a line");
        assert_eq!(line.text("useAsync").expect("useAsync"), "True");
        assert_eq!(line.number("allocated").expect("allocated"), 128.0);
        assert!(line.number("useAsync").is_err());
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "dotnet", "dotnet 11.0.0", "floor launch standard n=1"] {
            assert!(Line::parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn the_warm_up_never_carries_the_median() {
        for ms in [0.1, 1.0, 35.0, 500.0, 5_000.0] {
            let all = repetitions(ms);
            let warm_up = (1_000.0 / ms).ceil() as u64;
            assert!(all - warm_up >= if ms < 300.0 { 30 } else { 5 } && warm_up * 2 < all, "{ms} ms: {all}");
        }
    }
}
