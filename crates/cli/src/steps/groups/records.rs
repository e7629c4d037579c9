//! The records of the first pass: one for each line, in a temporary file, in the order of ordinals.
//!
//! Sorting the records finds equal ones, and most need no sorting: records that the filter reports as seen go into a second filter,
//! of candidates, and only records that match it are sorted. A false positive of either filter only costs time.

use crate::steps::groups::candidates::Candidates;
use crate::steps::groups::choice::KeepPolicy;
use crate::steps::groups::decisions::{CODES, Decision, GroupMember, LineVerdict};
use crate::steps::groups::ids::Ids;
use crate::steps::groups::near::bands::Bands;
use crate::steps::groups::near::survivors::NearGroups;
use crate::steps::groups::ordinals::Ordinals;
use crate::steps::groups::ranked_bitmap::RankedBitmap;
use crate::steps::groups::score::{FIRST, NONE, has_more};
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use crate::system::u64_file::{U64File, U64Reader};
use crate::terminal::phase::Phase;
use std::env;
use std::io;

/// The number of records that are looked up at once.
const BATCH: usize = 4096;

/// Smaller values are not fingerprints, but codes of the reason why the line has no key.
const MIN_FINGERPRINT: u128 = CODES as u128;

/// The bit of a fingerprint that is set if the filter reported it as seen.
const SEEN: u128 = 1;

/// The records of all lines.
pub struct RecordFile {
    /// The low and the high half of each line's fingerprint.
    words: U64File,
    /// The score of each line, if lines are chosen by a value.
    scores: Option<U64File>,
    candidates: Candidates,
    /// The bands of documents, if similar documents form groups.
    pub bands: Option<Bands>,
    pub ordinals: Ordinals,
    pub keep: KeepPolicy,
    ids: Option<Ids>,
    /// True if the filter had keys before the first line.
    pub had_keys: bool,
    /// The number of lines with keys.
    pub keys: u64,
}

impl RecordFile {
    /// Creates an empty list. `had_keys` is set if the filter has keys of earlier runs. With `bands`, each document has that many.
    pub fn new(
        ordinals: Ordinals,
        keep: KeepPolicy,
        ids: bool,
        had_keys: bool,
        bands: Option<usize>,
    ) -> Result<Self, Error> {
        Ok(Self {
            words: U64File::new().map_err(Error::groups)?,
            scores: keep.is_by_value().then(U64File::new).transpose().map_err(Error::groups)?,
            candidates: Candidates::new()?,
            bands: bands.map(Bands::new).transpose()?,
            ordinals,
            keep,
            ids: ids.then(Ids::new).transpose().map_err(Error::groups)?,
            had_keys,
            keys: 0,
        })
    }

    /// Adds the line at the next ordinal, whose key is `new` to the filter.
    pub fn add(&mut self, fingerprint: u128, new: bool, score: &[u64], id: &str) -> io::Result<()> {
        self.keys += 1;
        if !new {
            self.candidates.push(hash(fingerprint));
        }
        let fingerprint = fingerprint.max(MIN_FINGERPRINT) & !SEEN | if new { 0 } else { SEEN };
        self.push(fingerprint, score, id)
    }

    /// Adds the line at the next ordinal, which has no key, with the code of the reason.
    pub fn add_skipped(&mut self, code: u8) -> io::Result<()> {
        if let Some(bands) = &mut self.bands {
            bands.add(&[], &[])?;
        }
        self.push(code.into(), &[NONE], "null")
    }

    fn push(&mut self, fingerprint: u128, score: &[u64], id: &str) -> io::Result<()> {
        self.words.push(fingerprint as u64)?;
        self.words.push(hash(fingerprint))?;
        if let Some(scores) = &mut self.scores {
            score.iter().try_for_each(|word| scores.push(*word))?;
        }
        match &mut self.ids {
            Some(ids) => ids.push(id),
            None => Ok(()),
        }
    }

    /// Inserts the candidates among the added lines.
    pub fn insert_pending(&mut self) -> io::Result<()> {
        if let Some(bands) = &mut self.bands {
            bands.insert_pending().map_err(io::Error::other)?;
        }
        self.candidates.insert_pending().map_err(io::Error::other)
    }

