//! What a launch costs.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::{MORE, smallest, with_more};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows::{MORE, smallest, with_more};

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::screen::{Absent, FAINT, GOOD, STRONG, Screen, grouped, median, paint};
use crate::Error;
use crate::child;

/// Launches of each kind: rounds of so many. Short ones, so that most fit into a slice of time that a busy machine
/// gives.
const ROUNDS: usize = 100;
const EACH: usize = 10;
/// No column takes much longer than this, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(4);
/// So many handles are open besides, in the second column.
const MANY: u64 = 10_000;

/// Microseconds that a launch took, by std and by haft, and how many launches of each there were.
struct Figures {
    std: f64,
    haft: f64,
    launches: usize,
}

pub(crate) fn show(screen: &mut Screen, folder: &Path) -> Result<(), Error> {
    screen.section(2, "What a launch costs")?;
    let (program, what) = match program(folder) {
        Ok(found) => found,
        Err(why) => return Ok(screen.absent("launches", &why)?),
    };
    let few = measure(&program);
    let many = with_more(|| measure(&program)).and_then(|figures| figures);
    let launches = [&few, &many].into_iter().flatten().map(|figures| figures.launches).max();
    if let Some(launches) = launches {
        screen.line(format_args!("  {} launches of {what}, each waited for:", grouped(launches as u64)))?;
        let more = format!("with {} {MORE}", grouped(MANY));
        screen.line(paint(STRONG, format_args!("{:8}{:>31}{:>34}", "", "as it is", more)))?;
        let row = |time: fn(&Figures) -> f64| {
            let cell = |figures: &Result<Figures, Absent>| match figures {
                Ok(figures) => {
                    let rate = grouped((1e6 / time(figures)) as u64);
                    format!("{rate} a second {:>9} µs", grouped(time(figures).round() as u64))
                }
                Err(_) => "-".to_owned(),
            };
            format!("{:>31}{:>34}", cell(&few), cell(&many))
        };
        screen.line(format_args!("{}{}", paint(STRONG, "  std   "), row(|figures| figures.std)))?;
        screen.line(format_args!("{}{}", paint(STRONG, "  haft  "), row(|figures| figures.haft)))?;
        let gain = |figures: &Result<Figures, Absent>| match figures {
            Ok(figures) => format!("{:.1} × std's rate", figures.std / figures.haft),
            Err(_) => String::new(),
        };
        let gains = format!("{:8}{:>31}{:>34}", "", gain(&few), gain(&many));
        let gained = [&few, &many].into_iter().flatten().all(|figures| figures.haft < figures.std);
        screen.line(paint(if gained { GOOD } else { FAINT }, gains.trim_end()))?;
    }
    for (what, figures) in [("launches", &few), ("with more open", &many)] {
        if let Err(why) = figures {
            screen.absent(what, why)?;
        }
    }
    Ok(())
}

/// The program to launch and its arguments.
struct Program {
    path: PathBuf,
    args: &'static [&'static str],
}

/// The smallest program that can be had, or this one; and what to call it.
fn program(folder: &Path) -> Result<(Program, String), Absent> {
    if let Some(found) = smallest(folder) {
        return Ok(found);
    }
    let path = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    Ok((Program { path, args: &[child::EXIT] }, "this program, which exits at once".to_owned()))
}

fn measure(program: &Program) -> Result<Figures, Absent> {
    let std = || {
        let mut command = std::process::Command::new(&program.path);
        command.args(program.args).status()
    };
    let haft = || {
        let mut command = haft::process::Command::new(&program.path);
        command.args(program.args).status()
    };
    round(1, std)?;
    round(1, haft)?;
    let (mut by_std, mut by_haft) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while by_haft.len() < ROUNDS && begin.elapsed() < PATIENCE {
        by_std.push(round(EACH, std)?);
        by_haft.push(round(EACH, haft)?);
    }
    Ok(Figures { std: median(&by_std), haft: median(&by_haft), launches: by_haft.len() * EACH })
}

/// Microseconds per launch, of so many one after another.
fn round(launches: usize, mut launch: impl FnMut() -> io::Result<ExitStatus>) -> Result<f64, Absent> {
    let begin = Instant::now();
    for _ in 0..launches {
        let status = launch().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("the child ended with {status}"));
        }
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / launches as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: &[&str] = if cfg!(windows) { &["cmd", "/c", "exit", "1"] } else { &["false"] };

    #[test]
    fn the_smallest_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (program, what) = program(folder.path()).unwrap();
        let status = haft::process::Command::new(&program.path).args(program.args).status().unwrap();
        assert!(status.success(), "{what}: {status}");
    }

    #[test]
    fn a_child_that_fails_is_an_answer_and_not_a_figure() {
        let program = Program { path: FAILING[0].into(), args: &FAILING[1..] };
        let why = measure(&program).err().unwrap();
        assert!(why.contains(": 1"), "{why}");
        let program = Program { path: "/no/such/program".into(), args: &[] };
        assert!(measure(&program).is_err());
    }
}
