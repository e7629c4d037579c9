//! Windows.

use crate::system::file_status::{FileId, FileKind, FileStatus};
use signal_hook::consts::SIGINT;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{str, thread};
use walkdir::DirEntry;
use winapi_util::file::{information, typ};

/// The system's error for a closed handle: `ERROR_INVALID_HANDLE`.
pub const CLOSED: i32 = 6;

/// The system's errors if the limit of open files is reached. No user meets the limit of handles.
pub const TOO_MANY_FILES: [i32; 0] = [];

/// The variable that names the folder of temporary files.
pub const TEMP_VARIABLE: &str = "TMP";

/// True if most file systems have one file for names that differ in case.
pub const IGNORES_CASE: bool = true;

/// The errors `ERROR_SHARING_VIOLATION` and `ERROR_LOCK_VIOLATION`.
const IN_USE: [i32; 2] = [32, 33];

/// The maximum number of tries to rename a file, and the time between them. On Windows, a program that has the target open for a
/// moment, such as a virus scanner, prevents its replacement.
const RENAME_TRIES: u32 = 100;
const RENAME_PAUSE: Duration = Duration::from_millis(10);

/// The error `ERROR_PIPE_NOT_CONNECTED`.
const PIPE_NOT_CONNECTED: i32 = 233;

/// The access rights `GENERIC_WRITE` and `DELETE`.
const WRITE_AND_DELETE: u32 = 0x4001_0000;

/// Other processes may read, rename and delete the file: `FILE_SHARE_READ` and `FILE_SHARE_DELETE`.
const NO_OTHER_WRITER: u32 = 0x5;

const FILE_ATTRIBUTE_HIDDEN: u32 = 0x2;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;

/// The name of a folder's lock file.
const FOLDER_LOCK: &str = ".bloomline.lock";

/// Returns a handle of standard input, output or error.
pub fn duplicate(standard: impl AsHandle) -> io::Result<File> {
    let handle = standard.as_handle();
    // A process without a console has no handle.
    if handle.as_raw_handle().is_null() {
        return Err(io::Error::from_raw_os_error(CLOSED));
    }
    Ok(handle.try_clone_to_owned()?.into())
}

/// Returns a reader of a file. Of a console it is text, which is read as UTF-8.
pub fn reader(file: &File) -> impl Read {
    ConsoleReader(file)
}

struct ConsoleReader<'a>(&'a File);

impl Read for ConsoleReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.is_terminal() && io::stdin().is_terminal() {
            true => io::stdin().read(buffer),
            false => self.0.read(buffer),
        }
    }
}

/// Writes to a file. A console shows text, in which bytes that are not UTF-8 are replaced.
pub fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    if !(file.is_terminal() && io::stdout().is_terminal()) {
        return file.write(bytes);
    }
    let whole = match str::from_utf8(bytes) {
        // The rest of the character is in the next write.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    };
    let mut console = io::stdout().lock();
    console.write_all(String::from_utf8_lossy(&bytes[..whole]).as_bytes())?;
    console.flush().map(|()| whole)
}

/// True for the error of writing to a pipe whose reader is gone. Named pipes have another one.
pub fn is_reader_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(PIPE_NOT_CONNECTED)
}

