//! The bands of all documents, stored by the first pass.

use crate::steps::groups::candidates::Candidates;
use crate::steps::groups::near::candidate_documents::{CandidateDocuments, SEEN};
use crate::system::error::Error;
use crate::system::external_sort::{ExternalSort, SortedRecords};
use crate::system::u64_file::U64File;
use crate::terminal::phase::Phase;
use bloomline::BuildError;
use std::env;
use std::io;

/// The number of documents whose bands are looked up at once.
const BATCH: usize = 512;

/// The bands of all documents, in the order of ordinals.
pub struct Bands {
    words: U64File,
    /// The number of bands of a document.
    bands_per_document: usize,
    /// Bands that the filter reported as seen.
    candidates: Candidates,
}

impl Bands {
    /// Creates an empty list, for documents with `bands_per_document` bands each.
    pub fn new(bands_per_document: usize) -> Result<Self, Error> {
        Ok(Self { words: U64File::new().map_err(Error::groups)?, bands_per_document, candidates: Candidates::new()? })
    }

    /// Adds the line at the next ordinal: the bands of its document, and which of them are new to the filter. Both are empty if
    /// there are no bands.
    pub fn add(&mut self, bands: &[u64], new: &[bool]) -> io::Result<()> {
        for (band, new) in bands.iter().zip(new) {
            if !new {
                self.candidates.push(*band | SEEN);
            }
            self.words.push(if *new { band & !SEEN } else { band | SEEN })?;
        }
        // 0 means "no band". A real band that hashes to 0 is as harmless as any other collision.
        (bands.len()..self.bands_per_document).try_for_each(|_| self.words.push(0))
    }

    /// Inserts the candidates among the added lines.
    pub fn insert_pending(&mut self) -> Result<(), BuildError> {
        self.candidates.insert_pending()
    }

    /// Returns the documents that share a band. If the filter `had_keys` bands before the first line, documents with one of these are
    /// included.
    pub fn candidate_documents(self, had_keys: bool) -> Result<CandidateDocuments, Error> {
        let bands = self.words.count();
        let candidates_in_order = self.candidates_in_order()?;
        CandidateDocuments::new(
            Phase::new("sorting", candidates_in_order.count, false).count(candidates_in_order),
            bands,
            had_keys,
        )
    }

    /// Returns the bands that may repeat, in order, each with the doubled ordinal of its document and the bit [`SEEN`].
    fn candidates_in_order(mut self) -> Result<SortedRecords<2>, Error> {
        self.insert_pending()?;
        let mut sorter = ExternalSort::new(&env::temp_dir());
        let mut phase = Phase::new("sorting", self.words.count(), false);
        let mut reader = self.words.read().map_err(Error::groups)?;
        let mut bands = Vec::new();
        let mut hashes = Vec::new();
        let mut found = Vec::new();
        let mut ordinal = 0;
        loop {
            reader.next_into(BATCH * self.bands_per_document, &mut bands).map_err(Error::groups)?;
            if bands.is_empty() {
                return sorter.sorted();
            }
            phase.advance(bands.len() as u64);
            hashes.clear();
            hashes.extend(bands.iter().map(|band| band | SEEN));
            self.candidates.find(&hashes, &mut found);
            for (i, (band, found)) in bands.iter().zip(&found).enumerate() {
                if *found && band & !SEEN != 0 {
                    sorter.push([band & !SEEN, (ordinal + (i / self.bands_per_document) as u64) << 1 | band & SEEN])?;
                }
            }
            ordinal += (bands.len() / self.bands_per_document) as u64;
        }
    }
}
