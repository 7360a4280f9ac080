//! The smallest program that Linux executes, and many open files.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::screen::{Absent, grouped};
use super::{MANY, Program};

/// What there are many of.
pub(super) const MORE: &str = "more files open";

/// A program that is made in this folder, if it runs there; and what to call it.
pub(super) fn smallest(folder: &Path) -> Option<(Program, String)> {
    let file = elf()?;
    let path = folder.join("exit");
    fs::write(&path, &file).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755))).ok()?;
    // The folder may forbid execution, or the processor be another one than it seems.
    let status = std::process::Command::new(&path).status().ok()?;
    let what = format!("a program of {} bytes that exits at once", file.len());
    status.success().then_some((Program { path, args: &[] }, what))
}

/// Does it with many files open, with the limit on them raised as far as it takes.
pub(super) fn with_more<T>(measure: impl FnOnce() -> T) -> Result<T, Absent> {
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
fn elf() -> Option<Vec<u8>> {
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
