//! Filters as files.

use crate::block::WORDS;
use crate::file::{self, FileError, Loaded, Parts};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use std::io::{self, Read, Write};
use std::path::Path;

/// Files. (docs/FORMAT.md has the format.)
impl<L: Operations<A>, A: Access> Filter<L, A> {
    /// Saves the filter to a file, in the format of docs/FORMAT.md, which every later version reads.
    ///
    /// The file at `path` is the old or the new one at every moment, whole, whatever fails: the filter goes to a
    /// temporary file in the same folder, which is flushed to the disk and then renamed. A file that was there
    /// before passes on its permissions (and its owner, where the system allows it). A symbolic link is
    /// followed; one that leads nowhere is replaced. A process that is killed while saving leaves its temporary file
    /// behind, `.bloomline-NAME-RANDOM.tmp`: the name of the file (or, if that has more than 100 bytes, a hash of it), and six
    /// letters and digits. Once nobody saves to `path`, it can be removed.
    ///
    /// Takes the disk's time, and 1 MiB of memory. Where other threads insert meanwhile, a key whose insert this thread
    /// knows to have returned is in. A key that races with the call may have all, some or none of its bits in the file,
    /// and the checksum is of what was written.
    ///
    /// # Errors
    /// [`FileError`] for what the system refuses, and for a `path` that is there but not a
    /// regular file, such as a folder or a device: [`write_to`](Self::write_to) serves those. The old file is still there then,
    /// but for one error: that the disk fails at the very end, as it is asked to keep the new name.
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
    /// let seen = BloomFilter::load(&path)?;
    /// assert!(seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        file::save(path.as_ref(), |file| self.write_to(file))
    }

    /// Loads a filter from a file that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, on whatever
    /// machine, straight into the memory it will live in.
    ///
    /// All of the file is checked, and no more memory is claimed than its length justifies. Takes the disk's time,
    /// and 1 MiB of memory besides the filter, which uses the kernel of [`Kernel::detect`](crate::Kernel::detect).
    ///
    /// # Errors
    /// [`FileError`] names the file and what is wrong with it; see [`FileErrorKind`](crate::FileErrorKind).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        file::load(path.as_ref(), |file, length| file::read(L::FORMAT, file, length)).map(Self::from)
    }

    /// Writes the filter as [`save`](Self::save) does, to a pipe, a socket or an object store, and flushes the
    /// writer. Takes 1 MiB of memory; writes are of that size, so that no buffer is needed around `writer`.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let mut seen = BloomFilter::new(1000, 0.01)?;
    /// seen.insert("a");
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    ///
    /// let seen = BloomFilter::read_from(&bytes[..])?;
    /// assert!(seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        file::write(L::FORMAT, self.parts(), writer)
    }

    /// Writes the filter as [`save`](Self::save) does, to the start of a slice, such as a section of a file that is mapped
    /// or in the making; returns how many bytes it wrote, which is [`file_bytes`](Self::file_bytes). Takes 1 MiB of memory.
    ///
    /// # Errors
    /// [`FileErrorKind::SliceTooShort`](crate::FileErrorKind::SliceTooShort). Nothing is written then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let mut seen = BloomFilter::new(1000, 0.01)?;
    /// seen.insert("a");
    /// let mut table = b"data".to_vec();
    /// let start = table.len().next_multiple_of(64); // there `BorrowedBloomFilter` reads it without a copy
    /// table.resize(start + seen.file_bytes(), 0);
    /// seen.write_to_slice(&mut table[start..])?;
    ///
    /// let seen = BloomFilter::read_from(&table[start..])?;
    /// assert!(seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        file::write_to_slice(slice, self.file_bytes(), |file| self.write_to(file))
    }

    /// Bytes of the filter's file, exactly: what [`save`](Self::save) and [`write_to`](Self::write_to) write. Does not depend
    /// on the keys that are in. O(1).
    pub fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        self.parts().file_bytes() as usize
    }

    /// Reads a filter that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, and not a byte more: what
    /// follows stays in `reader`. Reads are of up to 1 MiB, so that no buffer is needed around it.
    ///
    /// Memory grows with the data that arrive, to the filter and 1 MiB, for a header can claim anything; in
    /// growing, each byte is copied once on average. [`load`](Self::load) sees the length of a file and does
    /// not copy.
    ///
    /// # Errors
    /// [`FileError`] says what is wrong; see [`FileErrorKind`](crate::FileErrorKind).
    pub fn read_from(reader: impl Read) -> Result<Self, FileError> {
        Ok(file::read(L::FORMAT, reader, None)?.into())
    }
}

impl<L: Operations<A>, A: Access> Filter<L, A> {
    pub(crate) fn parts(&self) -> Parts<'_, impl Iterator<Item = [u64; WORDS]> + Clone> {
        Parts { params: &self.params, hasher: &self.hasher, purpose: &self.purpose, words: self.words() }
    }
}

impl<L: Operations<A>, A: Access> From<Loaded> for Filter<L, A> {
    fn from(Loaded { params, hasher, purpose, blocks }: Loaded) -> Self {
        Self::of(params, hasher, purpose, blocks.into())
    }
}
