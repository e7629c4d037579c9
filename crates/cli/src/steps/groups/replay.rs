//! A step that marks lines with the decisions of an earlier reading.

use crate::key::json::Pointer;
use crate::read::skip::{OnError, SkipReason};
use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::Claimed;
use crate::steps::groups::decisions::{Decisions, LineVerdict};
use crate::steps::groups::ordinals;
use crate::steps::groups::record::reason_from_code;
use crate::system::error::Error;
use crate::system::files::FileVersion;
use crate::system::unpoisoned::locked;
use std::any::Any;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::str::from_utf8;
use std::sync::Mutex;

/// Marks recorded lines by their ordinals alone.
pub struct Replay {
    pub decisions: Mutex<Decisions>,
    /// The pointer to texts, if duplicate documents are kept with their texts emptied.
    pub emptied: Option<Pointer>,
    /// The number of groups of two or more.
    pub groups: u64,
    /// The versions of the recorded inputs.
    pub versions: Vec<(PathBuf, FileVersion)>,
}

impl Step for Replay {
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(String::new())
    }

    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let mut decisions = locked(&self.decisions);
        let unique = mark_lines(input, config.print.kept, self.emptied.as_ref(), lines, &mut decisions);
        Ok(Claimed { unique: unique.map_err(Error::groups)?, ..Claimed::default() })
    }

    /// Compares the number of lines and the times of the last changes.
    fn finish(&self) -> Result<(), Error> {
        let is_same = locked(&self.decisions).is_done()
            && self.versions.iter().all(|(path, version)| FileVersion::from_path(path).as_ref() == Some(version));
        if is_same { Ok(()) } else { Err(ordinals::changed()) }
    }

    fn repeated(&self) -> Option<u64> {
        Some(self.groups)
    }
}

/// Marks the lines of an input by the decisions about them. Lines that are kept without a key get the mark `kept`. If `emptied` points
/// to the text, removed documents are kept without their text. Returns the number of selected lines.
fn mark_lines(
    input: usize,
    kept: bool,
    emptied: Option<&Pointer>,
    lines: &mut Lines,
    decisions: &mut Decisions,
) -> io::Result<u64> {
    let occurrences = decisions.print.occurrences;
    let (batch, keys, marks, edits, text) = lines.parts::<String>();
    let count = batch.count();
    let has_header = !batch.header().is_empty();
    let mut counts = if decisions.print.counted { vec![1; count] } else { Vec::new() };
    let mut emptied_rows = Vec::new();
    marks.set(count, Some(occurrences.selects(1)), |marks| {
        decisions.take(input, has_header, count, |line, verdict| match verdict {
            LineVerdict::Kept { count } => {
                marks[line] = Some(occurrences.selects(count));
                if let Some(line_count) = counts.get_mut(line) {
                    *line_count = count;
                }
            }
            LineVerdict::Removed { .. } => {
                marks[line] = Some(emptied.is_some());
                let Some(pointer) = emptied else { return };
                // The count of the document that is kept includes this one.
                if let Some(line_count) = counts.get_mut(line) {
                    *line_count = 0;
                }
                if batch.is_rows() {
                    emptied_rows.push(line);
                } else {
                    let range = batch.line(line);
                    let text = text_of(&batch.bytes()[range.clone()], range.start, pointer, text);
                    edits.ranges.extend(text.map(|text| (text, String::new())));
                }
            }
            LineVerdict::Skipped(code) => {
                let skip = reason_from_code(code);
                marks[line] = match &skip {
                    SkipReason::Empty(is_kept) => Some(*is_kept),
                    skip => (skip.policy(OnError::Fail) == Some(OnError::Keep)).then_some(kept),
                };
                keys.skipped.push((line, skip));
            }
        })
    })?;
    if !emptied_rows.is_empty() {
        let mut texts = vec![None; count];
        for row in emptied_rows {
            texts[row] = Some(String::new());
        }
        edits.texts = Some(texts);
    }
    if !counts.is_empty() {
        // Only lines with keys have counts.
        edits.counts.extend(keys.lines(count).map(|line| counts[line]));
    }
    let is_selected_without_key = |(line, reason): &&(usize, SkipReason)| {
        marks.all()[*line] == Some(true) && !matches!(reason, SkipReason::Empty(_))
    };
    let without_key = keys.skipped.iter().filter(is_selected_without_key).count();
    Ok((marks.count(true) - without_key) as u64)
}

/// Returns the range of the text in the document of a line that starts at the byte `start` and was checked before. `scratch` receives
/// the text.
fn text_of(line: &[u8], start: usize, pointer: &Pointer, scratch: &mut String) -> Option<Range<usize>> {
    let document = from_utf8(line).unwrap_or_default();
    scratch.clear();
    let string = pointer.find_string(document, scratch, |_| ()).ok()??;
    let at = start + (string.as_ptr().addr() - document.as_ptr().addr());
    Some(at..at + string.len())
}
