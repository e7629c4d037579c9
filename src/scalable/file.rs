//! A scalable filter as a file.

use super::{AtomicScalableBloomFilter, ScalableBloomFilter};
use crate::atomic_filter::AtomicBloomFilter;
use crate::file::{self, FileError, LoadedScalable};
use crate::words4::BloomFilter;
use std::io::{self, Read, Write};
use std::path::Path;

impl ScalableBloomFilter {
    /// Saves the filter with all its stages to one file, in the format of docs/FORMAT.md, which every later version
    /// reads.
    ///
    /// The file at `path` is the old or the new one at every moment, whole, as with [`BloomFilter::save`].
    ///
    /// # Errors
    /// As [`BloomFilter::save`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.bloom");
    ///
    /// let mut seen = ScalableBloomFilter::new(1000, 0.01)?;
    /// seen.insert("a")?;
    /// seen.save(&path)?;
    ///
    /// let mut seen = ScalableBloomFilter::load(&path)?;
    /// assert!(seen.contains("a"));
    /// assert!(seen.insert("b")?); // and it goes on growing
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        file::save(path.as_ref(), |file| self.write_to(file))
    }

    /// Loads a filter from a file that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, on whatever machine.
    ///
    /// All of the file is checked, and no more memory is claimed than its length justifies, as with
    /// [`BloomFilter::load`].
    ///
    /// # Errors
    /// [`FileError`] names the file and what is wrong with it; the file of a single filter is
    /// [`FileErrorKind::NotScalable`](crate::FileErrorKind::NotScalable).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        file::load(path.as_ref(), |file, length| file::read_scalable(file, length)).map(Self::from)
    }

    /// Writes the filter as [`save`](Self::save) does, to a pipe, a socket or an object store, and flushes the writer.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    ///
    /// let mut seen = ScalableBloomFilter::new(1000, 0.01)?;
    /// seen.insert("a")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// assert!(ScalableBloomFilter::read_from(&bytes[..])? == seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        file::write_scalable(self.growth, self.in_last, self.stages.iter().map(BloomFilter::parts), writer)
    }

    /// Writes the filter as [`save`](Self::save) does, to the start of a slice; returns how many bytes it wrote, which is
    /// [`file_bytes`](Self::file_bytes). See [`BloomFilter::write_to_slice`].
    ///
    /// # Errors
    /// [`FileErrorKind::SliceTooShort`](crate::FileErrorKind::SliceTooShort). Nothing is written then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    /// let seen: ScalableBloomFilter = ["a"].into_iter().collect();
    /// let mut bytes = vec![0; seen.file_bytes()];
    /// assert_eq!(seen.write_to_slice(&mut bytes)?, bytes.len());
    /// assert!(ScalableBloomFilter::read_from(&bytes[..])? == seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        file::write_to_slice(slice, self.file_bytes(), |file| self.write_to(file))
    }

    /// Bytes of the filter's file, exactly, with the stages that it has: what [`save`](Self::save) and
    /// [`write_to`](Self::write_to) write. O(stages).
    ///
    /// # Examples
    /// ```
    /// let seen: bloomline::ScalableBloomFilter = ["a"].into_iter().collect();
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// assert_eq!(seen.file_bytes(), bytes.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::scalable_bytes(self.stages.iter().map(BloomFilter::parts)) as usize
    }

    /// Reads a filter that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, and not a byte more: what
    /// follows stays in `reader`. Memory grows with the data that arrive, as with [`BloomFilter::read_from`].
    ///
    /// # Errors
    /// [`FileError`] says what is wrong; see [`FileErrorKind`](crate::FileErrorKind).
    pub fn read_from(reader: impl Read) -> Result<Self, FileError> {
        Ok(file::read_scalable(reader, None)?.into())
    }
}

