//! Peer `floor`: the least that a correct launch can cost here.
//!
//! 1. With redirection: `CreatePipe`, and its write end made inheritable.
//! 2. `CreateProcessW` with the program, its command line and the start-up structure, everything else left out. With
//!    redirection a list of one handle, or launches beside this one would keep its pipe open.
//! 3. The write end is closed and the pipe read to its end.
//! 4. `WaitForSingleObject`, `GetExitCodeProcess`.
//!
//! No lock is taken: every launch here names what it passes.

use std::io;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::Storage::FileSystem::ReadFile;
use windows_sys::Win32::System::Pipes::CreatePipe;
use windows_sys::Win32::System::Threading::{
    CreateProcessW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess,
    INFINITE, InitializeProcThreadAttributeList, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION,
    STARTF_USESTDHANDLES, STARTUPINFOEXW, STARTUPINFOW, UpdateProcThreadAttribute, WaitForSingleObject,
};
use windows_sys::core::BOOL;

use super::super::{Job, Peer};

pub(crate) struct Floor;

impl Peer for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn round(&self, job: &Arc<Job>) -> io::Result<()> {
        job.share(launch)
    }
}

fn launch(job: &Job) -> io::Result<()> {
    let program: Vec<u16> = job.program.as_os_str().encode_wide().chain([0]).collect();
    let process = if job.redirects() {
        let (reader, writer) = pipe()?;
        let process = redirected(&program, &mut command_line(job), writer.as_raw_handle())?;
        drop(writer);
        drain(&reader)?;
        process
    } else {
        plain(&program, &mut command_line(job))?
    };
    let mut code = 0;
    // SAFETY: the handle is open and the place this frame's.
    unsafe {
        WaitForSingleObject(process.as_raw_handle(), INFINITE);
        done(GetExitCodeProcess(process.as_raw_handle(), &raw mut code))?;
    }
    if code == 0 { Ok(()) } else { Err(io::Error::other(format!("the child ended with {code}"))) }
}

/// The program's path in quotes and the arguments, which are plain words, after it.
fn command_line(job: &Job) -> Vec<u16> {
    let mut line = vec![u16::from(b'"')];
    line.extend(job.program.as_os_str().encode_wide());
    line.push(u16::from(b'"'));
    for argument in job.arguments {
        line.push(u16::from(b' '));
        line.extend(argument.encode_utf16());
    }
    line.push(0);
    line
}

fn done(result: BOOL) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn plain(program: &[u16], line: &mut [u16]) -> io::Result<OwnedHandle> {
    // SAFETY: zeroes are a value of a structure of integers and pointers.
    let mut startup: STARTUPINFOW = unsafe { MaybeUninit::zeroed().assume_init() };
    startup.cb = size_of::<STARTUPINFOW>() as u32;
    create(program, line, false, 0, &raw const startup)
}

/// With `output` as standard output, and nothing else.
fn redirected(program: &[u16], line: &mut [u16], output: HANDLE) -> io::Result<OwnedHandle> {
    // SAFETY: as in `plain`.
    let mut startup: STARTUPINFOEXW = unsafe { MaybeUninit::zeroed().assume_init() };
    startup.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    startup.StartupInfo.hStdOutput = output;
    let mut size = 0;
    // SAFETY: without a place the call only says how large it has to be.
    unsafe { InitializeProcThreadAttributeList(null_mut(), 1, 0, &raw mut size) };
    let mut attributes = vec![0_usize; size.div_ceil(size_of::<usize>())];
    startup.lpAttributeList = attributes.as_mut_ptr().cast();
    let list = [output];
    // SAFETY: the place is as large as was asked for; it and the list stay in place until the process is there.
    unsafe {
        done(InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &raw mut size))?;
        let update = UpdateProcThreadAttribute(
            startup.lpAttributeList,
            0,
            PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
            list.as_ptr().cast(),
            size_of_val(&list),
            null_mut(),
            null(),
        );
        let process = done(update).and_then(|()| {
            create(program, line, true, EXTENDED_STARTUPINFO_PRESENT, (&raw const startup).cast())
        });
        DeleteProcThreadAttributeList(startup.lpAttributeList);
        process
    }
}

/// `startup` is of the kind that `flags` say.
fn create(
    program: &[u16],
    line: &mut [u16],
    inherit: bool,
    flags: u32,
    startup: *const STARTUPINFOW,
) -> io::Result<OwnedHandle> {
    let mut made = MaybeUninit::<PROCESS_INFORMATION>::uninit();
    // SAFETY: both strings end with a NUL and stay; so does what `startup` points to. The two handles are new, and one
    // of them is closed here.
    unsafe {
        done(CreateProcessW(
            program.as_ptr(),
            line.as_mut_ptr(),
            null(),
            null(),
            inherit.into(),
            flags,
            null(),
            null(),
            startup,
            made.as_mut_ptr(),
        ))?;
        let made = made.assume_init();
        drop(OwnedHandle::from_raw_handle(made.hThread));
        Ok(OwnedHandle::from_raw_handle(made.hProcess))
    }
}

/// A read end, and a write end that is inheritable.
fn pipe() -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (mut reader, mut writer) = (null_mut(), null_mut());
    // SAFETY: both places are this frame's; the handles are new and nobody else's.
    unsafe {
        done(CreatePipe(&raw mut reader, &raw mut writer, null(), 0))?;
        let ends = (OwnedHandle::from_raw_handle(reader), OwnedHandle::from_raw_handle(writer));
        done(SetHandleInformation(writer, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT))?;
        Ok(ends)
    }
}

/// Reads to the end, which is an error where the writer has closed.
fn drain(from: &OwnedHandle) -> io::Result<()> {
    let mut buffer = [0_u8; 4096];
    loop {
        let mut count = 0;
        // SAFETY: the place is as long as is said.
        let read = unsafe {
            ReadFile(
                from.as_raw_handle(),
                buffer.as_mut_ptr(),
                buffer.len() as u32,
                &raw mut count,
                null_mut(),
            )
        };
        match done(read) {
            Err(error) if error.raw_os_error() == Some(ERROR_BROKEN_PIPE as i32) => return Ok(()),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Method, crew::Crew};

    #[test]
    fn a_missing_program_is_an_error_and_cmd_is_not() {
        let crew = Arc::new(Crew::new(1).expect("a crew"));
        for (program, method, arguments, wanted) in [
            (r"C:\windows\system32\cmd.exe", Method::Standard, ["/c", "exit"], None),
            (r"C:\windows\system32\cmd.exe", Method::Redirection, ["/c", "ver"], None),
            (r"C:\none\such.exe", Method::Standard, ["/c", "exit"], Some(io::ErrorKind::NotFound)),
        ] {
            let arguments = arguments.to_vec().leak();
            let crew = Arc::clone(&crew);
            let job = Job { method, program: program.into(), arguments, count: 1, threads: 1, crew };
            assert_eq!(launch(&job).err().map(|error| error.kind()), wanted, "{program}");
        }
    }
}
