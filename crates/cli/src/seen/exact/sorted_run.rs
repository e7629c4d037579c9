//! A run: sorted fingerprints in an unnamed temporary file, with the start of each page in memory.

use crate::system::external_sort::{Merge, RunSlice};
use crate::system::positioned::read_exact_at;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The bytes of a fingerprint in a file.
const ENTRY: usize = size_of::<u128>();
/// The bytes that are read at once. Smaller pages need more memory for their heads, larger ones take longer to copy.
const PAGE: usize = 1024;
/// The fingerprints of all runs that a merge holds in memory.
const MERGED: usize = 1 << 16;

/// Returns the high half of a fingerprint, which is nearly always unique.
fn head(fingerprint: u128) -> u64 {
    (fingerprint >> u64::BITS) as u64
}

/// Joins the words of a record, the most significant first.
fn fingerprint([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << u64::BITS | u128::from(low)
}

fn decoded(entry: [u8; ENTRY]) -> u128 {
    u128::from_le_bytes(entry).rotate_left(u64::BITS)
}

/// A fingerprint to look up.
pub struct Candidate {
    pub fingerprint: u128,
    /// The line that has it.
    pub line: usize,
    /// True if it was found in a run.
    pub found: bool,
}

/// Sorted fingerprints on disk.
pub struct SortedRun {
    file: File,
    /// The head of each page's first fingerprint.
    heads: Vec<u64>,
    entries: u64,
}

impl SortedRun {
    /// Writes sorted fingerprints, which come in pieces.
    pub fn write<'a>(folder: &Path, sorted: impl Iterator<Item = &'a [u128]>) -> io::Result<Self> {
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?);
        for piece in sorted {
            writer.push(piece.iter().copied())?;
        }
        Ok(writer.finish())
    }

    /// Writes the fingerprints of several runs as one.
    pub fn merge(folder: &Path, runs: impl Iterator<Item = Self>) -> io::Result<Self> {
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?);
        let mut entries = 0;
        let stretches = runs.map(|run| {
            entries += run.entries;
            RunSlice { file: Arc::new(run.file), at: 0, records: run.entries }
        });
        let mut merge = Merge::new(stretches, MERGED);
        writer.heads.reserve_exact((entries as usize).div_ceil(PAGE / ENTRY));
        let mut merged = Vec::new();
        loop {
            merge.next_into(&mut merged)?;
            if merged.is_empty() {
                return Ok(writer.finish());
            }
            writer.push(merged.iter().map(|&words| fingerprint(words)))?;
        }
    }

    /// Marks the sorted candidates that are in the run. Returns the number of pages read.
    pub fn find(&self, candidates: &mut [Candidate]) -> io::Result<u64> {
        let mut bytes = [0; PAGE];
        let mut len = 0;
        let mut in_memory = usize::MAX;
        let mut pages = 0;
        let mut first = 0;
        for candidate in candidates.iter_mut().filter(|candidate| !candidate.found) {
            let head = head(candidate.fingerprint);
            first = self.first_page(first, head);
            let mut page = first;
            loop {
                if page != in_memory {
                    let start = page as u64 * PAGE as u64;
                    len = (self.bytes() - start).min(PAGE as u64) as usize;
                    read_exact_at(&self.file, &mut bytes[..len], start)?;
                    in_memory = page;
                    pages += 1;
                }
                let entries = bytes[..len].as_chunks().0;
                candidate.found = entries.binary_search_by_key(&candidate.fingerprint, |&entry| decoded(entry)).is_ok();
                page += 1;
                // Rare: the fingerprint may also be on a later page that begins with the same head.
                if candidate.found || self.heads.get(page) != Some(&head) {
                    break;
                }
            }
        }
        Ok(pages)
    }

    /// Returns the last page with a head below `head`, or the first page. It is at or after `from`, and likely near.
    fn first_page(&self, from: usize, head: u64) -> usize {
        let (mut page, mut step) = (from, 1);
        while self.heads.get(page + step).is_some_and(|&other| other < head) {
            page += step;
            step *= 2;
        }
        let end = self.heads.len().min(page + step);
        page + self.heads[page..end].partition_point(|&other| other < head).saturating_sub(1)
    }

    /// Returns the number of fingerprints.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the length of the file.
    pub fn bytes(&self) -> u64 {
        self.entries * ENTRY as u64
    }
}

