//! Counts of lines.

use crate::steps::documents::UnitCounts;
use serde::{Deserialize, Serialize};

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

    /// Lines that are removed as duplicates.
    pub fn dropped(&self) -> u64 {
        self.lines - self.faults - self.blank - self.unique
    }

    /// Keys that the filter reported as seen and the exact check found to be new.
    pub fn rescued(&self) -> u64 {
        self.unique - self.inserted
    }
}
