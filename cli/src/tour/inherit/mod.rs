//! What a child sees of a file that was opened so that children get it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::{HOW, STANDARD, number, open};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(super) use windows::open;
#[cfg(windows)]
use windows::{HOW, STANDARD, number};

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::screen::{Absent, BAD, FAINT, GOOD, STRONG, Screen, WIDTH, paint, shorten};
use crate::Error;
use crate::child;

/// What a child has open: numbers and what they are open on.
type Seen = Vec<(usize, String)>;

const NAME: &str = "secret.txt";

pub(crate) fn show(screen: &mut Screen, folder: &Path) -> Result<(), Error> {
    screen.section(1, "What a child inherits")?;
    let path = folder.join(NAME);
    let opened = std::fs::write(&path, "not for children\n").and_then(|()| open(&path));
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            let why = format!("{}: {error}", path.display());
            return Ok(screen.absent("what a child sees", &why)?);
        }
    };
    let number = number(&file);
    screen.line(format_args!("  This program has {NAME} open as {number}, {HOW}. Its child sees:"))?;
    let mut leaked = false;
    for (launcher, seen) in [
        ("std::process", by_std(number)),
        ("haft", by_haft(number, None)),
        ("haft, pass(&file)", by_haft(number, Some(&file))),
    ] {
        let name = paint(STRONG, format_args!("  {launcher:<20}"));
        let (number, seen) = match seen {
            Ok(answer) => answer,
            Err(why) => {
                screen.absent(launcher, &why)?;
                continue;
            }
        };
        let there = seen.iter().any(|(at, target)| *at == number && target.ends_with(NAME));
        let verdict = match (launcher, there) {
            ("std::process", true) => paint(BAD, "leaked"),
            ("std::process", false) => paint(FAINT, "not there either"),
            ("haft", false) => paint(GOOD, "standard handles only"),
            ("haft", true) => {
                leaked = true;
                paint(BAD, "leaked")
            }
            (_, true) => paint(GOOD, "and what was passed"),
            (_, false) => paint(BAD, "missing"),
        };
        screen.line(format_args!("{name}{}  {verdict}", list(&seen)))?;
    }
    if leaked {
        return Err("a child of haft has a file that it was not given: please report this".into());
    }
    Ok(())
}

/// The number that the file would have in the child, and what the child has.
fn by_std(number: usize) -> Result<(usize, Seen), Absent> {
    Ok((number, read(std::process::Command::new(own_path()?).arg(child::HANDLES).output())?))
}

/// The same. A file that is passed has the number there that haft has promised.
fn by_haft(mut number: usize, pass: Option<&File>) -> Result<(usize, Seen), Absent> {
    let mut command = haft::process::Command::new(own_path()?);
    command.arg(child::HANDLES);
    if let Some(file) = pass {
        let passed = command.pass(file).map_err(|error| error.to_string())?;
        number = passed.to_string().parse().map_err(|_| format!("{passed} is no number"))?;
    }
    Ok((number, read(command.output())?))
}

fn own_path() -> Result<PathBuf, Absent> {
    std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))
}

/// What such a child has printed.
fn read(output: io::Result<Output>) -> Result<Seen, Absent> {
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(why.strip_prefix("haft: ").unwrap_or(&why).trim().to_owned());
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let seen = |line: &str| {
        let (number, target) = line.split_once(' ')?;
        Some((number.parse().ok()?, target.to_owned()))
    };
    Ok(lines.lines().filter_map(seen).collect())
}

/// The standard handles by number, the others with what they are open on, in the room that a line leaves; the file
/// that it is about in front of what else this program's own parent has left it.
fn list(seen: &Seen) -> String {
    let standard: Vec<_> = seen.iter().filter_map(|(number, _)| STANDARD.get(*number).copied()).collect();
    let mut others: Vec<_> = seen.iter().filter(|(number, _)| *number > 2).collect();
    others.sort_by_key(|(_, target)| !target.ends_with(NAME));
    let others: Vec<_> =
        others.iter().map(|(number, target)| format!("{number} → {}", last_part(target))).collect();
    let text = format!("{}  {}", standard.join(" "), others.join(", "));
    format!("{:<33}", shorten(text.trim_end(), WIDTH - 47))
}

fn last_part(target: &str) -> &str {
    Path::new(target).file_name().and_then(|name| name.to_str()).unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_listed_shortly() {
        let seen = vec![(0, "/dev/null".into()), (1, "pipe:[7]".into()), (56, "/tmp/x/secret.txt".into())];
        let [stdin, stdout, _] = STANDARD;
        assert_eq!(list(&seen).trim_end(), format!("{stdin} {stdout}  56 → secret.txt"));
        let many = (3..90).map(|number| (number, "socket:[4]".into()));
        let many = many.chain([(90, "/tmp/x/secret.txt".into())]).collect();
        assert!(list(&many).trim_start().starts_with("90 → secret.txt, 3 → "));
        assert_eq!(list(&many).chars().count(), 33);
    }
}
