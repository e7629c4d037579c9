//! The documents of a batch and the other values of their lines: the column of the steps that work on texts.

use crate::key::error::KeyError;
use crate::read::batch::Batch;
use crate::read::keys::Keys;
use crate::read::skip::{OnError, SkipReason};
use crate::run::lines::{Edits, Lines};
use crate::steps::documents::DocumentBatch;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::values::{FoundValues, ValueProjection};
use bloomline::KeyHasher;
use bloomline_text::Document;
use std::io;

/// The documents of the lines with keys, and other values of these lines.
#[derive(Default)]
pub struct DocumentColumn {
    pub documents: DocumentBatch,
    pub values: FoundValues,
}

/// The reading of documents and other values.
pub struct DocumentReader {
    pub rule: DocumentRule,
    pub hasher: KeyHasher,
    pub values: ValueProjection,
}

impl DocumentReader {
    /// Reads the document of each line, and hashes its units. If lines without a document are failures, nothing is read after the first.
    pub fn read(&self, on_error: OnError, lines: &mut Lines) {
        let (batch, keys, _, _, column) = lines.parts::<DocumentColumn>();
        column.documents.clear();
        match batch.rows() {
            Some(rows) => {
                let mut row = 0;
                let mut failed = false;
                rows.each_text(&mut |text| {
                    match text.filter(|_| !failed) {
                        Some(text) => {
                            column.documents.push_text(text, &self.rule, &self.hasher);
                            self.add_key(row, &column.documents, keys);
                        }
                        None => {
                            failed |= on_error == OnError::Fail;
                            let pointer = self.rule.pointer.to_string();
                            keys.skipped.push((row, SkipReason::Invalid(KeyError::NoText { pointer })));
                        }
                    }
                    row += 1;
                });
            }
            None => {
                for (line, range) in batch.lines().enumerate() {
                    let start = range.start;
                    match column.documents.push(&batch.bytes()[range], start, &self.rule, &self.hasher) {
                        Ok(()) => self.add_key(line, &column.documents, keys),
                        Err(key_error) => {
                            keys.skipped.push((line, SkipReason::Invalid(key_error)));
                            if on_error == OnError::Fail {
                                break;
                            }
                        }
                    }
                }
            }
        }
        column.values.read(&self.values, batch, keys);
    }

    /// Adds the fingerprint of the last document as the key of its line, if whole texts are compared.
    fn add_key(&self, line: usize, documents: &DocumentBatch, keys: &mut Keys) {
        if self.rule.second_hasher.is_none() {
            return;
        }
        match documents.fingerprint(&self.rule) {
            Some(fingerprint) => keys.push_fingerprint(fingerprint),
            None => keys.skipped.push((line, SkipReason::Empty(documents.is_kept_alone(&self.rule)))),
        }
    }
}

impl DocumentColumn {
    /// Calls `each` for each decided document of these lines, with the number of its line from 0, the document, its text, its id and
    /// its answer.
    pub fn each(
        lines: &Lines,
        mut each: impl FnMut(usize, Document<'_>, &str, &str, Option<&str>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { documents, values } = lines.column();
        for (number, line) in lines.keys.lines(lines.marks.passed()).enumerate() {
            let (document, text) = documents.get(number);
            each(line, document, text, values.id(number), values.answer(number))?;
        }
        Ok(())
    }

    /// Writes the changed texts of rows, or the notes about them, into the edits.
    pub fn edit_rows(&self, batch: &Batch, keys: &Keys, edits: &mut Edits) {
        if batch.is_rows() {
            let skipped = keys.skipped.iter().map(|(row, _)| *row);
            (edits.texts, edits.notes) = self.documents.rewritten(skipped, batch.count(), &edits.ranges);
        }
    }
}
