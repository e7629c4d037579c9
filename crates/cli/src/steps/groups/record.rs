//! A pass that inserts keys into a set and records each line to find groups.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::Claimed;
use crate::steps::groups::records::RecordFile;
use crate::steps::insert::Insert;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use bloomline_text::near::Near;
use std::sync::Mutex;

/// Inserts keys, or the bands of documents, and records each line with the result.
pub struct Record {
    pub insert: Insert,
    /// The bands of documents that may be similar.
    pub near: Option<Near>,
    pub records: Mutex<RecordFile>,
}

impl Pass for Record {
    fn claim(&self, task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let claimed = match &self.near {
            Some(near) => {
                // The bands decide, so every line is marked as new here.
                lines.mark(task.on_error, task.print.kept, |hashes, _, new| {
                    new.fill(true);
                    Ok(hashes.len())
                })?;
                let insert = |bands: &[u64], new: &mut [bool]| self.insert.seen.write().set.insert_hashes(bands, new);
                Claimed { inserted: lines.insert_bands(near, insert)? as u64, ..Claimed::default() }
            }
            None => self.insert.claim(task, input, lines)?,
        };
        lines.record(input, task.on_error, &mut locked(&self.records)).map_err(Error::groups)?;
        Ok(claimed)
    }
}
