//! The classes, one for each type of the library.

use crate::error;
use crate::filter::Filter;
use crate::lock::detach;
use crate::set::{Set, Unlocked};
use bloomline::{Builder, FileError};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A filter as an object of its class.
pub(crate) fn object(py: Python<'_>, set: Set) -> PyResult<Bound<'_, PyAny>> {
    macro_rules! object {
        ($class:ident) => {
            Bound::new(py, PyClassInitializer::from(Filter::new(py, set, object)).add_subclass($class))
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

/// What every constructor takes.
pub(crate) struct Options {
    pub(crate) expected_keys: Option<u64>,
    pub(crate) false_positive_rate: Option<f64>,
    pub(crate) memory: Option<usize>,
    pub(crate) probes: Option<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) key_name: Option<String>,
}

impl Options {
    /// Whether anything is asked for.
    pub(crate) fn any(&self) -> bool {
        let Self { expected_keys, false_positive_rate, memory, probes, seed, key_name } = self;
        let numbers = expected_keys.is_some() || memory.is_some() || probes.is_some() || seed.is_some();
        numbers || false_positive_rate.is_some() || key_name.is_some()
    }

    /// Those that are given, by the builder's methods of the same names.
    pub(crate) fn builder<F>(self, mut builder: Builder<F>) -> Builder<F> {
        macro_rules! take {
            ($($name:ident)*) => {
                $(if let Some(value) = self.$name {
                    builder = builder.$name(value);
                })*
            };
        }
        take!(expected_keys false_positive_rate memory probes seed key_name);
        builder
    }
}

/// The filter that a file's bytes are.
fn from_bytes<F: Into<Set> + Send>(
    data: &Bound<'_, PyAny>,
    read_from: impl FnOnce(&mut &[u8]) -> Result<F, FileError> + Send,
) -> PyResult<Set> {
    let py = data.py();
    // What others may write to is copied.
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
    ($(#[$doc:meta])* $Class:ident { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "bloomline", extends = Filter, frozen)]
        pub(crate) struct $Class;

        #[pymethods]
        impl $Class {
            #[new]
            #[pyo3(signature = (
                expected_keys = None, false_positive_rate = None, *, memory = None, probes = None, seed = None, key_name = None
            ))]
            fn new(
                py: Python<'_>,
                expected_keys: Option<u64>,
                false_positive_rate: Option<f64>,
                memory: Option<usize>,
                probes: Option<u32>,
                seed: Option<u64>,
                key_name: Option<String>,
            ) -> PyResult<PyClassInitializer<Self>> {
                let options = Options { expected_keys, false_positive_rate, memory, probes, seed, key_name };
                let filter = options.builder(bloomline::$Class::builder()).build().map_err(error::build)?;
                Ok(PyClassInitializer::from(Filter::new(py, filter.into(), object)).add_subclass(Self))
            }

            $($methods)*
        }
    };
}

/// A class whose filters files hold.
macro_rules! stored_class {
    ($(#[$doc:meta])* $Class:ident { $($methods:tt)* }) => {
        class! {
            $(#[$doc])*
            $Class {
                /// Load a file that save, Rust or the command wrote.
                #[staticmethod]
                #[pyo3(signature = (path, /))]
                fn load(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
                    let load = || bloomline::$Class::load(&path).map(Set::from);
                    object(py, py.detach(load).map_err(error::file)?)
                }

                /// The filter whose bytes(filter) these are.
                #[staticmethod]
                #[pyo3(signature = (data, /))]
                fn from_bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    object(data.py(), from_bytes(data, |rest| bloomline::$Class::read_from(rest))?)
                }

                $($methods)*
            }
        }
    };
}

stored_class! {
    /// A Bloom filter: a set that may say "seen" of a key it has not seen, at a rate that you choose, and never the reverse.
    ///
    /// Give two of expected_keys, false_positive_rate and memory (bytes), or memory and probes (4, 8, 12 or 16). Filters merge
    /// if they agree in these and the seed. See Filter for keys and methods.
    ///
    /// >>> from bloomline import BloomFilter
    /// >>> seen = BloomFilter(1_000_000, 0.01)
    /// >>> seen.add("https://example.org/")
    /// True
    /// >>> "https://example.org/" in seen
    /// True
    /// >>> seen.memory_bytes / 1e6 < 1.271
    /// True
    BloomFilter {
        /// Map a file: a filter to read from, ready at once. Processes that map one file share its memory.
        ///
        /// As long as the filter lives, nobody may write to the file or shorten it: answers would be wrong, or the process
        /// killed. save does neither, for it puts a file in the place of the old one.
        #[staticmethod]
        #[pyo3(signature = (path, /))]
        fn map(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
            // SAFETY: the documentation passes the contract on to the caller.
            #[allow(unsafe_code)]
            let map = || unsafe { bloomline::BloomFilter::map(&path) };
            object(py, Set::Mapped(Unlocked(py.detach(map).map_err(error::file)?)))
        }
    }
}

stored_class! {
    /// A BloomFilter that many threads add to at once, each key claimed by one of them: of any number of add(key), at most
    /// one returns True.
    ///
    /// >>> from bloomline import AtomicBloomFilter
    /// >>> seen = AtomicBloomFilter(1000, 0.01)
    /// >>> seen.add("claimed"), seen.add("claimed")
    /// (True, False)
    AtomicBloomFilter {}
}

stored_class! {
    /// A filter for a number of keys that nobody knows: it grows and keeps the rate. expected_keys is that of its first stage.
    ///
    /// >>> from bloomline import ScalableBloomFilter
    /// >>> seen = ScalableBloomFilter(100, 0.01)
    /// >>> seen.update(range(10_000))
    /// >>> seen.current_fpr() <= 0.01
    /// True
    ScalableBloomFilter {}
}

stored_class! {
    /// A ScalableBloomFilter that many threads add to at once; see AtomicBloomFilter.
    ///
    /// >>> from bloomline import AtomicScalableBloomFilter
    /// >>> seen = AtomicScalableBloomFilter(100, 0.01)
    /// >>> seen.add(1), seen.add(1)
    /// (True, False)
    AtomicScalableBloomFilter {}
}

class! {
    /// A filter that forgets: it finds the last expected_keys distinct keys, and remembers at most twice as many.
    ///
    /// >>> from bloomline import RotatingBloomFilter
    /// >>> seen = RotatingBloomFilter(1000, 1e-6)
    /// >>> seen.update(range(5000))
    /// >>> 4999 in seen, 0 in seen
    /// (True, False)
    RotatingBloomFilter {
        /// Forget the older half. After two calls nothing is left of what came before.
        fn rotate(slf: &Bound<'_, Self>) {
            let py = slf.py();
            let filter = slf.as_super().get();
            detach(py, |detached| filter.set.rotate(detached));
        }
    }
}

/// A BloomFilter in its file, to read from; BloomFilter.map(path) opens it.
#[pyclass(module = "bloomline", extends = Filter, frozen)]
pub(crate) struct MappedBloomFilter;

#[pymethods]
impl MappedBloomFilter {
    /// Check the bits against the file's checksum. It reads the whole file. A ValueError says what is wrong.
    fn verify(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let filter = slf.as_super().get();
        py.detach(|| filter.set.verify())
    }
}
