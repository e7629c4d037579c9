//! `Filter`, the base class of all filters.

use crate::buffer;
use crate::error;
use crate::key;
use crate::keys::{self, Numpy};
use crate::kinds::{Access, Contents, Forms, KindGate};
use crate::lock::{Detached, Thread, attached, detach};
use crate::portion::PORTION_KEYS;
use crate::rows::{self, Nulls, Selection};
use crate::set::{Set, with};
use crate::signals::{self, Signals};
use crate::url;
use bloomline::KeyHasher;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyNotImplemented, PyTuple};
use std::path::PathBuf;

/// The base class of all filters of this module.
///
/// A key is a str (hashed as its UTF-8), bytes or another buffer of bytes, an int from -2**63 to 2**64 - 1, or a tuple of
/// these. A key has the same hash on every run and machine, and in Rust: an int is an i64 or a u64 there. So a str and its
/// UTF-8 are the same key, as are -1 and 2**64 - 1, and ((a, b), c) and (a, b, c).
///
/// add_rows, contains_rows and dedup hash the values of rows, which are other keys unless they are texts. So a filter
/// with integers or tuples refuses such rows, and a filter of rows that are not single texts refuses keys: a TypeError.
///
/// Any number of threads may use a filter. Calls with many keys are not atomic: other threads see them in part.
///
/// >>> from bloomline import BloomFilter, Filter
/// >>> isinstance(BloomFilter(1000, 0.01), Filter)
/// True
#[pyclass(module = "bloomline", subclass, frozen, weakref)]
pub(crate) struct Filter {
    pub(crate) set: Set,
    hasher: KeyHasher,
    kinds: KindGate,
    /// The constructor of an object of the set's class.
    constructor: Constructor,
}

/// The constructor of a Python object for a set, in the set's class.
pub(crate) type Constructor = for<'py> fn(Python<'py>, Set) -> PyResult<Bound<'py, PyAny>>;

impl Filter {
    pub(crate) fn new(py: Python<'_>, set: Set, contents: Contents, constructor: Constructor) -> Self {
        let hasher = with!(&set, py, filter => filter.hasher().clone());
        let kinds = KindGate::new(&set.key_kinds(py), contents);
        Self { set, hasher, kinds, constructor }
    }

    /// Returns the hash of a key that the filter can have.
    #[inline(always)]
    fn hash(&self, key: &Bound<'_, PyAny>, access: Access) -> PyResult<u64> {
        match key::hash(&self.hasher, key) {
            Ok((hash, form)) if self.kinds.is_open(form, access) => Ok(hash),
            Ok((hash, form)) => self.admit_one(key.py(), hash, form, access),
            Err(error) => Err(error.into_error(key.py(), None)),
        }
    }

    /// Admits a key whose form `KindGate` has to check, and returns the hash.
    #[cold]
    fn admit_one(&self, py: Python<'_>, hash: u64, form: Forms, access: Access) -> PyResult<u64> {
        attached(py, || self.admit(py.into(), form, access))?;
        Ok(hash)
    }

    /// Admits keys of these forms, or refuses them.
    fn admit(&self, thread: Thread<'_>, forms: Forms, access: Access) -> PyResult<()> {
        let admit = |detached| self.kinds.admit(detached, &self.set, forms, access);
        match thread {
            _ if self.kinds.is_open(forms, access) => Ok(()),
            Thread::Attached(py) => detach(py, admit),
            Thread::Detached(detached) => admit(detached),
        }
    }

