//! Reading two pipes at once.

use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// How much room is made for one read: what a pipe holds by default.
const ROOM: usize = 64 * 1024;

/// Reads each to its end, into its vector.
///
/// The descriptors stay blocking: `poll` says which can be read, one read takes what is there, and nobody else reads
/// from them. So nothing has to be set on a description that others may share.
pub(crate) fn drain_both<R: Read + AsFd>(
    (mut one, into_one): (R, &mut Vec<u8>),
    (mut other, into_other): (R, &mut Vec<u8>),
) -> io::Result<()> {
    loop {
        let (from_one, from_other) = {
            let mut ends = [PollFd::new(&one, PollFlags::IN), PollFd::new(&other, PollFlags::IN)];
            match poll(&mut ends, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            (!ends[0].revents().is_empty(), !ends[1].revents().is_empty())
        };
        if from_one && read_some(&one, into_one)? == 0 {
            return other.read_to_end(into_other).map(drop);
        }
        if from_other && read_some(&other, into_other)? == 0 {
            return one.read_to_end(into_one).map(drop);
        }
    }
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
