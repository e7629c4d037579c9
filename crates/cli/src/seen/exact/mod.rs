//! An exact check of the keys that the filter reports as seen: a set of all fingerprints, mostly on disk.
//!
//! New fingerprints are collected in `mem_table`. When it is full, it becomes a [`PagedRun`], a file. Both have their fingerprints in
//! pages by their high bits, and each page has no order. Only a candidate that is not in `mem_table` is looked up in the runs. The
//! candidates of one chunk are looked up together and in order, which costs one page of each run. The ones that are found are cached
//! in `recent_hits`, because inputs repeat some lines very often.
//!
//! Runs are merged for two reasons: 16 of one size become one, which bounds their number; and all become one once
//! lookups in many have cost about as much as a merge. So an input of new lines is hardly ever merged, and an input of
//! old lines soon has a single run.
//!
//! The memory is 25 MiB and at most 1/64 of the size on disk: 41 MiB for 100 million distinct lines. The disk holds 16 bytes
//! for each distinct line, at most twice as much during a merge.

mod mem_table;
mod paged_run;

use bloomline::KeyHasher;
use mem_table::MemTable;
use paged_run::{Candidate, PagedRun};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fingerprints merged in the time of reading one page.
const MERGED_PER_LOOKUP: u64 = 32;

/// The pages in memory before they are written to a file, as a power of two, and the fingerprints that fit into each. When the first
/// page is full, the others have about 80 fingerprints. Larger pages take longer to search, and more of them have their ends in the
/// third cache.
const PAGE_BITS: u32 = 13;
const PAGE_CAPACITY: u8 = 120;

/// The slots of fingerprints that were found in runs, as a power of two.
const CONFIRMED_BITS: u32 = 19;

/// The slots of fingerprints that were found last: a power of two.
const LATEST: usize = 1 << 12;

/// The bytes of memory at the start.
const MEMORY: usize = MemTable::memory(PAGE_BITS, PAGE_CAPACITY) + (size_of::<u128>() << CONFIRMED_BITS);

/// Changes the seed of the first hash to the seed of the second.
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the page of a fingerprint, of 2^`page_bits` pages.
fn page_of(fingerprint: u128, page_bits: u32) -> usize {
    ((fingerprint >> 64) as u64 >> 1 >> (63 - page_bits)) as usize
}

/// Returns the slot of a fingerprint in a cache of 2^n slots.
fn slot(cache: &mut [u128], fingerprint: u128) -> &mut u128 {
    let mask = cache.len() - 1;
    &mut cache[fingerprint as usize & mask]
}

/// Returns the hasher of fingerprints for a filter with this seed.
pub fn second_hasher(seed: u64) -> KeyHasher {
    KeyHasher::new(seed ^ SECOND)
}

/// The fingerprints of all lines so far.
pub struct Exact {
    folder: PathBuf,
    limits: ExactLimits,
    mem_table: MemTable,
    /// Oldest first, so that the first is about the largest.
    runs: Vec<PagedRun>,
    /// A cache of fingerprints that were found in runs, each in the slot that its low bits select. 0 marks a free slot.
    recent_hits: Vec<u128>,
    /// The same for all fingerprints that were found, in the first caches: most repeats are near one another, or of few lines.
    latest_hits: Vec<u128>,
    /// Pages read in runs other than the first since the last merge of all. Relaxed: it only decides when a merge pays.
    extra_page_reads: AtomicU64,
}

struct ExactLimits {
    /// The pages in memory, as a power of two, and the fingerprints that fit into each.
    page_bits: u32,
    page_capacity: u8,
    /// The slots of `recent_hits`, as a power of two.
    confirmed_bits: u32,
    /// The number of runs of about one size that become one.
    fan_in: usize,
}

