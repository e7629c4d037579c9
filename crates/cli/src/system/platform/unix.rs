//! Unix.

use crate::system::file_status::{FileId, FileKind, FileStatus};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use walkdir::{DirEntry, DirEntryExt};

/// The system's error for a closed descriptor: EBADF.
pub const CLOSED: i32 = 9;

/// The system's errors if the limit of open files is reached: ENFILE and EMFILE, which have these numbers on every Unix.
pub const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// The variable that names the folder of temporary files.
pub const TEMP_VARIABLE: &str = "TMPDIR";

/// True if most file systems have one file for names that differ in case.
pub const IGNORES_CASE: bool = cfg!(target_vendor = "apple");

/// The set-user-ID and set-group-ID bits of a mode.
const SET_ID: u32 = 0o6000;

/// Returns a descriptor of standard input, output or error.
pub fn duplicate(standard: impl AsFd) -> io::Result<File> {
    Ok(standard.as_fd().try_clone_to_owned()?.into())
}

/// Returns a reader of a file.
pub fn reader(file: &File) -> impl Read {
    file
}

/// Writes to a file.
pub fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write(bytes)
}

/// True for the error of writing to a pipe whose reader is gone.
pub fn is_reader_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Returns a message as people read it.
pub fn readable(message: &str) -> impl Display {
    message
}

/// Sets the size of a pipe, if the system allows it.
pub fn set_pipe_size(file: &File, bytes: usize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::pipe::fcntl_setpipe_size(file, bytes);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (file, bytes);
}

/// Returns the number of bytes that can be read from a pipe without waiting.
pub fn waiting_bytes(file: &File) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(file)?)
}

/// Reads bytes at a position. The position of the file is not changed.
pub fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    file.read_at(buffer, position)
}

/// Returns the status of an open file.
pub fn status(file: &File) -> io::Result<FileStatus> {
    file.metadata().map(|metadata| from_metadata(&metadata))
}

/// Returns the status of the file that a path leads to.
pub fn status_at(path: &Path) -> io::Result<FileStatus> {
    fs::metadata(path).map(|metadata| from_metadata(&metadata))
}

/// Returns the status of the file or link at a path.
pub fn link_status_at(path: &Path) -> io::Result<FileStatus> {
    fs::symlink_metadata(path).map(|metadata| from_metadata(&metadata))
}

fn from_metadata(metadata: &Metadata) -> FileStatus {
    let kind = metadata.file_type();
    FileStatus {
        kind: match () {
            () if kind.is_file() => FileKind::Regular,
            () if kind.is_dir() => FileKind::Folder,
            () if kind.is_char_device() || kind.is_block_device() => FileKind::Device,
            () => FileKind::Other,
        },
        identity: Some(FileId(metadata.dev(), metadata.ino())),
        len: metadata.len(),
        modified: FileStatus::since_1970(metadata),
        links: metadata.nlink(),
    }
}

/// Returns a part of the identity of a file that was found in a directory, if the directory has it.
pub fn inode(entry: &DirEntry) -> Option<u64> {
    Some(entry.ino())
}

/// Returns the path in a line of a list, if it is one.
pub fn listed_path(line: &[u8]) -> Option<PathBuf> {
    Some(OsStr::from_bytes(line).into())
}

/// Returns options to write to a file, which has this mode if it is created.
pub fn writer(mode: u32) -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(mode);
    options
}

/// Returns the path to lock for a folder, and the options to open it.
pub fn folder_lock(folder: &Path) -> (PathBuf, OpenOptions) {
    let mut options = File::options();
    options.read(true);
    (folder.into(), options)
}

/// Locks a file that was opened with the options of [`writer`] or [`folder_lock`], without waiting.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// True for the error of opening a file that another run has locked.
pub fn is_locked(_error: &io::Error) -> bool {
    false
}

/// Returns a file that is locked until another one has its name.
pub fn until_replaced(old: File) -> Option<File> {
    Some(old)
}

/// Renames a file, which replaces the one that has the name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Syncs a folder, which makes the names of its files safe from a crash.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Gives the file at a path the owner, the group and the mode of another one, as far as the process may.
pub fn keep_owner_and_mode(path: &Path, of: &Path) -> io::Result<()> {
    let old = match fs::metadata(of) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        old => old?,
    };
    let file = File::options().write(true).open(path)?;
    let mut mode = old.permissions().mode();
    if fchown(&file, Some(old.uid()), Some(old.gid())).is_err() {
        // Only root may change the owner. The group is kept if the process belongs to it; another one gets the rights of all others.
        mode &= !SET_ID;
        if fchown(&file, None, Some(old.gid())).is_err() {
            mode = mode & !0o070 | (mode & 0o007) << 3;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// Calls `handle` on a thread of its own with each signal that asks the process to end. Signals that were ignored at the start stay
/// ignored.
pub fn for_each_signal(mut handle: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let ignored = ignored();
    let received = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0);
    let mut signals = Signals::new(received)?;
    thread::Builder::new().spawn(move || signals.forever().for_each(&mut handle)).map(drop)
}

/// Returns the signals that are ignored from the start, one bit each; only Linux reports them.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
