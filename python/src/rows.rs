//! Rows of frames and tables as keys, which are the same in the command, also for lines of JSON.
//!
//! The methods of keys treat a row as the tuple of its values. Here a row has named values, and nulls are values, as are dates,
//! decimals, lists and structs.

use crate::arrow::record_batches;
use crate::error;
use crate::keys::Numpy;
use crate::kinds::{Access, RowKinds};
use crate::lock::{Detached, Thread, detach};
use crate::portion::PORTION_KEYS;
use crate::signals::{self, Signals};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use bloomline::KeyHasher;
use bloomline_keys::arrow::{Column, RowSet, data_columns, hash_rows, kind_of, kinds_of};
use bloomline_keys::{current_name, name_of_columns, shortened};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

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

/// The columns that are the key.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Selection {
    /// All columns but an index that pandas recorded, unless there are no others.
    Data,
    /// The same, as a whole row: a single column is a row too.
    WholeRow,
    /// All columns.
    Chosen,
}

impl Selection {
    pub(crate) fn new(whole: bool) -> Self {
        if whole { Self::WholeRow } else { Self::Chosen }
    }

    /// Returns the columns of the key, after a check of their types and of the name that a filter has for its keys.
    fn columns(self, schema: &Schema, key_name: &str) -> PyResult<KeyColumns> {
        let all = || (0..schema.fields().len()).collect();
        let data = match (self, data_columns(schema)) {
            (Self::Chosen, _) => all(),
            // An index alone was chosen.
            (Self::Data, data) if data.is_empty() => all(),
            (_, data) => data,
        };
        if data.is_empty() {
            return Err(PyValueError::new_err(
                "the rows have no column of data, so they have no key: give a frame with columns",
            ));
        }
        let fields: Vec<FieldRef> = data.iter().map(|&number| schema.fields()[number].clone()).collect();
        for field in &fields {
            kind_of(field).map_err(|error| PyTypeError::new_err(format!("column {:?}: {error}", field.name())))?;
        }
        let columns = KeyColumns { in_row: self == Self::WholeRow || fields.len() > 1, numbers: data, fields };
        let names: Vec<&str> = columns.fields.iter().map(|field| field.name().as_str()).collect();
        check_name(&names, columns.in_row, key_name)?;
        Ok(columns)
    }
}

/// Returns the name of keys that are these columns: `row of url` for rows of one column.
pub(crate) fn name_of_key(columns: &[&str], in_row: bool) -> String {
    let row = if in_row && columns.len() == 1 { "row of " } else { "" };
    shortened(format!("{row}{}", name_of_columns(columns)), |name| KeyHasher::new(0).bytes(name))
}

/// Refuses keys of these columns for a filter whose keys have another name.
pub(crate) fn check_name(columns: &[&str], in_row: bool, key_name: &str) -> PyResult<()> {
    if key_name.is_empty() {
        return Ok(());
    }
    let name = name_of_key(columns, in_row);
    let current = current_name(key_name);
    if key_name == name || current == name {
        return Ok(());
    }
    let own: Vec<&str> = current.split(',').collect();
    let is_part = own.len() < columns.len() && own.iter().all(|name| columns.contains(name));
    let select = if is_part { format!("select the columns, such as frame[{own:?}], ") } else { String::new() };
    Err(PyValueError::new_err(format!(
        "the keys of the filter have the name {key_name:?}, and these are {name:?}: {select}rename the columns, or make the filter \
         with key_name={name:?}"
    )))
}

/// The columns of a key.
struct KeyColumns {
    numbers: Vec<usize>,
    fields: Vec<FieldRef>,
    in_row: bool,
}

impl KeyColumns {
    /// Returns the kinds of the values of these rows. A column of nulls has none.
    fn kinds(&self, batches: &[RecordBatch]) -> PyResult<RowKinds> {
        let of_values = |(&number, field): (&usize, &FieldRef)| {
            let mut columns = batches.iter().map(|batch| batch.column(number));
            let is_null = columns.all(|column| column.logical_null_count() == column.len());
            if is_null { Arc::new(Field::new(field.name(), DataType::Null, true)) } else { field.clone() }
        };
        let fields: Vec<FieldRef> = self.numbers.iter().zip(&self.fields).map(of_values).collect();
        let kinds = kinds_of(&fields, self.in_row).map_err(|error| PyTypeError::new_err(error.to_string()))?;
        let mut names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        names.sort_unstable();
        Ok(RowKinds { kinds, names })
    }

    fn select(&self, batch: &RecordBatch) -> Vec<Column> {
        let columns = self.numbers.iter().zip(&self.fields);
        columns.map(|(&number, field)| Column { field: field.clone(), array: batch.column(number).clone() }).collect()
    }
}

/// Rows that are hashed before signals are handled.
const BATCH_ROWS: usize = 1 << 13;

/// Admits rows of some kinds to a filter, or refuses them.
type Admit<'a> = dyn Fn(Detached, &RowKinds, Access) -> PyResult<()> + Send + Sync + 'a;

/// A function of Python that is called with an array of bool before keys are added, True for the rows that are expected to be new;
/// and a function that looks keys up.
pub(crate) type RowCallback<'a> = (&'a Py<PyAny>, &'a (dyn Fn(Thread<'_>, &[u64], &mut [bool]) + Send + Sync));

