//! The `haft` command: what haft is for, shown on the machine at hand.

mod alloc;
mod block_on;
mod child;
mod tour;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// See what haft does on this machine.
///
/// haft is a Rust library for programs that launch other programs or read and write files at random places:
/// children inherit exactly the handles they were given, and an async file operation costs what the system call
/// costs and allocates nothing.
#[derive(Parser)]
#[command(name = "haft", version, after_help = "Start with `haft tour`.", disable_help_subcommand = true)]
#[command(max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// One screen, live: what a child inherits, what a launch and a read cost
    ///
    /// Shows on this machine, live, in a few seconds:
    ///
    /// 1. what a child sees of a file that it was not given:
    ///    launched by std::process, by haft, and by haft with the file passed;
    /// 2. how many launches a second std::process and haft make, with few and
    ///    with many handles open;
    /// 3. what reading 1 KiB costs: with std, with haft sync and with haft async,
    ///    in time and in allocations.
    ///
    /// Where something cannot be had, it says why. Nothing stays behind: the files
    /// are in a folder that is removed at the end. Colour follows the terminal,
    /// NO_COLOR and CLICOLOR_FORCE.
    #[command(verbatim_doc_comment)]
    Tour {
        /// Where to make the files; another folder may be on another file system
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// A child of the tour: prints its handles
    #[command(hide = true, name = child::HANDLES)]
    ChildHandles,
    /// A child of the tour: exits at once
    #[command(hide = true, name = child::EXIT)]
    ChildExit,
}

/// Why a command could not do its work: one line.
type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        None => Cli::command().print_help().map_err(Error::from),
        Some(Command::Tour { dir }) => tour::run(dir.unwrap_or_else(std::env::temp_dir)),
        Some(Command::ChildHandles) => child::print_handles().map_err(Error::from),
        Some(Command::ChildExit) => Ok(()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough, as in `haft tour | head -1`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // If even that cannot be written, the exit code has to do.
            let _ = io::Write::write_fmt(&mut anstream::stderr(), format_args!("haft: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
