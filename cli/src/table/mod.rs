//! Tables: Parquet files. Their row groups take the place of chunks of lines.
//!
//! One thread decodes the keys of a file: if a row group is broken and the rest of the file is left out, no key of a later row
//! group may have been inserted. The arrays of the keys stay in memory until the row group is written, because reading them
//! twice took 1.45 times as long.
//!
//! ```text
//! damage     failures of damaged files, with their locations
//! thrift     checks of sizes in footers and headers before the library uses them
//! partitions columns in the path of a file
//! file       the footer, and bytes by position
//! pages      the pages of a row group
//! columns    the columns that are read, and the parts of keys among them
//! json       values as JSON
//! value      values as parts of keys
//! rows       the rows of a row group, with these columns
//! selected   the rows that are written
//! assembly   concatenates row groups, and ends the file
//! encode     makes a row group of rows, or copies one
//! ```

use crate::key::json::Pointer;
use serde::{Deserialize, Serialize};

/// The parts of a row that are read.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// The whole row.
    Row,
    /// Values.
    Values(&'a [Pointer]),
    /// A text.
    Text(&'a Pointer),
    /// Fields, which only lines have.
    Field,
}

/// The state of an unfinished table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The metadata that a resumed run needs. Empty if the table is complete.
    pub footer: String,
    pub groups: GroupCounts,
}

/// The numbers of row groups.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Row groups of the inputs.
    pub read: u64,
    /// Row groups that were copied, and those that were rewritten.
    pub copied: u64,
    pub written: u64,
}

#[cfg(feature = "parquet")]
mod assembly;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod damage;
#[cfg(feature = "parquet")]
mod encode;
#[cfg(feature = "parquet")]
mod file;
#[cfg(feature = "parquet")]
mod json;
#[cfg(not(feature = "parquet"))]
mod none;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod partitions;
#[cfg(feature = "parquet")]
mod rows;
#[cfg(feature = "parquet")]
mod selected;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod value;

#[cfg(not(feature = "parquet"))]
pub use none::*;
#[cfg(feature = "parquet")]
pub use {
    assembly::{Assembly, Group},
    file::measure,
    rows::{Rows, TableReader},
    selected::{Added, Selected, Wish},
    value::hash_rows,
};
