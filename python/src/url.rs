//! Files by URL, which Python's part of this package reads and writes.

use pyo3::prelude::*;
use std::path::Path;

/// Returns a path that is a URL, and the module with the functions `read` and `write`; `None` for the path of a file.
pub(crate) fn of_path<'py, 'a>(py: Python<'py>, path: &'a Path) -> PyResult<Option<(&'a str, Bound<'py, PyModule>)>> {
    // Most paths need no call of Python.
    let Some(url) = path.to_str().filter(|path| path.contains("://")) else { return Ok(None) };
    let urls = py.import("bloomline._urls")?;
    let is_url = urls.call_method1("is_url", (url,))?.is_truthy()?;
    Ok(is_url.then_some((url, urls)))
}