    /// Calls `member` for each line that may not be unique, once for each word of its score, and `skip` for each line without a
    /// key, in the order of ordinals. The groups are of `near` duplicates, if they were compared. Returns the number of bytes on disk.
    pub fn each(
        &mut self,
        near: Option<&NearGroups>,
        mut member: impl FnMut(GroupMember) -> Result<(), Error>,
        mut skip: impl FnMut(Decision) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let Self { words, scores, candidates, keep, had_keys, ordinals, .. } = self;
        let mut phase = Phase::new("sorting", words.count(), false);
        let mut reader = words.read().map_err(Error::groups)?;
        let mut score_words = scores.as_mut().map(U64File::read).transpose().map_err(Error::groups)?;
        let mut records = Vec::new();
        let mut hashes = Vec::new();
        let mut found = Vec::new();
        let mut ordinal = 0;
        let first_own = ordinals.first_own();
        let mut score = Vec::new();
        loop {
            reader.next_into(BATCH * 2, &mut records).map_err(Error::groups)?;
            if records.is_empty() {
                return Ok(8 * (words.count() + scores.as_ref().map_or(0, U64File::count)));
            }
            phase.advance(records.len() as u64);
            hashes.clear();
            hashes.extend(records.chunks_exact(2).map(|record| record[1]));
            candidates.find(&hashes, &mut found);
            for (record, found) in records.chunks_exact(2).zip(&found) {
                let fingerprint = u128::from(record[1]) << u64::BITS | u128::from(record[0]);
                score.clear();
                if let Some(words) = &mut score_words {
                    next_score(words, &mut score)?;
                } else {
                    score.push(keep.ordinal_score(ordinal));
                }
                if ordinal < first_own {
                    score.clear();
                    score.push(FIRST);
                }
                let mut each_word = |group, known| {
                    let mut words = score.iter().zip(0..);
                    words.try_for_each(|(&word, part)| member(GroupMember { group, ordinal, known, part, word }))
                };
                if fingerprint < MIN_FINGERPRINT {
                    skip(Decision { ordinal, verdict: LineVerdict::Skipped(fingerprint as u8) })?;
                } else if let Some(near) = near {
                    if let Some((survivor, known)) = near.survivor(ordinal) {
                        each_word(survivor.into(), known)?;
                    }
                } else if *found {
                    let known = *had_keys && fingerprint & SEEN > 0;
                    each_word(fingerprint & !SEEN, known)?;
                }
                ordinal += 1;
            }
        }
    }

    /// Returns the ranks of these lines, in the order of ordinals. The line with the least rank is the best; lines of equal rank are
    /// equally good.
    ///
    /// Each pass over the scores sorts the lines by one word more, as long as lines have equal words and more behind them.
    pub fn ranks(&mut self, ordinals: &RankedBitmap) -> Result<Vec<u32>, Error> {
        let mut ranks = vec![0; ordinals.count as usize];
        let Some(scores) = &mut self.scores else {
            if self.keep == KeepPolicy::Last {
                (0..).zip(ranks.iter_mut().rev()).for_each(|(number, rank)| *rank = number);
            }
            return Ok(ranks);
        };
        let mut score = Vec::new();
        for part in 0.. {
            let mut sorter = ExternalSort::<3>::new(&env::temp_dir());
            let mut words = scores.read().map_err(Error::groups)?;
            let mut before = 0;
            for (document, ordinal) in ordinals.iter().enumerate() {
                for _ in before..=ordinal {
                    score.clear();
                    next_score(&mut words, &mut score)?;
                }
                before = ordinal + 1;
                // Lines with a shorter score are in order already.
                sorter.push([ranks[document].into(), score.get(part).copied().unwrap_or(0), document as u64])?;
            }
            let (mut last, mut rank, mut is_open) = (None, 0, false);
            for (number, record) in (0..).zip(sorter.sorted()?) {
                let [before, word, document] = record?;
                if last.replace((before, word)) == Some((before, word)) {
                    is_open |= has_more(word);
                } else {
                    rank = number;
                }
                ranks[document as usize] = rank;
            }
            if !is_open {
                break;
            }
        }
        Ok(ranks)
    }

    /// Returns the ids of lines, if they were read.
    pub fn ids(&mut self) -> Option<&mut Ids> {
        self.ids.as_mut()
    }
}

/// Appends the words of the next score.
fn next_score(words: &mut U64Reader, score: &mut Vec<u64>) -> Result<(), Error> {
    while score.last().is_none_or(|&word| has_more(word)) {
        let word = words.next().expect("the last word of a score has no more behind it");
        score.push(word.map_err(Error::groups)?);
    }
    Ok(())
}

/// Returns the hash of a fingerprint in the filter.
fn hash(fingerprint: u128) -> u64 {
    (fingerprint >> u64::BITS) as u64
}