    /// Runs a change of the whole filter.
    pub(crate) fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(Detached) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        detach(py, |detached| self.kinds.change(detached, &self.set, Contents::Unread, || change(detached)))
    }

    /// Implements the method `add`; see `add.rs`.
    #[inline]
    pub(crate) fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.set.add(key.py(), self.hash(key, Access::Add)?)
    }

    /// Returns an answer for each key, portion by portion, and the result. After an exception, returns the answers so
    /// far.
    fn answers(
        &self,
        keys: &Bound<'_, PyAny>,
        access: Access,
        ask: impl Fn(Thread<'_>, &[u64], &mut [bool]) -> PyResult<()> + Send + Sync,
    ) -> (Vec<bool>, PyResult<()>) {
        let mut answers = Vec::new();
        let result = keys::take_all(&self.hasher, keys, &mut |thread, hashes, forms| {
            self.admit(thread, forms, access)?;
            let first = answers.len();
            answers.try_reserve(hashes.len()).map_err(error::memory)?;
            answers.resize(first + hashes.len(), false);
            ask(thread, hashes, &mut answers[first..])
        });
        (answers, result)
    }

    /// Returns an answer for each row, and the result; see [`rows::answers`].
    fn row_answers(
        &self,
        rows: &Bound<'_, PyAny>,
        (nulls, selection): (&str, Selection),
        access: Access,
        before: Option<&Py<PyAny>>,
        ask: impl Fn(Thread<'_>, &[u64], &mut [bool]) -> PyResult<()> + Send + Sync,
    ) -> PyResult<(Vec<bool>, PyResult<()>)> {
        let (nulls, key_name) = (Nulls::from_name(nulls)?, self.set.key_name(rows.py()));
        let admit = |detached, kinds: &_, access| self.kinds.admit_rows(detached, &self.set, kinds, access);
        let find = |thread: Thread<'_>, hashes: &[u64], found: &mut [bool]| self.find(thread, hashes, found);
        let before = before.map(|before| (before, &find as _));
        Ok(rows::answers(&self.hasher, rows, nulls, (selection, &key_name), (access, &admit), before, ask))
    }

    fn find(&self, thread: Thread<'_>, hashes: &[u64], found: &mut [bool]) {
        with!(&self.set, thread, filter => filter.contains_hashes(hashes, found));
    }

    /// Merges another filter into this one.
    fn merge(&self, py: Python<'_>, other: &Self, intersect: bool) -> PyResult<()> {
        self.change(py, |detached| self.set.merge(detached, &other.set, intersect))
    }

    fn add_selected<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        nulls: &str,
        selection: Selection,
        before: Option<&Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(rows.py())?;
        let add = |thread: Thread<'_>, hashes: &[u64], new: &mut [bool]| self.set.add_many(thread, hashes, new);
        numpy.new_keys(self.row_answers(rows, (nulls, selection), Access::Add, before, add)?)
    }

    fn contains_selected<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        nulls: &str,
        selection: Selection,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(rows.py())?;
        let (found, result) =
            self.row_answers(rows, (nulls, selection), Access::LookUp, None, |thread, hashes, found| {
                self.find(thread, hashes, found);
                Ok(())
            })?;
        result?;
        numpy.array(&found)
    }

    /// Merges both filters in a third one.
    fn merged<'py>(&self, py: Python<'py>, other: &Self, intersect: bool) -> PyResult<Bound<'py, PyAny>> {
        let merge = |detached| {
            let third = self.set.copy(detached)?;
            third.merge(detached, &other.set, intersect)?;
            PyResult::Ok(third)
        };
        (self.constructor)(py, detach(py, merge)?)
    }
}

