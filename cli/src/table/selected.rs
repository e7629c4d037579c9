//! Rows that are written: the contents of a row group of an output.

use crate::encode::Compression;
use crate::table::rows::Rows;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// Rows of a row group, some of which are written.
pub struct Selected {
    pub rows: Arc<Rows>,
    /// True for each row that is written.
    pub wanted: Vec<bool>,
    /// The replacements of texts, if any; `None` leaves a text unchanged.
    pub texts: Option<Vec<Option<String>>>,
    pub added: Option<Added>,
    pub wish: Wish,
}

/// An added column, with a value, or none, for each row.
pub enum Added {
    Texts(&'static str, Vec<Option<String>>),
    Numbers(&'static str, Vec<u64>),
}

/// The options for writing tables.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    pub compression: Option<Compression>,
    /// True if key columns get a Bloom filter.
    pub filter: bool,
    /// True if texts are replaced, which requires a whole column.
    pub cuts: bool,
}

impl Selected {
    /// Selects the wanted rows.
    pub fn new(
        rows: Arc<Rows>,
        wanted: Vec<bool>,
        texts: Option<Vec<Option<String>>>,
        added: Option<Added>,
        wish: Wish,
    ) -> Self {
        Self { rows, wanted, texts, added, wish }
    }
}

impl Added {
    pub fn field(&self) -> Field {
        match self {
            Self::Texts(name, _) => Field::new(*name, DataType::Utf8, true),
            Self::Numbers(name, _) => Field::new(*name, DataType::Int64, false),
        }
    }

    pub fn array(&self) -> ArrayRef {
        match self {
            Self::Texts(_, texts) => Arc::new(StringArray::from_iter(texts)),
            Self::Numbers(_, numbers) => {
                Arc::new(Int64Array::from_iter_values(numbers.iter().map(|&number| number as i64)))
            }
        }
    }
}
