//! An exact check of the keys that the filter reports as seen: a set of all fingerprints, mostly on disk.
//!
//! New fingerprints are collected in `recent`. When it is full, it becomes a [`Run`], a sorted file. Only a suspect that is not in
//! `recent` is looked up in the runs. The suspects of one chunk are looked up together and in order, which costs one page of each
//! run. The ones that are found are cached in `confirmed`, because inputs repeat some lines very often.
//!
//! Runs are merged for two reasons: 16 of one size become one, which bounds their number; and all become one once
//! lookups in many have cost about as much as a merge. So an input of new lines is hardly ever merged, and an input of
//! old lines soon has a single run.
//!
//! The memory is 27 MiB and 1/128 of the size on disk: 39 MiB for 100 million distinct lines. The disk holds 16 bytes
//! for each distinct line, at most twice as much during a merge.

mod recent;
mod run;

use bloomline::KeyHasher;
use recent::Recent;
use run::{Run, Suspect};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fingerprints merged in the time of reading one page.
const MERGED_PER_LOOKUP: u64 = 16;

/// The number of fingerprints whose slots are fetched from memory at once.
const AHEAD: usize = 64;

/// Changes the seed of the first hash to the seed of the second.
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the hasher of fingerprints for a filter with this seed.
pub fn second_hasher(seed: u64) -> KeyHasher {
    KeyHasher::new(seed ^ SECOND)
}

/// The fingerprints of all lines so far.
pub struct Exact {
    folder: PathBuf,
    limits: Limits,
    recent: Recent,
    /// Oldest first, so that the first is about the largest.
    runs: Vec<Run>,
    /// A cache of fingerprints that were found in runs, each in the slot that its low bits select. 0 marks a free slot.
    confirmed: Vec<u128>,
    /// Pages read in runs other than the first since the last merge of all. Relaxed: it only decides when a merge pays.
    detours: AtomicU64,
}

struct Limits {
    /// The slots for recent fingerprints, as a power of two. Three quarters of them are used.
    recent_bits: u32,
    /// The slots of `confirmed`, as a power of two.
    confirmed_bits: u32,
    /// The number of runs of about one size that become one.
    fan_in: usize,
}

impl Exact {
    /// Creates an empty set. Its temporary files are made in `folder`. Fails if none can be made there.
    pub fn new(folder: &Path) -> io::Result<Self> {
        tempfile::tempfile_in(folder)?;
        Ok(Self::limited(folder, Limits { recent_bits: 20, confirmed_bits: 19, fan_in: 16 }))
    }

    fn limited(folder: &Path, limits: Limits) -> Self {
        Self {
            folder: folder.into(),
            recent: Recent::new(limits.recent_bits),
            confirmed: vec![0; 1 << limits.confirmed_bits],
            limits,
            runs: Vec::new(),
            detours: AtomicU64::new(0),
        }
    }

    /// Corrects the filter's answers for the lines with these fingerprints: every `false` (perhaps seen) that should be
    /// `true` (new). Returns the number of corrections.
    ///
    /// After an error only some of the lines are recorded, and the set must not be used any more.
    pub fn correct(&mut self, fingerprints: &[u128], new: &mut [bool]) -> io::Result<usize> {
        let mut suspects = Vec::new();
        for (line, (&fingerprint, &new)) in fingerprints.iter().zip(&*new).enumerate() {
            if line % AHEAD == 0 {
                self.recent.touch(&fingerprints[line..fingerprints.len().min(line + AHEAD)]);
            }
            // 0 marks free slots. Treating it as 1 is as harmless as any other collision.
            let fingerprint = fingerprint.max(1);
            if new {
                self.remember(fingerprint)?;
            } else if !self.recent.contains(fingerprint) && *self.confirmed(fingerprint) != fingerprint {
                suspects.push(Suspect { fingerprint, line, found: false });
            }
        }
        // The first of equal lines decides, and the stable sort keeps it first; the others remain duplicates.
        suspects.sort_by_key(|suspect| suspect.fingerprint);
        suspects.dedup_by_key(|suspect| suspect.fingerprint);
        self.look(&mut suspects)?;
        let mut corrected = 0;
        for Suspect { fingerprint, line, found } in suspects {
            if found {
                *self.confirmed(fingerprint) = fingerprint;
            } else {
                self.remember(fingerprint)?;
                new[line] = true;
                corrected += 1;
            }
        }
        self.tidy()?;
        Ok(corrected)
    }

    /// Corrects the filter's answers for the lines with these fingerprints: every `true` (perhaps found) that should be
    /// `false`. Records nothing, so any number of threads may call it.
    pub fn confirm(&self, fingerprints: &[u128], found: &mut [bool]) -> io::Result<()> {
        let mut suspects = Vec::new();
        for (line, (&fingerprint, &found)) in fingerprints.iter().zip(&*found).enumerate() {
            if line % AHEAD == 0 {
                self.recent.touch(&fingerprints[line..fingerprints.len().min(line + AHEAD)]);
            }
            let fingerprint = fingerprint.max(1);
            if found && !self.recent.contains(fingerprint) {
                suspects.push(Suspect { fingerprint, line, found: false });
            }
        }
        suspects.sort_unstable_by_key(|suspect| suspect.fingerprint);
        self.look(&mut suspects)?;
        suspects.iter().for_each(|suspect| found[suspect.line] = suspect.found);
        Ok(())
    }

