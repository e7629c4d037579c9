//! The survivors of near duplicates, chosen by rank.

use crate::steps::groups::near::candidate_documents::CandidateDocuments;
use crate::steps::groups::near::sets::Sets;
use crate::steps::groups::ordinals;
use crate::steps::groups::ranked_bitmap::RankedBitmap;
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use crate::terminal::phase::Phase;
use bloomline_text::near::{Survivors, containment, jaccard};
use std::env;

/// The thresholds of near duplicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The least Jaccard index of two documents.
    pub similarity: f64,
    /// The least share of a removed document's grams that its survivor has.
    pub contained: f64,
}

/// The survivor of each document.
pub struct NearGroups {
    pub ordinals: RankedBitmap,
    /// The documents that have a band of an earlier run.
    known: RankedBitmap,
    /// The survivor of each document, or the document itself if it is kept.
    survivors: Vec<u32>,
    sets: Sets,
    /// An upper bound of the number of pairs of survivors that share a band and were not compared.
    not_compared: u64,
}

impl NearGroups {
    /// Decides about the documents in the order of their `ranks`, and of ordinals among equal ranks. Documents with ordinals below
    /// `first_own` are kept, and documents with a band of an earlier run are removed without comparison.
    pub fn new(
        candidate_documents: CandidateDocuments,
        ranks: &[u32],
        first_own: u64,
        Thresholds { similarity, contained }: Thresholds,
    ) -> Result<Self, Error> {
        let survivors = Survivors::new(similarity).and_then(|survivors| survivors.with_contained(contained));
        Self::decided(candidate_documents, ranks, first_own, survivors.expect("the parser accepts only shares"))
    }

    /// Decides with these parameters.
    pub(super) fn decided(
        candidate_documents: CandidateDocuments,
        ranks: &[u32],
        first_own: u64,
        mut survivors: Survivors,
    ) -> Result<Self, Error> {
        let CandidateDocuments { ordinals, known, mut buckets, mut sets, .. } = candidate_documents;
        let count = ordinals.count as u32;
        if sets.sizes.len() != count as usize {
            return Err(ordinals::changed());
        }
        sets.flush().map_err(Error::groups)?;
        // The rank and the number of each document, and one of its buckets. Documents that are kept come first.
        let mut by_rank = ExternalSort::<2>::new(&env::temp_dir());
        let mut bucket_count = 0_u64;
        for packed in buckets.read().map_err(Error::groups)? {
            let packed = packed.map_err(Error::groups)?;
            bucket_count += packed & 1;
            let ordinal = packed >> 1;
            if !known.contains(ordinal)
                && let Some(document) = ordinals.index(ordinal)
            {
                let rank = if ordinal < first_own { 0 } else { 1 + u64::from(ranks[document]) };
                by_rank.push([rank << 32 | document as u64, bucket_count - 1])?;
            }
        }
        if u32::try_from(bucket_count).is_err() {
            return Err(Error::new(format!(
                "cannot compare documents with {bucket_count} common keys: the limit is 4294967295; compare parts of the inputs"
            )));
        }
        let (mut chosen, mut bytes): (Vec<u32>, _) = ((0..count).collect(), Vec::new());
        let mut decide = |key: u64, buckets: &[u32]| {
            let document = key as u32;
            if key >> 32 == 0 {
                survivors.keep(document, buckets);
                return Ok(());
            }
            let removal = survivors.decide(document, buckets, |document, into| sets.read(document, &mut bytes, into));
            if let Some(removal) = removal.map_err(Error::groups)? {
                chosen[document as usize] = removal.survivor;
            }
            Ok::<(), Error>(())
        };
        let (mut current, mut own_buckets) = (None, Vec::new());
        let by_rank = by_rank.sorted()?;
        for record in Phase::new("comparing", by_rank.count, false).count(by_rank) {
            let [key, bucket] = record?;
            if let Some(last) = current.replace(key)
                && last != key
            {
                decide(last, &own_buckets)?;
                own_buckets.clear();
            }
            own_buckets.push(bucket as u32);
        }
        if let Some(last) = current {
            decide(last, &own_buckets)?;
        }
        let not_compared = survivors.not_compared();
        Ok(Self { ordinals, known, survivors: chosen, sets, not_compared })
    }

    /// Returns a warning if pairs were not compared.
    pub fn warning(&self) -> Option<String> {
        let pairs = self.not_compared;
        (pairs > 0).then(|| {
            format!(
                "up to {pairs} pairs of documents were not compared, because too many dissimilar documents share a key with one: \
                 similar documents may both be kept; remove what they have in common first, such as paragraphs, or give a higher --near"
            )
        })
    }

    /// Returns the number of the survivor of the document at an ordinal, and whether an earlier run had one of its bands. `None` if
    /// no document shares a band with it.
    pub fn survivor(&self, ordinal: u64) -> Option<(u32, bool)> {
        Some((self.survivors[self.ordinals.index(ordinal)?], self.known.contains(ordinal)))
    }

    /// Returns the Jaccard index of the documents at two ordinals, and the share of the grams of the first that the other has. Both
    /// share bands with others.
    pub fn measures(&self, ordinal: u64, other: u64) -> Result<(f64, f64), Error> {
        let number =
            |ordinal| self.ordinals.index(ordinal).map(|document| document as u32).ok_or_else(ordinals::changed);
        let (own, other) = (number(ordinal)?, number(other)?);
        let read = |document| {
            let mut grams = Vec::new();
            self.sets.read(document, &mut Vec::new(), &mut grams).map_err(Error::groups)?;
            Ok::<_, Error>(grams)
        };
        let (own, other) = (read(own)?, read(other)?);
        Ok((jaccard(&own, &other), containment(&own, &other)))
    }

    /// Returns the number of pairs that were not compared, an upper bound.
    pub fn not_compared(&self) -> u64 {
        self.not_compared
    }
}
