//! The screen: styles, and figures as people read them.

use std::io::{self, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

pub(crate) const TITLE: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// Columns that a terminal has at least.
pub(crate) const WIDTH: usize = 80;

/// Standard output, in colour where it is a terminal that wants it.
pub(crate) struct Screen {
    out: AutoStream<io::Stdout>,
}

/// Why a figure cannot be had.
pub(crate) type Absent = String;

impl Screen {
    pub(crate) fn new() -> Screen {
        Screen { out: anstream::stdout() }
    }

    /// Writes one line, at once: the tour is watched.
    pub(crate) fn line(&mut self, line: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    pub(crate) fn blank(&mut self) -> io::Result<()> {
        self.line("")
    }

    /// The number and the claim of a section.
    pub(crate) fn section(&mut self, number: u32, claim: &str) -> io::Result<()> {
        self.blank()?;
        self.line(format_args!("{} {}", paint(TITLE, number), paint(TITLE, claim)))
    }

    /// What stands in place of a figure.
    pub(crate) fn absent(&mut self, what: &str, why: &Absent) -> io::Result<()> {
        let why = why.lines().next().unwrap_or("?");
        let line = format!("  {what}: not to be had here: {why}");
        if line.chars().count() <= WIDTH {
            return self.line(paint(WARN, line));
        }
        self.line(paint(WARN, format_args!("  {what}: not to be had here:")))?;
        self.line(paint(WARN, shorten(&format!("    {why}"), WIDTH)))
    }
}

/// `text` in this style.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// At most `width` characters of it, with an ellipsis where it was cut.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// 10000000 as "10,000,000".
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of 1 as a percentage, never rounded up to 100.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).floor() / 10.0;
    if tenths == tenths.trunc() { format!("{tenths:.0} %") } else { format!("{tenths:.1} %") }
}

/// Allocations per operation: "0" is none at all.
pub(crate) fn per_operation(count: f64) -> String {
    if count == 0.0 {
        "0".to_owned()
    } else if count < 0.01 {
        "< 0.01".to_owned()
    } else {
        format!("{count:.2}")
    }
}

/// The middle value, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        let groups = [0, 999, 1_000, 65_536, 10_000_000].map(grouped);
        assert_eq!(groups, ["0", "999", "1,000", "65,536", "10,000,000"]);
        assert_eq!([1.0, 0.9999, 0.5, 0.0].map(percent), ["100 %", "99.9 %", "50 %", "0 %"]);
        assert_eq!([0.0, 0.001, 2.5].map(per_operation), ["0", "< 0.01", "2.50"]);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("lengthy", 5), "leng…");
    }
}