/// Returns an answer for each row. All rows are hashed before the first is looked up, so an invalid row has no effect, nor has an
/// exception of the function that is called `before`. After a later exception, returns the answers so far, because no key is looked
/// up twice; rows without a key are then false.
pub(crate) fn answers(
    hasher: &KeyHasher,
    rows: &Bound<'_, PyAny>,
    nulls: Nulls,
    (selection, key_name): (Selection, &str),
    (access, admit): (Access, &Admit<'_>),
    before: Option<RowCallback<'_>>,
    ask: impl Fn(Thread<'_>, &[u64], &mut [bool]) -> PyResult<()> + Send + Sync,
) -> (Vec<bool>, PyResult<()>) {
    let mut answers = Vec::new();
    let read = record_batches(rows, |schema| selection.columns(schema, key_name));
    let answered = read.and_then(|(columns, batches)| {
        detach(rows.py(), |detached| {
            let mut signals = Signals::after(signals::TICK);
            let kinds = columns.kinds(&batches)?;
            admit(detached, &kinds, Access::LookUp)?;
            let (hashes, keyless_rows) = hash(hasher, &columns, &batches, nulls, &mut signals)?;
            drop(batches);
            let rows = hashes.len() + keyless_rows.len();
            answers.try_reserve_exact(rows).map_err(error::memory)?;
            answers.resize(rows, false);
            if let Some(before) = before {
                let call = call_before(detached, before, (&hashes, &keyless_rows), nulls, (&mut answers, &mut signals));
                answers.fill(false);
                call?;
            }
            if access == Access::Add && !hashes.is_empty() {
                admit(detached, &kinds, access)?;
            }
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

/// The hasher of keys that are hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Calls a function with the rows that are expected to be new: the first of each key that the filter lacks.
fn call_before(
    detached: Detached,
    (before, find): RowCallback<'_>,
    (hashes, keyless_rows): (&[u64], &[usize]),
    nulls: Nulls,
    (answers, signals): (&mut [bool], &mut Signals),
) -> PyResult<()> {
    for (hashes, answers) in hashes.chunks(PORTION_KEYS).zip(answers.chunks_mut(PORTION_KEYS)) {
        find(detached.into(), hashes, &mut answers[..hashes.len()]);
        signals.handle()?;
    }
    let mut keys = HashSet::<u64, BuildHasherDefault<Hashed>>::default();
    let unknown = answers[..hashes.len()].iter().filter(|&&found| !found).count();
    keys.try_reserve(unknown).map_err(error::memory)?;
    for (hashes, answers) in hashes.chunks(PORTION_KEYS).zip(answers.chunks_mut(PORTION_KEYS)) {
        hashes.iter().zip(answers).for_each(|(hash, answer)| *answer = !*answer && keys.insert(*hash));
        signals.handle()?;
    }
    spread(answers, keyless_rows, nulls == Nulls::Keep);
    drop(keys);
    Python::attach(|py| before.call1(py, (Numpy::import(py)?.array(answers)?,)).map(drop))
}

/// Returns the hashes of all rows with a key, and the numbers of the rows without one.
fn hash(
    hasher: &KeyHasher,
    columns: &KeyColumns,
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
            hash_rows(&columns.select(&part), columns.in_row, hasher, nulls == Nulls::Equal, |hash| {
                match hash {
                    Some(hash) => hashes.push(hash),
                    None => keyless_rows.push(row),
                }
                row += 1;
            });
            if let (Nulls::Fail, Some(first)) = (nulls, keyless_rows.first()) {
                return Err(null_error(*first));
            }
            signals.handle()?;
        }
    }
    Ok((hashes, keyless_rows))
}

fn null_error(row: usize) -> PyErr {
    PyValueError::new_err(format!("row {row}: its key has a null; use nulls to choose how to go on"))
}

/// Returns an answer for each row: true for the first row of each key, or with `is_reversed`, the last one. The answers are exact.
pub(crate) fn distinct(
    rows: &Bound<'_, PyAny>,
    nulls: Nulls,
    selection: Selection,
    is_reversed: bool,
) -> PyResult<Vec<bool>> {
    let (columns, batches) = record_batches(rows, |schema| selection.columns(schema, ""))?;
    detach(rows.py(), |_| {
        let batches: Vec<Vec<Column>> = batches.iter().map(|batch| columns.select(batch)).collect();
        let (mut set, mut signals) = (RowSet::new(&batches).map_err(error::memory)?, Signals::after(signals::TICK));
        let (count, mut answers, mut first_null) = (set.table_rows(), Vec::new(), None);
        answers.try_reserve_exact(count).map_err(error::memory)?;
        answers.resize(count, nulls == Nulls::Keep);
        let mut insert = |start: usize| {
            let rows = start..count.min(start + BATCH_ROWS);
            set.insert(rows, is_reversed, nulls == Nulls::Equal, |row, is_new| match is_new {
                Some(is_new) => answers[row] = is_new,
                None => first_null = first_null.into_iter().chain([row]).min(),
            });
            signals.handle()
        };
        let mut starts = (0..count).step_by(BATCH_ROWS);
        if is_reversed { starts.rev().try_for_each(&mut insert) } else { starts.try_for_each(&mut insert) }?;
        match first_null {
            Some(row) if nulls == Nulls::Fail => Err(null_error(row)),
            _ => Ok(answers),
        }
    })
}

/// Moves answers, which are contiguous, to the rows with a key, and sets `answer` for the other rows.
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
