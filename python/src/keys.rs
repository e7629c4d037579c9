//! Many keys, portion by portion: of an Arrow array, of a buffer, or of any iterable.

use crate::lock::Thread;
use crate::portion::{PORTION, Take};
use crate::signals::{self, Signals};
use crate::{arrow, buffer, key};
use bloomline::KeyHasher;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyList};

/// Takes the hashes of all keys, in order. The GIL is free where the keys are in an array. After an error, the portions
/// before it are taken. Signals are handled between portions.
pub(crate) fn take_all(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, take: &mut Take<'_>) -> PyResult<()> {
    let mut signals = Signals::after(signals::TICK);
    let take: &mut Take<'_> = &mut |thread, hashes| {
        take(thread, hashes)?;
        match thread {
            Thread::Attached(py) => py.check_signals(),
            Thread::Detached(_) => signals.handle(),
        }
    };
    // A list is asked for neither: an attribute that it lacks costs as much as twenty keys.
    let list = keys.is_instance_of::<PyList>();
    if !list && (buffer::take_all(hasher, keys, take)? || arrow::take_all(hasher, keys, take)?) {
        return Ok(());
    }
    let py = keys.py();
    let mut hashes = Vec::with_capacity(PORTION);
    for (index, key) in keys.try_iter()?.enumerate() {
        hashes.push(key::hash(hasher, &key?).map_err(|error| error.into_error(py, Some(index)))?);
        if hashes.len() == PORTION {
            take(py.into(), &hashes)?;
            hashes.clear();
        }
    }
    take(py.into(), &hashes)
}

/// NumPy's arrays. Whoever will need one asks for this before anything is done.
pub(crate) struct Numpy<'py>(&'py Bound<'py, PyAny>);

impl<'py> Numpy<'py> {
    pub(crate) fn import(py: Python<'py>) -> PyResult<Self> {
        static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        FROM_BUFFER.import(py, "numpy", "frombuffer").map(Self)
    }

    /// The answers for keys, as an array of bool.
    pub(crate) fn array(self, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyByteArray::new_with(self.0.py(), answers.len(), |bytes| {
            bytes.iter_mut().zip(answers).for_each(|(byte, &answer)| *byte = u8::from(answer));
            Ok(())
        })?;
        self.0.call1((bytes, "?"))
    }
}
