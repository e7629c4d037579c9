//! The library's errors as Python's.

use bloomline::redis::RedisFilterError;
use bloomline::{BuildError, FileError, FileErrorKind, MergeError};
use pyo3::PyErr;
use pyo3::exceptions::{PyConnectionError, PyMemoryError, PyOSError, PyPermissionError, PyValueError};
use std::collections::TryReserveError;

pub(crate) fn build(error: BuildError) -> PyErr {
    match error {
        BuildError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn merge(error: MergeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn file(error: FileError) -> PyErr {
    match error.kind() {
        FileErrorKind::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        FileErrorKind::Io(io) => match io.raw_os_error() {
            // By the number Python finds the class, such as FileNotFoundError.
            Some(errno) => {
                let said = io.to_string();
                let said = said.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((errno, said, error.path().map(|path| path.as_os_str().to_owned())))
            }
            None => PyOSError::new_err(error.to_string()),
        },
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn memory(error: TryReserveError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

pub(crate) fn redis(error: RedisFilterError) -> PyErr {
    let text = error.to_string();
    match error {
        RedisFilterError::Build(error) => build(error),
        RedisFilterError::Unreachable { .. } => PyConnectionError::new_err(text),
        RedisFilterError::Denied { .. } => PyPermissionError::new_err(text),
        RedisFilterError::OutOfMemory { .. }
        | RedisFilterError::ReadOnly { .. }
        | RedisFilterError::Refused { .. }
        | RedisFilterError::Gone { .. }
        | RedisFilterError::Replaced { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
