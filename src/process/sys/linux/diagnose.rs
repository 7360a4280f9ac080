//! From a launcher's bare failure to an error that names its object. Runs only after a failure, so it may look at
//! the file system.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::process::command::Command;
use crate::process::error::{Cause, LaunchError, Object, Step, Stream};
use crate::process::plan::Plan;
use crate::process::sys::{Failure, Os};

pub(crate) fn explain(command: &Command, plan: &Plan<'_>, failure: Failure) -> LaunchError {
    let cause = match failure.os {
        Os::Errno(errno) => Cause::Os(errno),
        Os::Killed(signal) => Cause::Signal(signal),
    };
    let object = match failure.step {
        Step::Resolve
        | Step::Stdio
        | Step::Stack
        | Step::Clone
        | Step::Unshare
        | Step::Signals
        | Step::SignalMask
        | Step::CloseDescriptors
        | Step::Inheritable
        | Step::Attributes
        | Step::Job => Object::Launch,
        Step::WorkingDirectory => Object::Directory(command.directory.clone().unwrap_or_default()),
        Step::MoveDescriptors => match plan.descriptors.pairs.get(failure.index) {
            None => Object::Launch,
            Some(&(_, target)) => match Stream::ALL.get(target as usize) {
                Some(stream) => Object::Stream(*stream),
                None => Object::Descriptor(target),
            },
        },
        Step::Execute => program(command, plan, failure),
    };
    LaunchError::new(failure.step, command.get_program(), object, cause)
}

/// What it was that could not be executed.
fn program(command: &Command, plan: &Plan<'_>, failure: Failure) -> Object {
    let candidate = |index| {
        let path = plan.candidates.get(index)?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(path.to_bytes())))
    };
    let name = || Object::Program(command.get_program().into());
    match failure.os {
        // The kernel's "no such file" may mean the program or what its first line names.
        Os::Errno(libc::ENOENT) => (0..plan.candidates.len())
            .filter_map(candidate)
            .find_map(|path| missing_interpreter(command, path))
            .unwrap_or_else(name),
        Os::Errno(libc::ENOTDIR) => name(),
        _ => candidate(failure.index).map_or_else(name, Object::Program),
    }
}

/// The program and the interpreter, if this program is a file and it names one.
fn missing_interpreter(command: &Command, path: PathBuf) -> Option<Object> {
    // Relative paths are the child's, which may have another working directory.
    let from = command.directory.as_deref().unwrap_or(Path::new(""));
    let interpreter = interpreter(&from.join(&path))?;
    if from.join(&interpreter).exists() {
        // It is there by now, or what is missing is its own interpreter.
        return Some(Object::Program(path));
    }
    Some(Object::Interpreter { program: path, interpreter })
}

/// What the kernel runs a program with: the path after `#!`, or the dynamic loader in an ELF file.
fn interpreter(path: &Path) -> Option<PathBuf> {
    // Opening a FIFO or device could block or do something; the kernel executes regular files only.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut head = Vec::new();
    (&file).take(256).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii_start();
        let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t' | 0)).unwrap_or(line.len());
        return Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[..end])));
    }
    elf_interpreter(&file, &head)
}

/// The string of an ELF file's `PT_INTERP` header. Offsets are those of `elf(5)`.
fn elf_interpreter(file: &File, head: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: u64 = 3;
    const LITTLE_ENDIAN: u8 = 1;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let wide = match head.get(4)? {
        1 => false,
        2 => true,
        _ => return None,
    };
    let little = *head.get(5)? == LITTLE_ENDIAN;
    let number = |bytes: &[u8], at: usize, size: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + size)?;
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) })
    };
    let word = if wide { 8 } else { 4 };
    let table = number(head, if wide { 32 } else { 28 }, word)?;
    let size = number(head, if wide { 54 } else { 42 }, 2)?;
    let count = number(head, if wide { 56 } else { 44 }, 2)?;
    for index in 0..count {
        let mut entry = [0; 56];
        let entry = &mut entry[..if wide { 56 } else { 32 }];
        file.read_exact_at(entry, table.checked_add(index * size)?).ok()?;
        if number(entry, 0, 4)? == PT_INTERP {
            let offset = number(entry, if wide { 8 } else { 4 }, word)?;
            let length = number(entry, if wide { 32 } else { 16 }, word)?.min(4096);
            let mut name = vec![0; length as usize];
            file.read_exact_at(&mut name, offset).ok()?;
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            return Some(PathBuf::from(std::ffi::OsStr::from_bytes(&name[..end])));
        }
    }
    None
}
