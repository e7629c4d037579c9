//! A step that collects the sets of grams of documents that may be similar.

use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::Claimed;
use crate::steps::documents::DocumentBatch;
use crate::steps::documents::column::DocumentReader;
use crate::steps::groups::near::candidate_documents::{CandidateDocuments, GramCollector};
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use std::any::Any;
use std::sync::Mutex;

/// Collects the sets of grams of candidate documents.
pub struct Collect {
    reader: DocumentReader,
    collector: Mutex<Option<GramCollector>>,
}

/// The sets of grams of the marked lines, concatenated, and the end of each.
#[derive(Default)]
struct GramSets {
    grams: Vec<u64>,
    ends: Vec<usize>,
    documents: DocumentBatch,
}

impl Collect {
    pub fn new(reader: DocumentReader, collector: GramCollector) -> Self {
        Self { reader, collector: Mutex::new(Some(collector)) }
    }

    /// Returns the documents with their sets, once. Fails if the lines differ from the first reading.
    pub fn take_documents(&self) -> Result<CandidateDocuments, Error> {
        locked(&self.collector).take().expect("a reading ends once").end()
    }
}

impl Step for Collect {
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(GramSets::default())
    }

    /// Marks the lines that are to be compared.
    fn claim(&self, _config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        if let Some(collector) = &mut *locked(&self.collector) {
            let count = lines.batch.count();
            let has_header = !lines.batch.header().is_empty();
            lines.marks.set(count, None, |marks| {
                collector.take(input, has_header, count, |line| marks[line] = Some(true));
            });
        }
        Ok(Claimed::default())
    }

    /// Computes the sets of grams of the marked lines.
    fn prepare(&self, lines: &mut Lines) {
        let DocumentReader { rule, hasher, .. } = &self.reader;
        let (batch, _, marks, _, GramSets { grams, ends, documents }) = lines.parts();
        grams.clear();
        ends.clear();
        let mut wanted = marks.all().iter().map(Option::is_some);
        if let Some(rows) = batch.rows() {
            rows.each_text(&mut |text| {
                if wanted.next() == Some(true)
                    && let Some(text) = text
                {
                    documents.push_grams_of(text, rule, hasher, grams);
                    ends.push(grams.len());
                }
            });
            return;
        }
        for (line, _) in batch.lines().zip(wanted).filter(|(_, wanted)| *wanted) {
            documents.push_grams(&batch.bytes()[line], rule, hasher, grams);
            ends.push(grams.len());
        }
    }

    fn emitted(&self, _input: usize, _before: u64, lines: &Lines) -> Result<(), Error> {
        let mut collector = locked(&self.collector);
        let Some(collector) = &mut *collector else { return Ok(()) };
        let GramSets { grams, ends, .. } = lines.column();
        let mut start = 0;
        for &end in ends {
            collector.push(&grams[start..end])?;
            start = end;
        }
        Ok(())
    }
}
