//! .NET as a peer: running its program and reading its lines. `bench/peers/dotnet/README.md` has the
//! protocol.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// A run takes a minute at most.
const LIMIT: Duration = Duration::from_secs(120);
/// Under Wine a launch fails now and then, whoever launches (see `launch::crew`). The program does not expect it: it dies,
/// or stays behind. The run is made again.
const ATTEMPTS: u32 = 5;
const WINES: &str = "(1359)";
/// How the last words of a .NET program begin. Under Wine it can stay behind after them without ever ending.
const LAST_WORDS: &str = "Unhandled exception";

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
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .env("PEER_OPEN", self.open_files.to_string())
            .env("PEER_RSS_MIB", self.rss_mib.to_string());
        let call = || format!("{} {}", self.path.display(), arguments.join(" "));
        for _ in 0..ATTEMPTS {
            let run = within(&mut command, LIMIT).map_err(|error| format!("{}: {error}", call()))?;
            return match run {
                Run::Ended { status, stdout, .. } if status.success() => {
                    stdout.lines().filter(|line| line.starts_with("dotnet ")).map(Line::parse).collect()
                }
                Run::Died(line) if cfg!(windows) && line.contains(WINES) => continue,
                Run::TooLong if cfg!(windows) => continue,
                Run::Died(line) => Err(format!("{}: {line}", call()).into()),
                Run::Ended { status, stderr, .. } => {
                    let first = stderr.lines().next().unwrap_or_default();
                    Err(format!("{}: {status}: {first}", call()).into())
                }
                Run::TooLong => Err(format!("{}: more than {} s", call(), LIMIT.as_secs()).into()),
            };
        }
        Err(format!("{}: {WINES}, or more than {} s, {ATTEMPTS} times", call(), LIMIT.as_secs()).into())
    }
}

#[derive(Debug)]
enum Run {
    Ended {
        status: ExitStatus,
        stdout: String,
        stderr: String,
    },
    /// It said its last words, these, and was ended.
    Died(String),
    /// It was ended.
    TooLong,
}

enum Said {
    Stdout(io::Result<String>),
    Stderr(String),
    LastWords(String),
}

/// Runs `command` until it has ended or said its last words, for at most `limit`.
fn within(command: &mut Command, limit: Duration) -> io::Result<Run> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (tell, said) = mpsc::channel();
    // Whoever else holds the other ends: nobody waits for these threads.
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        let tell_other = tell.clone();
        thread::spawn(move || tell_other.send(Said::Stdout(io::read_to_string(stdout))));
        thread::spawn(move || {
            let mut text = String::new();
            for line in BufReader::new(stderr).lines().map_while(io::Result::ok) {
                if line.starts_with(LAST_WORDS) {
                    return tell.send(Said::LastWords(line));
                }
                text += &(line + "\n");
            }
            tell.send(Said::Stderr(text))
        });
    }
    let deadline = Instant::now() + limit;
    let (mut outs, mut errs) = (None, None);
    loop {
        if let (Some(stdout), Some(stderr)) = (&mut outs, &mut errs) {
            let (stdout, stderr) = (std::mem::take(stdout), std::mem::take(stderr));
            return Ok(Run::Ended { status: child.wait()?, stdout, stderr });
        }
        let run = match said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Said::Stdout(text)) => {
                outs = Some(text?);
                continue;
            }
            Ok(Said::Stderr(text)) => {
                errs = Some(text);
                continue;
            }
            Ok(Said::LastWords(line)) => Run::Died(line),
            Err(_) => Run::TooLong,
        };
        child.kill()?;
        child.wait()?;
        return Ok(run);
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

    /// Without the limit, or with its last words unseen, a program that stays behind would hold the benchmark for ever.
    #[test]
    fn a_run_past_its_limit_or_its_last_words_is_ended() {
        let program = std::env::current_exe().expect("this test program");
        let mut command = Command::new(program);
        command.args(["--exact", "dotnet::tests::speaks_and_sleeps", "--ignored", "--nocapture"]);
        let mut run = |says: &str, sleeps: &str, limit: Duration| {
            command.env("HAFT_BENCH_SAYS", says).env("HAFT_BENCH_SLEEPS_MS", sleeps);
            within(&mut command, limit).expect("it starts")
        };
        let last = format!("{LAST_WORDS}. Something ({})", 7);
        assert!(matches!(run("nothing", "60000", Duration::from_millis(500)), Run::TooLong));
        assert!(matches!(run(&last, "60000", LIMIT), Run::Died(line) if line == last));
        let Run::Ended { status, stdout, stderr } = run("nothing", "0", LIMIT) else { panic!("it ends") };
        assert!(status.success() && stdout.contains("slept") && stderr == "nothing\n", "{stdout}{stderr}");
    }

    #[test]
    #[ignore = "the program of a_run_past_its_limit_or_its_last_words_is_ended"]
    fn speaks_and_sleeps() {
        eprintln!("{}", std::env::var("HAFT_BENCH_SAYS").expect("set by its launcher"));
        let ms = std::env::var("HAFT_BENCH_SLEEPS_MS").expect("set by its launcher");
        thread::sleep(Duration::from_millis(ms.parse().expect("a number")));
        println!("slept");
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
