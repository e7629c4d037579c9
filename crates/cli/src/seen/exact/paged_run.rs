//! A run: fingerprints in an unnamed temporary file, in pages by their high bits, with the end of each page in memory.
//!
//! A page is a list without an order, of some dozens: it is read as a whole. So nothing is sorted, and a merge splits pages.

use crate::seen::exact::page_of;
use crate::system::positioned::read_exact_at;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// The bytes of a fingerprint in a file.
const ENTRY: usize = size_of::<u128>();
/// The least fingerprints of a page of a merged run, in the mean. Smaller pages need more memory for their ends, and larger ones take
/// longer to copy.
const PAGE: u64 = 32;
/// The least fingerprints that are merged at once.
const MERGED: u64 = 1 << 15;
/// The bytes that are written at once.
const WRITTEN: usize = 1 << 16;

/// A fingerprint to look up.
pub struct Candidate {
    pub fingerprint: u128,
    /// The line that has it.
    pub line: usize,
    /// True if it was found in a run.
    pub found: bool,
}

/// Fingerprints on disk.
pub struct PagedRun {
    file: File,
    /// There are 2^`page_bits` pages.
    page_bits: u32,
    /// The fingerprints before the end of each page.
    ends: Vec<u64>,
}

impl PagedRun {
    /// Writes 2^`page_bits` pages.
    pub fn write<'a>(folder: &Path, page_bits: u32, pages: impl Iterator<Item = &'a [u128]>) -> io::Result<Self> {
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?, page_bits);
        for page in pages {
            writer.push(page)?;
        }
        writer.finish()
    }

    /// Writes the fingerprints of several runs as one.
    pub fn merge(folder: &Path, runs: impl Iterator<Item = Self>) -> io::Result<Self> {
        let runs: Vec<Self> = runs.collect();
        let entries: u64 = runs.iter().map(Self::entries).sum();
        let page_bits = (entries / PAGE).max(1).ilog2();
        // A unit is some whole pages of each run.
        let unit_bits = runs.iter().map(|run| run.page_bits).fold((entries / MERGED).max(1).ilog2(), u32::min);
        let unit_bits = unit_bits.min(page_bits);
        let mut writer = Writer::new(tempfile::tempfile_in(folder)?, page_bits);
        let mut pages = vec![Vec::new(); 1 << (page_bits - unit_bits)];
        let mut bytes = Vec::new();
        for unit in 0..1 << unit_bits {
            for run in &runs {
                let shift = run.page_bits - unit_bits;
                run.read(unit << shift..(unit + 1) << shift, &mut bytes)?;
                for &entry in bytes.as_chunks().0 {
                    let fingerprint = u128::from_le_bytes(entry);
                    let page = page_of(fingerprint, page_bits) % pages.len();
                    pages[page].push(fingerprint);
                }
            }
            for page in &mut pages {
                writer.push(page)?;
                page.clear();
            }
        }
        writer.finish()
    }

    /// Marks the sorted candidates that are in the run. Returns the number of pages read.
    pub fn find(&self, candidates: &mut [Candidate]) -> io::Result<u64> {
        let (mut bytes, mut in_memory, mut pages) = (Vec::new(), None, 0);
        for candidate in candidates.iter_mut().filter(|candidate| !candidate.found) {
            let page = page_of(candidate.fingerprint, self.page_bits);
            if in_memory != Some(page) {
                self.read(page..page + 1, &mut bytes)?;
                (in_memory, pages) = (Some(page), pages + 1);
            }
            candidate.found = bytes.as_chunks().0.contains(&candidate.fingerprint.to_le_bytes());
        }
        Ok(pages)
    }

    /// Replaces the contents of `bytes` by these pages.
    fn read(&self, pages: Range<usize>, bytes: &mut Vec<u8>) -> io::Result<()> {
        let start = |page: usize| page.checked_sub(1).map_or(0, |before| self.ends[before]);
        let (from, to) = (start(pages.start), start(pages.end));
        bytes.resize((to - from) as usize * ENTRY, 0);
        read_exact_at(&self.file, bytes, from * ENTRY as u64)
    }

    /// Returns the number of fingerprints.
    pub fn entries(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the length of the file.
    pub fn bytes(&self) -> u64 {
        self.entries() * ENTRY as u64
    }
}

struct Writer {
    run: PagedRun,
    /// The bytes that are not yet written.
    bytes: Vec<u8>,
}

impl Writer {
    fn new(file: File, page_bits: u32) -> Self {
        Self { run: PagedRun { file, page_bits, ends: Vec::with_capacity(1 << page_bits) }, bytes: Vec::new() }
    }

