//! What Windows adds to a command: handles that are passed, and settings of its own.

use std::ffi::OsStr;
use std::io;
use std::os::windows::io::{AsHandle, AsSocket};

use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, DETACHED_PROCESS};

use super::credentials::Credentials;
use super::{Command, Unset, invalid};
use crate::process::child::Child;
use crate::process::error::Object;
use crate::process::inherit::Passed;
use crate::process::plan::Parent;
use crate::process::process::Process;
use crate::process::stdio::{ChildStderr, ChildStdin, ChildStdout};
use crate::process::sys::{self, Duplicate};

/// A duplicate that goes to the child under its own value.
pub(crate) struct PassedHandle {
    /// `None`: a pipe or socket that went with an earlier launch.
    duplicate: Option<Duplicate>,
    value: usize,
}

impl PassedHandle {
    /// The value, if it is still there.
    pub(crate) fn value(&self) -> Option<usize> {
        self.duplicate.as_ref().map(Duplicate::value)
    }

    /// What to call it in an error, if it went with an earlier launch.
    pub(super) fn spent(&self) -> Option<Object> {
        self.duplicate.is_none().then_some(Object::Handle(self.value))
    }

    pub(super) fn let_go(&mut self) {
        self.duplicate.take_if(|duplicate| duplicate.has_other_end());
    }

    pub(super) fn passed(&self) -> Passed {
        Passed { value: self.value }
    }
}

/// What a command can be told on Windows alone.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The indices of the arguments that go onto the command line as they are, in their order.
    pub(crate) raw: Vec<usize>,
    pub(crate) flags: u32,
    pub(crate) no_window: bool,
    pub(crate) process_group: bool,
    pub(crate) detached: bool,
    pub(crate) suspended: bool,
    pub(crate) kill_on_parent_exit: bool,
    pub(crate) kill_tree: bool,
    pub(super) credentials: Credentials,
}

impl Settings {
    /// The creation flags, but for those that the launcher sets itself.
    pub(crate) fn creation_flags(&self) -> u32 {
        let mut flags = self.flags;
        for (set, flag) in [
            (self.no_window, CREATE_NO_WINDOW),
            (self.process_group, CREATE_NEW_PROCESS_GROUP),
            (self.detached, DETACHED_PROCESS),
        ] {
            flags |= if set { flag } else { 0 };
        }
        flags
    }
}

mod sealed {
    pub trait Sealed {
        /// A duplicate for a child, which is not inheritable yet.
        fn duplicate(&self) -> std::io::Result<super::Duplicate>;
    }
}

/// What can be [passed](Command::pass) to a child on Windows: the types of std and of haft that lend a handle or a socket.
/// From another type, pass what its `as_handle` or `as_socket` gives.
pub trait Pass: sealed::Sealed {}

impl<T: sealed::Sealed + ?Sized> Pass for T {}

