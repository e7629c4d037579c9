//! Filters as files. docs/FORMAT.md specifies every byte.
//!
//! ```text
//! error.rs       what can be wrong with one
//! header.rs      64 bytes: what the filter is, and whether this build hashes as the one that wrote it
//! fields.rs      what follows it: what the filter is made for
//! stream.rs      header, blocks, trailer, to a `Write` and from a `Read`
//! chain.rs       a header, and after it the parts of a scalable or a rotating filter, each a whole filter
//! serde.rs       the same bytes for serde
//! read_ahead.rs  a file read by a thread of its own
//! replace.rs     a file put in the place of another one, whole or not at all
//! ```

mod chain;
mod error;
mod fields;
mod header;
mod read_ahead;
mod replace;
#[cfg(feature = "serde")]
mod serde;
mod stream;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

pub(crate) use chain::{ChainSpec, Rotating, Scalable, bytes as chain_bytes, read as read_chain, write as write_chain};
pub use error::{FileError, FileErrorKind};
pub(crate) use fields::encode as encode_fields;
pub(crate) use header::{FilterHeader, TRAILER_BYTES};
pub use replace::{save_file, unfinished_saves};
#[cfg(feature = "serde")]
pub(crate) use serde::{deserialize, serialize};
pub(crate) use stream::{DecodedFilter, RawParts, Trailer, copy_body, read, read_header, write};

/// Loads with `read` from a file, or from a pipe that has a path.
pub(crate) fn load<T>(
    path: &Path,
    read: impl FnOnce(&mut dyn Read, Option<u64>) -> Result<T, FileErrorKind>,
) -> Result<T, FileError> {
    let load = || {
        let file = File::open(path)?;
        let length = regular_length(&file)?;
        match length {
            // Not worth a thread.
            Some(length) if length <= read_ahead::READ_BYTES as u64 => read(&mut &file, Some(length)),
            Some(_) => std::thread::scope(|scope| match read_ahead::ReadAhead::new(scope, &file) {
                Ok(mut ahead) => read(&mut ahead, length),
                // No thread can be started, as under a limit on processes or in WebAssembly, so this thread reads.
                Err(_) => read(&mut &file, length),
            }),
            // A thread that waits for a pipe could not be stopped.
            None => read(&mut &file, None),
        }
    };
    load().map_err(|kind: FileErrorKind| FileError::at(path, kind))
}

/// Returns the length of a regular file. Other kinds of files have no reliable length.
pub(crate) fn regular_length(file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// A filter that a file can store.
pub(crate) trait Persist: Sized {
    fn write_to(&self, writer: impl Write) -> io::Result<()>;

    /// Returns the number of bytes in the file.
    fn file_bytes(&self) -> usize;

    /// Reads a filter, from a file of `length` bytes if that is known beforehand.
    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind>;

    /// Writes the filter to the start of a slice, and returns its bytes.
    fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        let (have, want) = (slice.len(), self.file_bytes());
        if have < want {
            return Err(FileErrorKind::SliceTooShort { have, want }.into());
        }
        let mut rest = slice;
        // Other threads may have added kinds of keys since, which have room or do not.
        self.write_to(&mut rest).map_err(|_| FileErrorKind::SliceTooShort { have, want: self.file_bytes() })?;
        Ok(have - rest.len())
    }
}

/// Saves the bytes that `write` writes.
pub(crate) fn save(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    save_file(path, write).map_err(|error| FileError::at(path, error.into()))
}
