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
        let mut signals = Signals::after(signals::TICK);
        let (mut hashes, mut without, mut row) = (Vec::new(), Vec::new(), 0);
        for batch in &batches {
            let hashed = hash_rows(batch.columns(), hasher, nulls == Nulls::Equal, |hash| {
                match hash {
                    Some(hash) => hashes.push(hash),
                    None => without.push(row),
                }
                row += 1;
            });
            hashed.map_err(|refused| PyTypeError::new_err(refused.to_string()))?;
            signals.handle()?;
        }
        if let (Nulls::Fail, Some(first)) = (nulls, without.first()) {
            return Err(PyValueError::new_err(format!(
                "row {first}: its key has a null; say with nulls what becomes of it"
            )));
        }
        let mut asked = Vec::new();
        asked.try_reserve_exact(hashes.len()).map_err(error::memory)?;
        asked.resize(hashes.len(), false);
        for (hashes, asked) in hashes.chunks(PORTION).zip(asked.chunks_mut(PORTION)) {
            ask(detached.into(), hashes, asked)?;
            signals.handle()?;
        }
        if without.is_empty() {
            return Ok(asked);
        }
        let (mut without, mut asked) = (without.into_iter().peekable(), asked.into_iter());
        let answer = |row| match without.next_if_eq(&row) {
            Some(_) => nulls == Nulls::Keep,
            None => asked.next().unwrap_or_default(),
        };
        Ok((0..row).map(answer).collect())
    })
}
