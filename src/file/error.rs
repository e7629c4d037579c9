//! `FileError`: the fault of a file, and its path.

use crate::error::messages;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of loading or saving a filter: the fault, and the path of the file.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, FileErrorKind};
/// let error = BloomFilter::read_from(&b"#!/bin/sh"[..]).unwrap_err();
/// assert!(matches!(error.kind(), FileErrorKind::NotBloomline));
/// assert_eq!(error.to_string(), "not a bloomline file");
///
/// let error = BloomFilter::load("/no/such/file").unwrap_err();
/// assert_eq!(error.path().unwrap().to_str(), Some("/no/such/file"));
/// assert!(error.to_string().starts_with("/no/such/file: "));
/// ```
#[derive(Debug)]
pub struct FileError {
    pub(crate) path: Option<PathBuf>,
    pub(crate) kind: FileErrorKind,
}

impl FileError {
    pub(crate) fn at(path: &Path, kind: FileErrorKind) -> Self {
        Self { path: Some(path.to_path_buf()), kind }
    }

    /// Returns the kind of the fault.
    pub fn kind(&self) -> &FileErrorKind {
        &self.kind
    }

    /// Returns the path of the file, as given to the call; `None` if the call had a reader and no path.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

/// For functions that return [`io::Error`]: this error inside an error of the system's kind, of the kind
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a slice that is too short or not aligned,
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) for a truncated file, or [`InvalidData`](io::ErrorKind::InvalidData) for any other
/// fault of a file.
impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        Self::new(error.kind.io_kind(), error)
    }
}

impl From<FileErrorKind> for FileError {
    fn from(kind: FileErrorKind) -> Self {
        Self { path: None, kind }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

/// The fault of a file; see [`FileError`]. docs/FORMAT.md defines the terms.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The data do not begin as a filter's file does.
    NotBloomline,
    /// The file holds a scalable filter, and another one was to be loaded.
    Scalable,
    /// The file holds a single filter, and a scalable one was to be loaded.
    NotScalable,
    /// The file holds a rotating filter, and another one was to be loaded.
    Rotating,
    /// The file holds a single filter, and a rotating one was to be loaded.
    NotRotating,
    /// A fault in a stage of a scalable filter, or in a generation of a rotating one.
    Stage {
        /// The stage, counted from 0.
        stage: usize,
        /// The kind of the fault.
        kind: Box<FileErrorKind>,
    },
    /// The file is sound, and its format is newer than this version of the crate.
    NewerVersion {
        /// The format's version.
        found: u32,
        /// The newest version that can be read.
        newest: u32,
    },
    /// The file is sound, and its format is older than any that this version of the crate reads.
    OlderVersion {
        /// The format's version.
        found: u32,
        /// The oldest version that can be read.
        oldest: u32,
    },
    /// The data end too early.
    Truncated {
        /// Bytes that are there.
        have: u64,
        /// The expected bytes: of the whole file if the header is complete, of the header if not.
        want: u64,
    },
    /// The file continues after the end of the filter. (Bytes after the filter in a reader are not an error.)
    TooLong {
        /// Bytes that are there.
        have: u64,
        /// The expected bytes.
        want: u64,
    },
    /// The header does not have its checksum.
    DamagedHeader,
    /// The blocks and their trailer do not have their checksum.
    DamagedBody,
    /// A sound header has a value that no filter has: its writer does not follow the format.
    Field {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The values that it can have.
        allowed: &'static str,
    },
    /// The file holds a filter of another layout than the one that was to be loaded: of another type of the module `variants`.
    OtherLayout {
        /// The layout of the file.
        found: &'static str,
        /// The layout that was to be loaded.
        wanted: &'static str,
    },
    /// The file's writer hashed keys in another way than this build, so that no key would be found again.
    OtherHash,
    /// The system refused the memory, or cannot address it.
    OutOfMemory {
        /// Bytes of the filter.
        bytes: u64,
    },
    /// The bytes of a [`BorrowedBloomFilter`](crate::BorrowedBloomFilter), which are not copied, are not aligned as
    /// blocks are.
    Misaligned {
        /// The number of bytes from a multiple of the alignment to their address.
        remainder: usize,
        /// The alignment of a block, in bytes.
        alignment: usize,
    },
    /// A slice is too short to write the filter to.
    SliceTooShort {
        /// Bytes of the slice.
        have: usize,
        /// Bytes of the filter's file.
        want: usize,
    },
    /// The system refused to read or write.
    Io(io::Error),
}

impl FileErrorKind {
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::Io(error) => error.kind(),
            Self::Truncated { .. } => io::ErrorKind::UnexpectedEof,
            Self::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
            Self::Misaligned { .. } | Self::SliceTooShort { .. } => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        }
    }
}

impl From<io::Error> for FileErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

messages! { FileErrorKind {
    Self::NotBloomline => "not a bloomline file",
    Self::Scalable => "a scalable filter: load it as a ScalableBloomFilter",
    Self::NotScalable => "a single filter: load it as a BloomFilter",
    Self::Rotating => "a rotating filter: load it as a RotatingBloomFilter",
    Self::NotRotating => "a single filter, not a rotating one: load it as a BloomFilter",
    Self::Stage { stage, kind } => "stage {stage}: {kind}",
    Self::NewerVersion { found, newest } => "written in version {found} of the format, and this build reads up to version {newest}: update bloomline",
    Self::OlderVersion { found, oldest } => "written in version {found} of the format, from before the first release, and this \
         build reads from version {oldest} on: build the filter again",
    Self::Truncated { have, want } => "truncated: {have} bytes of {want}; copy or build it again",
    Self::TooLong { have, want } => "too long: {have} bytes instead of {want}; copy or build it again",
    Self::DamagedHeader => "damaged: the checksum of the header is wrong; copy or build it again",
    Self::DamagedBody => "damaged: the checksum of the blocks is wrong; copy or build it again",
    Self::Field { field, value, allowed } => "impossible header: {field} is {value}, but must be {allowed}",
    Self::OtherLayout { found, wanted } => "a filter of the layout `{found}`, not `{wanted}`: load it as the type of that layout",
    Self::OtherHash => "keys were hashed in another way than bloomline does (its golden hash differs): read it with the program that wrote it",
    Self::OutOfMemory { bytes } => "the system does not have {bytes} bytes of memory for the filter; load it where there is more",
    Self::Misaligned { remainder, alignment } => "the filter begins {remainder} bytes past a multiple of {alignment} in memory: place its section at a multiple of {alignment}, or load a copy with read_from",
    Self::SliceTooShort { have, want } => "a slice of {have} bytes for a filter whose file takes {want}: give as many as file_bytes() says",
    Self::Io(error) => "{error}",
}}

impl Error for FileErrorKind {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => error.source(),
            Self::Stage { kind, .. } => kind.source(),
            _ => None,
        }
    }
}

/// Returns an error that names the field, unless its value `is_valid`.
pub(super) fn check(
    field: &'static str,
    value: u64,
    is_valid: bool,
    allowed: &'static str,
) -> Result<(), FileErrorKind> {
    if is_valid { Ok(()) } else { Err(FileErrorKind::Field { field, value, allowed }) }
}
