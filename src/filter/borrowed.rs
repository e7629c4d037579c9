//! `BorrowedBloomFilter`: a filter in borrowed memory, such as a file's.

use crate::file::{self, FileError, FileErrorKind, FilterHeader, TRAILER_BYTES, Trailer};
use crate::filter::bloom::BloomFilter;
use crate::filter::raw::RawFilter;
use crate::filter::view::Readable;
use crate::kernel::block::BLOCK_BYTES;
use crate::kernel::{Isa, LoopIsa};
use crate::key::hash::KeyHasher;
use crate::layout::descriptor::SECTORIZED;
use crate::layout::storage::Blocks;
use crate::rate::fpr;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A read-only [`BloomFilter`] in borrowed memory: a slice, a section of another file that is mapped, or a whole file
/// (`BloomFilter::map`, feature `mmap`). Its blocks are not copied.
///
/// It derefs to a `&BloomFilter`, so it has all of its queries: [`contains`](BloomFilter::contains) and its batches,
/// [`probes`](BloomFilter::probes), … A clone shares the bytes; `BloomFilter::clone(&filter)` copies them into memory of its own.
///
/// # A section of another file
/// A data file, such as a table of an LSM tree, can contain its filter. The section has the bytes that
/// [`save`](BloomFilter::save) would write: [`file_bytes`](BloomFilter::file_bytes) returns its length beforehand, and
/// [`write_to`](BloomFilter::write_to) or [`write_to_slice`](BloomFilter::write_to_slice) writes it, at a multiple of 64. To
/// read it, map the file with a crate such as `memmap2`, and pass the bytes of the mapping from the section on to
/// [`new`](Self::new). examples/lsm.rs is such a table.
///
/// # Big-endian machines
/// The words of a file are little-endian. A big-endian machine cannot use them in place, so [`new`](Self::new) and `map` return
/// an error there. It loads the same file with [`read_from`](BloomFilter::read_from).
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, BorrowedBloomFilter};
///
/// let mut seen = BloomFilter::new(1000, 0.01)?;
/// seen.insert("a");
///
/// // A mapping is aligned to its pages. In a vector, the section goes to the first multiple of 64.
/// let mut file = vec![0; seen.file_bytes() + 63];
/// let start = file.as_ptr().align_offset(64);
/// seen.write_to_slice(&mut file[start..])?;
///
/// let filter = BorrowedBloomFilter::new(&file[start..])?;
/// assert!(filter.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BorrowedBloomFilter<'a> {
    /// Handed out only as a shared reference, because its memory is read-only and belongs to the lender.
    filter: BloomFilter,
    trailer: Trailer,
    /// The file that [`BloomFilter::map`] mapped.
    path: Option<PathBuf>,
    _lender: Lender<'a>,
}

/// The owner of a filter's bytes, which keeps their address. Not a `Box`, because moving a `Box` asserts exclusive
/// access to its contents.
type Lender<'a> = Arc<dyn AsRef<[u8]> + Send + Sync + 'a>;

