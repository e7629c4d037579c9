//! A step that inserts keys into a set and records each line to find groups.

use crate::read::keys::Hashing;
use crate::read::skip::{OnError, SkipReason};
use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::documents::column::{DocumentColumn, DocumentReader};
use crate::steps::groups::records::RecordFile;
use crate::steps::insert::insert;
use crate::steps::values::ValueProjection;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use std::any::Any;
use std::io;
use std::sync::Mutex;

/// Inserts keys, or the bands of documents, and records each line with the result.
pub struct Record {
    pub members: Members,
    pub seen: SharedSeenKeys,
    pub records: Mutex<RecordFile>,
}

/// The members of groups.
pub enum Members {
    /// Lines by their keys, with other values.
    Lines(Hashing, ValueProjection),
    /// Documents.
    Documents(DocumentReader),
}

impl Step for Record {
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(DocumentColumn::default())
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        match &self.members {
            Members::Documents(reader) => reader.read(config.on_error, lines),
            Members::Lines(hashing, values) => {
                let (batch, keys, _, _, column) = lines.parts::<DocumentColumn>();
                batch.hash(hashing, keys);
                column.values.read(values, batch, keys);
            }
        }
    }

    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let near = match &self.members {
            Members::Documents(reader) => reader.rule.near,
            Members::Lines(..) => None,
        };
        let claimed = match near {
            Some(near) => {
                // The bands decide, so every line is marked as new here.
                lines.mark(config.on_error, config.print.kept, |hashes, _, new| {
                    new.fill(true);
                    Ok(hashes.len())
                })?;
                let (_, _, marks, _, column) = lines.parts::<DocumentColumn>();
                let documents = &mut column.documents;
                let bands = &documents.bands[..near.bands() * marks.found().len()];
                documents.new_bands.resize(bands.len(), false);
                let inserted = self.seen.write().set.insert_hashes(bands, &mut documents.new_bands)?;
                Claimed { inserted: inserted as u64, ..Claimed::default() }
            }
            None => insert(&self.seen, config, lines)?,
        };
        record(input, config.on_error, lines, &mut locked(&self.records)).map_err(Error::groups)?;
        Ok(claimed)
    }
}

/// Records the decided lines of an input.
fn record(input: usize, on_error: OnError, lines: &Lines, records: &mut RecordFile) -> io::Result<()> {
    let passed = lines.marks.passed();
    let found = lines.marks.found();
    let DocumentColumn { documents, values } = lines.column();
    records.ordinals.take(input, !lines.batch.header().is_empty(), passed);
    let mut skipped = lines.keys.skipped.iter().peekable();
    let (mut key, mut document) = (0, 0);
    let band_count = documents.new_bands.len() / found.len().max(1);
    for line in 0..passed {
        if let Some((_, why)) = skipped.next_if(|(skip, _)| *skip == line) {
            // An empty document has no key.
            document += usize::from(matches!(why, SkipReason::Empty(_)));
            records.add_skipped(code(why, on_error))?;
            continue;
        }
        let length_score = records.keep.length_score(documents.text_len(document));
        let score = length_score.as_ref().map_or(values.score(key), |score| score);
        records.add(lines.keys.fingerprints[key], found[key], score, values.id(key))?;
        if let Some(all) = &mut records.bands {
            let own = band_count * key..band_count * (key + 1);
            all.add(&documents.bands[own.clone()], &documents.new_bands[own])?;
        }
        (key, document) = (key + 1, document + 1);
    }
    records.insert_pending()
}

/// Returns the code of a reason in the records, if bad input is treated as `on_error`.
fn code(why: &SkipReason, on_error: OnError) -> u8 {
    match (why, why.policy(on_error)) {
        (SkipReason::Empty(is_kept), _) => 3 + u8::from(*is_kept),
        (_, None) => 0,
        (_, Some(policy)) => 1 + u8::from(policy == OnError::Keep),
    }
}

/// Returns a reason with this code.
pub fn reason_from_code(code: u8) -> SkipReason {
    match code {
        0 => SkipReason::Blank,
        1 => SkipReason::Null(OnError::Skip),
        2 => SkipReason::Null(OnError::Keep),
        code => SkipReason::Empty(code > 3),
    }
}
