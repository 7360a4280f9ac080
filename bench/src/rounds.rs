//! Running the rows: interleaved round by round, so that what the machine does meanwhile meets every peer
//! alike.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::Result;
use crate::meter::Sample;

/// A row's parameters, under the names of the options that set them.
pub(crate) type Parameters = BTreeMap<String, Value>;

/// What a row is called.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) method: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) parameters: Parameters,
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.peer)?;
        if let Some(Value::String(executor)) = self.parameters.get("executor") {
            write!(f, " {executor}")?;
        }
        if let Some(count) = self.parameters.get("count") {
            write!(f, " × {count}")?;
        }
        Ok(())
    }
}

/// One line of the table while it is measured: a peer with its parameters.
pub(crate) trait Row {
    fn label(&self) -> Label;

    /// Rows of one group run one after another within a round; preparing a change of group is dear.
    fn group(&self) -> usize {
        0
    }

    /// What has to be so before a round, outside its measurement.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// One measured round.
    fn round(&mut self) -> Result<Sample>;
}

/// A row with its rounds: entry k of every row is the same round.
pub(crate) struct Measured {
    pub(crate) label: Label,
    pub(crate) samples: Vec<Sample>,
}

/// When peers that run in a program of their own have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Before,
    Between,
    After,
}

/// Warms every row up (rows that fail there are left out, with the reason in `notes`), then runs `rounds`
/// rounds of all of them, in another order each time. `apart` gets its turn before, half-way and after.
pub(crate) fn run(
    mut rows: Vec<Box<dyn Row>>,
    rounds: usize,
    notes: &mut Vec<String>,
    mut apart: impl FnMut(Turn, &ProgressBar) -> Result<()>,
) -> Result<Vec<Measured>> {
    const WARM_UP: usize = 3;
    let bar = ProgressBar::new((rows.len() * (rounds + WARM_UP)) as u64);
    bar.set_style(
        ProgressStyle::with_template("{elapsed_precise} [{bar:40}] {pos}/{len} {msg}")
            .expect("a template that indicatif knows")
            .progress_chars("=> "),
    );

    let mut failed = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let label = row.label();
        bar.set_message(format!("{label} (warm-up)"));
        for _ in 0..WARM_UP {
            bar.inc(1);
            if let Err(error) = row.prepare().and_then(|()| row.round()) {
                notes.push(format!("left out: {label}: {error}"));
                failed.push(index);
                break;
            }
        }
    }
    for index in failed.into_iter().rev() {
        rows.remove(index);
    }

    let mut measured: Vec<Measured> =
        rows.iter().map(|row| Measured { label: row.label(), samples: Vec::with_capacity(rounds) }).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut shuffle = Shuffle(0x9E37_79B9_7F4A_7C15);
    bar.set_message("programs of their own");
    apart(Turn::Before, &bar)?;
    for round in 0..rounds {
        if round == rounds / 2 {
            bar.set_message("programs of their own");
            apart(Turn::Between, &bar)?;
        }
        shuffle.shuffle(&mut order);
        order.sort_by_key(|&index| rows[index].group());
        for &index in &order {
            let (row, into) = (&mut rows[index], &mut measured[index]);
            bar.set_message(into.label.to_string());
            let sample = row.prepare().and_then(|()| row.round());
            into.samples.push(sample.map_err(|error| format!("{}: {error}", into.label))?);
            bar.inc(1);
        }
    }
    bar.set_message("programs of their own");
    apart(Turn::After, &bar)?;
    bar.finish_and_clear();
    Ok(measured)
}

/// A fixed sequence of shuffles (xorshift64), so that two runs have the same orders.
struct Shuffle(u64);

impl Shuffle {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, self.next(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Fake {
        peer: &'static str,
        group: usize,
        fails: bool,
        log: Rc<RefCell<Vec<&'static str>>>,
    }

    impl Row for Fake {
        fn label(&self) -> Label {
            Label { method: "Method", peer: self.peer, parameters: Parameters::new() }
        }

        fn group(&self) -> usize {
            self.group
        }

        fn round(&mut self) -> Result<Sample> {
            if self.fails {
                return Err("refused".into());
            }
            self.log.borrow_mut().push(self.peer);
            Ok(Sample { ops: 1, wall_ns: 1.0, cpu_ns: None, switches: None, bytes: 0, allocations: 0 })
        }
    }

    #[test]
    fn every_round_has_every_row_once_and_groups_stay_together() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let row =
            |peer, group, fails| Box::new(Fake { peer, group, fails, log: Rc::clone(&log) }) as Box<dyn Row>;
        let rows = vec![row("a", 0, false), row("b", 1, false), row("c", 0, false), row("no", 0, true)];
        let mut notes = Vec::new();
        let mut turns = Vec::new();
        let measured = run(rows, 10, &mut notes, |turn, _| {
            turns.push((turn, log.borrow().len()));
            Ok(())
        })
        .expect("a run");
        assert_eq!(notes, ["left out: Method no: refused"]);
        assert_eq!(measured.len(), 3);
        assert!(measured.iter().all(|row| row.samples.len() == 10));
        assert_eq!(turns, [(Turn::Before, 9), (Turn::Between, 24), (Turn::After, 39)]);
        for round in log.borrow()[9..].chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, ["a", "b", "c"]);
            assert_eq!(round[2], "b", "group 1 comes after group 0");
        }
    }
}