/// Files: the same ones, of one format.
impl AtomicScalableBloomFilter {
    /// Saves the filter with all its stages to one file, as [`ScalableBloomFilter::save`] does, while other threads insert.
    ///
    /// A key whose insert this thread knows to have returned is in the file. A key that races with the call may be in it with all,
    /// some or none of its bits; where it has some, it counts. Needs memory for a copy of the last stage.
    ///
    /// # Errors
    /// As [`BloomFilter::save`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::AtomicScalableBloomFilter;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.bloom");
    ///
    /// let seen = AtomicScalableBloomFilter::new(1000, 0.01)?;
    /// seen.insert("a")?;
    /// seen.save(&path)?;
    /// assert!(AtomicScalableBloomFilter::load(&path)?.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        file::save(path.as_ref(), |file| self.write_to(file))
    }

    /// Loads a filter from a file of a scalable filter of either kind; see [`ScalableBloomFilter::load`].
    ///
    /// # Errors
    /// As [`ScalableBloomFilter::load`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::{AtomicScalableBloomFilter, ScalableBloomFilter};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.bloom");
    ///
    /// ScalableBloomFilter::new(1000, 0.01)?.save(&path)?;
    /// let seen = AtomicScalableBloomFilter::load(&path)?;
    /// assert!(seen.insert("a")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        ScalableBloomFilter::load(path).map(Self::from)
    }

    /// Writes the filter as [`save`](Self::save) does, to a pipe, a socket or an object store, and flushes the writer.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Examples
    /// ```
    /// use bloomline::AtomicScalableBloomFilter;
    ///
    /// let seen = AtomicScalableBloomFilter::new(1000, 0.01)?;
    /// seen.insert("a")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// assert!(AtomicScalableBloomFilter::read_from(&bytes[..])? == seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let (mut stages, last, in_last) = self.snapshot();
        stages.push(&last);
        file::write_scalable(self.growth, in_last, stages.into_iter().map(AtomicBloomFilter::parts), writer)
    }

    /// Writes a copy of the filter to the start of a slice, as [`ScalableBloomFilter::write_to_slice`] does; returns how many bytes
    /// it wrote. These are more than an earlier [`file_bytes`](Self::file_bytes) said if other threads began a stage since.
    /// O(memory), which it takes once more.
    ///
    /// # Errors
    /// [`FileErrorKind::SliceTooShort`](crate::FileErrorKind::SliceTooShort). Nothing is written then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::AtomicScalableBloomFilter;
    /// let seen: AtomicScalableBloomFilter = ["a"].into_iter().collect();
    /// let mut bytes = vec![0; seen.file_bytes()];
    /// assert_eq!(seen.write_to_slice(&mut bytes)?, bytes.len());
    /// assert!(AtomicScalableBloomFilter::read_from(&bytes[..])? == seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        ScalableBloomFilter::from(self.clone()).write_to_slice(slice)
    }

    /// Bytes of the filter's file, exactly, with the stages that it has at this moment. O(stages).
    ///
    /// # Examples
    /// ```
    /// let seen: bloomline::AtomicScalableBloomFilter = ["a"].into_iter().collect();
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// assert_eq!(seen.file_bytes(), bytes.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::scalable_bytes(self.stages_from(0, self.turn.current()).map(AtomicBloomFilter::parts)) as usize
    }

    /// Reads a filter that a scalable filter of either kind wrote, as [`ScalableBloomFilter::read_from`] does.
    ///
    /// # Errors
    /// As [`ScalableBloomFilter::read_from`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::AtomicScalableBloomFilter;
    ///
    /// let seen = AtomicScalableBloomFilter::new(1000, 0.01)?;
    /// seen.insert("a")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// assert!(AtomicScalableBloomFilter::read_from(&bytes[..])? == seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(reader: impl Read) -> Result<Self, FileError> {
        ScalableBloomFilter::read_from(reader).map(Self::from)
    }
}

impl From<LoadedScalable> for ScalableBloomFilter {
    fn from(LoadedScalable { growth, in_last, stages }: LoadedScalable) -> Self {
        Self { growth, in_last, stages: stages.into_iter().map(BloomFilter::from).collect() }
    }
}
