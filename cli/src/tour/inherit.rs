//! What a child sees of a file that was opened without close-on-exec.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::process::Output;

use rustix::io::FdFlags;

use super::screen::{Absent, BAD, FAINT, GOOD, STRONG, Screen, WIDTH, paint, shorten};
use crate::Error;
use crate::child;

/// What a child has open: numbers and what they are open on.
type Seen = Vec<(RawFd, String)>;

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
    let number = file.as_raw_fd();
    screen.line(format_args!(
        "  This program has {NAME} open as {number}, without close-on-exec. Its child sees:"
    ))?;
    let mut leaked = false;
    for (launcher, seen) in
        [("std::process", by_std()), ("haft", by_haft(None)), ("haft, pass(&file)", by_haft(Some(&file)))]
    {
        let name = paint(STRONG, format_args!("  {launcher:<20}"));
        let seen = match seen {
            Ok(seen) => seen,
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

/// Opens it as a C library might: without close-on-exec, which Rust's own `open` always sets.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}

fn by_std() -> Result<Seen, Absent> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    read(std::process::Command::new(program).arg(child::DESCRIPTORS).output())
}

fn by_haft(pass: Option<&File>) -> Result<Seen, Absent> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let mut command = haft::process::Command::new(program);
    command.arg(child::DESCRIPTORS);
    if let Some(file) = pass {
        command.pass(file).map_err(|error| error.to_string())?;
    }
    read(command.output())
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

/// The standard handles by number, the others with what they are open on, in the room that a line leaves.
fn list(seen: &Seen) -> String {
    let standard: Vec<_> =
        seen.iter().filter(|(number, _)| *number < 3).map(|(number, _)| number.to_string()).collect();
    let others: Vec<_> = seen
        .iter()
        .filter(|(number, _)| *number > 2)
        .map(|(number, target)| format!("{number} → {}", target.rsplit('/').next().unwrap_or(target)))
        .collect();
    let text = format!("{}  {}", standard.join(" "), others.join(", "));
    format!("{:<33}", shorten(text.trim_end(), WIDTH - 47))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_listed_shortly() {
        let seen = vec![(0, "/dev/null".into()), (1, "pipe:[7]".into()), (3, "/tmp/x/secret.txt".into())];
        assert_eq!(list(&seen).trim_end(), "0 1  3 → secret.txt");
        let many = (3..90).map(|number| (number, "socket:[4]".into())).collect();
        assert_eq!(list(&many).chars().count(), 33);
    }
}