struct Writer {
    file: File,
    heads: Vec<u64>,
    entries: u64,
    /// A buffer for the bytes that are written at once.
    bytes: Vec<u8>,
}

impl Writer {
    fn new(file: File) -> Self {
        Self { file, heads: Vec::new(), entries: 0, bytes: Vec::new() }
    }

    /// Writes the next fingerprints, thousands for each call to the system.
    fn push(&mut self, fingerprints: impl ExactSizeIterator<Item = u128> + Clone) -> io::Result<()> {
        let of_page = (PAGE / ENTRY) as u64;
        let next_page = (self.entries.next_multiple_of(of_page) - self.entries) as usize;
        self.heads.extend(fingerprints.clone().skip(next_page).step_by(PAGE / ENTRY).map(head));
        self.entries += fingerprints.len() as u64;
        self.bytes.resize(ENTRY * fingerprints.len(), 0);
        for (entry, fingerprint) in self.bytes.as_chunks_mut().0.iter_mut().zip(fingerprints) {
            *entry = fingerprint.rotate_left(u64::BITS).to_le_bytes();
        }
        self.file.write_all(&self.bytes)
    }

    fn finish(mut self) -> SortedRun {
        self.heads.shrink_to_fit();
        SortedRun { file: self.file, heads: self.heads, entries: self.entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::temp_dir;
    use std::iter;

    fn run(sorted: impl Iterator<Item = u128>) -> SortedRun {
        SortedRun::write(&temp_dir(), iter::once(&sorted.collect::<Vec<_>>()[..])).unwrap()
    }

    fn found(run: &SortedRun, sorted: impl Iterator<Item = u128>) -> (Vec<bool>, u64) {
        let mut candidates: Vec<_> =
            sorted.map(|fingerprint| Candidate { fingerprint, line: 0, found: false }).collect();
        let pages = run.find(&mut candidates).unwrap();
        (candidates.iter().map(|candidate| candidate.found).collect(), pages)
    }

    #[test]
    fn find_reports_only_written_fingerprints_and_reads_each_page_once() {
        for entries in [1, 63, 64, 65, 4095, 4096, 4097, 20_000] {
            let run = run((0..entries).map(|i| (2 * i + 1) << 100));
            let (found, pages) = found(&run, (0..=2 * entries).map(|i| i << 100));
            assert!(found.iter().enumerate().all(|(i, &found)| found == (i % 2 == 1)), "{entries}");
            assert_eq!(pages, entries.div_ceil(64) as u64);
            assert_eq!(run.bytes(), entries as u64 * 16);
        }
    }

    #[test]
    fn fingerprints_with_a_common_prefix_are_found_on_many_pages() {
        let run = run((0..10).chain((0..1000).map(|i| (5 << 64) + 2 * i)).chain(6 << 64..(6 << 64) + 10));
        let (found, _) = found(&run, (0..2000).map(|i| (5 << 64) + i));
        assert!(found.iter().enumerate().all(|(i, &found)| found == (i % 2 == 0)));
    }

    #[test]
    fn runs_of_all_sizes_are_merged() {
        // The last number has the largest possible fingerprint.
        let spread = |i: u64| u128::MAX - (u128::from(270_067 - i) << 90);
        let sizes = [1, 200_000, 64, 70_000, 3];
        // The numbers are dealt to the runs in turn, and a run of full size is skipped.
        let mut parts = sizes.map(|_| Vec::new());
        let total: usize = sizes.iter().sum();
        let mut turn = 0;
        for i in 0..total as u64 {
            while parts[turn % 5].len() == sizes[turn % 5] {
                turn += 1;
            }
            parts[turn % 5].push(spread(i));
            turn += 1;
        }
        let merged = SortedRun::merge(&temp_dir(), parts.into_iter().map(|part| run(part.into_iter()))).unwrap();
        assert_eq!(merged.entries(), total as u64);
        assert_eq!(merged.heads.len(), total.div_ceil(64));
        assert!(found(&merged, (0..total as u64).map(spread)).0.into_iter().all(|found| found));
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let run = run((0..1000).map(|i| i << 100));
        run.file.set_len(15_000).unwrap();
        let mut candidates = [Candidate { fingerprint: 999 << 100, line: 0, found: false }];
        assert_eq!(run.find(&mut candidates).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(SortedRun::merge(&temp_dir(), [run].into_iter()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let mut writer = Writer::new(File::options().write(true).open("/dev/full").unwrap());
        assert_eq!(writer.push([1].into_iter()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