impl<'a> BorrowedBloomFilter<'a> {
    /// Uses bytes that [`save`](BloomFilter::save), [`write_to`](BloomFilter::write_to) or
    /// [`write_to_slice`](BloomFilter::write_to_slice) wrote as a filter, without a copy. They begin at a multiple of 64 in
    /// memory, as does a section of a mapped file if it begins at one in the file. Bytes after the filter are ignored.
    ///
    /// `bytes` is a slice, or the owner of one. The filter keeps an owner as long as it lives, so it is `'static` and
    /// can be in a struct beside other sections of the file. `bytes::Bytes` is such an owner, and so is any type that
    /// implements `AsRef<[u8]>`, which is called once.
    ///
    /// The header, the length and the hash are checked, as in [`read_from`](BloomFilter::read_from). The blocks are not,
    /// because that would read them all: [`verify`](Self::verify) does so. Takes some microseconds regardless of the size, so
    /// keep a filter that is queried more than once.
    ///
    /// # Errors
    /// [`FileError`], as for [`read_from`](BloomFilter::read_from), and [`FileErrorKind::Misaligned`]. On big-endian machines
    /// always an I/O error of the kind [`Unsupported`](io::ErrorKind::Unsupported).
    ///
    /// # Examples
    /// An owner that is a section of a mapping:
    /// ```
    /// use bloomline::{BloomFilter, BorrowedBloomFilter};
    /// use memmap2::Mmap;
    /// use std::fs::File;
    /// use std::io::Write;
    /// use std::sync::Arc;
    ///
    /// struct Section { map: Arc<Mmap>, start: usize }
    ///
    /// impl AsRef<[u8]> for Section {
    ///     fn as_ref(&self) -> &[u8] {
    ///         &self.map[self.start..]
    ///     }
    /// }
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("table");
    /// let mut filter = BloomFilter::new(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut file = File::create(&path)?;
    /// file.write_all(&[b'-'; 128])?; // other sections, up to a multiple of 64
    /// filter.write_to(&file)?;
    ///
    /// // SAFETY: nobody changes the file, which is in a folder of this program's own.
    /// let map = Arc::new(unsafe { Mmap::map(&File::open(&path)?)? });
    /// let filter: BorrowedBloomFilter<'static> = BorrowedBloomFilter::new(Section { map, start: 128 })?;
    /// assert!(filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'a) -> Result<Self, FileError> {
        Ok(Self::from_lender(Arc::new(bytes), false)?)
    }

    /// Checks the header and uses the bytes of the lender. If `expects_end`, no bytes may follow the filter.
    #[allow(unsafe_code)] // This type holds the lifetime of the blocks, which storage.rs does not have.
    fn from_lender(lender: Lender<'a>, expects_end: bool) -> Result<Self, FileErrorKind> {
        if cfg!(target_endian = "big") {
            let error = io::Error::new(io::ErrorKind::Unsupported, "big-endian machines must load filters");
            return Err(error.into());
        }
        let bytes = (*lender).as_ref();
        let have = bytes.len() as u64;
        let (header, start) = file::read_header(&SECTORIZED, bytes, expects_end.then_some(have))?;
        let want = header.file_bytes();
        if have < want {
            return Err(FileErrorKind::Truncated { have, want });
        }
        let FilterHeader { params, hasher, spec, .. } = header;
        // The bytes are there, so all of these are numbers of bytes in memory.
        let (blocks, rest) = bytes[start as usize..].split_at(params.blocks * BLOCK_BYTES);
        let trailer = Trailer::from_bytes(core::array::from_fn::<u8, TRAILER_BYTES, _>(|i| rest[i]));
        // `saved_keys` depends on this; the rest is for `verify`.
        if trailer.ones > 512 * params.blocks as u64 {
            return Err(FileErrorKind::DamagedBody);
        }
        // SAFETY: the returned value and its clones are the only owners of the lender, keep it as long as the filter and never
        // borrow it mutably, so the bytes stay in place and unchanged for this type's lifetime. The type hands out shared
        // references only.
        let blocks = unsafe { Blocks::borrowed(blocks) };
        let blocks = blocks.map_err(|remainder| FileErrorKind::Misaligned { remainder, alignment: BLOCK_BYTES })?;
        let filter = BloomFilter(RawFilter::new(params, hasher, spec, blocks));
        Ok(Self { filter, trailer, path: None, _lender: lender })
    }

    /// Reads the whole filter and checks it, as [`BloomFilter::load`] does. O(memory).
    ///
    /// # Errors
    /// [`FileErrorKind::DamagedBody`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::{BloomFilter, BorrowedBloomFilter};
    /// let seen = BloomFilter::new(1000, 0.01)?;
    /// let mut file = vec![0; seen.file_bytes() + 63];
    /// let start = file.as_ptr().align_offset(64);
    /// seen.write_to_slice(&mut file[start..])?;
    /// BorrowedBloomFilter::new(&file[start..])?.verify()?;
    ///
    /// file[start + 128] ^= 1; // a block
    /// assert!(BorrowedBloomFilter::new(&file[start..])?.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), FileError> {
        let kind = match file::copy_body(self.filter.0.params.kernel, self.filter.0.words(), io::sink()) {
            Ok(trailer) if trailer == self.trailer => return Ok(()),
            Ok(_) => FileErrorKind::DamagedBody,
            Err(error) => error.into(),
        };
        Err(FileError { path: self.path.clone(), kind })
    }

    /// Returns the [`estimated_keys`](BloomFilter::estimated_keys), from the number of set bits in the file's trailer:
    /// O(1), while `estimated_keys` reads the whole filter.
    ///
    /// # Examples
    /// ```
    /// use bloomline::{BloomFilter, BorrowedBloomFilter};
    /// let seen: BloomFilter = (0..100_000u32).collect();
    /// let mut file = vec![0; seen.file_bytes() + 63];
    /// let start = file.as_ptr().align_offset(64);
    /// seen.write_to_slice(&mut file[start..])?;
    /// let keys = BorrowedBloomFilter::new(&file[start..])?.saved_keys();
    /// assert!((98_000.0..102_000.0).contains(&keys));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn saved_keys(&self) -> f64 {
        let params = self.filter.0.params;
        let filled = params.geometry.fraction(&SECTORIZED, self.trailer.ones);
        fpr::estimate_keys(filled, fpr::bit_probability(params.geometry.units, params.geometry.probes))
    }

    /// Returns the path that was given to `BloomFilter::map`, so that another process can map the file as well. `None`
    /// for other bytes.
    ///
    /// # Examples
    /// ```
    /// use bloomline::{BloomFilter, BorrowedBloomFilter};
    /// let seen: BloomFilter = (0..1000u32).collect();
    /// let mut file = vec![0; seen.file_bytes() + 63];
    /// let start = file.as_ptr().align_offset(64);
    /// seen.write_to_slice(&mut file[start..])?;
    /// assert!(BorrowedBloomFilter::new(&file[start..])?.path().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

