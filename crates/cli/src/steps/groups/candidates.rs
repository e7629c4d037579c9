//! Candidates: hashes that the filter reported as seen, in a filter of their own. Hashes that are not in it are unique.

use bloomline::{BuildError, ScalableBloomFilter};

/// The keys of the filter's first stage, and its rate. Each hash takes about two bytes.
const KEYS: u64 = 1 << 16;
const RATE: f64 = 0.01;

pub struct Candidates {
    filter: ScalableBloomFilter,
    /// Hashes that are not inserted yet.
    hashes: Vec<u64>,
    new: Vec<bool>,
}

impl Candidates {
    pub fn new() -> Result<Self, BuildError> {
        let filter = ScalableBloomFilter::builder().expected_keys(KEYS).false_positive_rate(RATE).build()?;
        Ok(Self { filter, hashes: Vec::new(), new: Vec::new() })
    }

    pub fn push(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// Inserts the hashes that were pushed.
    pub fn insert_pending(&mut self) -> Result<(), BuildError> {
        self.new.resize(self.hashes.len(), false);
        self.filter.insert_hashes(&self.hashes, &mut self.new)?;
        self.hashes.clear();
        Ok(())
    }

    /// Sets `found[i]` if hash `i` is a candidate, perhaps by mistake.
    pub fn find(&self, hashes: &[u64], found: &mut Vec<bool>) {
        found.resize(hashes.len(), false);
        self.filter.contains_hashes(hashes, found);
    }
}
