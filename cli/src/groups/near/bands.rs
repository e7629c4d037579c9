//! The bands of all documents, stored by the first pass.

use crate::error::Error;
use crate::external_sort::{ExternalSort, SortedRecords};
use crate::groups::candidates::Candidates;
use crate::groups::near::candidate_documents::{CandidateDocuments, SEEN};
use crate::phase::Phase;
use crate::u64_file::U64File;
use bloomline::BuildError;
use std::env;
use std::io;

/// The number of documents whose bands are looked up at once.
const BATCH: usize = 512;

/// The bands of all documents, in the order of ordinals.
pub struct Bands {
    words: U64File,
    /// The number of bands of a document.
    per: usize,
    /// Bands that the filter reported as seen.
    candidates: Candidates,
}

impl Bands {
    /// Creates an empty list, for documents with `per` bands each.
    pub fn new(per: usize) -> Result<Self, Error> {
        Ok(Self { words: U64File::new().map_err(Error::groups)?, per, candidates: Candidates::new()? })
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
        (bands.len()..self.per).try_for_each(|_| self.words.push(0))
    }

    /// Inserts the candidates among the added lines.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        self.candidates.settle()
    }

    /// Returns the documents that share a band. If the filter `had` bands before the first line, documents with one of these are
    /// included.
    pub fn candidate_documents(self, had: bool) -> Result<CandidateDocuments, Error> {
        let bands = self.words.count();
        let suspected = self.suspected()?;
        CandidateDocuments::new(Phase::new("sorting", suspected.count, false).of(suspected), bands, had)
    }

    /// Returns the bands that may repeat, in order, each with the doubled place of its document and the bit [`SEEN`].
    fn suspected(mut self) -> Result<SortedRecords<2>, Error> {
        self.settle()?;
        let mut sorter = ExternalSort::new(&env::temp_dir());
        let mut phase = Phase::new("sorting", self.words.count(), false);
        let mut reader = self.words.read().map_err(Error::groups)?;
        let (mut bands, mut hashes, mut found, mut ordinal) = (Vec::new(), Vec::new(), Vec::new(), 0);
        loop {
            reader.next_into(BATCH * self.per, &mut bands).map_err(Error::groups)?;
            if bands.is_empty() {
                return sorter.sorted();
            }
            phase.advance(bands.len() as u64);
            hashes.clear();
            hashes.extend(bands.iter().map(|band| band | SEEN));
            self.candidates.find(&hashes, &mut found);
            for (i, (band, found)) in bands.iter().zip(&found).enumerate() {
                if *found && band & !SEEN != 0 {
                    sorter.push([band & !SEEN, (ordinal + (i / self.per) as u64) << 1 | band & SEEN])?;
                }
            }
            ordinal += (bands.len() / self.per) as u64;
        }
    }
}
