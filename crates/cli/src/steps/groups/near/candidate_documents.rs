//! Documents that share a band with others: their ordinals, bucket by bucket, and their sets of grams.

use crate::steps::groups::near::sets::Sets;
use crate::steps::groups::ordinals::{Ordinals, SecondOrdinals, changed};
use crate::steps::groups::ranked_bitmap::RankedBitmap;
use crate::system::error::Error;
use crate::system::u64_file::U64File;
use std::mem;

/// The bit of a band, and of the ordinal beside it, that is set if the filter reported the band as seen.
pub const SEEN: u64 = 1;

/// Documents that share bands with others, and their sets of grams.
pub struct CandidateDocuments {
    pub ordinals: RankedBitmap,
    /// The documents that have a band of an earlier run.
    pub known: RankedBitmap,
    /// The doubled ordinals of the documents that share a band, band by band. 1 is added to the first ordinal of a bucket.
    pub buckets: U64File,
    pub sets: Sets,
    /// The number of words in the file of bands.
    bands: u64,
}

impl CandidateDocuments {
    /// Reads the sorted records of `bands` words: a band, and the doubled ordinal of a document with the bit [`SEEN`]. If the filter
    /// `had_keys` bands before the first line, documents with one of these are included.
    pub fn new(
        records: impl Iterator<Item = Result<[u64; 2], Error>>,
        bands: u64,
        had_keys: bool,
    ) -> Result<Self, Error> {
        let (buckets, sets) = (U64File::new().map_err(Error::groups)?, Sets::new().map_err(Error::groups)?);
        let mut candidate_documents =
            Self { ordinals: RankedBitmap::default(), known: RankedBitmap::default(), buckets, sets, bands };
        let (mut first, mut begun) = ([0; 2], false);
        for record in records {
            let [band, at] = record?;
            if band != first[0] {
                (first, begun) = ([band, at], false);
            } else {
                if !mem::replace(&mut begun, true) {
                    candidate_documents.add(first[1] >> 1, true)?;
                }
                candidate_documents.add(at >> 1, false)?;
            }
            if had_keys && first[1] & SEEN > 0 {
                candidate_documents.ordinals.insert(at >> 1);
                candidate_documents.known.insert(at >> 1);
            }
        }
        candidate_documents.ordinals.count();
        match candidate_documents.ordinals.count {
            documents if documents > u64::from(u32::MAX) => Err(Error::new(format!(
                "cannot compare {documents} documents that share bands: the limit is 4294967295; compare parts of the inputs"
            ))),
            _ => Ok(candidate_documents),
        }
    }

    /// Adds a document to a bucket. `begins` is set for the bucket's first.
    fn add(&mut self, ordinal: u64, begins: bool) -> Result<(), Error> {
        self.ordinals.insert(ordinal);
        self.buckets.push(ordinal << 1 | u64::from(begins)).map_err(Error::groups)
    }

    /// Adds the set of grams of the next document, in the order of ordinals.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.sets.push(grams).map_err(Error::groups)
    }

    /// Returns the bytes of temporary files.
    pub fn disk_bytes(&self) -> u64 {
        8 * (self.bands + self.buckets.count() + self.sets.grams())
    }
}

/// A pass over the inputs for the sets of grams of candidate documents.
pub struct GramCollector {
    candidate_documents: CandidateDocuments,
    /// The ordinal of the next candidate document.
    next: Option<u64>,
    second: SecondOrdinals,
}

impl GramCollector {
    /// Collects the sets of documents at these ordinals.
    pub fn new(candidate_documents: CandidateDocuments, ordinals: Ordinals) -> Self {
        Self { next: candidate_documents.ordinals.next(0), candidate_documents, second: SecondOrdinals::new(ordinals) }
    }

    /// Takes the next lines of an input. Calls `found` with the number of each line whose set is to be added.
    pub fn take(&mut self, input: usize, header: bool, lines: usize, mut found: impl FnMut(usize)) {
        let first = self.second.take(input, header, lines);
        while let Some(ordinal) = self.next.filter(|ordinal| *ordinal < first + lines as u64) {
            found((ordinal - first) as usize);
            self.next = self.candidate_documents.ordinals.next(ordinal + 1);
        }
    }

    /// Adds the set of grams of the next document.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.candidate_documents.push(grams)
    }

    /// Returns the documents with their sets, if the lines were the same again.
    pub fn end(self) -> Result<CandidateDocuments, Error> {
        if self.second.is_done() { Ok(self.candidate_documents) } else { Err(changed()) }
    }
}
