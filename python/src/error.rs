//! The library's errors as Python's.

use bloomline::{BuildError, FileError, FileErrorKind, MergeError};
use bloomline_redis::RedisFilterError;
use pyo3::PyErr;
use pyo3::exceptions::{PyConnectionError, PyMemoryError, PyOSError, PyPermissionError, PyValueError};
use std::collections::TryReserveError;
use std::io;
use std::path::Path;

/// The numbers on every Unix.
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;

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
        FileErrorKind::Io(system) if system.raw_os_error().is_some() => io(system, error.path()),
        FileErrorKind::Io(own_error) => {
            let errno = if error.path().is_some_and(Path::is_dir) { EISDIR } else { EINVAL };
            PyOSError::new_err((
                errno,
                in_python(&own_error.to_string()),
                error.path().map(|path| path.as_os_str().to_owned()),
            ))
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Converts an I/O error. Python finds the class of a system's error, such as FileNotFoundError, by its number.
pub(crate) fn io(error: &io::Error, path: Option<&Path>) -> PyErr {
    let message = error.to_string();
    let Some(errno) = error.raw_os_error() else { return PyOSError::new_err(message) };
    let message = message.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((errno, message, path.map(|path| path.as_os_str().to_owned())))
}

/// Replaces the names of Rust's methods in a message.
fn in_python(message: &str) -> String {
    message.replace("use write_to", "write bytes(filter)").replace("read it with read_from", "read it with load")
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
        | RedisFilterError::Replaced { .. }
        | RedisFilterError::LeftOver { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
