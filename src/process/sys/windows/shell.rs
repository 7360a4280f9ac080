//! A launch by the shell: `ShellExecuteExW`, on a thread of its own.
//!
//! * Extensions of the shell are COM objects, and many want an apartment of one thread. The caller's may be of another
//!   kind, so it is a new thread's.
//! * That thread has no loop for messages and ends at once, so the shell is asked to finish before it returns
//!   (`SEE_MASK_NOASYNC`).
//! * No room of the start lock: it may ask the user something and wait for minutes.
//! * The libraries are loaded at the first use. A program that is linked to them loads them whenever it starts, and with
//!   them what every program with windows has.

use std::ffi::CStr;
use std::io;
use std::mem::transmute;
use std::os::windows::io::AsRawHandle;
use std::ptr::{null, null_mut};
use std::thread::Builder;

use windows_sys::Win32::Foundation::SetLastError;
use windows_sys::Win32::System::Com::{COINIT_APARTMENTTHREADED, COINIT_DISABLE_OLE1DDE};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows_sys::Win32::System::Threading::GetProcessId;
use windows_sys::Win32::UI::Shell::{
    SEE_MASK_FLAG_NO_UI, SEE_MASK_NOASYNC, SEE_MASK_NOCLOSEPROCESS, SHELLEXECUTEINFOW,
};
use windows_sys::core::BOOL;

use super::launch::Launched;
use super::pid::Pid;
use crate::process::plan::shell::{Execution, error};
use crate::windows::{last_error, owned};

/// Any function, as `GetProcAddress` gives it.
type Function = unsafe extern "system" fn() -> isize;
type CoInitializeEx = unsafe extern "system" fn(*const std::ffi::c_void, u32) -> i32;
type CoUninitialize = unsafe extern "system" fn();
type ShellExecuteExW = unsafe extern "system" fn(*mut SHELLEXECUTEINFOW) -> BOOL;

/// Has the shell do it. `None` if there is no process, or none that the shell tells of.
pub(crate) fn shell_execute(execution: Execution) -> io::Result<Option<Launched>> {
    let thread = Builder::new().name("haft-shell".into()).spawn(move || {
        in_apartment(|| execute(&execution)).map_err(|error| io::Error::from_raw_os_error(error as i32))
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asked the shell panicked")))
}

/// Does it in an apartment that this thread has to itself.
fn in_apartment<T>(body: impl FnOnce() -> Result<T, u32>) -> Result<T, u32> {
    // SAFETY: these are their signatures.
    let (initialize, uninitialize) = unsafe {
        (
            transmute::<Function, CoInitializeEx>(function("ole32.dll", c"CoInitializeEx")?),
            transmute::<Function, CoUninitialize>(function("ole32.dll", c"CoUninitialize")?),
        )
    };
    // SAFETY: this thread is new, so no apartment is its.
    let initialized =
        unsafe { initialize(null(), (COINIT_APARTMENTTHREADED | COINIT_DISABLE_OLE1DDE) as u32) };
    if initialized < 0 {
        return Err(initialized as u32);
    }
    let result = body();
    // SAFETY: it was initialised above, on this thread.
    unsafe { uninitialize() };
    result
}

fn execute(execution: &Execution) -> Result<Option<Launched>, u32> {
    // SAFETY: this is its signature.
    let call =
        unsafe { transmute::<Function, ShellExecuteExW>(function("shell32.dll", c"ShellExecuteExW")?) };
    let optional = |string: &Option<Vec<u16>>| string.as_ref().map_or(null(), |string| string.as_ptr());
    let mut info = SHELLEXECUTEINFOW {
        cbSize: size_of::<SHELLEXECUTEINFOW>() as u32,
        fMask: SEE_MASK_NOCLOSEPROCESS | SEE_MASK_FLAG_NO_UI | SEE_MASK_NOASYNC,
        lpVerb: optional(&execution.verb),
        lpFile: execution.file.as_ptr(),
        lpParameters: optional(&execution.parameters),
        lpDirectory: optional(&execution.directory),
        nShow: execution.show,
        ..SHELLEXECUTEINFOW::default()
    };
    // SAFETY: the strings are terminated, and the structure is this frame's and says its size.
    let done = unsafe {
        SetLastError(0);
        call(&raw mut info)
    };
    if done == 0 {
        return Err(error(last_error(), info.hInstApp as usize));
    }
    if info.hProcess.is_null() {
        return Ok(None);
    }
    // SAFETY: the call opened it for us.
    let process = unsafe { owned(info.hProcess) };
    // SAFETY: the handle is open.
    let id = unsafe { GetProcessId(process.as_raw_handle()) };
    Ok(Some(Launched { pid: Pid::new(process, id, None, None) }))
}

/// A function of one of the system's libraries, which stays loaded.
fn function(library: &str, name: &CStr) -> Result<Function, u32> {
    let library: Vec<u16> = library.encode_utf16().chain([0]).collect();
    // SAFETY: both names are terminated, and the library is one of the system's folder.
    let function = unsafe {
        let library = LoadLibraryExW(library.as_ptr(), null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32);
        if library.is_null() { None } else { GetProcAddress(library, name.as_ptr().cast()) }
    };
    function.ok_or_else(last_error)
}
