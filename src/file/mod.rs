//! Filters as files. docs/FORMAT.md specifies every byte.
//!
//! ```text
//! error.rs     what can be wrong with one
//! header.rs    64 bytes: what the filter is, and whether this build hashes as the one that wrote it
//! layout.rs    the layouts that a filter can have
//! stream.rs    header, blocks, trailer, to a `Write` and from a `Read`
//! series.rs    several filters, one after the other, and a header before them
//! ahead.rs     a file read by a thread of its own
//! replace.rs   a file put in the place of another one, whole or not at all
//! ```

mod ahead;
mod error;
mod header;
mod layout;
mod replace;
mod series;
mod stream;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use error::{FileError, FileErrorKind};
#[cfg(feature = "mmap")]
pub(crate) use header::{HEADER_BYTES, Head};
#[cfg(feature = "variants")]
pub(crate) use layout::{CLASSIC, COUNTING, Layout, REGISTER, SPLIT_BLOCK, TWO_BLOCKS};
pub(crate) use layout::{Form, WORDS4};
pub(crate) use series::{LoadedSeries, read as read_series, write as write_series};
pub(crate) use stream::{Loaded, read, write};
#[cfg(feature = "mmap")]
pub(crate) use stream::{TRAILER_BYTES, Trailer, check_filter_length, copy_body, read_header};

/// Loads what `read` reads from a file, or from a pipe that has a path.
pub(crate) fn load<T>(
    path: &Path,
    read: impl FnOnce(&mut dyn Read, Option<u64>) -> Result<T, FileErrorKind>,
) -> Result<T, FileError> {
    let load = || {
        let file = File::open(path)?;
        let length = regular_length(&file)?;
        match length {
            Some(_) => std::thread::scope(|scope| read(&mut ahead::Ahead::new(scope, &file)?, length)),
            // A thread that waits for a pipe could not be told to stop.
            None => read(&mut &file, None),
        }
    };
    load().map_err(|kind: FileErrorKind| FileError::at(path, kind))
}

/// The length of a regular file; other things have none to rely on.
pub(crate) fn regular_length(file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// Saves what `write` writes.
pub(crate) fn save(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    replace::replace(path, write).map_err(|error| FileError::at(path, error.into()))
}

/// Methods for a filter with the fields `params` and `hasher`, a method `words` that walks its blocks, and a `From<Loaded>`;
/// its path for the examples, what is to be said of racing threads, and its layout and size in the layout's units.
macro_rules! file_methods {
    ($filter:ident, $path:literal, $racing:literal, $layout:ident, |$this:ident| $units:expr) => {
        impl $filter {
            /// Saves the filter to a file, in the format of docs/FORMAT.md, which every later version reads.
            ///
            /// The file at `path` is the old or the new one at every moment, whole, whatever fails: the filter goes to a
            /// temporary file in the same folder, which is flushed to the disk and then renamed. A file that was there
            /// before passes on its permissions (and its owner, where the system allows it). A symbolic link is
            /// followed; one that leads nowhere is replaced. A process that is killed while saving leaves its temporary file behind,
            /// `.bloomline-….tmp`.
            ///
            /// Takes the disk's time, and 1 MiB of memory.
            ///
            #[doc = $racing]
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) for what the system refuses, and for a `path` that is there but not a
            /// regular file, such as a folder or a device: [`write_to`](Self::write_to) serves those.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use ", $path, stringify!($filter), ";")]
            /// # let folder = tempfile::tempdir()?;
            /// # let path = folder.path().join("seen.bloom");
            ///
            #[doc = concat!("let mut seen = ", stringify!($filter), "::new(1000, 0.01)?;")]
            /// seen.insert("a");
            /// seen.save(&path)?;
            ///
            #[doc = concat!("let seen = ", stringify!($filter), "::load(&path)?;")]
            /// assert!(seen.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), $crate::file::FileError> {
                $crate::file::save(path.as_ref(), |file| self.write_to(file))
            }

            /// Loads a filter from a file that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, on whatever
            /// machine, straight into the memory it will live in.
            ///
            /// All of the file is checked, and no more memory is claimed than its length justifies. Takes the disk's time,
            /// and 1 MiB of memory besides the filter, which uses the kernel of [`Kernel::detect`](crate::Kernel::detect).
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) names the file and what is wrong with it; see
            /// [`FileErrorKind`](crate::FileErrorKind).
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::file::FileError> {
                $crate::file::load(path.as_ref(), |file, length| {
                    $crate::file::read(&$crate::file::$layout, file, length)
                })
                .map(Self::from)
            }

            /// Writes the filter as [`save`](Self::save) does, to a pipe, a socket or an object store, and flushes the
            /// writer. Takes 1 MiB of memory; writes are of that size, so that no buffer is needed around `writer`.
            ///
            #[doc = $racing]
            ///
            /// # Errors
            /// Those of the writer.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use ", $path, stringify!($filter), ";")]
            ///
            #[doc = concat!("let mut seen = ", stringify!($filter), "::new(1000, 0.01)?;")]
            /// seen.insert("a");
            /// let mut bytes = Vec::new();
            /// seen.write_to(&mut bytes)?;
            /// assert_eq!(bytes.len(), 64 + seen.memory_bytes().next_multiple_of(64) + 16);
            ///
            #[doc = concat!("let seen = ", stringify!($filter), "::read_from(&bytes[..])?;")]
            /// assert!(seen.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                let $this = self;
                let form = $crate::file::Form { layout: &$crate::file::$layout, units: $units };
                $crate::file::write(form, &self.params, &self.hasher, self.words(), writer)
            }

            /// Reads a filter that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, and not a byte more: what
            /// follows stays in `reader`. Reads are of up to 1 MiB, so that no buffer is needed around it.
            ///
            /// Memory grows with the data that arrive, to the filter and 1 MiB, for a header can claim anything; in
            /// growing, each byte is copied once on average. [`load`](Self::load) sees the length of a file and does
            /// not copy.
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) says what is wrong; see [`FileErrorKind`](crate::FileErrorKind).
            pub fn read_from(reader: impl std::io::Read) -> Result<Self, $crate::file::FileError> {
                Ok($crate::file::read(&$crate::file::$layout, reader, None)?.into())
            }
        }
    };
}

pub(crate) use file_methods;
