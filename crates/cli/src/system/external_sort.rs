//! Sorts records that do not fit into memory.
//!
//! Records are collected in memory. When it is full they are sorted and become a *run*: a section of an unnamed temporary file. All
//! runs are in one file, so that any number of them needs one descriptor. They are merged while they are read.
//!
//! A record is `W` words, compared from the first to the last.

use crate::system::error::Error;
use crate::system::positioned::read_exact_at;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of records in memory, without the copies that a merge makes.
const MEMORY: usize = 1 << 25;
/// The bytes that are written at once.
const WRITTEN: usize = 1 << 16;

/// Takes records in any order.
pub struct ExternalSort<const W: usize> {
    folder: PathBuf,
    /// The records that memory holds.
    limit: usize,
    recent: Vec<[u64; W]>,
    file: Option<BufWriter<File>>,
    /// The number of records in each run.
    runs: Vec<u64>,
}

impl<const W: usize> ExternalSort<W> {
    /// Creates an empty sorter. A temporary file is made in `folder` when the memory is full.
    pub fn new(folder: &Path) -> Self {
        Self::limited(folder, MEMORY / (8 * W))
    }

    fn limited(folder: &Path, limit: usize) -> Self {
        Self { folder: folder.into(), limit, recent: Vec::new(), file: None, runs: Vec::new() }
    }

    /// Adds a record.
    pub fn push(&mut self, record: [u64; W]) -> Result<(), Error> {
        let is_full = self.recent.len() == self.limit;
        if is_full || self.recent.try_reserve(1).is_err() {
            self.write_run().map_err(Error::groups)?;
        }
        self.recent.push(record);
        Ok(())
    }

    /// Returns all records in order, with duplicates.
    pub fn sorted(self) -> Result<SortedRecords<W>, Error> {
        self.merged().map_err(Error::groups)
    }

    fn merged(mut self) -> io::Result<SortedRecords<W>> {
        if self.file.is_some() {
            self.write_run()?;
        }
        let Some(file) = self.file else {
            self.recent.sort_unstable();
            let count = self.recent.len() as u64;
            return Ok(SortedRecords { merge: Merge::new([].into_iter(), 0), batch: self.recent, next: 0, count });
        };
        let (file, mut start) = (Arc::new(file.into_inner()?), 0);
        let runs = self.runs.iter().map(|&records| {
            let run = RunSlice { file: file.clone(), at: start, records };
            start += records * 8 * W as u64;
            run
        });
        let count = self.runs.iter().sum();
        Ok(SortedRecords { merge: Merge::new(runs, self.limit / 2), batch: Vec::new(), next: 0, count })
    }

    fn write_run(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::with_capacity(WRITTEN, tempfile::tempfile_in(&self.folder)?)),
        };
        self.recent.sort_unstable();
        let mut words = self.recent.as_flattened().iter();
        words.try_for_each(|word| file.write_all(&word.to_le_bytes()))?;
        self.runs.push(self.recent.len() as u64);
        self.recent.clear();
        Ok(())
    }
}

/// All records in order, with duplicates.
pub struct SortedRecords<const W: usize> {
    merge: Merge<W>,
    batch: Vec<[u64; W]>,
    /// The index of the next record in the batch.
    next: usize,
    /// The number of all records.
    pub count: u64,
}

impl<const W: usize> Iterator for SortedRecords<W> {
    type Item = Result<[u64; W], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.batch.len() {
            self.next = 0;
            if let Err(error) = self.merge.next_into(&mut self.batch) {
                return Some(Err(Error::groups(error)));
            }
        }
        let record = self.batch.get(self.next)?;
        self.next += 1;
        Some(Ok(*record))
    }
}

/// Sorted records in a file: words with their lowest byte first.
pub struct RunSlice {
    pub file: Arc<File>,
    /// The offset of its first byte.
    pub at: u64,
    pub records: u64,
}

/// Merges sorted records.
pub struct Merge<const W: usize> {
    readers: Vec<RunReader<W>>,
    /// The number of records that each reader has in memory.
    share: usize,
    bytes: Vec<u8>,
}

