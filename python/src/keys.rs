//! Many keys, portion by portion: of an Arrow array, of a buffer, or of any iterable.

use crate::{arrow, buffer, key};
use bloomline::KeyHasher;
use pyo3::prelude::*;

/// Keys that are hashed before they are looked up together.
pub(crate) const PORTION: usize = 512;

/// What is done with the hashes of a portion. It is given `Python` where the GIL is held.
pub(crate) type Take<'a> = dyn FnMut(Option<Python<'_>>, &[u64]) -> PyResult<()> + Send + 'a;

/// Takes the hashes of all keys, in order. The GIL is free where the keys are in an array. After an error, the portions
/// before it are taken.
pub(crate) fn take_all(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, take: &mut Take<'_>) -> PyResult<()> {
    if arrow::take_all(hasher, keys, take)? || buffer::take_all(hasher, keys, take)? {
        return Ok(());
    }
    let py = keys.py();
    let mut hashes = Vec::with_capacity(PORTION);
    for (index, key) in keys.try_iter()?.enumerate() {
        hashes.push(key::hash(hasher, &key?).map_err(|error| error.into_error(py, Some(index)))?);
        if hashes.len() == PORTION {
            take(Some(py), &hashes)?;
            hashes.clear();
        }
    }
    take(Some(py), &hashes)
}
