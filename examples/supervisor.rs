//! A small supervisor: it opens a port, launches workers that serve it, and launches one again when it ends.
//!
//! ```text
//! cargo run --example supervisor
//! ```
//!
//! The workers get the listening socket by name, with `pass`, and nothing else: not the supervisor's other files,
//! and not each other's pipes, though they are launched while those are open.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::fd::{FromRawFd, RawFd as Number};
#[cfg(windows)]
use std::os::windows::io::{FromRawSocket, RawSocket as Number};

use haft::process::{Child, Command, Stdio};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next().and_then(|number| number.parse().ok())) {
        (Some("worker"), Some(number)) => work(number),
        _ => supervise(),
    }
}

/// A worker: says that it is ready, then answers whoever connects.
fn work(number: Number) -> io::Result<()> {
    let listener = take(number)?;
    println!("ready");
    loop {
        let (mut client, _) = listener.accept()?;
        writeln!(client, "{}", std::process::id())?;
    }
}

#[cfg(unix)]
fn take(number: Number) -> io::Result<TcpListener> {
    // SAFETY: the supervisor passed a listening socket under this number, and nothing else here uses it.
    Ok(unsafe { TcpListener::from_raw_fd(number) })
}

#[cfg(windows)]
fn take(number: Number) -> io::Result<TcpListener> {
    // std starts Windows' sockets with the first that it makes itself.
    TcpListener::bind("127.0.0.1:0")?;
    // SAFETY: the supervisor passed a listening socket under this value, and nothing else here uses it.
    Ok(unsafe { TcpListener::from_raw_socket(number) })
}

fn supervise() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("serving {address}");

    let mut workers = Vec::new();
    for _ in 0..2 {
        workers.push(launch(&listener)?);
    }
    for _ in 0..4 {
        println!("  a client was served by process {}", ask(address)?);
    }

    // One ends; the socket stays open here, so no client is turned away meanwhile.
    let first = &mut workers[0];
    first.kill()?;
    println!("worker {} ended: {}", first.id(), first.wait()?);
    workers[0] = launch(&listener)?;
    for _ in 0..4 {
        println!("  a client was served by process {}", ask(address)?);
    }

    for worker in &mut workers {
        worker.kill()?;
        worker.wait()?;
    }
    // No process has the socket any more, so the port is free.
    drop(listener);
    println!("a client now: {}", TcpStream::connect(address).expect_err("nobody listens"));
    Ok(())
}

/// Launches a worker and waits until it says that it is ready.
fn launch(listener: &TcpListener) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let number = command.pass(listener)?;
    let mut worker = command.arg("worker").arg(number.to_string()).stdout(Stdio::piped()).spawn()?;
    let mut ready = String::new();
    if let Some(stdout) = &mut worker.stdout {
        BufReader::new(stdout).read_line(&mut ready)?;
    }
    println!("worker {}: {}", worker.id(), ready.trim());
    Ok(worker)
}

/// What a worker answers.
fn ask(address: SocketAddr) -> io::Result<String> {
    let mut answer = String::new();
    TcpStream::connect(address)?.read_to_string(&mut answer)?;
    Ok(answer.trim().to_owned())
}
