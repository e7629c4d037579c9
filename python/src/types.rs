//! The classes, one for each type of the library.

use crate::error;
use crate::filter::Filter;
use crate::kinds::Contents;
use crate::lock::detach;
use crate::set::{Set, Unlocked};
use crate::url;
use bloomline::FileError;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::time::Duration;

/// Returns a filter as an object of its class.
pub(crate) fn object(py: Python<'_>, set: Set) -> PyResult<Bound<'_, PyAny>> {
    macro_rules! object {
        ($class:ident) => {
            Bound::new(
                py,
                PyClassInitializer::from(Filter::new(py, set, Contents::Unread, object)).add_subclass($class),
            )
            .map(Bound::into_any)
        };
    }
    match set {
        Set::Plain(_) => object!(BloomFilter),
        Set::Atomic(_) => object!(AtomicBloomFilter),
        Set::Scalable(_) => object!(ScalableBloomFilter),
        Set::AtomicScalable(_) => object!(AtomicScalableBloomFilter),
        Set::Rotating(_) => object!(RotatingBloomFilter),
        Set::Mapped(_) => object!(MappedBloomFilter),
    }
}

/// A builder with the given options, by its methods of the same names.
macro_rules! given {
    ($builder:expr, $($name:ident)*) => {{
        let mut builder = $builder;
        $(if let Some(value) = $name {
            builder = builder.$name(value);
        })*
        builder
    }};
}
pub(crate) use given;

/// Converts a number of expected keys. The error for another type names the argument and the value.
pub(crate) fn expected_keys(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let converted = value.extract();
    if converted.as_ref().is_err_and(|error: &PyErr| error.is_instance_of::<PyTypeError>(value.py())) {
        return Err(PyTypeError::new_err(format!(
            "expected_keys is {}, not an integer: give one such as 1_000_000, and false_positive_rate after it",
            value.repr()?
        )));
    }
    converted
}

/// Reads a filter from the bytes of its file.
fn from_bytes<F: Into<Set> + Send>(
    data: &Bound<'_, PyAny>,
    read_from: impl FnOnce(&mut &[u8]) -> Result<F, FileError> + Send,
) -> PyResult<Set> {
    let py = data.py();
    // Memory that other threads may write to is copied.
    let data = match data.cast::<PyBytes>() {
        Ok(bytes) => bytes.clone(),
        Err(_) => {
            PyUntypedBuffer::get(data)?;
            py.get_type::<PyBytes>().call1((data,))?.cast_into()?
        }
    };
    let bytes = data.as_bytes();
    let mut rest = bytes;
    let filter = py.detach(|| read_from(&mut rest)).map_err(error::file)?;
    if !rest.is_empty() {
        let (have, want) = (bytes.len(), bytes.len() - rest.len());
        return Err(PyValueError::new_err(format!("too long: {have} bytes instead of {want}")));
    }
    Ok(filter.into())
}

macro_rules! class {
    ($(#[$doc:meta])* $Class:ident($($option:ident: $Option:ty = $default:tt),*) { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "bloomline", extends = Filter, frozen)]
        pub(crate) struct $Class;

        #[pymethods]
        impl $Class {
            #[new]
            #[pyo3(signature = (
                expected_keys = None, false_positive_rate = None, *, memory = None, probes = None, seed = None,
                key_name = None, huge_pages = true $(, $option = $default)*
            ))]
            #[expect(clippy::too_many_arguments, reason = "one for each that Python may name")]
            fn new(
                py: Python<'_>,
                #[pyo3(from_py_with = expected_keys)] expected_keys: Option<u64>,
                false_positive_rate: Option<f64>,
                memory: Option<usize>,
                probes: Option<u32>,
                seed: Option<u64>,
                key_name: Option<String>,
                huge_pages: bool,
                $($option: $Option,)*
            ) -> PyResult<PyClassInitializer<Self>> {
                let builder = bloomline::$Class::builder().huge_pages(huge_pages)$(.$option($option))*;
                let builder = given!(builder, expected_keys false_positive_rate memory probes seed key_name);
                let filter = builder.build().map_err(error::build)?;
                let filter = Filter::new(py, filter.into(), Contents::Empty, object);
                Ok(PyClassInitializer::from(filter).add_subclass(Self))
            }

            /// Load a file that save, Rust or the command wrote. A URL such as s3://bucket/seen.bloom is read by fsspec.
            #[staticmethod]
            #[pyo3(signature = (path, /))]
            fn load(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
                if let Some((url, urls)) = url::of_path(py, &path)? {
                    return Self::from_bytes(&urls.call_method1("read", (url,))?);
                }
                let load = || bloomline::$Class::load(&path).map(Set::from);
                object(py, py.detach(load).map_err(error::file)?)
            }

            /// Load a filter from bytes(filter).
            #[staticmethod]
            #[pyo3(signature = (data, /))]
            fn from_bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                object(data.py(), from_bytes(data, |rest| bloomline::$Class::read_from(rest))?)
            }

            $($methods)*
        }
    };
}

