//! Inputs, from names to numbered chunks of lines.

pub mod batch;
mod brotli;
pub mod chunks;
pub mod coding;
pub mod compression;
pub mod contents;
pub mod ends;
pub mod estimate;
pub mod find;
pub mod foreign;
pub mod glob;
mod hash;
pub mod header;
pub mod hints;
pub mod inputs;
pub mod keys;
pub mod line_sample;
mod lz4;
pub mod members;
#[cfg(feature = "parquet")]
mod parquet;
pub mod position;
pub mod projection;
pub mod skip;
pub mod split;
pub mod table;
mod utf16;

use inputs::Input;
use table::Format;

/// The format of tables, if this build has one.
#[cfg(feature = "parquet")]
pub const FORMAT: Option<&dyn Format> = Some(&parquet::Parquet);
#[cfg(not(feature = "parquet"))]
pub const FORMAT: Option<&dyn Format> = None;

/// Returns the format of an input that is a table.
pub fn format_of(input: &Input) -> Option<&'static dyn Format> {
    FORMAT.filter(|_| input.is_table)
}
