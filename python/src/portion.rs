//! A portion of many keys.

use crate::kinds::Forms;
use crate::lock::Thread;
use pyo3::prelude::*;

/// Keys that are hashed before they are looked up together.
pub(crate) const PORTION_KEYS: usize = 512;

/// The consumer of a portion's hashes, and of the forms of its keys.
pub(crate) type Take<'a> = dyn FnMut(Thread<'_>, &[u64], Forms) -> PyResult<()> + Send + 'a;