class! {
    /// A Bloom filter: a set that sometimes reports a new key as seen, at a rate that you choose, and never a seen key as new.
    ///
    /// Give two of expected_keys, false_positive_rate and memory (bytes), or memory and probes (4, 8, 12 or 16). Filters merge
    /// if they agree in these and the seed, and do not have different key_names. If strangers choose the keys, give
    /// seed=secrets.randbits(64). If there may be far fewer keys than expected, huge_pages=False takes memory in small pages.
    /// See Filter for keys and methods.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1_000_000, 0.01)
    /// >>> seen.add("https://example.org/")
    /// True
    /// >>> "https://example.org/" in seen
    /// True
    /// >>> seen.memory_bytes / 1e6 < 1.271
    /// True
    BloomFilter() {
        /// Map a file as a read-only filter, ready at once. Processes that map one file share its memory.
        ///
        /// As long as the filter lives, no process may write to the file or shorten it: answers would be wrong, or the process
        /// killed. save is safe, because it replaces the file by a new one.
        #[staticmethod]
        #[pyo3(signature = (path, /))]
        fn map(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
            if url::of_path(py, &path)?.is_some() {
                return Err(PyValueError::new_err(format!("{path:?} is a URL, and only a file is mapped: load it")));
            }
            // SAFETY: the documentation passes the contract on to the caller.
            #[allow(unsafe_code)]
            let map = || unsafe { bloomline::BloomFilter::map(&path) };
            let filter = py.detach(map).map_err(error::file)?;
            let path = std::path::absolute(&path).map_err(|error| error::io(&error, Some(&path)))?;
            object(py, Set::Mapped(Unlocked(filter, path)))
        }

        // Filters that are sent in pieces, for Python's part of this package.

        fn _blocks<'py>(slf: &Bound<'py, Self>, first: usize, count: usize) -> PyResult<Bound<'py, PyBytes>> {
            let filter = slf.as_super().get();
            let blocks = detach(slf.py(), |detached| filter.set.blocks(detached, first, count))?;
            Ok(PyBytes::new(slf.py(), &blocks))
        }

        fn _unite_blocks(slf: &Bound<'_, Self>, first: usize, blocks: &[u8]) -> PyResult<()> {
            let filter = slf.as_super().get();
            filter.change(slf.py(), |detached| filter.set.unite_blocks(detached, first, blocks))
        }

        // The kinds of its keys, if it has keys, and the kinds of another filter: two bytes for each part.

        fn _key_kinds<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyBytes> {
            let filter = slf.as_super().get();
            let kinds = detach(slf.py(), |detached| filter.set.kinds_of_keys(detached));
            PyBytes::new(slf.py(), kinds.into_iter().map(u16::to_le_bytes).collect::<Vec<_>>().as_flattened())
        }

        fn _unite_key_kinds(slf: &Bound<'_, Self>, kinds: &[u8]) -> PyResult<()> {
            let filter = slf.as_super().get();
            let kinds: Vec<u16> = kinds.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect();
            filter.change(slf.py(), |detached| {
                filter.set.add_key_kinds(detached, &kinds);
                Ok(())
            })
        }
    }
}

class! {
    /// A BloomFilter that many threads add to at once, each key claimed by one of them: of any number of add(key), at most
    /// one returns True.
    ///
    /// >>> from bloomline import AtomicBloomFilter
    /// >>> seen = AtomicBloomFilter(1000, 0.01)
    /// >>> seen.add("claimed"), seen.add("claimed")
    /// (True, False)
    AtomicBloomFilter() {}
}

