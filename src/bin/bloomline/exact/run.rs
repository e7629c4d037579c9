//! A run: sorted fingerprints in an unnamed temporary file, with the first of each page in memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The bytes of a fingerprint in a file.
const ENTRY: usize = size_of::<u128>();
/// The bytes that are read at once, as many as the system's own pages have.
const PAGE: usize = 4096;
/// The bytes that are written at once.
const WRITTEN: usize = 16 * PAGE;
/// The fingerprints of all runs that a merge has in memory.
const MERGED: usize = 1 << 16;

/// A fingerprint to look up.
pub struct Suspect {
    pub fingerprint: u128,
    /// The line that has it.
    pub line: usize,
    /// Whether it was found in a run.
    pub found: bool,
}

/// Sorted fingerprints on disk.
pub struct Run {
    file: File,
    /// The first fingerprint of each page.
    firsts: Vec<u128>,
    entries: u64,
}

impl Run {
    /// Writes sorted fingerprints.
    pub fn write(folder: &Path, sorted: impl Iterator<Item = u128>) -> io::Result<Self> {
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?);
        sorted.into_iter().try_for_each(|fingerprint| writer.push(fingerprint))?;
        writer.finish()
    }

    /// Writes the fingerprints of all the runs.
    pub fn merge(folder: &Path, runs: &[Self]) -> io::Result<Self> {
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?);
        let mut readers: Vec<_> = runs.iter().map(|run| Reader { run, window: Vec::new(), read: 0 }).collect();
        let mut merged = Vec::new();
        loop {
            for reader in &mut readers {
                reader.fill(MERGED / runs.len())?;
            }
            // Up to here nothing is missing that is still on disk.
            let known = readers.iter().filter_map(Reader::known).min().unwrap_or(u128::MAX);
            merged.clear();
            for reader in &mut readers {
                let end = reader.window.partition_point(|&fingerprint| fingerprint <= known);
                merged.extend(reader.window.drain(..end));
            }
            if merged.is_empty() {
                return writer.finish();
            }
            // The stable sort: it finds the sorted pieces and merges them.
            merged.sort();
            merged.iter().try_for_each(|&fingerprint| writer.push(fingerprint))?;
        }
    }

    /// Marks the sorted suspects that are in the run. Returns the number of pages read.
    pub fn find(&self, suspects: &mut [Suspect]) -> io::Result<u64> {
        let mut bytes = [0; PAGE];
        let mut page = &bytes[..0];
        let (mut pages, mut pages_before) = (0, 0);
        for suspect in suspects.iter_mut().filter(|suspect| !suspect.found) {
            let before = self.firsts.partition_point(|&first| first <= suspect.fingerprint);
            if before == 0 {
                continue;
            }
            if before != pages_before {
                let start = (before - 1) * PAGE;
                let len = PAGE.min(self.bytes() as usize - start);
                self.file.read_exact_at(&mut bytes[..len], start as u64)?;
                page = &bytes[..len];
                pages_before = before;
                pages += 1;
            }
            suspect.found = page
                .as_chunks()
                .0
                .binary_search_by_key(&suspect.fingerprint, |&entry| u128::from_le_bytes(entry))
                .is_ok();
        }
        Ok(pages)
    }

    /// The number of fingerprints.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.entries * ENTRY as u64
    }
}

struct Writer {
    file: File,
    firsts: Vec<u128>,
    entries: u64,
    buffer: Vec<u8>,
}

impl Writer {
    fn new(file: File) -> Self {
        Self { file, firsts: Vec::new(), entries: 0, buffer: Vec::with_capacity(WRITTEN) }
    }

    fn push(&mut self, fingerprint: u128) -> io::Result<()> {
        if self.buffer.len() == WRITTEN {
            self.file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        if self.entries.is_multiple_of((PAGE / ENTRY) as u64) {
            self.firsts.push(fingerprint);
        }
        self.buffer.extend_from_slice(&fingerprint.to_le_bytes());
        self.entries += 1;
        Ok(())
    }

    fn finish(mut self) -> io::Result<Run> {
        self.file.write_all(&self.buffer)?;
        self.firsts.shrink_to_fit();
        Ok(Run { file: self.file, firsts: self.firsts, entries: self.entries })
    }
}

/// Reads a run from its begin to its end.
struct Reader<'a> {
    run: &'a Run,
    /// The next fingerprints.
    window: Vec<u128>,
    /// How many have been read.
    read: u64,
}

impl Reader<'_> {
    /// Reads on until the window has so many fingerprints, or the run ends.
    fn fill(&mut self, entries: usize) -> io::Result<()> {
        let more = (self.run.entries - self.read).min((entries - self.window.len()) as u64);
        let mut bytes = vec![0; more as usize * ENTRY];
        self.run.file.read_exact_at(&mut bytes, self.read * ENTRY as u64)?;
        self.window.extend(bytes.as_chunks().0.iter().map(|&entry| u128::from_le_bytes(entry)));
        self.read += more;
        Ok(())
    }

    /// The last fingerprint in the window; none if no other follows.
    fn known(&self) -> Option<u128> {
        if self.read == self.run.entries { None } else { self.window.last().copied() }
    }
}