/// Returns a message as people read it: with the separators of quoted paths as they were typed.
pub fn readable(message: &str) -> impl Display {
    message.replace(r"\\", r"\")
}

/// Does nothing: the process that creates a pipe chooses its size.
pub fn set_pipe_size(_file: &File, _bytes: usize) {}

/// Returns the number of bytes that are known to wait in a pipe. One read returns all that are there, so no more are read.
pub fn waiting_bytes(_file: &File) -> io::Result<u64> {
    Ok(0)
}

/// Reads bytes at a position. The position of the file is restored, because the system moves it. A thread that reads on from there may
/// not share the file.
pub fn read_at(mut file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let before = file.stream_position()?;
    let read = file.seek_read(buffer, position);
    file.seek(SeekFrom::Start(before))?;
    read
}

/// Returns the status of an open file.
pub fn status(file: &File) -> io::Result<FileStatus> {
    let found = typ(file)?;
    if !found.is_disk() {
        let kind = if found.is_char() { FileKind::Device } else { FileKind::Other };
        return Ok(FileStatus { kind, identity: None, len: 0, modified: None, links: 1 });
    }
    let (metadata, information) = (file.metadata()?, information(file)?);
    Ok(FileStatus {
        kind: match () {
            () if metadata.is_file() => FileKind::Regular,
            () if metadata.is_dir() => FileKind::Folder,
            () => FileKind::Other,
        },
        identity: Some(FileId(information.volume_serial_number(), information.file_index())),
        len: metadata.len(),
        modified: FileStatus::since_1970(&metadata),
        links: information.number_of_links(),
    })
}

/// Returns the status of the file that a path leads to.
pub fn status_at(path: &Path) -> io::Result<FileStatus> {
    status(&open_for_status(path, FILE_FLAG_BACKUP_SEMANTICS)?)
}

/// Returns the status of the file or link at a path.
pub fn link_status_at(path: &Path) -> io::Result<FileStatus> {
    status(&open_for_status(path, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)?)
}

/// Opens a file or folder without a right to its contents, so that the system never refuses it because another process has the file.
fn open_for_status(path: &Path, flags: u32) -> io::Result<File> {
    File::options().access_mode(0).custom_flags(flags).open(path)
}

/// Returns a part of the identity of a file that was found in a directory, if the directory has it.
pub fn inode(_entry: &DirEntry) -> Option<u64> {
    None
}

/// Returns the path in a line of a list, if it is one.
pub fn listed_path(line: &[u8]) -> Option<PathBuf> {
    let name = line.strip_suffix(b"\r").unwrap_or(line);
    str::from_utf8(name).ok().map(PathBuf::from)
}

/// Returns options to write to a file, to which no other process can write while it is open. A file that is created for its owner alone
/// is hidden, and its folder decides who may read it.
pub fn writer(mode: u32) -> OpenOptions {
    let mut options = File::options();
    let attributes = if mode & 0o077 == 0 { FILE_ATTRIBUTE_HIDDEN } else { 0 };
    options.write(true).share_mode(NO_OTHER_WRITER).attributes(attributes);
    options
}

/// Returns the path to lock for a folder, and the options to open it: a hidden file, because a folder in which files are renamed cannot be
/// locked itself.
pub fn folder_lock(folder: &Path) -> (PathBuf, OpenOptions) {
    let mut options = writer(0);
    options.create(true).truncate(false).access_mode(WRITE_AND_DELETE).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    (folder.join(FOLDER_LOCK), options)
}

/// Locks a file that was opened with the options of [`writer`] or [`folder_lock`], which lock it.
pub fn try_lock(_file: &File) -> Result<(), TryLockError> {
    Ok(())
}

/// True for the error of opening a file that another process has locked.
pub fn is_locked(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| IN_USE.contains(&error))
}

/// Returns a file that is locked until another one has its name; `None`, because an open file cannot be replaced everywhere.
pub fn until_replaced(_old: File) -> Option<File> {
    None
}

/// Renames a file, which replaces the one that has the name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    for _ in 1..RENAME_TRIES {
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => thread::sleep(RENAME_PAUSE),
            renamed => return renamed,
        }
    }
    fs::rename(from, to)
}

/// Does nothing, because the system cannot sync a folder.
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives the file at a path the attributes of another one. Its owner and rights are those of a file that is created in the folder.
pub fn keep_owner_and_mode(path: &Path, of: &Path) -> io::Result<()> {
    match fs::metadata(of) {
        Ok(old) => fs::set_permissions(path, old.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Calls `handle` on a thread of its own with SIGINT for each Ctrl-C and Ctrl-Break.
pub fn for_each_signal(mut handle: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || handle(SIGINT)).map_err(io::Error::other)
}
