//! The smallest program: it exits at once, so that the launcher and not the loader of libraries is measured. The build
//! script makes it of `peers/tiny.c` where it finds mingw's compiler.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Result;

/// Empty where there was no compiler.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tiny.exe"));

/// The program in a folder of its own, removed when dropped.
pub(crate) struct Tiny {
    folder: TempDir,
}

impl Tiny {
    pub(crate) fn build() -> Result<Self> {
        if PROGRAM.is_empty() {
            return Err(
                "the tiny program needs a build with x86_64-w64-mingw32-gcc; name another with --program"
                    .into(),
            );
        }
        let tiny = Self { folder: crate::scratch_folder()? };
        fs::write(tiny.path(), PROGRAM)?;
        Ok(tiny)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("tiny.exe")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_and_exits_with_zero() {
        if PROGRAM.is_empty() {
            println!("skipped: it_runs_and_exits_with_zero: there was no x86_64-w64-mingw32-gcc");
            return;
        }
        let tiny = Tiny::build().expect("a program");
        let status = std::process::Command::new(tiny.path()).status().expect("a launch");
        assert!(status.success(), "{status}");
    }
}
