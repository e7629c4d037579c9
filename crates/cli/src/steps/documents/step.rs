//! A step that looks documents up unit by unit, and inserts the parts that are kept.

use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::counts::UnitCounts;
use crate::seen::run_stats::OfferedKeys;
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::documents::column::{DocumentColumn, DocumentReader};
use crate::steps::documents::removal_sample::RemovalSample;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use bloomline_text::Set;
use std::any::Any;
use std::sync::Mutex;

/// Looks documents up, cuts the parts that were seen, and marks the lines of documents that are kept in part or in whole.
pub struct Documents {
    reader: DocumentReader,
    seen: SharedSeenKeys,
    in_order: bool,
    offered: Mutex<OfferedKeys>,
    /// The estimate of documents that are removed below the similarity of near duplicates.
    sample: Option<Mutex<RemovalSample>>,
}

impl Documents {
    /// Creates the step for a set that has `keys_before` keys.
    pub fn new(reader: DocumentReader, seen: SharedSeenKeys, in_order: bool, keys_before: f64) -> Self {
        let sample = reader.rule.similarity.map(|similarity| Mutex::new(RemovalSample::new(similarity)));
        Self { reader, seen, in_order, offered: Mutex::new(OfferedKeys(keys_before)), sample }
    }
}

impl Step for Documents {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(DocumentColumn::default())
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.reader.read(config.on_error, lines);
    }

    fn claim(&self, config: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let mut set = DocumentSet { seen: &self.seen, inserted: 0 };
        let fpr = |set: &DocumentSet<'_>| {
            locked(&self.offered).add(set.inserted, |keys| self.seen.read().set.expected_fpr(keys))
        };
        let mut sample = self.sample.as_ref().map(locked);
        let units = decide(&self.reader, config, lines, sample.as_deref_mut(), &mut set, fpr)?;
        let unique = kept_documents(config, lines);
        Ok(Claimed { inserted: set.inserted, unique, units, halt: None })
    }

    fn prepare(&self, lines: &mut Lines) {
        edit_rows(lines);
    }
}

/// Marks the lines by the decisions about their documents: `true` if some text is kept, which is then inserted. Cuts are added to the
/// edits. `fpr` returns the set's mean false-positive rate over the call. A `sample` is for near duplicates.
pub fn decide<S: Set<Error = Error>>(
    reader: &DocumentReader,
    config: &RunConfig,
    lines: &mut Lines,
    sample: Option<&mut RemovalSample>,
    set: &mut S,
    fpr: impl FnOnce(&S) -> f64,
) -> Result<UnitCounts, Error> {
    let mut counts = UnitCounts::default();
    let (batch, keys, marks, edits, column) = lines.parts::<DocumentColumn>();
    marks.mark(batch.count(), keys, config.on_error, true, |_, _, kept| {
        counts = column.documents.decide(
            &reader.rule,
            sample.map(|sample| (sample, &reader.hasher)),
            set,
            fpr,
            kept,
            &mut edits.ranges,
        )?;
        Ok(kept.len())
    })?;
    Ok(counts)
}

/// Returns the number of documents that are kept at least in part, after [`decide`].
pub fn kept_documents(config: &RunConfig, lines: &Lines) -> u64 {
    (lines.marks.count(true) - lines.count_skipped(config.on_error).kept) as u64
}

/// Writes the changed texts of rows, or the notes about them, into the edits.
pub fn edit_rows(lines: &mut Lines) {
    let (batch, keys, _, edits, column) = lines.parts::<DocumentColumn>();
    column.edit_rows(batch, keys, edits);
}

/// The set that documents are looked up in, with a count of the insertions.
pub struct DocumentSet<'a> {
    pub seen: &'a SharedSeenKeys,
    pub inserted: u64,
}

impl Set for DocumentSet<'_> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        self.seen.read().set.contains_hashes(hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let count = self.seen.write().set.insert_hashes(hashes, new)?;
        self.inserted += count as u64;
        Ok(count)
    }
}