impl Exact {
    /// Creates an empty set. Its temporary files are made in `folder`. Fails if none can be made there.
    pub fn new(folder: &Path) -> io::Result<Self> {
        tempfile::tempfile_in(folder)?;
        Vec::<u8>::new().try_reserve_exact(MEMORY)?;
        Ok(Self::limited(
            folder,
            ExactLimits {
                page_bits: PAGE_BITS,
                page_capacity: PAGE_CAPACITY,
                confirmed_bits: CONFIRMED_BITS,
                fan_in: 16,
            },
        ))
    }

    fn limited(folder: &Path, limits: ExactLimits) -> Self {
        Self {
            folder: folder.into(),
            mem_table: MemTable::new(limits.page_bits, limits.page_capacity),
            recent_hits: vec![0; 1 << limits.confirmed_bits],
            latest_hits: vec![0; LATEST],
            limits,
            runs: Vec::new(),
            extra_page_reads: AtomicU64::new(0),
        }
    }

    /// Corrects the filter's answers for the lines with these fingerprints: every `false` (perhaps seen) that should be
    /// `true` (new). Returns the number of corrections.
    ///
    /// After an error only some of the lines are recorded, and the set must not be used any more.
    pub fn correct(&mut self, fingerprints: &[u128], new: &mut [bool]) -> io::Result<usize> {
        let mut candidates = Vec::new();
        for (line, (&fingerprint, &new)) in fingerprints.iter().zip(&*new).enumerate() {
            // 0 marks free slots of `recent_hits`. Treating it as 1 is as harmless as any other collision.
            let fingerprint = fingerprint.max(1);
            if new {
                self.remember(fingerprint)?;
            } else if *slot(&mut self.latest_hits, fingerprint) != fingerprint {
                if self.mem_table.find(fingerprint) || *slot(&mut self.recent_hits, fingerprint) == fingerprint {
                    *slot(&mut self.latest_hits, fingerprint) = fingerprint;
                } else {
                    candidates.push(Candidate { fingerprint, line, found: false });
                }
            }
        }
        // The first of equal lines decides, and the stable sort keeps it first; the others remain duplicates.
        candidates.sort_by_key(|candidate| candidate.fingerprint);
        candidates.dedup_by_key(|candidate| candidate.fingerprint);
        self.look(&mut candidates)?;
        let mut corrected = 0;
        for Candidate { fingerprint, line, found } in candidates {
            if found {
                *slot(&mut self.recent_hits, fingerprint) = fingerprint;
            } else {
                self.remember(fingerprint)?;
                new[line] = true;
                corrected += 1;
            }
        }
        self.compact()?;
        Ok(corrected)
    }

    /// Corrects the filter's answers for the lines with these fingerprints: every `true` (perhaps found) that should be
    /// `false`. Records nothing, so any number of threads may call it.
    pub fn confirm(&self, fingerprints: &[u128], found: &mut [bool]) -> io::Result<()> {
        let mut candidates = Vec::new();
        for (line, (&fingerprint, &found)) in fingerprints.iter().zip(&*found).enumerate() {
            let fingerprint = fingerprint.max(1);
            if found && !self.mem_table.contains(fingerprint) {
                candidates.push(Candidate { fingerprint, line, found: false });
            }
        }
        candidates.sort_unstable_by_key(|candidate| candidate.fingerprint);
        self.look(&mut candidates)?;
        candidates.iter().for_each(|candidate| found[candidate.line] = candidate.found);
        Ok(())
    }

    /// Looks sorted candidates up in the runs.
    fn look(&self, candidates: &mut [Candidate]) -> io::Result<()> {
        for (position, run) in self.runs.iter().enumerate() {
            let pages = run.find(candidates)?;
            self.extra_page_reads.fetch_add(if position == 0 { 0 } else { pages }, Relaxed);
        }
        Ok(())
    }

    /// True if lookups in many runs have cost about as much as a merge of all.
    fn needs_compaction(&self) -> bool {
        self.extra_page_reads.load(Relaxed) * MERGED_PER_LOOKUP > self.runs.iter().map(PagedRun::entries).sum()
    }