/// Types that lend a handle.
macro_rules! handles {
    ($($(#[$attribute:meta])* $owner:ty),* $(,)?) => { $(
        $(#[$attribute])*
        impl sealed::Sealed for $owner {
            fn duplicate(&self) -> io::Result<Duplicate> {
                if sys::is_completion_port(self.as_handle()) {
                    return Err(invalid(
                        "an I/O completion port works in the process alone that made it, and cannot be passed".into(),
                    ));
                }
                sys::duplicate(self).map(Duplicate::Handle)
            }
        }
    )* };
}

handles!(
    std::fs::File,
    std::io::PipeReader,
    std::io::PipeWriter,
    std::io::Stdin,
    std::io::StdinLock<'_>,
    std::io::Stdout,
    std::io::StdoutLock<'_>,
    std::io::Stderr,
    std::io::StderrLock<'_>,
    std::os::windows::io::BorrowedHandle<'_>,
    std::os::windows::io::OwnedHandle,
    std::process::Child,
    std::process::ChildStdin,
    std::process::ChildStdout,
    std::process::ChildStderr,
    Child,
    ChildStdin,
    ChildStdout,
    ChildStderr,
    Process,
    #[cfg(feature = "fs")]
    crate::fs::File,
    #[cfg(feature = "fs")]
    crate::pipe::PipeReader,
    #[cfg(feature = "fs")]
    crate::pipe::PipeWriter,
);

impl<T> sealed::Sealed for std::thread::JoinHandle<T> {
    fn duplicate(&self) -> io::Result<Duplicate> {
        sys::duplicate(self).map(Duplicate::Handle)
    }
}

/// Types that lend a socket.
macro_rules! sockets {
    ($($owner:ty),* $(,)?) => { $(
        impl sealed::Sealed for $owner {
            fn duplicate(&self) -> io::Result<Duplicate> {
                sys::duplicate_socket(self.as_socket()).map(Duplicate::Socket)
            }
        }
    )* };
}

sockets!(
    std::net::TcpListener,
    std::net::TcpStream,
    std::net::UdpSocket,
    std::os::windows::io::BorrowedSocket<'_>,
    std::os::windows::io::OwnedSocket,
);

/// What is borrowed or shared lends what is behind it.
macro_rules! behind {
    ($($pointer:ty),*) => { $(
        impl<T: sealed::Sealed + ?Sized> sealed::Sealed for $pointer {
            fn duplicate(&self) -> io::Result<Duplicate> {
                (**self).duplicate()
            }
        }
    )* };
}

behind!(&T, &mut T, Box<T>, std::rc::Rc<T>, std::sync::Arc<T>);

impl Command {
    /// Gives the child a duplicate of `handle`, made now, under a value of its own, which the result displays: to put on
    /// the child's command line or in its environment.
    ///
    /// Anything that lends a handle or a socket can be passed: files, pipes, sockets, events, processes. The
    /// original may be closed before the launch. The duplicate is inheritable only within the launch, and there only
    /// launches with [`Inherit::All`](crate::process::Inherit) could see it, which haft does not let run meanwhile.
    ///
    /// # Errors
    /// * What `DuplicateHandle` says, or `WSADuplicateSocketW` for a socket.
    /// * `InvalidInput` for an I/O completion port.
    ///
    /// ```
    /// use haft::process::Command;
    ///
    /// let (reader, writer) = std::io::pipe()?;
    /// let mut command = Command::new("child.exe");
    /// let value = command.pass(&writer)?;
    /// command.arg(value.to_string()); // the child uses that handle
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # References
    /// * [`DuplicateHandle`](https://learn.microsoft.com/windows/win32/api/handleapi/nf-handleapi-duplicatehandle),
    ///   [`WSADuplicateSocketW`](https://learn.microsoft.com/windows/win32/api/winsock2/nf-winsock2-wsaduplicatesocketw)
    pub fn pass<H: Pass + ?Sized>(&mut self, handle: &H) -> io::Result<Passed> {
        let duplicate = handle.duplicate()?;
        let value = duplicate.value();
        // The value of a duplicate that went with an earlier launch may have come again.
        self.passed.retain(|passed| passed.value != value);
        self.passed.push(PassedHandle { duplicate: Some(duplicate), value });
        Ok(Passed { value })
    }

    /// Appends text to the command line as it is, after a space, without quotes or escapes. For programs that do
    /// not take their command line apart by the rules of the C runtime, such as `cmd.exe`.
    ///
    /// As [`std::os::windows::process::CommandExt::raw_arg`].
    pub fn raw_arg<S: AsRef<OsStr>>(&mut self, text: S) -> &mut Command {
        self.settings.raw.push(self.args.len());
        self.arg(text)
    }

    /// Sets the creation flags, besides those that haft sets itself
    /// ([`CREATE_UNICODE_ENVIRONMENT` and `EXTENDED_STARTUPINFO_PRESENT`](https://learn.microsoft.com/windows/win32/procthread/process-creation-flags)).
    /// They replace those of an earlier call.
    ///
    /// As [`std::os::windows::process::CommandExt::creation_flags`].
    pub fn creation_flags(&mut self, flags: u32) -> &mut Command {
        self.settings.flags = flags;
        self
    }

    /// The child, if it is a program for consoles, gets none that shows (`CREATE_NO_WINDOW`).
    pub fn create_no_window(&mut self, no_window: bool) -> &mut Command {
        self.settings.no_window = no_window;
        self
    }

    /// The child is the first of a process group of its own (`CREATE_NEW_PROCESS_GROUP`): Ctrl+C does not reach it, and
    /// `GenerateConsoleCtrlEvent` can address the group.
    pub fn create_new_process_group(&mut self, group: bool) -> &mut Command {
        self.settings.process_group = group;
        self
    }

    /// The child has no console (`DETACHED_PROCESS`), and the null device for each standard handle that was not set.
    pub fn detached(&mut self, detached: bool) -> &mut Command {
        self.settings.detached = detached;
        self
    }

    /// The child ends when this process ends, however that ends, and so does all that it has launched.
    ///
    /// It is in a job that the system closes with this process. Dropping the [`Child`] leaves it running.
    ///
    /// # References
    /// * [`JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`](https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-jobobject_basic_limit_information)
    pub fn kill_on_parent_exit(&mut self, kill: bool) -> &mut Command {
        self.settings.kill_on_parent_exit = kill;
        self
    }

    /// Lets [`Child::kill_tree`] end the child together with all that it has launched.
    ///
    /// The child is in a job of its own from its beginning. What it launches is in it too, unless that is launched with
    /// `CREATE_BREAKAWAY_FROM_JOB`, which this job does not allow. Dropping the [`Child`] ends nothing.
    ///
    /// # References
    /// * [Job objects](https://learn.microsoft.com/windows/win32/procthread/job-objects),
    ///   [`PROC_THREAD_ATTRIBUTE_JOB_LIST`](https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-updateprocthreadattribute)
    pub fn kill_tree(&mut self, tree: bool) -> &mut Command {
        self.settings.kill_tree = tree;
        self
    }

    /// Launches the child without letting it run: [`Child::resume`] does. Standard handles are inherited by default.
    ///
    /// Until then it has loaded nothing but the system's first library; a debugger can be attached, or a job assigned. A
    /// child that is dropped without being resumed stays as it is until it is killed.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn).
    pub fn spawn_suspended(&mut self) -> io::Result<Child> {
        self.settings.suspended = true;
        let child = self.start(Unset::Inherit);
        self.settings.suspended = false;
        Ok(child?)
    }

    pub(super) fn parent(&self, streams: [sys::Source; 3]) -> Parent {
        sys::parent(self.given_on(streams))
    }
}
