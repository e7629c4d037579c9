//! Tables: files of Parquet, whose row groups take the place of chunks of lines.
//!
//! ```text
//! damage     what a damaged file makes fail, and where
//! thrift     what footers and headers tell of sizes, before they are believed
//! partitions columns that the path of a file tells
//! file       the footer, and bytes by position
//! pages      the pages of a row group
//! columns    which columns are read, and what of them is a part of a key
//! json       what a value is as JSON
//! value      what it is as a part of a key
//! rows       the rows of a row group, with these columns
//! selected   which of them are written
//! assembly   puts row groups one after another, and ends the file
//! encode     makes a row group of rows, or copies one
//! ```

use crate::key::json::Pointer;
use serde::{Deserialize, Serialize};

/// What is read of a row.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// All of it.
    Row,
    /// Values.
    Values(&'a [Pointer]),
    /// A text.
    Text(&'a Pointer),
    /// Fields, which lines alone have.
    Field,
}

/// A table so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// What a run needs that goes on with it. Empty if it is whole.
    pub footer: String,
    pub groups: GroupCounts,
}

/// What became of row groups.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Those of the inputs.
    pub read: u64,
    /// Those that were copied as they are, and those that were written anew.
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