    /// Looks sorted suspects up in the runs.
    fn look(&self, suspects: &mut [Suspect]) -> io::Result<()> {
        for (position, run) in self.runs.iter().enumerate() {
            let pages = run.find(suspects)?;
            self.detours.fetch_add(if position == 0 { 0 } else { pages }, Relaxed);
        }
        Ok(())
    }

    /// True if lookups in many runs have cost about as much as a merge of all.
    pub fn is_untidy(&self) -> bool {
        self.detours.load(Relaxed) * MERGED_PER_LOOKUP > self.runs.iter().map(Run::entries).sum()
    }

    /// Merges all runs if that pays.
    pub fn tidy(&mut self) -> io::Result<()> {
        if self.is_untidy() {
            self.merge(0)?;
            *self.detours.get_mut() = 0;
        }
        Ok(())
    }

    /// The length of all temporary files.
    pub fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(Run::bytes).sum()
    }

    fn confirmed(&mut self, fingerprint: u128) -> &mut u128 {
        let mask = self.confirmed.len() - 1;
        &mut self.confirmed[fingerprint as usize & mask]
    }

    /// Records a fingerprint that is not in the set.
    fn remember(&mut self, fingerprint: u128) -> io::Result<()> {
        self.recent.insert(fingerprint);
        if !self.recent.is_full() {
            return Ok(());
        }
        self.runs.push(Run::write(&self.folder, self.recent.ascending())?);
        self.recent.clear();
        let fan_in = self.limits.fan_in;
        while let Some(from) = self.runs.len().checked_sub(fan_in) {
            // The smallest run has level 0, a merge of `fan_in` runs of level 0 has level 1, and so on.
            let smallest = self.runs.iter().map(Run::entries).min().unwrap_or(1);
            let level = |run: &Run| (run.entries() / smallest).ilog(fan_in as u64);
            if level(&self.runs[from]) != level(&self.runs[self.runs.len() - 1]) {
                break;
            }
            self.merge(from)?;
        }
        Ok(())
    }

    /// Merges the runs from index `from` to the end.
    fn merge(&mut self, from: usize) -> io::Result<()> {
        let merged = Run::merge(&self.folder, self.runs.drain(from..))?;
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

    /// 48 fingerprints fill the memory.
    fn small(folder: &Path) -> Exact {
        Exact::limited(folder, Limits { recent_bits: 6, confirmed_bits: 4, fan_in: 3 })
    }

    /// The key 0 has the fingerprint 0, all others have random ones.
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
        exact.runs.iter().map(Run::entries).collect()
    }

    /// Remembers new keys.
    fn add(exact: &mut Exact, keys: impl Iterator<Item = u64>) {
        let keys = fingerprints(keys);
        assert_eq!(exact.correct(&keys, &mut vec![true; keys.len()]).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn answers_like_a_hash_set(
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
        fn confirms_what_was_remembered_and_remembers_nothing(
            keys in prop::collection::vec(0_u64..3000, 0..2000),
            asked in prop::collection::vec((0_u64..3000, any::<bool>()), 0..2000),
            batch in 1_usize..500,
        ) {
            let (mut exact, known) = (small(&temp_dir()), keys.iter().copied().collect::<HashSet<_>>());
            add(&mut exact, known.iter().copied());
            let bytes = exact.disk_bytes();
            for asked in asked.chunks(batch) {
                // The keys of the filter are found, and some others by mistake.
                let mut found: Vec<_> = asked.iter().map(|(key, wrong)| known.contains(key) || *wrong).collect();
                exact.confirm(&fingerprints(asked.iter().map(|(key, _)| *key)), &mut found).unwrap();
                prop_assert!(asked.iter().zip(&found).all(|((key, _), found)| known.contains(key) == *found));
                exact.tidy().unwrap();
                prop_assert!(!exact.is_untidy());
            }
            prop_assert_eq!(exact.disk_bytes(), bytes);
        }
    }

    #[test]
    fn of_equal_lines_in_a_batch_the_first_is_corrected() {
        let mut exact = small(&temp_dir());
        add(&mut exact, 0..100);
        let mut new = [false, false, false, true, false];
        assert_eq!(exact.correct(&fingerprints([200, 5, 200, 201, 201].into_iter()), &mut new).unwrap(), 1);
        assert_eq!(new, [true, false, false, true, false]);
    }

    #[test]
    fn a_run_is_written_when_the_memory_is_full_and_merged_with_others_of_its_size() {
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
        // One at a time, so that no two share a page.
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
        assert_eq!(exact.detours.into_inner(), 0);
    }

    #[test]
    fn repeats_that_were_found_need_no_file() {
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
