//! Rows of frames and tables as keys: those of the command, and so of lines of JSON.
//!
//! The methods of keys take a row for the tuple of its values. Here nulls are values, and so are dates, decimals, lists and structs.

use crate::arrow::record_batches;
use crate::error;
use crate::lock::{Thread, detach};
use crate::portion::PORTION;
use crate::signals::{self, Signals};
use bloomline::KeyHasher;
use bloomline_cli::hash_rows;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// What becomes of rows whose key has a null.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Nulls {
    Equal,
    Keep,
    Skip,
    Fail,
}

impl Nulls {
    pub(crate) fn of(name: &str) -> PyResult<Self> {
        match name {
            "equal" => Ok(Self::Equal),
            "keep" => Ok(Self::Keep),
            "skip" => Ok(Self::Skip),
            "fail" => Ok(Self::Fail),
            _ => Err(PyValueError::new_err(format!("nulls is {name:?}: give 'equal', 'keep', 'skip' or 'fail'"))),
        }
    }
}

/// An answer for each row. All rows are hashed before the first is asked about, so one that is no key has no effect.
pub(crate) fn answers(
    hasher: &KeyHasher,
    rows: &Bound<'_, PyAny>,
    nulls: Nulls,
    ask: impl Fn(Thread<'_>, &[u64], &mut [bool]) -> PyResult<()> + Send + Sync,
) -> PyResult<Vec<bool>> {
    let batches = record_batches(rows)?;
    detach(rows.py(), |detached| {
        let (mut hashes, mut at, mut row) = (Vec::new(), Vec::new(), 0);
        for batch in &batches {
            let hashed = hash_rows(batch.columns(), hasher, nulls == Nulls::Equal, |hash| {
                hashes.extend(hash);
                at.extend(hash.map(|_| row));
                row += 1;
            });
            hashed.map_err(|refused| PyTypeError::new_err(refused.to_string()))?;
        }
        if nulls == Nulls::Fail && hashes.len() < row {
            let first = (0..row).zip(&at).find(|(row, at)| row != *at).map_or(at.len(), |(row, _)| row);
            return Err(PyValueError::new_err(format!(
                "row {first}: its key has a null; say with nulls what becomes of it"
            )));
        }
        let mut asked = Vec::new();
        asked.try_reserve_exact(hashes.len()).map_err(error::memory)?;
        asked.resize(hashes.len(), false);
        let mut signals = Signals::after(signals::TICK);
        for (hashes, asked) in hashes.chunks(PORTION).zip(asked.chunks_mut(PORTION)) {
            ask(detached.into(), hashes, asked)?;
            signals.handle()?;
        }
        if hashes.len() == row {
            return Ok(asked);
        }
        let mut answers = vec![nulls == Nulls::Keep; row];
        at.iter().zip(asked).for_each(|(&row, answer)| answers[row] = answer);
        Ok(answers)
    })
}
