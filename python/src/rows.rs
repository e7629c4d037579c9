//! Rows of frames and tables as keys: the same keys as in the command, and so as of lines of JSON.
//!
//! The methods of keys treat a row as the tuple of its values. Here nulls are values, and so are dates, decimals, lists and
//! structs.

use crate::arrow::record_batches;
use crate::error;
use crate::lock::{Thread, detach};
use crate::portion::PORTION_KEYS;
use crate::signals::{self, Signals};
use arrow_array::RecordBatch;
use bloomline::KeyHasher;
use bloomline_tables::hash_rows;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The treatment of rows whose key has a null.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Nulls {
    Equal,
    Keep,
    Skip,
    Fail,
}

impl Nulls {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "equal" => Ok(Self::Equal),
            "keep" => Ok(Self::Keep),
            "skip" => Ok(Self::Skip),
            "fail" => Ok(Self::Fail),
            _ => Err(PyValueError::new_err(format!("nulls is {name:?}: give 'equal', 'keep', 'skip' or 'fail'"))),
        }
    }
}

/// Rows that are hashed before signals are handled.
const BATCH_ROWS: usize = 1 << 13;

/// Returns an answer for each row. All rows are hashed before the first is looked up, so an invalid row has no effect. After an
/// exception, returns the answers so far, because no key is looked up twice; rows without a key are then false.
pub(crate) fn answers(
    hasher: &KeyHasher,
    rows: &Bound<'_, PyAny>,
    nulls: Nulls,
    ask: impl Fn(Thread<'_>, &[u64], &mut [bool]) -> PyResult<()> + Send + Sync,
) -> (Vec<bool>, PyResult<()>) {
    let mut answers = Vec::new();
    let answered = record_batches(rows).and_then(|batches| {
        detach(rows.py(), |detached| {
            let mut signals = Signals::after(signals::TICK);
            let (hashes, keyless_rows) = hash(hasher, &batches, nulls, &mut signals)?;
            drop(batches);
            let rows = hashes.len() + keyless_rows.len();
            answers.try_reserve_exact(rows).map_err(error::memory)?;
            answers.resize(rows, false);
            let mut portions = hashes.chunks(PORTION_KEYS).zip(answers.chunks_mut(PORTION_KEYS));
            let result = portions.try_for_each(|(hashes, answers)| {
                ask(detached.into(), hashes, &mut answers[..hashes.len()])?;
                signals.handle()
            });
            spread(&mut answers, &keyless_rows, result.is_ok() && nulls == Nulls::Keep);
            result
        })
    });
    (answers, answered)
}

/// Returns the hashes of all rows with a key, and the numbers of the rows without one.
fn hash(
    hasher: &KeyHasher,
    batches: &[RecordBatch],
    nulls: Nulls,
    signals: &mut Signals,
) -> PyResult<(Vec<u64>, Vec<usize>)> {
    let (mut hashes, mut keyless_rows, mut row) = (Vec::new(), Vec::new(), 0);
    hashes.try_reserve_exact(batches.iter().map(RecordBatch::num_rows).sum()).map_err(error::memory)?;
    for batch in batches {
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let part = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            keyless_rows.try_reserve(part.num_rows()).map_err(error::memory)?;
            let hashed = hash_rows(part.columns(), hasher, nulls == Nulls::Equal, |hash| {
                match hash {
                    Some(hash) => hashes.push(hash),
                    None => keyless_rows.push(row),
                }
                row += 1;
            });
            hashed.map_err(|refused| PyTypeError::new_err(refused.to_string()))?;
            if let (Nulls::Fail, Some(first)) = (nulls, keyless_rows.first()) {
                return Err(PyValueError::new_err(format!(
                    "row {first}: its key has a null; use nulls to choose how to go on"
                )));
            }
            signals.handle()?;
        }
    }
    Ok((hashes, keyless_rows))
}

/// Moves answers, which are contiguous, to the rows with a key, and sets `answer` for those without one.
fn spread(answers: &mut [bool], keyless_rows: &[usize], answer: bool) {
    let (mut keyless_rows, mut next) = (keyless_rows.iter().rev().peekable(), answers.len() - keyless_rows.len());
    for row in (0..answers.len()).rev() {
        answers[row] = match keyless_rows.next_if_eq(&&row) {
            Some(_) => answer,
            None => {
                next -= 1;
                answers[next]
            }
        };
    }
}
