//! The file.

use super::{
    Allocate, Buffers, IoBuf, IoBufMut, Len, OpenOptions, ReadAt, ReadExactAt, ReadVectoredAt, SetLen,
    SyncAll, SyncData, WriteAllAt, WriteAt, WriteVectoredAt, error,
    futures::Operation,
    sys::{self, OwnedHandle},
};
use crate::engine::{Engine, Fault, HandleRef, Kind};
use std::{
    fmt,
    io::{self, IoSlice, IoSliceMut},
    path::Path,
};

/// An open file, read and written at offsets, by any number of threads and tasks at once.
///
/// Clones share the descriptor, which closes with the last of them and of the operations under way. See the
/// [module](super) for an example, and for what the async methods have in common.
#[derive(Clone)]
pub struct File {
    pub(super) handle: HandleRef,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// What open(2) reports, as [`std::fs::File::open`] does.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(path)
    }

    /// Opens a file for writing; creates it, or cuts it to length 0.
    ///
    /// # Errors
    /// What open(2) reports, as [`std::fs::File::create`] does.
    pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(path)
    }

    /// Creates a file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one; else what open(2) reports, as [`std::fs::File::create_new`] does.
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path)
    }

    /// Options for opening a file; the same as [`OpenOptions::new`].
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Reads at `offset` into `buffer`, by one system call, and returns how many bytes it brought: fewer than
    /// fit at the end of the file, after a signal, or past 2 GiB (1 GiB on Windows); 0 at the end of the file.
    ///
    /// # Errors
    /// What the system reports; `NotSeekable` for a pipe, a socket or a terminal; `InvalidInput` for an offset over
    /// 2^63 - 1.
    ///
    /// # References
    /// pread(2) on Unix; on Windows NtReadFile, which moves a plain handle's cursor, or on an overlapped handle ReadFile.
    #[inline]
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(sys::read_into(self.handle.opened(), buffer, offset)?)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends first, else as [`read_at`](File::read_at). What `buffer` then holds is
    /// unspecified.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(error::unexpected_end()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset = offset.wrapping_add(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes `buffer` at `offset`, by one system call, and returns how many bytes the system accepted.
    ///
    /// # Errors
    /// What the system reports; `NotSeekable` for a pipe, a socket or a terminal; `InvalidInput` for an offset over
    /// 2^63 - 1, and on a file opened for appending alone, where the system would ignore the offset.
    ///
    /// # References
    /// pwrite(2) on Unix, with its section BUGS; on Windows NtWriteFile, or on an overlapped handle WriteFile.
    #[inline]
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        if self.handle.appends {
            return Err(Fault::Appends.into());
        }
        Ok(sys::write(self.handle.opened(), buffer, offset)?)
    }

    /// Writes all of `buffer` at `offset`.
    ///
    /// # Errors
    /// As [`write_at`](File::write_at), after a part may have been written; `WriteZero` if the system accepts
    /// nothing any more.
    pub fn write_all_at(&self, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.write_at(buffer, offset) {
                Ok(0) => return Err(Fault::WriteZero.into()),
                Ok(written) => {
                    buffer = &buffer[written..];
                    offset = offset.wrapping_add(written as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes `buffer` at the end of the file, wherever that is when it happens, by one system call: what several
    /// processes append to a local file does not mix.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("log");
    /// use haft::fs::OpenOptions;
    ///
    /// let log = OpenOptions::new().append(true).create(true).open(&path)?;
    /// log.append(b"one\n")?;
    /// log.append(b"two\n")?;
    /// assert_eq!(std::fs::read(&path)?, b"one\ntwo\n");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the system reports; `WriteZero` if it accepted only a part, and the message says how much.
    ///
    /// # References
    /// pwritev2(2) with RWF_APPEND on Linux, or write(2) on a file opened with `O_APPEND`; WriteFile at the offset that
    /// means the end on Windows.
    pub fn append(&self, buffer: &[u8]) -> io::Result<()> {
        loop {
            match sys::append(self.handle.opened(), buffer, self.handle.appends) {
                Ok(written) if written == buffer.len() => return Ok(()),
                Ok(written) => return Err(error::appended_in_part(written, buffer.len())),
                Err(errno) if sys::is_interruption(errno) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Reads at `offset` into one buffer after another, and returns how many bytes they got in all: fewer than fit at
    /// the end of the file, and wherever the system stops.
    ///
    /// On Linux this is one system call, for at most 1,024 buffers. On Windows it is one for whole, aligned pages of
    /// memory, of a file that was opened with [`asynchronous`](OpenOptions::asynchronous) and
    /// [`unbuffered`](OpenOptions::unbuffered), and else one for each buffer.
    ///
    /// # Errors
    /// As [`read_at`](File::read_at).
    ///
    /// # References
    /// preadv(2) on Unix; ReadFileScatter on Windows.
    pub fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        Ok(sys::read_vectored(self.handle.opened(), buffers, offset)?)
    }

    /// Writes one buffer after another at `offset`, and returns how many bytes the system accepted in all. The calls are
    /// as for [`read_vectored_at`](File::read_vectored_at).
    ///
    /// # Errors
    /// As [`write_at`](File::write_at).
    ///
    /// # References
    /// pwritev(2) on Unix; WriteFileGather on Windows.
    pub fn write_vectored_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        if self.handle.appends {
            return Err(Fault::Appends.into());
        }
        Ok(sys::write_vectored(self.handle.opened(), buffers, offset)?)
    }

    /// The file's length in bytes. Files of /proc and /sys say 0, whatever they hold.
    ///
    /// # Errors
    /// What fstat(2) reports.
    #[allow(clippy::len_without_is_empty)] // a file may be empty now and not at the next moment
    pub fn len(&self) -> io::Result<u64> {
        Ok(sys::size(self.handle.opened())?.0)
    }

    /// Makes the file `len` bytes long: cuts it, or extends it by a hole that reads as zeros.
    ///
    /// # Errors
    /// What the system reports; `InvalidInput` for a length over 2^63 - 1; for a file not open for writing `InvalidInput`
    /// on Linux, `PermissionDenied` on Windows.
    ///
    /// # References
    /// ftruncate(2) on Unix; SetFileInformationByHandle with FileEndOfFileInfo on Windows.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(sys::set_size(self.handle.opened(), len)?)
    }

    /// Sets room aside on the device for a file of `len` bytes, so that writing them does not fail for want of it. The
    /// file's length stays; room for less than it has is there already.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// let file = haft::fs::File::create(folder.path().join("table"))?;
    /// match file.allocate(1 << 20) {
    ///     Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
    ///     other => other?,
    /// }
    /// assert_eq!(file.len()?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// On Windows, room beyond the length is given back when the file is closed; and nobody may make the file longer
    /// than `len` at the same time, for the system cuts a file that has more than the room it is given.
    ///
    /// # Errors
    /// `StorageFull`; `Unsupported` where the file system cannot do it; else what the system reports.
    ///
    /// # References
    /// fallocate(2) with FALLOC_FL_KEEP_SIZE on Linux; SetFileInformationByHandle with FileAllocationInfo on Windows.
    pub fn allocate(&self, len: u64) -> io::Result<()> {
        Ok(sys::allocate(self.handle.opened(), len)?)
    }

    /// Returns when the file's data and metadata are on the device.
    ///
    /// # Errors
    /// What the system reports. The data is then to be taken as lost: Linux says so once, and may report success
    /// the next time. On Windows it is `PermissionDenied` on a file that is not open for writing.
    ///
    /// # References
    /// fsync(2) on Unix; FlushFileBuffers on Windows.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(sys::sync_all(self.handle.opened())?)
    }

    /// As [`sync_all`](File::sync_all), without metadata that reading the data does not need, such as times.
    ///
    /// # Errors
    /// What fdatasync(2) reports, as [`sync_all`](File::sync_all).
    pub fn sync_data(&self) -> io::Result<()> {
        Ok(sys::sync_data(self.handle.opened())?)
    }

    /// Reads at `offset` until `buffer` is full or the file ends, and returns the number of bytes and the buffer.
    ///
    /// Here it differs from [`read_at`](File::read_at), which is one system call: on a regular file, the async
    /// form comes short at the end of the file only. A `Vec<u8>` is filled over its length, not its capacity;
    /// see [`Spare`](super::Spare).
    ///
    /// # Errors
    /// As [`read_at`](File::read_at); the [`OpError`](super::OpError) has the buffer and what was read before.
    ///
    /// # References
    /// preadv2(2) with RWF_NOWAIT for the attempt from the page cache, pread(2) on the engine's threads. On Windows an
    /// overlapped ReadFile, if the file was opened with [`asynchronous`](OpenOptions::asynchronous).
    #[inline]
    pub fn read_at_async<B: IoBufMut>(&self, buffer: B, offset: u64) -> ReadAt<'_, B> {
        ReadAt(Operation::new(&self.handle, Kind::Read, offset, buffer))
    }

    /// Fills `buffer` from `offset` on, and gives it back.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends first, else as [`read_at_async`](File::read_at_async).
    #[inline]
    pub fn read_exact_at_async<B: IoBufMut>(&self, buffer: B, offset: u64) -> ReadExactAt<'_, B> {
        ReadExactAt(Operation::new(&self.handle, Kind::Read, offset, buffer))
    }

    /// Writes `buffer` at `offset`, and gives the number of bytes and the buffer back. It goes on after a write
    /// that the system cut short, so fewer bytes than `buffer` has come with an error only.
    ///
    /// # Errors
    /// As [`write_at`](File::write_at); the [`OpError`](super::OpError) has the buffer and how much was written.
    #[inline]
    pub fn write_at_async<B: IoBuf>(&self, buffer: B, offset: u64) -> WriteAt<'_, B> {
        WriteAt(Operation::new(&self.handle, Kind::Write, offset, buffer))
    }

    /// Writes all of `buffer` at `offset`, and gives it back.
    ///
    /// # Errors
    /// As [`write_at_async`](File::write_at_async).
    #[inline]
    pub fn write_all_at_async<B: IoBuf>(&self, buffer: B, offset: u64) -> WriteAllAt<'_, B> {
        WriteAllAt(Operation::new(&self.handle, Kind::Write, offset, buffer))
    }

    /// Reads at `offset` into one buffer after another until all are full or the file ends, and gives the number of
    /// bytes and the buffers, as many as there may be. See [`Buffers`] for an example.
    ///
    /// It is done on the engine's threads, by the calls of [`read_vectored_at`](File::read_vectored_at).
    ///
    /// # Errors
    /// As [`read_at_async`](File::read_at_async).
    pub fn read_vectored_at_async<B: IoBufMut>(
        &self,
        buffers: impl Into<Buffers<B>>,
        offset: u64,
    ) -> ReadVectoredAt<'_, B> {
        ReadVectoredAt(Operation::new(&self.handle, Kind::ReadVectored, offset, buffers.into()))
    }

    /// Writes all of one buffer after another at `offset`, and gives the number of bytes and the buffers.
    ///
    /// It is done on the engine's threads, by the calls of [`write_vectored_at`](File::write_vectored_at).
    ///
    /// # Errors
    /// As [`write_at_async`](File::write_at_async).
    pub fn write_vectored_at_async<B: IoBuf>(
        &self,
        buffers: impl Into<Buffers<B>>,
        offset: u64,
    ) -> WriteVectoredAt<'_, B> {
        WriteVectoredAt(Operation::new(&self.handle, Kind::WriteVectored, offset, buffers.into()))
    }

    /// [`len`](File::len), on the engine: on a network file system it may take its time.
    ///
    /// # Errors
    /// As [`len`](File::len).
    pub fn len_async(&self) -> Len<'_> {
        Len(Operation::new(&self.handle, Kind::Len, 0, ()))
    }

    /// [`set_len`](File::set_len), on the engine.
    ///
    /// # Errors
    /// As [`set_len`](File::set_len).
    pub fn set_len_async(&self, len: u64) -> SetLen<'_> {
        SetLen(Operation::new(&self.handle, Kind::SetLen, len, ()))
    }

    /// [`allocate`](File::allocate), on the engine.
    ///
    /// # Errors
    /// As [`allocate`](File::allocate).
    pub fn allocate_async(&self, len: u64) -> Allocate<'_> {
        Allocate(Operation::new(&self.handle, Kind::Allocate, len, ()))
    }

    /// [`sync_all`](File::sync_all), on the engine.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    pub fn sync_all_async(&self) -> SyncAll<'_> {
        SyncAll(Operation::new(&self.handle, Kind::SyncAll, 0, ()))
    }

    /// [`sync_data`](File::sync_data), on the engine.
    ///
    /// # Errors
    /// As [`sync_data`](File::sync_data).
    pub fn sync_data_async(&self) -> SyncData<'_> {
        SyncData(Operation::new(&self.handle, Kind::SyncData, 0, ()))
    }

    #[cfg(all(test, loom))]
    pub(crate) fn from_handle(handle: HandleRef) -> File {
        File { handle }
    }

    /// The same open file as std's type. On Windows, one that was opened with [`asynchronous`](OpenOptions::asynchronous)
    /// has no cursor, and stays bound to the engine's completion port.
    ///
    /// # Errors
    /// Gives `self` back while clones of it, or operations under way, use the descriptor too.
    pub fn try_into_std(self) -> Result<std::fs::File, File> {
        self.handle.into_owned().map(std::fs::File::from).map_err(|handle| File { handle })
    }
}

impl Engine {
    /// Takes an open file over, as a [`File`] whose async operations this engine carries.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let file = haft::engine::Engine::default().adopt(tempfile::tempfile()?);
    /// file.write_all_at(b"adopted", 0)?;
    /// assert_eq!(file.len()?, 7);
    /// # Ok(()) }
    /// ```
    pub fn adopt(&self, file: impl Into<OwnedHandle>) -> File {
        let handle = file.into();
        let traits = sys::learn(&handle, None).into();
        File { handle: HandleRef::new(self.lease(), handle, traits) }
    }
}

/// Carried by the process's engine; see [`Engine::adopt`] for another.
impl From<std::fs::File> for File {
    fn from(file: std::fs::File) -> File {
        Engine::process().adopt(file)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("handle", self.handle.owned()).finish()
    }
}
