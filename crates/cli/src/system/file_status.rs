//! The status of files as the system reports it. Pipes have no identity on some systems.

use crate::system::platform;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The identity of a file: device and inode, or volume and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId(pub u64, pub u64);

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Regular,
    Folder,
    Device,
    /// A pipe, a socket or a link.
    Other,
}

/// The status of a file as the system reports it.
#[derive(Clone, Copy, Debug)]
pub struct FileStatus {
    pub kind: FileKind,
    /// `None` if the system has no identity for such a file.
    pub identity: Option<FileId>,
    pub len: u64,
    /// The time of the last change since 1970, if the system reports it.
    pub modified: Option<Duration>,
    /// The number of its names.
    pub links: u64,
}

impl FileStatus {
    /// Returns the status of an open file.
    pub fn from_file(file: &File) -> io::Result<Self> {
        platform::status(file)
    }

    /// Returns the status of the file that a path leads to.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        platform::status_at(path)
    }

    /// True for a regular file, which can be read again and never makes its reader wait for a writer.
    pub fn is_regular(&self) -> bool {
        self.kind == FileKind::Regular
    }

    /// True if a path still leads to this file, which was opened by it.
    pub fn is_named(&self, path: &Path) -> bool {
        Self::from_path(path).is_ok_and(|named| named.identity == self.identity)
    }

    /// True if a path still names this regular file, which was opened by it, and not a link to it.
    pub fn is_file_itself(&self, path: &Path) -> bool {
        self.is_regular() && platform::link_status_at(path).is_ok_and(|there| there.identity == self.identity)
    }

    /// Returns the time of a file's last change since 1970, if the system reports it.
    pub fn since_1970(metadata: &Metadata) -> Option<Duration> {
        metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok())
    }
}
