//! What is counted of lines.

use crate::documents::UnitCounts;
use serde::{Deserialize, Serialize};

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines so far.
    pub lines: u64,
    /// Lines without a key.
    pub faults: u64,
    /// Those of them that stay.
    #[serde(default)]
    pub kept: u64,
    /// Lines of white space that are left out.
    #[serde(default)]
    pub blank: u64,
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Lines that stay: their keys were new, or something of their documents was.
    pub unique: u64,
    /// The length of the lines with their ends.
    pub bytes: u64,
    /// Inputs that are left out, or the rest of which is.
    pub left_out: u64,
    /// Of the units of documents.
    #[serde(default)]
    pub units: UnitCounts,
}

impl Counts {
    /// Adds others.
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

    /// Those that do not.
    pub fn dropped(&self) -> u64 {
        self.lines - self.faults - self.blank - self.unique
    }

    /// Keys that the filter took for seen, and the second look did not.
    pub fn rescued(&self) -> u64 {
        self.unique - self.inserted
    }
}