impl<const W: usize> Merge<W> {
    /// Merges with about `in_memory` records of the slices in memory, and as many merged ones.
    pub fn new(stretches: impl Iterator<Item = RunSlice>, in_memory: usize) -> Self {
        let readers: Vec<_> = stretches.map(|rest| RunReader { rest, window: Vec::new() }).collect();
        let share = (in_memory / readers.len().max(1)).max(1);
        Self { readers, share, bytes: Vec::new() }
    }

    /// Replaces the contents of `merged` by the next records; it is empty at the end.
    pub fn next_into(&mut self, merged: &mut Vec<[u64; W]>) -> io::Result<()> {
        merged.clear();
        for reader in &mut self.readers {
            reader.fill(self.share, &mut self.bytes)?;
        }
        // No record up to this one is still on disk.
        let known = self.readers.iter().filter_map(RunReader::known).min();
        for reader in &mut self.readers {
            let end =
                known.map_or(reader.window.len(), |known| reader.window.partition_point(|record| *record <= known));
            merged.extend(reader.window.drain(..end));
        }
        // The stable sort: it finds the sorted pieces and merges them.
        merged.sort();
        Ok(())
    }
}

/// A reader of a slice, from start to end.
struct RunReader<const W: usize> {
    /// The part that is not yet read.
    rest: RunSlice,
    /// The next records.
    window: Vec<[u64; W]>,
}

impl<const W: usize> RunReader<W> {
    /// Reads on until the window has this number of records, or the slice ends.
    fn fill(&mut self, records: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let more = self.rest.records.min((records - self.window.len()) as u64);
        if more == 0 {
            return Ok(());
        }
        bytes.resize(more as usize * 8 * W, 0);
        read_exact_at(&self.rest.file, bytes, self.rest.at)?;
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        self.window.extend((0..more).map(|_| [(); W].map(|()| words.next().unwrap_or_default())));
        self.rest.records -= more;
        self.rest.at += bytes.len() as u64;
        Ok(())
    }

    /// Returns the last record in the window, unless the rest of the slice is empty.
    fn known(&self) -> Option<[u64; W]> {
        if self.rest.records == 0 { None } else { self.window.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::platform;
    use proptest::prelude::*;
    use std::env::temp_dir;

    fn sorted<const W: usize>(records: &[[u64; W]], limit: usize) -> Vec<[u64; W]> {
        let mut sorter = ExternalSort::limited(&temp_dir(), limit);
        records.iter().for_each(|record| sorter.push(*record).unwrap());
        sorter.sorted().unwrap().collect::<Result<_, _>>().unwrap()
    }

    proptest! {
        #[test]
        fn records_are_sorted_as_in_a_vector(
            pairs in prop::collection::vec(prop::array::uniform2(prop_oneof![0_u64..5, any::<u64>()]), 0..300),
            limit in 1_usize..80,
        ) {
            let triples: Vec<_> = pairs.iter().map(|[a, b]| [*b, *a, a ^ b]).collect();
            let mut expected = (pairs.clone(), triples.clone());
            expected.0.sort_unstable();
            expected.1.sort_unstable();
            prop_assert_eq!(sorted(&pairs, limit), expected.0);
            prop_assert_eq!(sorted(&triples, limit), expected.1);
        }
    }

    #[test]
    fn the_folder_is_needed_only_when_the_memory_is_full() {
        let nowhere = || {
            let mut sorter = ExternalSort::limited(Path::new("/nonexistent"), 2);
            [[2], [1]].into_iter().for_each(|record| sorter.push(record).unwrap());
            sorter
        };
        let error = nowhere().push([3]).unwrap_err().to_string();
        assert!(error.contains("temporary file: ") && error.contains(platform::TEMP_VARIABLE), "{error}");
        assert_eq!(nowhere().sorted().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [[1], [2]]);
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let mut sorter = ExternalSort::limited(&temp_dir(), 10);
        (0..25).for_each(|i| sorter.push([i]).unwrap());
        let mut sorted = sorter.sorted().unwrap();
        sorted.merge.readers[2].rest.file.set_len(190).unwrap();
        assert!((0..23).all(|i| sorted.next().is_some_and(|next| next.unwrap() == [i])));
        let error = sorted.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("failed to fill whole buffer"), "{error}");
    }
}