/// Code that must not compile, as tests: a filter that outlives its bytes, and one that is written to.
///
/// ```compile_fail,E0597
/// use bloomline::BorrowedBloomFilter;
/// let filter = {
///     let file = vec![0u8; 1000];
///     BorrowedBloomFilter::new(&file[..])
/// };
/// _ = filter.map(|filter| filter.contains("a"));
/// ```
///
/// ```compile_fail,E0596
/// fn insert(filter: &mut bloomline::BorrowedBloomFilter) {
///     filter.insert("a");
/// }
/// ```
///
/// ```compile_fail,E0507
/// fn own(filter: bloomline::BorrowedBloomFilter) -> bloomline::BloomFilter {
///     *filter
/// }
/// ```
#[cfg(doctest)]
struct Refused;

#[cfg(feature = "mmap")]
impl BloomFilter {
    /// Maps a file that [`save`](Self::save) wrote: a read-only filter, ready in constant time regardless of its size.
    ///
    /// Pages come from the disk when a query first needs them, and all processes that map the file share them. They are
    /// small pages (4 KiB on most machines), so in the long run a filter that was [loaded](Self::load) answers faster.
    ///
    /// The header, the length and the hash are checked, as in `load`. The blocks are not, because that would read them all:
    /// [`verify`](BorrowedBloomFilter::verify) does so. For a filter in a section of another file use
    /// [`BorrowedBloomFilter::new`].
    ///
    /// # Errors
    /// [`FileError`], as for [`load`](Self::load). On big-endian machines always an I/O error of the kind
    /// [`Unsupported`](io::ErrorKind::Unsupported).
    ///
    /// # Safety
    /// As long as the filter lives, no process may change the file or shorten it. Bytes that change under a shared reference
    /// are undefined behaviour, and on most systems a query beyond the end of a shortened file kills the process.
    /// [`save`](Self::save) is safe: it replaces the file by a new one, and processes that mapped the old one keep it
    /// unchanged. Copying over the file, as `cp` does, is not safe. An error of the disk, too, kills the process on most
    /// systems, rather than being returned. Windows may refuse to save to a file that is mapped.
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
    #[allow(unsafe_code)] // Only the caller can keep others from changing the file.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<BorrowedBloomFilter<'static>, FileError> {
        let path = path.as_ref();
        let map = || {
            let file = std::fs::File::open(path)?;
            if file::regular_length(&file)?.is_none() {
                // Returns the system's error for a folder, which can be opened.
                io::Read::read(&mut &file, &mut [0])?;
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file: read it with read_from");
                return Err(error.into());
            }
            // SAFETY: the caller keeps the file as it is.
            let mapping = unsafe { memmap2::Mmap::map(&file)? };
            let filter = BorrowedBloomFilter::from_lender(Arc::new(mapping), true)?;
            Ok(BorrowedBloomFilter { path: Some(path.to_path_buf()), ..filter })
        };
        map().map_err(|kind| FileError::at(path, kind))
    }
}

impl Deref for BorrowedBloomFilter<'_> {
    type Target = BloomFilter;

    fn deref(&self) -> &BloomFilter {
        &self.filter
    }
}

impl Readable for BorrowedBloomFilter<'_> {
    fn loop_isa(&self) -> LoopIsa {
        self.filter.loop_isa()
    }

    #[inline(always)]
    fn key_hasher(&self) -> &KeyHasher {
        self.filter.key_hasher()
    }

    #[inline(always)]
    fn contains_hash_with<I: Isa>(&self, isa: I, hash: u64) -> bool {
        self.filter.contains_hash_with(isa, hash)
    }
}

/// Shares the bytes.
impl Clone for BorrowedBloomFilter<'_> {
    #[allow(unsafe_code)] // As in `from_lender`.
    fn clone(&self) -> Self {
        let RawFilter { params, hasher, spec, blocks, .. } = &self.filter.0;
        // SAFETY: the copy keeps the lender as well, and hands out shared references only.
        let blocks = unsafe { blocks.borrowed_again() };
        let filter = BloomFilter(RawFilter::new(*params, hasher.clone(), spec.clone(), blocks));
        Self { filter, trailer: self.trailer, path: self.path.clone(), _lender: self._lender.clone() }
    }
}

// Its memory never changes, and the lender is only kept, so a panic cannot leave either half changed.
impl UnwindSafe for BorrowedBloomFilter<'_> {}
impl RefUnwindSafe for BorrowedBloomFilter<'_> {}

impl fmt::Debug for BorrowedBloomFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedBloomFilter").field("path", &self.path).field("filter", &self.filter).finish()
    }
}
