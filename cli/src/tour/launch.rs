//! What a launch costs.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::screen::{Absent, FAINT, GOOD, STRONG, Screen, grouped, median, paint};
use crate::Error;
use crate::child;

/// Launches of each kind: rounds of so many. Short ones, so that most fit into a slice of time that a busy machine
/// gives.
const ROUNDS: usize = 100;
const EACH: usize = 10;
/// No column takes much longer than this, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(4);
/// So many files are open besides, in the second column.
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
    let many = with_many_files(|| measure(&program)).and_then(|figures| figures);
    let launches = [&few, &many].into_iter().flatten().map(|figures| figures.launches).max();
    if let Some(launches) = launches {
        screen.line(format_args!("  {} launches of {what}, each waited for:", grouped(launches as u64)))?;
        let more = format!("with {} more files open", grouped(MANY));
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
    for (what, figures) in [("launches", &few), ("with many files open", &many)] {
        if let Err(why) = figures {
            screen.absent(what, why)?;
        }
    }
    Ok(())
}

/// The program to launch and its arguments.
struct Program {
    path: PathBuf,
    argument: Option<&'static str>,
}

/// The smallest program there is, or this one; and what to call it.
fn program(folder: &Path) -> Result<(Program, String), Absent> {
    let own = || {
        let path = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
        let what = "this program, which exits at once";
        Ok((Program { path, argument: Some(child::EXIT) }, what.to_owned()))
    };
    let Some(file) = smallest() else { return own() };
    let path = folder.join("exit");
    let made =
        fs::write(&path, &file).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
    if made.is_err() {
        return own();
    }
    // The folder may forbid execution, or the processor be another one than it seems.
    match std::process::Command::new(&path).status() {
        Ok(status) if status.success() => {
            let what = format!("a program of {} bytes that exits at once", file.len());
            Ok((Program { path, argument: None }, what))
        }
        _ => own(),
    }
}

fn measure(program: &Program) -> Result<Figures, Absent> {
    let std = || {
        let mut command = std::process::Command::new(&program.path);
        command.args(program.argument).status()
    };
    let haft = || {
        let mut command = haft::process::Command::new(&program.path);
        command.args(program.argument).status()
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

/// Does it with many files open, with the limit on them raised as far as it takes.
fn with_many_files<T>(measure: impl FnOnce() -> T) -> Result<T, Absent> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = MANY + 200;
    if limit.current.is_some_and(|soft| soft < wanted) {
        if let Some(hard) = limit.maximum.filter(|hard| *hard < wanted) {
            return Err(format!("at most {} files may be open (RLIMIT_NOFILE)", grouped(hard)));
        }
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised)
            .map_err(|error| format!("the limit cannot be raised: {error}"))?;
    }
    let opened = (|| {
        // As a program does that means to open many.
        haft::process::reserve()?;
        let first = File::open("/dev/null")?;
        let mut files = Vec::with_capacity(MANY as usize);
        for _ in 1..MANY {
            files.push(first.try_clone()?);
        }
        files.push(first);
        io::Result::Ok(files)
    })();
    let done = opened.map(|_files| measure()).map_err(|error| format!("{} files: {error}", grouped(MANY)));
    // It was allowed before, and nothing is open above it now.
    let _ = setrlimit(Resource::Nofile, limit);
    done
}

/// A static ELF program that is nothing but `exit_group(0)`: no loader, no library, no memory to set up. `None` on
/// processors whose instructions are not known here.
fn smallest() -> Option<Vec<u8>> {
    let (machine, code): (u16, &[u8]) = match std::env::consts::ARCH {
        // mov eax, 231; xor edi, edi; syscall
        "x86_64" => (62, &[0xb8, 0xe7, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]),
        // mov x8, #94; mov x0, #0; svc #0
        "aarch64" => (183, &[0xc8, 0x0b, 0x80, 0xd2, 0, 0, 0x80, 0xd2, 0x01, 0, 0, 0xd4]),
        _ => return None,
    };
    /// Where the file is mapped.
    const BASE: u64 = 0x1_0000;
    /// The file's header and one program header; the code follows.
    const HEADERS: u64 = 64 + 56;
    let size = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(); // 64 bits, little-endian, version 1
    for half in [2, machine] {
        file.extend(half.to_le_bytes()); // an executable, for this processor
    }
    file.extend(1u32.to_le_bytes()); // version 1
    for long in [BASE + HEADERS, 64, 0] {
        file.extend(u64::to_le_bytes(long)); // entry point, program headers, no section headers
    }
    file.extend(0u32.to_le_bytes()); // flags
    for half in [64u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes()); // sizes and counts of the headers
    }
    for word in [1u32, 5] {
        file.extend(word.to_le_bytes()); // to be loaded, readable and executable
    }
    for long in [0, BASE, BASE, size, size, 0x1_0000] {
        file.extend(long.to_le_bytes()); // offset, addresses, sizes, alignment
    }
    file.extend(code);
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (program, what) = program(folder.path()).unwrap();
        let status = haft::process::Command::new(&program.path).args(program.argument).status().unwrap();
        assert!(status.success(), "{what}: {status}");
    }

    #[test]
    fn a_child_that_fails_is_an_answer_and_not_a_figure() {
        let program = Program { path: "false".into(), argument: None };
        let why = measure(&program).err().unwrap();
        assert!(why.contains("exit status: 1"), "{why}");
        let program = Program { path: "/no/such/program".into(), argument: None };
        assert!(measure(&program).is_err());
    }
}
