//! `MappedBloomFilter`: a filter that stays in its file.

use crate::file::{self, FileError, FileErrorKind, HEADER_BYTES, Head, TRAILER_BYTES, Trailer};
use crate::format::WORDS4;
use crate::fpr;
use crate::storage::Blocks;
use crate::words4::BloomFilter;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A [`BloomFilter`] to read from, whose memory is a file's: see [`BloomFilter::map`].
///
/// It derefs to a `&BloomFilter`, so it answers all that one answers: [`contains`](BloomFilter::contains) and its
/// batches, [`probes`](BloomFilter::probes), … A clone of that one is a filter of its own, in memory.
pub struct MappedBloomFilter {
    /// Never handed out but as a shared reference: its memory is read-only.
    filter: BloomFilter,
    trailer: Trailer,
    path: PathBuf,
}

impl BloomFilter {
    /// Maps a file that [`save`](Self::save) wrote: a filter to read from, ready in constant time whatever its size.
    ///
    /// Pages come from the disk when a query first needs them, and all processes that map the file share them. They are
    /// small pages (4 KiB on most machines), so in the long run a filter that was [loaded](Self::load) answers faster.
    ///
    /// The header, the length and the hash are checked, as in `load`; the blocks are not, for that would read them all:
    /// [`verify`](MappedBloomFilter::verify) does so.
    ///
    /// # Errors
    /// [`FileError`], as from [`load`](Self::load). Big-endian machines cannot use the file's bytes as they are: there
    /// it is an I/O error of the kind [`Unsupported`](io::ErrorKind::Unsupported).
    ///
    /// # Safety
    /// As long as the filter lives, no process may change the file or shorten it. Bytes that change under a shared
    /// reference are undefined behaviour, and on most systems a query beyond the end of a shortened file kills the
    /// process. [`save`](Self::save) is no such change: it puts a new file in the place of the old one, which stays as it
    /// is for those who mapped it. Copying over the file, such as `cp` does, is one. An error of the disk, too, kills
    /// the process on most systems, rather than being returned.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.bloom");
    ///
    /// let mut seen = BloomFilter::new(1000, 0.01)?;
    /// seen.insert("a");
    /// seen.save(&path)?;
    ///
    /// // SAFETY: the file is in a folder of this program's own, which only ever saves to it.
    /// let mapped = unsafe { BloomFilter::map(&path)? };
    /// assert!(mapped.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[allow(unsafe_code)] // Only the caller can know what others do to the file: storage.rs passes that on to here.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedBloomFilter, FileError> {
        let path = path.as_ref();
        let map = || {
            if cfg!(target_endian = "big") {
                let error = io::Error::new(io::ErrorKind::Unsupported, "big-endian machines must load filters");
                return Err(FileErrorKind::from(error));
            }
            let mut file = File::open(path)?;
            let length = file::regular_length(&file)?;
            let (Head { params, hasher, purpose, fields }, _) = file::read_header(&WORDS4, &mut file, length)?;
            if length.is_none() {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file: read it with read_from");
                return Err(error.into());
            }
            file.seek(SeekFrom::End(-(TRAILER_BYTES as i64)))?;
            let mut trailer = [0; TRAILER_BYTES];
            file.read_exact(&mut trailer)?;
            let trailer = Trailer::from_bytes(trailer);
            // What `fill_ratio` and `estimated_keys` rest on; the rest is for `verify`.
            if trailer.ones > 512 * params.blocks as u64 {
                return Err(FileErrorKind::DamagedBody);
            }
            // SAFETY: the caller keeps the file as it is, and its length was checked. `MappedBloomFilter` hands out
            // shared references only.
            let blocks = unsafe { Blocks::mapped(&file, HEADER_BYTES + fields, params.blocks)? };
            let filter = Self::of(params, hasher, purpose, blocks);
            Ok(MappedBloomFilter { filter, trailer, path: path.to_path_buf() })
        };
        map().map_err(|kind| FileError::at(path, kind))
    }
}

impl MappedBloomFilter {
    /// Reads the whole file and checks it, as [`BloomFilter::load`] does.
    ///
    /// # Errors
    /// [`FileErrorKind::DamagedBody`].
    pub fn verify(&self) -> Result<(), FileError> {
        let kind = match file::copy_body(self.params.kernel, self.words(), io::sink()) {
            Ok(trailer) if trailer == self.trailer => return Ok(()),
            Ok(_) => FileErrorKind::DamagedBody,
            Err(error) => error.into(),
        };
        Err(FileError::at(&self.path, kind))
    }

    /// The share of bits that are set, as the file's trailer has it: O(1).
    pub fn fill_ratio(&self) -> f64 {
        self.trailer.ones as f64 / (self.memory_bytes() as f64 * 8.0)
    }

    /// The estimate of [`BloomFilter::estimated_keys`], from what the file's trailer has: O(1).
    pub fn estimated_keys(&self) -> f64 {
        fpr::keys_from_zeros(self.fill_ratio(), fpr::touched(self.params.units, self.params.probes))
    }
}

impl Deref for MappedBloomFilter {
    type Target = BloomFilter;

    fn deref(&self) -> &BloomFilter {
        &self.filter
    }
}

impl std::fmt::Debug for MappedBloomFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedBloomFilter").field("path", &self.path).field("filter", &self.filter).finish()
    }
}
