//! What kind of handle one is.

use super::{OwnedHandle, Ways};
use crate::{
    fs::{flags::Flags, open_options::Known},
    windows::{is_synchronous, query},
};
use std::os::windows::io::{AsHandle, AsRawHandle};
use windows_sys::{
    Wdk::{
        Storage::FileSystem::{
            FILE_NO_INTERMEDIATE_BUFFERING, FileAccessInformation, FileFsDeviceInformation,
            FileModeInformation, NtQueryVolumeInformationFile,
        },
        System::SystemServices::FILE_FS_DEVICE_INFORMATION,
    },
    Win32::{
        Foundation::HANDLE,
        Storage::FileSystem::{
            FILE_APPEND_DATA, FILE_TYPE_CHAR, FILE_TYPE_DISK, FILE_TYPE_PIPE, FILE_WRITE_DATA, GetFileType,
        },
        System::{IO::IO_STATUS_BLOCK, Ioctl::FILE_DEVICE_NULL},
    },
};

/// What haft has to know of a file: from the flags that it was opened with, or, if another opened it, from the handle.
///
/// Pipes and devices are not asked how they were opened: the system may let that question wait for a read that is
/// under way on the handle, and that for ever.
pub(crate) fn learn(handle: &OwnedHandle, flags: Option<&Flags>) -> Known {
    let raw = handle.as_raw_handle();
    // SAFETY: the handle is open.
    let kind = unsafe { GetFileType(raw) };
    let stream = match kind {
        FILE_TYPE_PIPE => true,
        // The null device takes every offset.
        FILE_TYPE_CHAR => !is_null_device(raw),
        _ => false,
    };
    if let Some(flags) = flags {
        let ways = Ways {
            overlapped: flags.is_overlapped(),
            unbuffered: flags.is_unbuffered(),
            stream,
            ours: true,
            ..Ways::default()
        };
        return Known { direct: true, appends: flags.appends(), ways };
    }
    let mode = if kind == FILE_TYPE_DISK { query(handle.as_handle(), FileModeInformation) } else { None };
    let access = if kind == FILE_TYPE_DISK { query(handle.as_handle(), FileAccessInformation) } else { None };
    Known {
        direct: true,
        appends: access
            .is_some_and(|access| access & (FILE_WRITE_DATA | FILE_APPEND_DATA) == FILE_APPEND_DATA),
        ways: Ways {
            overlapped: mode.is_none_or(|mode| !is_synchronous(mode)),
            unbuffered: mode.is_some_and(|mode| mode & FILE_NO_INTERMEDIATE_BUFFERING != 0),
            stream,
            ..Ways::default()
        },
    }
}

fn is_null_device(handle: HANDLE) -> bool {
    let mut status = IO_STATUS_BLOCK::default();
    let mut device = FILE_FS_DEVICE_INFORMATION::default();
    // SAFETY: both places are this frame's, and the second has the size that is told.
    let result = unsafe {
        NtQueryVolumeInformationFile(
            handle,
            &raw mut status,
            (&raw mut device).cast(),
            size_of::<FILE_FS_DEVICE_INFORMATION>() as u32,
            FileFsDeviceInformation,
        )
    };
    result >= 0 && device.DeviceType == FILE_DEVICE_NULL
}
