//! Documents that share a band with others: their places, bucket by bucket, and their sets of grams.

use crate::error::Error;
use crate::groups::marks::Marks;
use crate::groups::near::sets::Sets;
use crate::groups::places::{Again, Places, changed};
use crate::word_file::WordFile;
use std::mem;

/// The bit of a band, and of the place beside it, that is set if the filter reported the band as seen.
pub const SEEN: u64 = 1;

/// Documents that share bands with others, and their sets of grams.
pub struct Involved {
    pub places: Marks,
    /// The documents that have a band of an earlier run.
    pub known: Marks,
    /// The doubled places of the documents that share a band, band by band. 1 is added to the first place of a bucket.
    pub buckets: WordFile,
    pub sets: Sets,
    /// The number of words in the file of bands.
    bands: u64,
}

impl Involved {
    /// Reads the sorted records of `bands` words: a band, and the doubled place of a document with the bit [`SEEN`]. If the filter
    /// `had` bands before the first line, documents with one of these are included.
    pub fn new(records: impl Iterator<Item = Result<[u64; 2], Error>>, bands: u64, had: bool) -> Result<Self, Error> {
        let (buckets, sets) = (WordFile::new().map_err(Error::groups)?, Sets::new().map_err(Error::groups)?);
        let mut involved = Self { places: Marks::default(), known: Marks::default(), buckets, sets, bands };
        let (mut first, mut begun) = ([0; 2], false);
        for record in records {
            let [band, at] = record?;
            if band != first[0] {
                (first, begun) = ([band, at], false);
            } else {
                if !mem::replace(&mut begun, true) {
                    involved.add(first[1] >> 1, true)?;
                }
                involved.add(at >> 1, false)?;
            }
            if had && first[1] & SEEN > 0 {
                involved.places.insert(at >> 1);
                involved.known.insert(at >> 1);
            }
        }
        involved.places.count();
        match involved.places.count {
            documents if documents > u64::from(u32::MAX) => Err(Error::new(format!(
                "cannot compare {documents} documents that share bands: 4294967295 are the most; compare parts of the inputs"
            ))),
            _ => Ok(involved),
        }
    }

    /// Adds a document to a bucket. `begins` is set for the bucket's first.
    fn add(&mut self, place: u64, begins: bool) -> Result<(), Error> {
        self.places.insert(place);
        self.buckets.push(place << 1 | u64::from(begins)).map_err(Error::groups)
    }

    /// Adds the set of grams of the next document, in the order of places.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.sets.push(grams).map_err(Error::groups)
    }

    /// Returns the bytes of temporary files.
    pub fn disk_bytes(&self) -> u64 {
        8 * (self.bands + self.buckets.count() + self.sets.grams())
    }
}

/// A pass over the inputs for the sets of grams of involved documents.
pub struct Collecting {
    involved: Involved,
    /// The place of the next involved document.
    next: Option<u64>,
    again: Again,
}

impl Collecting {
    /// Collects the sets of documents at these places.
    pub fn new(involved: Involved, places: Places) -> Self {
        Self { next: involved.places.next(0), involved, again: Again::new(places) }
    }

    /// Takes the next lines of an input. Calls `found` with the number of each line whose set is to be added.
    pub fn take(&mut self, input: usize, header: bool, lines: usize, mut found: impl FnMut(usize)) {
        let first = self.again.take(input, header, lines);
        while let Some(place) = self.next.filter(|place| *place < first + lines as u64) {
            found((place - first) as usize);
            self.next = self.involved.places.next(place + 1);
        }
    }

    /// Adds the set of grams of the next document.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.involved.push(grams)
    }

    /// Returns the documents with their sets, if the lines were the same again.
    pub fn end(self) -> Result<Involved, Error> {
        if self.again.is_done() { Ok(self.involved) } else { Err(changed()) }
    }
}
