//! Reading a child's two outputs at once.

use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::stdio::{ChildStderr, ChildStdout};

/// How much room is made for one read: what a pipe holds by default.
const ROOM: usize = 64 * 1024;

/// Reads both to the end.
///
/// The descriptors stay blocking: `poll` says which can be read, one read takes what is there, and nobody else reads
/// from them. So nothing has to be set on a description that others may share.
pub(crate) fn read(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    match (stdout, stderr) {
        (None, None) => {}
        (Some(mut stdout), None) => drop(stdout.read_to_end(&mut out)?),
        (None, Some(mut stderr)) => drop(stderr.read_to_end(&mut err)?),
        (Some(mut stdout), Some(mut stderr)) => loop {
            let (from_out, from_err) = {
                let mut ends = [PollFd::new(&stdout, PollFlags::IN), PollFd::new(&stderr, PollFlags::IN)];
                match poll(&mut ends, None) {
                    Ok(_) => {}
                    Err(Errno::INTR) => continue,
                    Err(errno) => return Err(errno.into()),
                }
                (!ends[0].revents().is_empty(), !ends[1].revents().is_empty())
            };
            if from_out && read_some(&stdout, &mut out)? == 0 {
                stderr.read_to_end(&mut err)?;
                break;
            }
            if from_err && read_some(&stderr, &mut err)? == 0 {
                stdout.read_to_end(&mut out)?;
                break;
            }
        },
    }
    Ok((out, err))
}

/// One read into spare room. A full pipe is taken at once, and a short text does not reserve a full pipe's room.
fn read_some(from: impl AsFd, into: &mut Vec<u8>) -> io::Result<usize> {
    if into.capacity() - into.len() < 512 {
        into.reserve(if into.is_empty() { 4096 } else { ROOM });
    }
    loop {
        match rustix::io::read(&from, rustix::buffer::spare_capacity(into)) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}