#[pymethods]
impl Filter {
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash(key, Access::LookUp)?;
        Ok(with!(&self.set, key.py(), filter => filter.contains_hash(hash)))
    }

    /// Add all keys of an array or another iterable; see add_many. It needs no NumPy. After an exception, keys before the one
    /// that it names may have been added.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.01)
    /// >>> seen.update(["a", b"b", 3, ("d", 4)])
    /// >>> ("d", 4) in seen
    /// True
    #[pyo3(signature = (keys, /))]
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        keys::take_all(&self.hasher, keys, &mut |thread, hashes, forms| {
            self.admit(thread, forms, Access::Add)?;
            let mut new = [false; PORTION_KEYS];
            self.set.add_many(thread, hashes, &mut new[..hashes.len()])
        })
    }

    /// Add many keys. Returns an array of bool, True for each key that is new. Among equal keys only the first can be
    /// new.
    ///
    /// keys is an Arrow array or stream (pyarrow, Polars, pandas, DuckDB), a buffer (NumPy, array.array, memoryview) of
    /// integers, bytes or NumPy's text, or any iterable: a str yields its characters, bytes their ints. The data of arrays are
    /// not copied as a whole, and the GIL is free meanwhile. Integers of every width are the same keys as Python's int, and the
    /// zeros that pad NumPy's strings are not part of them. A table has the tuples of its columns as keys, without the index of
    /// a pandas frame. Floats, dates and decimals are not keys: cast them to integers or strings.
    ///
    /// An exception about a key names the first one, and no key is then added. A null is a ValueError. Keys that the filter
    /// cannot have, because it has rows of other kinds, are a TypeError. A later exception
    /// (KeyboardInterrupt, MemoryError) has the answers so far in its attribute new: act on the keys that are True there, and
    /// add all keys again.
    ///
    /// >>> import numpy as np
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.01)
    /// >>> seen.add_many(np.array([1, 2, 1]))
    /// array([ True,  True, False])
    #[pyo3(signature = (keys, /))]
    fn add_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(keys.py())?;
        if buffer::has_only_keys(keys) {
            // No key can be refused, so a portion need not wait for the check of the others.
            return numpy.new_keys(
                self.answers(keys, Access::Add, |thread, hashes, new| self.set.add_many(thread, hashes, new)),
            );
        }
        numpy.new_keys(keys::answers(&self.hasher, keys, |hashes, forms, new| {
            self.admit(keys.py().into(), forms, Access::Add)?;
            detach(keys.py(), |detached| {
                let mut signals = Signals::after(signals::TICK);
                hashes.chunks(PORTION_KEYS).zip(new.chunks_mut(PORTION_KEYS)).try_for_each(|(hashes, new)| {
                    self.set.add_many(detached.into(), hashes, new)?;
                    signals.handle()
                })
            })
        }))
    }

    /// Look up many keys. Returns an array of bool, True for each key that was seen; see add_many for keys.
    ///
    /// >>> import numpy as np
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.0001)
    /// >>> seen.update([1, 2])
    /// >>> seen.contains_many(np.array([2, 3], dtype=np.int8))
    /// array([ True, False])
    #[pyo3(signature = (keys, /))]
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(keys.py())?;
        let (found, result) = self.answers(keys, Access::LookUp, |thread, hashes, found| {
            with!(&self.set, thread, filter => filter.contains_hashes(hashes, found));
            Ok(())
        });
        result?;
        numpy.array(&found)
    }

    /// Add the rows of a frame or a table. Returns an array of bool, True for each row whose key is new.
    ///
    /// A row of one column has the key of its value, and a row of several columns has the key of its named values, in
    /// any order, without an index that pandas recorded. The command has the same keys, so `bloomline build --column`
    /// builds a filter of the rows of a file. Equal values have one key whatever type stores them: 1, 1.0 and a decimal
    /// 1.00 (-0.0 is 0, and all NaNs are equal), 5 ms and 5000 us. A text, a byte string, a number, a boolean and each
    /// kind of time are different. nulls is the treatment of rows with a null in a column: with "equal" nulls are equal
    /// to each other, with "keep" the answer is True for all such rows, with "skip" it is False, and with "fail" they
    /// are a ValueError before any row is added.
    ///
    /// The filter records the kinds of its values. Rows of other kinds, such as texts for a filter of numbers, are a TypeError, and
    /// so are rows for a filter with integers or tuples of add. Columns of another name than the key_name of the filter are a
    /// ValueError. An exception about a row, a type or a name is raised before any key is added. A later one (KeyboardInterrupt,
    /// MemoryError) has the answers so far in its attribute new, as for add_many.
    ///
    /// >>> import pandas as pd
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.0001)
    /// >>> frame = pd.DataFrame({"url": ["a", "b", "a", None], "day": [1, 1, 1, 2]})
    /// >>> seen.add_rows(frame[["url"]])
    /// array([ True,  True, False,  True])
    #[pyo3(signature = (rows, /, *, nulls = "equal"))]
    fn add_rows<'py>(&self, rows: &Bound<'py, PyAny>, nulls: &str) -> PyResult<Bound<'py, PyAny>> {
        self.add_selected(rows, nulls, Selection::Data, None)
    }

    /// Look up the rows of a frame or a table. Returns an array of bool, True for each row whose key was seen; see
    /// add_rows. With nulls "keep" the answer for rows with a null is True, and with "skip" False.
    ///
    /// >>> import pandas as pd
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.0001)
    /// >>> frame = pd.DataFrame({"url": ["a", "b"]})
    /// >>> _ = seen.add_rows(frame[:1])
    /// >>> seen.contains_rows(frame)
    /// array([ True, False])
    #[pyo3(signature = (rows, /, *, nulls = "equal"))]
    fn contains_rows<'py>(&self, rows: &Bound<'py, PyAny>, nulls: &str) -> PyResult<Bound<'py, PyAny>> {
        self.contains_selected(rows, nulls, Selection::Data)
    }

    // For Python's part of this package. With `whole`, the rows are the keys, even rows of one column. Otherwise the columns are the
    // parts of a key. `before` is called before a key is added, with an array that is True for the rows that are expected to be new. If
    // it raises an exception, no key is added.

    #[pyo3(signature = (rows, nulls, whole, before = None, /))]
    fn _add_rows<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        nulls: &str,
        whole: bool,
        before: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.add_selected(rows, nulls, Selection::new(whole), before.as_ref())
    }

    #[pyo3(signature = (rows, nulls, whole, /))]
    fn _contains_rows<'py>(&self, rows: &Bound<'py, PyAny>, nulls: &str, whole: bool) -> PyResult<Bound<'py, PyAny>> {
        self.contains_selected(rows, nulls, Selection::new(whole))
    }

    /// Forget all keys.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, |detached| self.kinds.change(detached, &self.set, Contents::Empty, || self.set.clear(detached)))
    }

    /// Return a filter with the same keys.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.01)
    /// >>> seen.copy() == seen
    /// True
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.constructor)(py, detach(py, |detached| self.set.copy(detached))?)
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(&self, memo: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(memo.py())
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let theirs = other.cast::<Self>().ok().map(Bound::get);
        match detach(py, |detached| theirs.and_then(|theirs| self.set.equals(detached, &theirs.set))) {
            Some(equal) => equal.into_bound_py_any(py),
            None => PyNotImplemented::get(py).to_owned().into_bound_py_any(py),
        }
    }

    // For objects that are not filters, PyO3 returns NotImplemented.

    fn __or__<'py>(&self, py: Python<'py>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        self.merged(py, other.get(), false)
    }

    fn __and__<'py>(&self, py: Python<'py>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        self.merged(py, other.get(), true)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other.get(), false)
    }

    fn __iand__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other.get(), true)
    }

    /// The number of distinct keys: the count of new ones in a filter that grows, or else estimated_keys, rounded.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = detach(py, |detached| self.set.keys(detached))?.round();
        if !keys.is_finite() {
            return Err(PyValueError::new_err("all bits are set: the number of keys cannot be told"));
        }
        Ok(keys as usize)
    }

    /// True if any key was added.
    fn __bool__(&self, py: Python<'_>) -> bool {
        self.current_fpr(py) > 0.0
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let keys = self.expected_keys(py).map(|keys| format!("expected_keys={keys}, ")).unwrap_or_default();
        let rate = self.false_positive_rate(py).map(|rate| format!("false_positive_rate={rate}, "));
        let (name, bytes) = (self.set.name(), self.memory_bytes(py));
        format!("<{name} {keys}{}memory_bytes={bytes}>", rate.unwrap_or_default())
    }

    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let object: usize = slf.get_type().getattr("__basicsize__")?.extract()?;
        Ok(object + slf.get().memory_bytes(slf.py()))
    }

    /// The contents of the file that save writes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detach(py, |detached| self.set.to_bytes(detached))?;
        PyBytes::new_with(py, bytes.len(), |copy| {
            copy.copy_from_slice(&bytes);
            Ok(())
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let bytes = slf.get().__bytes__(slf.py())?;
        Ok((slf.get_type().getattr("from_bytes")?, PyTuple::new(slf.py(), [bytes])?))
    }

    /// Save to a file, which load, Rust and the command read. At every moment the file is either the old or the complete new
    /// one. A URL such as s3://bucket/seen.bloom is written by fsspec.
    ///
    /// >>> import os, tempfile
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.01)
    /// >>> with tempfile.TemporaryDirectory() as folder:
    /// ...     path = os.path.join(folder, "seen.bloom")
    /// ...     seen.save(path)
    /// ...     BloomFilter.load(path) == seen
    /// True
    #[pyo3(signature = (path, /))]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        if let Some((url, urls)) = url::of_path(py, &path)? {
            return urls.call_method1("write", (url, self.__bytes__(py)?)).map(drop);
        }
        detach(py, |detached| self.set.save(detached, &path))
    }

    /// The expected false-positive rate with this number of distinct keys, by default the number that the filter is
    /// made for.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> BloomFilter(1000, 0.01).expected_fpr() <= 0.01
    /// True
    #[pyo3(signature = (keys = None, /))]
    fn expected_fpr(&self, py: Python<'_>, keys: Option<u64>) -> PyResult<f64> {
        detach(py, |detached| self.set.expected_fpr(detached, keys))
    }

    /// The false-positive rate with the number of keys that a filter that grows has counted, by the model; it takes
    /// microseconds.
    ///
    /// >>> from bloomline import ScalableBloomFilter
    /// >>> seen = ScalableBloomFilter(100, 0.01)
    /// >>> seen.update(range(10_000))
    /// >>> 0 < seen.estimated_fpr() < 0.01
    /// True
    fn estimated_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detach(py, |detached| self.set.estimated_fpr(detached))
    }

    /// The false-positive rate of the present bits. It reads the whole filter.
    fn current_fpr(&self, py: Python<'_>) -> f64 {
        detach(py, |detached| with!(&self.set, detached, filter => filter.current_fpr()))
    }

    /// The number of distinct keys, estimated from the bits that are set; infinite if all are. It reads the whole filter. len
    /// of a filter that grows needs no estimate.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1000, 0.01)
    /// >>> seen.update(range(500))
    /// >>> 450 < seen.estimated_keys() < 550
    /// True
    fn estimated_keys(&self, py: Python<'_>) -> PyResult<f64> {
        detach(py, |detached| self.set.estimated_keys(detached))
    }

    /// The fraction of bits that are set, 0 to 1. It reads the whole filter.
    fn fill_ratio(&self, py: Python<'_>) -> f64 {
        detach(py, |detached| with!(&self.set, detached, filter => filter.fill_ratio()))
    }

    /// The maximum number of distinct keys at which the rate is kept.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> BloomFilter(1000, 0.01).capacity(0.01) >= 1000
    /// True
    #[pyo3(signature = (false_positive_rate, /))]
    fn capacity(&self, py: Python<'_>, false_positive_rate: f64) -> PyResult<u64> {
        detach(py, |detached| self.set.capacity(detached, false_positive_rate))
    }

    /// The size of the bits in bytes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        with!(&self.set, py, filter => filter.memory_bytes())
    }

    /// The number of distinct keys that the filter is made for, or None.
    #[getter]
    fn expected_keys(&self, py: Python<'_>) -> Option<u64> {
        with!(&self.set, py, filter => filter.expected_keys())
    }

    /// The false-positive rate that the filter is made for, or None.
    #[getter]
    fn false_positive_rate(&self, py: Python<'_>) -> Option<f64> {
        with!(&self.set, py, filter => filter.false_positive_rate())
    }

    /// The number of bits that a key sets.
    #[getter]
    fn probes(&self, py: Python<'_>) -> PyResult<u32> {
        self.set.probes(py)
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        with!(&self.set, py, filter => filter.seed())
    }

    /// The name for the kind of keys; empty if it has no name.
    #[getter]
    fn key_name(&self, py: Python<'_>) -> String {
        self.set.key_name(py)
    }
}
