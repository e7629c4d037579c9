//! Rows that are written: what a row group of an output is made of.

use crate::encode::Compression;
use crate::table::rows::Rows;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// Rows of a row group, some of which are written.
pub struct Selected {
    pub rows: Arc<Rows>,
    /// Whether each of them is.
    pub wanted: Vec<bool>,
    /// What takes the place of texts, where that is asked for; none stays as it is.
    pub texts: Option<Vec<Option<String>>>,
    pub added: Option<Added>,
    pub wish: Wish,
}

/// A column that is added, with a value for each row, or none.
pub enum Added {
    Texts(&'static str, Vec<Option<String>>),
    Numbers(&'static str, Vec<u64>),
}

/// How they are written, if it is asked for.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    pub compression: Option<Compression>,
    /// Whether the columns of keys get a Bloom filter.
    pub filter: bool,
    /// True if texts are replaced, which is done in a whole column alone.
    pub cuts: bool,
}

impl Selected {
    /// Those that are wanted of these.
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