class! {
    /// A filter for an unknown number of keys: it grows and keeps the rate. expected_keys is the number for its first stage.
    ///
    /// >>> from bloomline import ScalableBloomFilter
    /// >>> seen = ScalableBloomFilter(100, 0.01)
    /// >>> seen.update(range(10_000))
    /// >>> seen.current_fpr() <= 0.01
    /// True
    ScalableBloomFilter() {}
}

class! {
    /// A ScalableBloomFilter that many threads add to at once; see AtomicBloomFilter.
    ///
    /// >>> from bloomline import AtomicScalableBloomFilter
    /// >>> seen = AtomicScalableBloomFilter(100, 0.01)
    /// >>> seen.add(1), seen.add(1)
    /// (True, False)
    AtomicScalableBloomFilter() {}
}

class! {
    /// A filter that forgets: it finds the last expected_keys distinct keys, and remembers at most twice as many.
    ///
    /// Its generations take turns. A rotation begins an empty one and forgets the oldest, so a key is found until the
    /// number of rotations after it is the number of generations. A full generation rotates. With more generations (3
    /// to 64) it forgets in finer steps: with g, at most expected_keys * g / (g - 1) keys are remembered. A key that is
    /// added again in a later generation counts again there, so fewer than the last expected_keys distinct keys may be
    /// found.
    ///
    /// With rotate_when_full=False and rotate_if_older_than it is a window of time.
    ///
    /// >>> from bloomline import RotatingBloomFilter
    /// >>> seen = RotatingBloomFilter(1000, 1e-6)
    /// >>> seen.update(range(5000))
    /// >>> 4999 in seen, 0 in seen
    /// (True, False)
    RotatingBloomFilter(generations: u32 = 2, rotate_when_full: bool = true) {
        /// Begin an empty generation, and forget the oldest one.
        fn rotate(slf: &Bound<'_, Self>) {
            rotating(slf, |filter| filter.rotate());
        }

        /// Rotate if the current generation is at least this old: seconds, or a timedelta. It rotates once for each age that
        /// has passed. Returns True if it rotated. A file keeps the age, if this was called before.
        ///
        /// Call it before each key. Then keys of the last ten minutes are found, and none that is older than eleven:
        ///
        /// >>> from bloomline import RotatingBloomFilter
        /// >>> seen = RotatingBloomFilter(100_000, 0.01, generations=11, rotate_when_full=False)
        /// >>> seen.rotate_if_older_than(60)
        /// False
        /// >>> seen.add("10.0.0.7")
        /// True
        #[pyo3(signature = (age, /))]
        fn rotate_if_older_than(slf: &Bound<'_, Self>, age: &Bound<'_, PyAny>) -> PyResult<bool> {
            let age = duration(age)?;
            Ok(rotating(slf, |filter| filter.rotate_if_older_than(age)))
        }

        /// The number of rotations, automatic and called. A file does not keep it.
        #[getter]
        fn rotations(slf: &Bound<'_, Self>) -> u64 {
            rotating(slf, |filter| filter.rotations())
        }
    }
}

/// Runs a method of a filter that rotates, with the GIL free.
fn rotating<T: Send>(
    object: &Bound<'_, RotatingBloomFilter>,
    work: impl FnOnce(&bloomline::RotatingBloomFilter) -> T + Send,
) -> T {
    let filter = object.as_super().get();
    detach(object.py(), |detached| match &filter.set {
        Set::Rotating(lock) => work(&lock.read(detached)),
        _ => unreachable!("the class has no others"),
    })
}

/// A time from Python: seconds, or a timedelta.
fn duration(age: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = age.extract().or_else(|_| age.call_method0("total_seconds")?.extract());
    let seconds: f64 = seconds.map_err(|_| PyTypeError::new_err("an age is seconds or a timedelta"))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("an age of {seconds} seconds: give 0 or more")))
}

/// A read-only BloomFilter in its file; BloomFilter.map(path) opens it.
#[pyclass(module = "bloomline", extends = Filter, frozen)]
pub(crate) struct MappedBloomFilter;

#[pymethods]
impl MappedBloomFilter {
    /// Check the bits against the file's checksum. It reads the whole file. A ValueError names the fault.
    fn verify(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let filter = slf.as_super().get();
        py.detach(|| filter.set.verify())
    }

    /// Pickles as the path of its file, which must exist on the other side.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Option<PathBuf>,))> {
        Ok((slf.py().get_type::<BloomFilter>().getattr("map")?, (slf.as_super().get().set.path(),)))
    }
}
