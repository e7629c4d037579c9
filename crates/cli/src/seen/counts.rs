//! Counts of lines and of units of text.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Counts of lines, keys and units of documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Lines so far.
    pub lines: u64,
    /// Lines without a key.
    pub faults: u64,
    /// Lines without a key that are kept.
    #[serde(default)]
    pub kept: u64,
    /// Lines of white space that are removed.
    #[serde(default)]
    pub blank: u64,
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Lines that are kept: their keys were new, or a part of their documents was.
    pub unique: u64,
    /// The length of the lines with their line ends.
    pub bytes: u64,
    /// Inputs that are skipped in whole or from some line on.
    pub left_out: u64,
    /// Counts of the units of documents.
    #[serde(default)]
    pub units: UnitCounts,
}

impl LineCounts {
    pub fn add(&mut self, other: &Self) {
        let Self { lines, faults, kept, blank, inserted, unique, bytes, left_out, units } = other;
        self.lines += lines;
        self.faults += faults;
        self.kept += kept;
        self.blank += blank;
        self.inserted += inserted;
        self.unique += unique;
        self.bytes += bytes;
        self.left_out += left_out;
        self.units += units;
    }

    /// Returns the number of lines that are removed as duplicates.
    pub fn dropped(&self) -> u64 {
        self.lines - self.faults - self.blank - self.unique
    }

    /// Keys that the filter reported as seen and the exact check found to be new.
    pub fn rescued(&self) -> u64 {
        self.unique - self.inserted
    }
}

/// The statistics of units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitCounts {
    /// Units, and duplicates among them.
    pub units: u64,
    pub duplicates: u64,
    /// Documents that were cut in part.
    pub shortened: u64,
    /// Grams that were looked up, and those that were found.
    pub grams: u64,
    pub found: u64,
    /// Bytes of text, and those removed with units and documents.
    pub bytes: u64,
    pub removed: u64,
    /// The expected number of units that were mistaken for duplicates because of false positives.
    pub wrong: f64,
    /// The expected number of documents that were removed below the similarity of near duplicates, and its variance.
    #[serde(default)]
    pub below: f64,
    #[serde(default)]
    pub below_variance: f64,
}

impl UnitCounts {
    /// Returns the expected number of units that were removed by mistake, and its standard deviation.
    pub fn wrong_in_all(&self) -> (f64, f64) {
        // False positives are rare and independent, so their number is Poisson distributed.
        (self.wrong + self.below, (self.wrong + self.below_variance).sqrt())
    }
}

impl AddAssign<&Self> for UnitCounts {
    fn add_assign(&mut self, other: &Self) {
        let Self { units, duplicates, shortened, grams, found, bytes, removed, wrong, below, below_variance } = other;
        self.units += units;
        self.duplicates += duplicates;
        self.shortened += shortened;
        self.grams += grams;
        self.found += found;
        self.bytes += bytes;
        self.removed += removed;
        self.wrong += wrong;
        self.below += below;
        self.below_variance += below_variance;
    }
}
