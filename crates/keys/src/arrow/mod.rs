//! The keys of rows of Arrow arrays.

mod kind;
mod row;

use kind::Meaning;
pub use kind::{KeyTypeError, data_columns, kind_of};
pub use row::{Column, Part, Row, entry, hash_rows, kinds_of};
