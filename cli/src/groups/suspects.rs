//! Suspects: hashes that the filter took for seen, in a filter of their own. What it has not is the only one of its kind.

use bloomline::{BuildError, ScalableBloomFilter};

/// The first stage of the filter, and its rate: it takes some two bytes for each.
const KEYS: u64 = 1 << 16;
const RATE: f64 = 0.01;

pub struct Suspects {
    filter: ScalableBloomFilter,
    /// Those that are not in yet.
    hashes: Vec<u64>,
    new: Vec<bool>,
}

impl Suspects {
    /// None so far.
    pub fn new() -> Result<Self, BuildError> {
        let filter = ScalableBloomFilter::builder().expected_keys(KEYS).false_positive_rate(RATE).build()?;
        Ok(Self { filter, hashes: Vec::new(), new: Vec::new() })
    }

    pub fn push(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// Inserts those that were pushed.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        self.new.resize(self.hashes.len(), false);
        self.filter.insert_hashes(&self.hashes, &mut self.new)?;
        self.hashes.clear();
        Ok(())
    }

    /// Makes `found[i]` whether hash i is one, perhaps by mistake.
    pub fn find(&self, hashes: &[u64], found: &mut Vec<bool>) {
        found.resize(hashes.len(), false);
        self.filter.contains_hashes(hashes, found);
    }
}