    /// Writes the next page.
    fn push(&mut self, page: &[u128]) -> io::Result<()> {
        self.run.ends.push(self.run.entries() + page.len() as u64);
        let start = self.bytes.len();
        self.bytes.resize(start + ENTRY * page.len(), 0);
        for (entry, fingerprint) in self.bytes[start..].as_chunks_mut().0.iter_mut().zip(page) {
            *entry = fingerprint.to_le_bytes();
        }
        if self.bytes.len() >= WRITTEN { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.run.file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<PagedRun> {
        self.write()?;
        Ok(self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::env::temp_dir;

    /// Writes fingerprints in 2^`page_bits` pages.
    fn run(page_bits: u32, fingerprints: impl Iterator<Item = u128>) -> PagedRun {
        let mut pages = vec![Vec::new(); 1 << page_bits];
        fingerprints.for_each(|fingerprint| pages[page_of(fingerprint, page_bits)].push(fingerprint));
        PagedRun::write(&temp_dir(), page_bits, pages.iter().map(Vec::as_slice)).unwrap()
    }

    fn found(run: &PagedRun, sorted: impl Iterator<Item = u128>) -> (Vec<bool>, u64) {
        let mut candidates: Vec<_> =
            sorted.map(|fingerprint| Candidate { fingerprint, line: 0, found: false }).collect();
        let pages = run.find(&mut candidates).unwrap();
        (candidates.iter().map(|candidate| candidate.found).collect(), pages)
    }

    #[test]
    fn find_reports_only_written_fingerprints_and_reads_each_page_once() {
        for (entries, page_bits) in [(1, 0), (65, 0), (64, 1), (1000, 4), (20_000, 9)] {
            let run = run(page_bits, (0..entries).map(|i| (2 * i + 1) << 112));
            let (found, pages) = found(&run, (0..=2 * entries).map(|i| i << 112));
            assert!(found.iter().enumerate().all(|(i, &found)| found == (i % 2 == 1)), "{entries}");
            assert_eq!(pages, ((2 * entries) >> (16 - page_bits)) as u64 + 1);
            assert_eq!(run.bytes(), entries as u64 * 16);
        }
    }

    #[test]
    fn fingerprints_with_a_common_prefix_are_found_on_one_page() {
        let run = run(9, (0..10).chain((0..1000).map(|i| (5 << 64) + 2 * i)).chain(6 << 64..(6 << 64) + 10));
        let (found, pages) = found(&run, (0..2000).map(|i| (5 << 64) + i));
        assert!(found.iter().enumerate().all(|(i, &found)| found == (i % 2 == 0)));
        assert_eq!(pages, 1);
    }

    #[test]
    fn runs_of_all_sizes_are_merged() {
        // The last number has the largest possible fingerprint.
        let spread = |i: u64| u128::MAX - (u128::from(90_067 - i) << 111);
        let sizes = [(1, 0), (60_000, 11), (64, 13), (30_000, 13), (3, 2)];
        // The numbers are dealt to the runs in turn, and a run of full size is skipped.
        let mut parts = sizes.map(|_| Vec::new());
        let total: usize = sizes.iter().map(|(size, _)| size).sum();
        let mut turn = 0;
        for i in 0..total as u64 {
            while parts[turn % 5].len() == sizes[turn % 5].0 {
                turn += 1;
            }
            parts[turn % 5].push(spread(i));
            turn += 1;
        }
        for without in [None, Some(0), Some(1)] {
            let merged = sizes.iter().zip(&parts).enumerate().filter(|(i, _)| Some(*i) != without);
            let runs = merged.map(|(_, ((_, page_bits), part))| run(*page_bits, part.iter().copied()));
            let expected: BTreeSet<u128> = parts
                .iter()
                .enumerate()
                .filter(|(i, _)| Some(*i) != without)
                .flat_map(|(_, part)| part)
                .copied()
                .collect();
            let merged = PagedRun::merge(&temp_dir(), runs).unwrap();
            assert_eq!(merged.entries(), expected.len() as u64);
            assert!((PAGE..2 * PAGE).contains(&(merged.entries() >> merged.page_bits)));
            let all = (0..total as u64).map(spread);
            assert!(
                found(&merged, all.clone()).0.into_iter().eq(all.map(|fingerprint| expected.contains(&fingerprint)))
            );
        }
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let run = run(4, (0..1000).map(|i| i << 118));
        run.file.set_len(15_000).unwrap();
        let mut candidates = [Candidate { fingerprint: 999 << 118, line: 0, found: false }];
        assert_eq!(run.find(&mut candidates).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(PagedRun::merge(&temp_dir(), [run].into_iter()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let mut writer = Writer::new(File::options().write(true).open("/dev/full").unwrap(), 0);
        let error = writer.push(&[1]).and_then(|()| writer.finish().map(drop)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
