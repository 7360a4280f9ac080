//! `haft tour`: what haft is for, live, in one screen.

mod inherit;
mod launch;
mod machine;
mod read;
mod screen;

use std::path::PathBuf;

use crate::Error;
use screen::{FAINT, STRONG, Screen, WARN, paint};

/// Shows the sections one after another. What cannot be shown says why, and the others go on.
pub(crate) fn run(place: PathBuf) -> Result<(), Error> {
    let folder = tempfile::Builder::new()
        .prefix("haft-tour-")
        .tempdir_in(&place)
        .map_err(|error| format!("no folder can be made in {}: {}", place.display(), reason(&error)))?;
    let mut screen = Screen::new();
    screen.line(format_args!(
        "{}  {}",
        paint(STRONG, concat!("haft ", env!("CARGO_PKG_VERSION"))),
        paint(FAINT, machine::describe())
    ))?;
    screen.line("Launches processes that inherit exactly the handles you name; reads and writes")?;
    screen.line("files at any offset, sync and async on one handle, without allocating for it.")?;
    if let Some(load) = machine::load() {
        let busy = format!("This machine has other work (load {load:.1}): the times below are rough.");
        screen.line(paint(WARN, busy))?;
    }
    inherit::show(&mut screen, folder.path())?;
    launch::show(&mut screen, folder.path())?;
    read::show(&mut screen, folder.path())?;
    screen.blank()?;
    screen.line(format_args!(
        "{}{}",
        paint(FAINT, "The same beside tokio, duct, compio, monoio: "),
        "cargo run --release -p haft-bench"
    ))?;
    Ok(())
}

/// The system's message without what was added to it.
fn reason(error: &std::io::Error) -> String {
    match error.get_ref() {
        Some(inner) => {
            std::error::Error::source(inner).map_or_else(|| inner.to_string(), ToString::to_string)
        }
        None => error.to_string(),
    }
}
