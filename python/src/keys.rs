//! Many keys, portion by portion: from an Arrow array, from a buffer, or from any iterable.

use crate::kinds::Forms;
use crate::lock::Thread;
use crate::portion::{PORTION_KEYS, Take};
use crate::signals::{self, Signals};
use crate::{arrow, buffer, error, key};
use bloomline::KeyHasher;
use pyo3::exceptions::{PyModuleNotFoundError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyList};

/// Calls `take` with the hashes of all keys, in order, and the forms of the keys. The GIL is free if the keys are in an
/// array. An error does not undo the portions before it. Signals are handled between portions.
pub(crate) fn take_all(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, take: &mut Take<'_>) -> PyResult<()> {
    let mut signals = Signals::after(signals::TICK);
    let take: &mut Take<'_> = &mut |thread, hashes, forms| {
        take(thread, hashes, forms)?;
        match thread {
            Thread::Attached(py) => {
                py.check_signals()?;
                // Python requests the GIL only from its own code, so threads that wait for it would wait for the last key.
                py.detach(|| ());
                Ok(())
            }
            Thread::Detached(_) => signals.handle(),
        }
    };
    // A list is checked for neither: looking up an attribute that it lacks costs as much as twenty keys.
    let list = keys.is_instance_of::<PyList>();
    if !list && (buffer::take_all(hasher, keys, take)? || arrow::take_all(hasher, keys, take)?) {
        return Ok(());
    }
    let py = keys.py();
    // Frames of other packages, such as Dask's. Iterating over them yields the names of their columns.
    if !list && keys.hasattr("columns")? && keys.hasattr("dtypes")? {
        let name = keys.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!(
            "{name} is a frame that is not read here: give it as one of pandas, Polars or pyarrow"
        )));
    }
    let (mut hashes, mut forms) = (Vec::with_capacity(PORTION_KEYS), Forms::NONE);
    for (index, key) in keys.try_iter()?.enumerate() {
        let (hash, form) = key::hash(hasher, &key?).map_err(|error| error.into_error(py, Some(index)))?;
        hashes.push(hash);
        forms |= form;
        if hashes.len() == PORTION_KEYS {
            take(py.into(), &hashes, forms)?;
            hashes.clear();
        }
    }
    take(py.into(), &hashes, forms)
}

/// Returns an answer for each key. All keys are hashed before the first is looked up, so an object that is not a key has no
/// effect. After an exception, returns the answers so far.
pub(crate) fn answers(
    hasher: &KeyHasher,
    keys: &Bound<'_, PyAny>,
    ask: impl FnOnce(&[u64], Forms, &mut [bool]) -> PyResult<()>,
) -> (Vec<bool>, PyResult<()>) {
    let (mut hashes, mut all_forms, mut answers) = (Vec::new(), Forms::NONE, Vec::new());
    let hashed = take_all(hasher, keys, &mut |_, portion, forms| {
        hashes.try_reserve(portion.len()).map_err(error::memory)?;
        hashes.extend_from_slice(portion);
        all_forms |= forms;
        answers.try_reserve(portion.len()).map_err(error::memory)?;
        answers.resize(hashes.len(), false);
        Ok(())
    });
    let asked = hashed.and_then(|()| ask(&hashes, all_forms, &mut answers));
    (answers, asked)
}

/// The module NumPy, for arrays. Callers import it before they do anything else.
pub(crate) struct Numpy<'py>(&'py Bound<'py, PyAny>);

impl<'py> Numpy<'py> {
    pub(crate) fn import(py: Python<'py>) -> PyResult<Self> {
        static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        FROM_BUFFER.import(py, "numpy", "frombuffer").map(Self).map_err(|error| {
            if !error.is_instance_of::<PyModuleNotFoundError>(py) {
                return error;
            }
            let missing = PyModuleNotFoundError::new_err(
                "NumPy is not installed, and add_many, contains_many, add_rows, contains_rows and dedup answer with its arrays: \
                 pip install numpy; the methods add, update and `in` need none",
            );
            missing.set_cause(py, Some(error));
            missing
        })
    }

    /// Returns an array of bool, True for new keys. An exception has the array as its attribute `new`.
    pub(crate) fn new_keys(self, (new, added): (Vec<bool>, PyResult<()>)) -> PyResult<Bound<'py, PyAny>> {
        let py = self.0.py();
        let new = self.array(&new)?;
        added.or_else(|error| error.value(py).setattr("new", &new).and(Err(error)))?;
        Ok(new)
    }

    /// Returns the answers for keys, as an array of bool.
    pub(crate) fn array(self, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyByteArray::new_with(self.0.py(), answers.len(), |bytes| {
            bytes.iter_mut().zip(answers).for_each(|(byte, &answer)| *byte = u8::from(answer));
            Ok(())
        })?;
        self.0.call1((bytes, "?"))
    }
}
