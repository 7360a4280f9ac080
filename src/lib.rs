//! haft, the handle of a tool: for programs that hold the system's handles, in the two places where that goes wrong.
//!
//! * [`process`] launches processes that inherit exactly the handles you name. It carries the names of
//!   [`std::process`]; a launch costs the same in a small program and in one with gigabytes of memory and ten thousand
//!   open files.
//! * [`fs`] reads and writes files at any offset, sync and async on one handle. An async operation on cached data
//!   costs about what its system call costs, allocates nothing, and is driven by any executor, or none.
//!
//! The halves do not need each other: each is a feature (`process`, `fs`), both on by default.
//!
//! # Launching a process
//!
//! A child gets its standard handles and those that were passed, and no others, whatever is open in the parent and with
//! whatever flags.
//!
//! ```
//! # #[cfg(feature = "process")] {
//! use haft::process::Command;
//! use std::io::{Read, Write};
//! # if cfg!(windows) { return Ok(()) } // there the programs have other names
//!
//! // A log that the child shall write to, under the number that it has here.
//! let (mut log, writer) = std::io::pipe()?;
//! let mut command = Command::new("sh");
//! let number = command.pass(&writer)?;
//! command.args(["-c", &format!("echo started >&{number}; echo done")]);
//! drop(writer);
//!
//! let output = command.output()?;
//! assert!(output.status.success());
//! assert_eq!(output.stdout, b"done\n");
//!
//! // The command let its end of the pipe go with the launch, so the log has an end.
//! let mut lines = String::new();
//! log.read_to_string(&mut lines)?;
//! assert_eq!(lines, "started\n");
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! An error says which step failed, and on what:
//!
//! ```
//! # #[cfg(feature = "process")] {
//! use haft::process::{Command, LaunchError, Step};
//!
//! let program = std::env::current_exe()?;
//! let error = Command::new(program).current_dir("/no/such/folder").spawn().unwrap_err();
//! assert_eq!(LaunchError::of(&error).unwrap().step(), Step::WorkingDirectory);
//! assert!(error.to_string().contains("/no/such/folder"));
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Reading and writing a file
//!
//! A [`fs::File`] has no cursor; every call names its offset. So one file, or its clones, serves any number
//! of threads and tasks at once, without a lock.
//!
//! ```
//! # #[cfg(feature = "fs")]
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     struct Unpark(std::thread::Thread);
//! #     impl std::task::Wake for Unpark {
//! #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
//! #     }
//! #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         let mut context = std::task::Context::from_waker(&waker);
//! #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) { return output }
//! #         std::thread::park();
//! #     }
//! # }
//! # #[cfg(feature = "fs")] {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("table");
//! use haft::fs::{File, IoBuf};
//!
//! let file = File::options().read(true).write(true).create(true).open(path)?;
//!
//! // Sync: the buffer is borrowed.
//! file.write_all_at(b"0123456789", 0)?;
//! let mut four = [0; 4];
//! file.read_exact_at(&mut four, 2)?;
//! assert_eq!(&four, b"2345");
//!
//! // Async, on the same handle: the buffer goes in by value and comes back with the result. Under tokio, smol or
//! // any other executor; here it is one of a few lines that parks the thread.
//! block_on(async {
//!     let (read, buffer) = file.read_at_async(vec![0; 1024], 8).await?;
//!     assert_eq!(&buffer[..read], b"89");
//!     file.write_all_at_async(buffer.slice(..read), 10).await?;
//!     assert_eq!(file.len_async().await?, 12);
//!     std::io::Result::Ok(())
//! })?;
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The modules
//!
//! | module | what is in it |
//! |---|---|
//! | [`process`] | [`Command`](process::Command), [`Child`](process::Child), [`Stdio`](process::Stdio), [`Inherit`](process::Inherit), [`LaunchError`](process::LaunchError) |
//! | [`fs`] | [`File`](fs::File), [`OpenOptions`](fs::OpenOptions), the buffers that async operations take, their futures |
//! | [`pipe`](mod@pipe) | pipes, each end for sync or async use |
//! | [`engine`] | what carries async operations: [`Engine`](engine::Engine), its settings, and its [counters](engine::Stats) |
//! | [`room_lock`] | [`RoomLock`](room_lock::RoomLock): who is in one room shares it, nobody starves |
//!
//! What a user runs into sooner or later is in [`gotchas`]: short, and worth reading before the first use.
//!
//! # Systems
//!
//! * **Linux**, from 4.x on; developed and tested on x86-64.
//! * **Windows**, from 10 on, as Rust's own targets for it. The suites run under Wine 8 whenever the whole check does, as built
//!   for `x86_64-pc-windows-gnu`; for `x86_64-pc-windows-msvc` the types are checked. haft has not run on a real Windows machine
//!   yet. Where Wine lets pass what Windows refuses, the code itself insists on Windows' rule.
//!
//! Other systems are refused at compile time. What one system alone has is in the documentation that is made for that
//! system (`cargo doc --target …`). What differs in kind:
//!
//! | | Linux | Windows |
//! |---|---|---|
//! | what was passed is in the child | under the number that it has here, or any other (`map_fd`) | under a value of its own, which `pass` returns |
//! | launches wait for each other | never | only where one of them has [`Inherit::All`](process::Inherit::All) |
//! | async reads | from memory on the calling thread, else on a thread of the engine | by the system, on a file opened as [`asynchronous`](fs::OpenOptions::asynchronous); else on a thread of the engine |

#![deny(missing_docs)]
#![warn(rust_2018_idioms)]
// The lint does not see through the macro as it is on windows-gnu.
#![cfg_attr(windows, allow(clippy::missing_const_for_thread_local, reason = "they are const"))]

#[cfg(feature = "fs")]
pub mod engine;
#[cfg(any(feature = "fs", feature = "process"))]
mod force;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "fs")]
pub mod pipe;
#[cfg(feature = "process")]
pub mod process;
#[cfg(any(feature = "fs", feature = "process"))]
#[cfg_attr(not(feature = "fs"), allow(dead_code, unused_imports))]
mod sync;
#[cfg(any(feature = "fs", feature = "process"))]
pub use sync::room_lock;
#[cfg(any(feature = "fs", feature = "process"))]
mod thread;
#[cfg(all(windows, any(feature = "fs", feature = "process")))]
#[cfg_attr(not(all(feature = "fs", feature = "process")), allow(dead_code))]
mod windows;

#[doc = include_str!("../GOTCHAS.md")]
pub mod gotchas {}

/// The examples of the README, compiled and run as those of the documentation are.
#[cfg(all(doctest, target_os = "linux", feature = "process", feature = "fs"))]
#[doc = include_str!("../README.md")]
struct Readme;
