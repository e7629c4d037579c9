//! The results for the lines of a batch.

use crate::read::keys::Keys;
use crate::read::skip::{OnError, SkipReason};
use crate::system::error::Error;

/// A mark for each line of a batch. The memory is reused.
#[derive(Default)]
pub struct Marks {
    /// The result for each line; `None` for lines that are skipped.
    marks: Vec<Option<bool>>,
    /// The number of decided lines: marked ones, and skipped ones before the first undecided line.
    passed: usize,
    /// The result for each key, in order.
    found: Vec<bool>,
}

impl Marks {
    /// Marks `count` lines by the results that `find` gives for their keys, in order, from the hashes and fingerprints. `find` returns
    /// the number of keys that are done. Lines from the next key on get no mark.
    ///
    /// A line without a key gets the mark `kept` if such lines are kept, and no mark if they are skipped. If they are failures, the
    /// first of them and all lines after it get no mark. Blank lines get none.
    pub fn mark(
        &mut self,
        count: usize,
        keys: &Keys,
        on_error: OnError,
        kept: bool,
        find: impl FnOnce(&[u64], &[u128], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        let failed = keys.skipped.iter().find(|(_, reason)| reason.policy(on_error) == Some(OnError::Fail));
        let end = failed.map_or(count, |(line, _)| *line);
        let skipped = &keys.skipped[..keys.skipped.partition_point(|(line, _)| *line < end)];
        let key_count = end - skipped.len();
        self.found.resize(key_count, false);
        let fingerprints = &keys.fingerprints[..key_count.min(keys.fingerprints.len())];
        let hashes = &keys.hashes[..key_count.min(keys.hashes.len())];
        let known = find(hashes, fingerprints, &mut self.found)?;
        let mut found = self.found[..known].iter().copied().map(Some);
        self.marks.clear();
        for (line, reason) in skipped {
            self.marks.extend(found.by_ref().take(line - self.marks.len()));
            if self.marks.len() < *line {
                break;
            }
            let is_kept = reason.policy(on_error) == Some(OnError::Keep);
            self.marks.push(match reason {
                SkipReason::Empty(mark) => Some(*mark),
                _ => is_kept.then_some(kept),
            });
        }
        self.marks.extend(found);
        self.passed = self.marks.len();
        self.marks.resize(count, None);
        Ok(())
    }

    /// Decides `count` lines. `mark` sets the marks of some of them; the others get `default`.
    pub fn set<T>(&mut self, count: usize, default: Option<bool>, mark: impl FnOnce(&mut [Option<bool>]) -> T) -> T {
        self.marks.clear();
        self.marks.resize(count, default);
        self.passed = count;
        mark(&mut self.marks)
    }

    /// Removes a mark from the lines that have it, and returns their number.
    pub fn remove(&mut self, mark: bool) -> usize {
        let mut count = 0;
        for line_mark in &mut self.marks {
            if *line_mark == Some(mark) {
                *line_mark = None;
                count += 1;
            }
        }
        count
    }

    /// Returns the number of lines with the mark.
    pub fn count(&self, mark: bool) -> usize {
        self.marks.iter().filter(|&&line_mark| line_mark == Some(mark)).count()
    }

    /// Returns the mark of each line.
    pub fn all(&self) -> &[Option<bool>] {
        &self.marks
    }

    /// Returns the result for each key, in order.
    pub fn found(&self) -> &[bool] {
        &self.found
    }

    /// Returns the number of decided lines.
    pub fn passed(&self) -> usize {
        self.passed
    }
}
