//! The smallest program: it exits at once, so that the launcher and not the dynamic loader is measured.
//!
//! Its ELF file is put together here, byte by byte: one header, one segment and the two or three instructions
//! of `exit_group(0)`. No compiler is needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Result;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
/// xor edi, edi; mov eax, 231 (exit_group); syscall
#[cfg(target_arch = "x86_64")]
const CODE: &[u8] = &[0x31, 0xff, 0xb8, 0xe7, 0x00, 0x00, 0x00, 0x0f, 0x05];

#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
/// mov x0, #0; mov x8, #94 (exit_group); svc #0
#[cfg(target_arch = "aarch64")]
const CODE: &[u8] = &[0x00, 0x00, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = 0;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CODE: &[u8] = &[];

/// The program in a folder of its own, removed when dropped.
pub(crate) struct Tiny {
    folder: TempDir,
}

impl Tiny {
    pub(crate) fn build() -> Result<Self> {
        if CODE.is_empty() {
            return Err(
                "the tiny program is known for x86_64 and aarch64 only; name another with --program".into()
            );
        }
        let folder = crate::scratch_folder()?;
        let path = folder.path().join("tiny");
        fs::write(&path, elf(MACHINE, CODE))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::join(self.folder.path(), "tiny")
    }
}

/// A static 64-bit little-endian executable with `code` as its only contents.
fn elf(machine: u16, code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let mut file = Vec::new();
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    let long = |file: &mut Vec<u8>, value: u64| file.extend(value.to_le_bytes());

    file.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    half(&mut file, 2); // e_type: an executable at fixed addresses
    half(&mut file, machine);
    word(&mut file, 1); // e_version
    long(&mut file, BASE + HEADERS); // e_entry
    long(&mut file, 64); // e_phoff: the segment table follows this header
    long(&mut file, 0); // e_shoff: no sections
    word(&mut file, 0); // e_flags
    half(&mut file, 64); // e_ehsize
    half(&mut file, 56); // e_phentsize
    half(&mut file, 1); // e_phnum
    half(&mut file, 64); // e_shentsize
    half(&mut file, 0); // e_shnum
    half(&mut file, 0); // e_shstrndx

    let size = HEADERS + code.len() as u64;
    word(&mut file, 1); // p_type: load
    word(&mut file, 5); // p_flags: read and execute
    long(&mut file, 0); // p_offset: the whole file
    long(&mut file, BASE); // p_vaddr
    long(&mut file, BASE); // p_paddr
    long(&mut file, size); // p_filesz
    long(&mut file, size); // p_memsz
    long(&mut file, 0x1_0000); // p_align: the largest page size in use
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_have_their_sizes() {
        let file = elf(62, &[0x90]);
        assert_eq!(file.len(), 64 + 56 + 1);
        assert_eq!(&file[..4], b"\x7fELF");
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn it_runs_and_exits_with_zero() {
        let tiny = Tiny::build().expect("a program");
        // Another test of this process may be starting a program just then and hold the file open for
        // writing.
        let status = loop {
            match std::process::Command::new(tiny.path()).status() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                other => break other.expect("a launch"),
            }
        };
        assert!(status.success(), "{status}");
    }
}
