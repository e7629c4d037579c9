//! Hashes one Python object to 64 bits, as the library hashes the same key in Rust.

use crate::error;
use crate::kinds::Forms;
use crate::lock::attached;
use bloomline::{Key, KeyHasher};
use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};

/// The greatest depth of tuples within tuples.
const DEEPEST: usize = 100;

/// The reason why an object is not a key.
pub(crate) enum NoKey {
    /// The name of its type.
    Type(String),
    /// An integer beyond 64 bits.
    Large,
    Raised(PyErr),
}

impl From<PyErr> for NoKey {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl NoKey {
    /// Converts to an exception; `index` is the key's index in an array or an iterable.
    pub(crate) fn into_error(self, py: Python<'_>, index: Option<usize>) -> PyErr {
        let place = index.map(|index| format!("keys[{index}]: ")).unwrap_or_default();
        match self {
            Self::Type(name) => {
                let times = ["numpy.datetime64", "numpy.timedelta64"].contains(&name.as_str());
                let cast = if times { "; array.view(\"i8\") has ints" } else { "" };
                PyTypeError::new_err(format!("{place}a key is str, bytes, int or a tuple of these, not {name}{cast}"))
            }
            Self::Large => PyOverflowError::new_err(format!("{place}an int as a key is from -2**63 to 2**64 - 1")),
            Self::Raised(error) => {
                if !place.is_empty() {
                    // Adds the index. A failure to do so must not hide the error itself.
                    _ = error.value(py).call_method1("add_note", (place.trim_end_matches(": "),));
                }
                error
            }
        }
    }
}

/// Returns the hash of a key, and its form.
#[inline(always)]
pub(crate) fn hash(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> Result<(u64, Forms), NoKey> {
    hash_nested(hasher, key, 0)
}

/// Hashes a key within `depth` tuples. Text is inlined, because most keys are text.
#[inline(always)]
fn hash_nested(hasher: &KeyHasher, key: &Bound<'_, PyAny>, depth: usize) -> Result<(u64, Forms), NoKey> {
    match key.cast::<PyString>() {
        Ok(text) => Ok((hasher.bytes(text.to_str()?.as_bytes()), Forms::TEXT)),
        Err(_) => hash_other(hasher, key, depth),
    }
}

#[inline(never)]
fn hash_other(hasher: &KeyHasher, key: &Bound<'_, PyAny>, depth: usize) -> Result<(u64, Forms), NoKey> {
    if let Ok(bytes) = key.cast::<PyBytes>() {
        Ok((hasher.bytes(bytes.as_bytes()), Forms::TEXT))
    } else if key.is_instance_of::<PyInt>() {
        Ok((integer(hasher, key)?, Forms::OTHER))
    } else if let Ok(tuple) = key.cast::<PyTuple>() {
        if depth == DEEPEST {
            let error = format!("tuples as keys are nested at most {DEEPEST} deep");
            return Err(PyRecursionError::new_err(error).into());
        }
        let mut members = tuple.iter_borrowed().map(|member| hash_nested(hasher, &member, depth + 1));
        let (first, form) = members.next().unwrap_or_else(|| {
            Err(PyValueError::new_err("an empty tuple is not a key: give one with a member").into())
        })?;
        // A tuple of one member has its key.
        let form = if tuple.len() == 1 { form } else { Forms::OTHER };
        let hash = members.try_fold(first, |hash, member| Ok::<_, NoKey>(hasher.combine(hash, member?.0)))?;
        Ok((hash, form))
    } else if let Some(bytes) = attached(key.py(), || buffer(key))? {
        Ok((hasher.bytes(&bytes), Forms::TEXT))
    } else {
        Ok((integer(hasher, key)?, Forms::OTHER))
    }
}

/// Hashes an object that is an integer, or converts to one, such as NumPy's. The 8 bytes of an i64 or a u64 are hashed, so that
/// -1 and 2**64 - 1 are one key, as in Rust.
fn integer(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> Result<u64, NoKey> {
    match key.extract::<i64>() {
        Ok(value) => Ok(value.hash_with(hasher)),
        // It drops an exception.
        Err(error) => attached(key.py(), || no_i64(hasher, key, error)),
    }
}

fn no_i64(hasher: &KeyHasher, key: &Bound<'_, PyAny>, error: PyErr) -> Result<u64, NoKey> {
    let py = key.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        let value = key.extract::<u64>().map_err(|error| match error.is_instance_of::<PyOverflowError>(py) {
            true => NoKey::Large,
            false => error.into(),
        })?;
        Ok(value.hash_with(hasher))
    } else if error.is_instance_of::<PyTypeError>(py) {
        // NumPy's bool does not convert to an integer.
        match key.extract::<bool>() {
            Ok(value) => Ok(u64::from(value).hash_with(hasher)),
            Err(_) => Err(NoKey::Type(key.get_type().fully_qualified_name()?.to_string())),
        }
    } else {
        Err(error.into())
    }
}

/// Copies the bytes of a bytearray, a memoryview and the like, also signed ones, because other threads may write to them.
fn buffer(key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    fn copied<T: Element + Default>(py: Python<'_>, buffer: &PyUntypedBuffer) -> PyResult<Option<Vec<T>>> {
        let Ok(buffer) = buffer.as_typed::<T>() else { return Ok(None) };
        let mut copy = Vec::new();
        copy.try_reserve_exact(buffer.item_count()).map_err(error::memory)?;
        copy.resize(buffer.item_count(), T::default());
        Ok(buffer.copy_to_slice(py, &mut copy).is_ok().then_some(copy))
    }
    let Ok(buffer) = PyUntypedBuffer::get(key) else { return Ok(None) };
    if buffer.dimensions() != 1 || buffer.item_size() != 1 {
        return Ok(None);
    }
    if buffer.format().to_bytes().ends_with(b"b") {
        let signed = copied::<i8>(key.py(), &buffer)?;
        // Reuses the allocation.
        Ok(signed.map(|signed| signed.into_iter().map(i8::cast_unsigned).collect()))
    } else {
        copied::<u8>(key.py(), &buffer)
    }
}