    /// True if later look-ups are faster after [`prepare_lookups`](Self::prepare_lookups).
    pub fn needs_preparation(&self) -> bool {
        self.needs_compaction() || !self.mem_table.is_indexed()
    }

    /// Indexes the fingerprints in memory, and merges all runs if that pays.
    pub fn prepare_lookups(&mut self) -> io::Result<()> {
        self.mem_table.index_all();
        self.compact()
    }

    /// Merges all runs if that pays.
    fn compact(&mut self) -> io::Result<()> {
        if self.needs_compaction() {
            self.merge(0)?;
            *self.extra_page_reads.get_mut() = 0;
        }
        Ok(())
    }

    /// Returns the length of all temporary files.
    pub fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(PagedRun::bytes).sum()
    }

    /// Records a fingerprint that is not in the set.
    #[inline]
    fn remember(&mut self, fingerprint: u128) -> io::Result<()> {
        self.mem_table.insert(fingerprint);
        if self.mem_table.is_full() { self.write_run() } else { Ok(()) }
    }

    /// Moves the fingerprints in memory to a file.
    fn write_run(&mut self) -> io::Result<()> {
        let pages = self.mem_table.pages();
        self.runs.push(PagedRun::write(&self.folder, self.mem_table.page_bits(), pages)?);
        self.mem_table.clear();
        let fan_in = self.limits.fan_in;
        while let Some(from) = self.runs.len().checked_sub(fan_in) {
            // The smallest run has level 0, a merge of `fan_in` runs of level 0 has level 1, and so on.
            let smallest = self.runs.iter().map(PagedRun::entries).min().unwrap_or(1);
            let level = |run: &PagedRun| (run.entries() / smallest).ilog(fan_in as u64);
            if level(&self.runs[from]) != level(&self.runs[self.runs.len() - 1]) {
                break;
            }
            self.merge(from)?;
        }
        Ok(())
    }

    /// Merges the runs from index `from` to the end.
    fn merge(&mut self, from: usize) -> io::Result<()> {
        let merged = PagedRun::merge(&self.folder, self.runs.drain(from..))?;
        self.runs.push(merged);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::env::temp_dir;

    /// Returns a check whose memory holds 48 fingerprints.
    fn small(folder: &Path) -> Exact {
        Exact::limited(folder, ExactLimits { page_bits: 0, page_capacity: 48, confirmed_bits: 4, fan_in: 3 })
    }

    /// Returns the fingerprint 0 for the key 0, and pseudorandom fingerprints for other keys.
    fn fingerprint(key: u64) -> u128 {
        let mut state = u128::from(key);
        for _ in 0..4 {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
            state ^= state >> 67;
        }
        state
    }

    fn fingerprints(keys: impl Iterator<Item = u64>) -> Vec<u128> {
        keys.map(fingerprint).collect()
    }

    fn sizes(exact: &Exact) -> Vec<u64> {
        exact.runs.iter().map(PagedRun::entries).collect()
    }

    /// Adds new keys.
    fn add(exact: &mut Exact, keys: impl Iterator<Item = u64>) {
        let keys = fingerprints(keys);
        assert_eq!(exact.correct(&keys, &mut vec![true; keys.len()]).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn corrections_match_a_hash_set(
            lines in prop::collection::vec((0_u64..1500, prop::bool::weighted(0.2)), 0..4000),
            batch in 1_usize..500,
        ) {
            let mut exact = small(&temp_dir());
            let mut seen = HashSet::new();
            for lines in lines.chunks(batch) {
                let expected: Vec<_> = lines.iter().map(|(key, _)| seen.insert(*key)).collect();
                let mut new: Vec<_> = lines.iter().zip(&expected).map(|((_, wrong), new)| *new && !wrong).collect();
                let wrong = new.iter().zip(&expected).filter(|(new, expected)| new != expected).count();
                let corrected = exact.correct(&fingerprints(lines.iter().map(|(key, _)| *key)), &mut new).unwrap();
                prop_assert_eq!(new, expected);
                prop_assert_eq!(corrected, wrong);
            }
            prop_assert_eq!(exact.disk_bytes(), seen.len() as u64 / 48 * 48 * 16);
        }
    }

    proptest! {
        #[test]
        fn confirm_finds_only_added_keys_and_adds_none(
            keys in prop::collection::vec(0_u64..3000, 0..2000),
            asked in prop::collection::vec((0_u64..3000, any::<bool>()), 0..2000),
            batch in 1_usize..500,
        ) {
            let (mut exact, known) = (small(&temp_dir()), keys.iter().copied().collect::<HashSet<_>>());
            add(&mut exact, known.iter().copied());
            let bytes = exact.disk_bytes();
            for asked in asked.chunks(batch) {
                // The filter's answers: added keys are found, and some others are false positives.
                let mut found: Vec<_> = asked.iter().map(|(key, wrong)| known.contains(key) || *wrong).collect();
                exact.confirm(&fingerprints(asked.iter().map(|(key, _)| *key)), &mut found).unwrap();
                prop_assert!(asked.iter().zip(&found).all(|((key, _), found)| known.contains(key) == *found));
                exact.prepare_lookups().unwrap();
                prop_assert!(!exact.needs_preparation());
            }
            prop_assert_eq!(exact.disk_bytes(), bytes);
        }
    }

    #[test]
    fn only_the_first_of_equal_lines_in_a_batch_is_corrected() {
        let mut exact = small(&temp_dir());
        add(&mut exact, 0..100);
        let mut new = [false, false, false, true, false];
        assert_eq!(exact.correct(&fingerprints([200, 5, 200, 201, 201].into_iter()), &mut new).unwrap(), 1);
        assert_eq!(new, [true, false, false, true, false]);
    }

    #[test]
    fn full_memory_is_written_as_a_run_and_runs_of_one_size_are_merged() {
        let mut exact = small(&temp_dir());
        add(&mut exact, 0..47);
        assert!(exact.runs.is_empty());
        add(&mut exact, 47..48);
        assert_eq!(sizes(&exact), [48]);
        add(&mut exact, 48..48 * 8);
        assert_eq!(sizes(&exact), [144, 144, 48, 48]);
        add(&mut exact, 48 * 8..48 * 9);
        assert_eq!(sizes(&exact), [432]);
    }

    #[test]
    fn many_lookups_merge_all_runs() {
        let mut exact = small(&temp_dir());
        add(&mut exact, 0..48 * 8);
        // Separate lookups cannot share a page.
        for old in fingerprints(0..48) {
            assert_eq!(exact.correct(&[old], &mut [false]).unwrap(), 0);
        }
        assert_eq!(sizes(&exact), [144, 144, 48, 48], "found in the first run");
        for old in fingerprints(48 * 7..48 * 8) {
            assert_eq!(exact.correct(&[old], &mut [false]).unwrap(), 0);
        }
        assert_eq!(sizes(&exact), [48 * 8]);
        let old = fingerprints(0..48 * 8);
        assert_eq!(exact.correct(&old, &mut vec![false; old.len()]).unwrap(), 0);
        assert_eq!(exact.extra_page_reads.into_inner(), 0);
    }

    #[test]
    fn repeats_found_before_need_no_file() {
        let mut exact = small(&temp_dir());
        add(&mut exact, 0..48);
        let old = [fingerprint(7)];
        assert_eq!(exact.correct(&old, &mut [false]).unwrap(), 0);
        exact.runs.clear();
        assert_eq!(exact.correct(&old, &mut [false]).unwrap(), 0);
    }

    #[test]
    fn the_folder_is_needed_only_when_the_memory_is_full() {
        let mut exact = small(Path::new("/nonexistent"));
        add(&mut exact, 0..47);
        let error = exact.correct(&[fingerprint(47)], &mut [true]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
