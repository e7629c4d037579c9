//! The Python module `bloomline`: the library's filters, which behave like a set.
//!
//! ```text
//! error.rs   the library's errors as Python's
//! key.rs     one object of Python, hashed as Rust hashes the same key
//! portion.rs how many keys are hashed and looked up together
//! kinds.rs   the kinds of a filter's keys, and which methods may use them
//! keys.rs    many keys, in portions: from an array of Arrow (arrow.rs), a buffer (buffer.rs), or any iterable
//! rows.rs    rows of frames and tables as keys
//! signals.rs Ctrl-C where the GIL is free; url.rs has files by URL
//! lock.rs    access to a filter: a lock, and the cases in which none is needed
//! set.rs     the library's types behind one
//! filter.rs  the base class of all filters; add.rs has its most frequent method
//! types.rs   the class of each type
//! redis.rs   the class of a filter on a server; figures.rs has the classes of its figures
//! ```
//!
//! The command is the crate in `crates/cli/`, called by `package/bloomline/__main__.py`.
//!
//! `unsafe` is needed for foreign memory (`buffer.rs`, `arrow.rs`, and a mapped file), and in `lock.rs` and `add.rs`.

mod add;
mod arrow;
mod buffer;
mod error;
mod figures;
mod filter;
mod key;
mod keys;
mod kinds;
mod lock;
mod portion;
mod redis;
mod rows;
mod set;
mod signals;
mod types;
mod url;

/// The module itself.
#[pyo3::pymodule(gil_used = false)]
mod _bloomline {
    use crate::keys::Numpy;
    use crate::rows::{Nulls, Selection, distinct};
    use pyo3::prelude::*;
    use std::ffi::OsString;

    #[pymodule_export]
    use crate::figures::{RedisFilterMetrics, RedisFilterStats};
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::redis::RedisBloomFilter;
    #[pymodule_export]
    use crate::types::{
        AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, MappedBloomFilter, RotatingBloomFilter,
        ScalableBloomFilter,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let redis = module.py().get_type::<RedisBloomFilter>();
        redis.setattr("__contains__", redis.getattr("_contains")?)?;
        crate::add::install(module.py())
    }

    /// Refuse the columns of a key for a filter whose keys have another name.
    #[pyfunction]
    #[pyo3(signature = (columns, whole, key_name))]
    fn _check_key_name(columns: Vec<String>, whole: bool, key_name: &str) -> PyResult<()> {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        crate::rows::check_name(&columns, whole || columns.len() > 1, key_name)
    }

    /// An array of bool, True for each row that is the first of its key, or with `is_reversed`, the last. See `Filter._add_rows` for
    /// `nulls` and `whole`.
    #[pyfunction]
    #[pyo3(signature = (rows, nulls, whole, is_reversed, /))]
    fn _distinct_rows<'py>(
        rows: &Bound<'py, PyAny>,
        nulls: &str,
        whole: bool,
        is_reversed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(rows.py())?;
        numpy.array(&distinct(rows, Nulls::from_name(nulls)?, Selection::new(whole), is_reversed)?)
    }

    /// The name of the keys that are values of these columns.
    #[pyfunction]
    #[pyo3(signature = (columns, whole))]
    fn _name_of_key(columns: Vec<String>, whole: bool) -> String {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        crate::rows::name_of_key(&columns, whole || columns.len() > 1)
    }

    /// Run the command with these arguments, including the program as the first, and return the exit code. Its progress is
    /// drawn on a terminal, or written as lines of JSON.
    #[pyfunction]
    #[pyo3(signature = (args, progress_as_json = false))]
    fn _run_command_line(py: Python<'_>, args: Vec<OsString>, progress_as_json: bool) -> u8 {
        if progress_as_json {
            bloomline_cli::write_progress_as_json();
        }
        py.detach(|| bloomline_cli::run_command_line(args))
    }
}
