//! The keys of rows of Arrow arrays, and sets of rows.

mod cell;
mod kind;
mod row;
mod set;

use kind::Meaning;
pub use kind::{KeyTypeError, data_columns, kind_of};
pub use row::{Column, Part, Row, entry, hash_rows, kinds_of};
pub use set::RowSet;
