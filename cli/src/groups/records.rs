//! What the first reading keeps of each line: a record in a temporary file, in the order of places.
//!
//! Which records belong together is found by sorting them, and most need not be: what the filter took for seen goes into a
//! second filter, of suspects, and only records that this one has are sorted. A mistake of either filter costs time alone.

use crate::error::Error;
use crate::groups::choice::Choice;
use crate::groups::decisions::{Aside, Decision, Member, Verdict};
use crate::groups::ids::Ids;
use crate::groups::near::bands::Bands;
use crate::groups::near::clusters::Clusters;
use crate::groups::places::Places;
use crate::groups::score::{NONE, has_more};
use crate::groups::suspects::Suspects;
use crate::phase::Phase;
use crate::word_file::WordFile;
use std::io;

/// Records that are looked up at once.
const BATCH: usize = 4096;

/// Fingerprints below are no lines with a key, but tell why not.
const LEAST: u128 = 16;

/// The bit of a fingerprint that tells whether the filter took it for seen.
const SEEN: u128 = 1;

/// The records of all lines.
pub struct Records {
    /// Of each line the low and the high half of its fingerprint.
    words: WordFile,
    /// The score of each, if lines are chosen by a value.
    scores: Option<WordFile>,
    suspects: Suspects,
    /// The bands of documents, where those that are alike are a group.
    pub bands: Option<Bands>,
    pub places: Places,
    choice: Choice,
    ids: Option<Ids>,
    /// Whether the filter had keys before the first line.
    pub had: bool,
    /// Lines with keys.
    pub keys: u64,
}

impl Records {
    /// Of no lines so far. `had` tells whether the filter has keys of earlier runs. With `bands`, documents have so many.
    pub fn new(places: Places, choice: Choice, ids: bool, had: bool, bands: Option<usize>) -> Result<Self, Error> {
        Ok(Self {
            words: WordFile::new().map_err(Error::groups)?,
            scores: choice.pointer().map(|_| WordFile::new()).transpose().map_err(Error::groups)?,
            suspects: Suspects::new()?,
            bands: bands.map(Bands::new).transpose()?,
            places,
            choice,
            ids: ids.then(Ids::new).transpose().map_err(Error::groups)?,
            had,
            keys: 0,
        })
    }

    /// Adds the line at the next place, which has a key; the filter says whether that is `new`.
    pub fn add(&mut self, fingerprint: u128, new: bool, score: &[u64], id: &str) -> io::Result<()> {
        self.keys += 1;
        if !new {
            self.suspects.push(hash(fingerprint));
        }
        let fingerprint = fingerprint.max(LEAST) & !SEEN | if new { 0 } else { SEEN };
        self.push(fingerprint, score, id)
    }

    /// Adds the line at the next place, which has no key.
    pub fn add_aside(&mut self, aside: Aside) -> io::Result<()> {
        self.bands.as_mut().map_or(Ok(()), |all| all.add(&[], &[]))?;
        self.push(aside as u128, &[NONE], "null")
    }

    fn push(&mut self, fingerprint: u128, score: &[u64], id: &str) -> io::Result<()> {
        self.words.push(fingerprint as u64)?;
        self.words.push(hash(fingerprint))?;
        if let Some(scores) = &mut self.scores {
            score.iter().try_for_each(|word| scores.push(*word))?;
        }
        self.ids.as_mut().map_or(Ok(()), |ids| ids.push(id))
    }

    /// Takes note of the suspects among the lines that were added.
    pub fn settle(&mut self) -> io::Result<()> {
        self.bands.as_mut().map_or(Ok(()), Bands::settle).map_err(io::Error::other)?;
        self.suspects.settle().map_err(io::Error::other)
    }

    /// Calls `member` with each line that may have others of its kind, once for each word of its score, and `aside` with those that have
    /// no key: in the order of places. Returns how many bytes were on disk. Documents that are alike are of the clusters' groups.
    pub fn each(
        &mut self,
        clusters: Option<&Clusters>,
        mut member: impl FnMut(Member) -> Result<(), Error>,
        mut aside: impl FnMut(Decision) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let Self { words, scores, suspects, choice, had, .. } = self;
        let mut phase = Phase::new("sorting", words.count(), false);
        let mut reader = words.read().map_err(Error::groups)?;
        let mut score_words = scores.as_mut().map(WordFile::read).transpose().map_err(Error::groups)?;
        let (mut records, mut hashes, mut found, mut place) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut score = Vec::new();
        loop {
            reader.next_into(BATCH * 2, &mut records).map_err(Error::groups)?;
            if records.is_empty() {
                return Ok(8 * (words.count() + scores.as_ref().map_or(0, WordFile::count)));
            }
            phase.advance(records.len() as u64);
            hashes.clear();
            hashes.extend(records.chunks_exact(2).map(|record| record[1]));
            suspects.find(&hashes, &mut found);
            for (record, found) in records.chunks_exact(2).zip(&found) {
                let fingerprint = u128::from(record[1]) << u64::BITS | u128::from(record[0]);
                score.clear();
                if let Some(words) = &mut score_words {
                    while score.last().is_none_or(|&word| has_more(word)) {
                        score.push(words.next().ok_or(Error::Worker)?.map_err(Error::groups)?);
                    }
                } else {
                    score.push(choice.at(place));
                }
                let mut each_word = |group, known| {
                    let mut words = score.iter().zip(0..);
                    words.try_for_each(|(&word, part)| member(Member { group, place, known, part, word }))
                };
                if let Some(kind) = Aside::of(fingerprint) {
                    aside(Decision { place, verdict: Verdict::Aside(kind) })?;
                } else if let Some(clusters) = clusters {
                    if let Some((first, known)) = clusters.first(place) {
                        each_word(first.into(), known)?;
                    }
                } else if *found {
                    let known = *had && fingerprint & SEEN > 0;
                    each_word(fingerprint & !SEEN, known)?;
                }
                place += 1;
            }
        }
    }

    /// What lines are called, if that was read.
    pub fn ids(&mut self) -> Option<&mut Ids> {
        self.ids.as_mut()
    }
}

/// The hash that the filter knows a fingerprint by.
fn hash(fingerprint: u128) -> u64 {
    (fingerprint >> u64::BITS) as u64
}
