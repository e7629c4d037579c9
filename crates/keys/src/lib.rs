//! The keys of values. Equal values have equal keys, whatever format or type stores them, and different values have different keys.
//!
//! A text is its own bytes. Any other value is the byte 0xFF, a tag and its content, so that no text in UTF-8 is a key
//! of another kind: see [`encoding`]. docs/FORMAT.md has the table. [`KeyKinds`] records the kinds of values in a
//! filter, so that its users can refuse keys of other kinds.
//!
//! ```
//! use bloomline_keys::encoding::{push_float, push_integer, push_number};
//!
//! let (mut integer, mut float, mut json) = (Vec::new(), Vec::new(), Vec::new());
//! push_integer(1200, &mut integer);
//! push_float(1200.0, &mut float);
//! push_number("1.2e3", &mut json);
//! assert_eq!(integer, b"\xffn12e2");
//! assert!(float == integer && json == integer);
//! ```
#![forbid(unsafe_code)]

// Imports run from the lower of these rows to the upper ones:
//
//     kinds      the kinds of values, and those that a filter records
//     name       the names of keys
//     encoding   the byte strings of values
//     time       dates and times in texts
//     value      values that are compared or printed
//     arrow      the keys of rows of arrays
#[cfg(feature = "arrow")]
pub mod arrow;
pub mod encoding;
mod kinds;
mod name;
pub mod time;
mod value;

pub use kinds::{KeyKinds, KindConflict, Kinds};
pub use name::{MAX_NAME_BYTES, current_name, escaped, name_of_columns, shortened};
pub use value::{Value, Values};
