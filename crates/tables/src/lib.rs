//! Tables for the command: Parquet files that are read, and written again without some of their rows.
//!
//! A [`TableReader`] returns the [`Rows`] of one row group after the other, with the columns that a [`RowProjection`]
//! selects. A [`SelectedRows`] makes a row group of some rows, and an [`Assembly`] concatenates row groups.
//!
//! Messages name options of the command, and the interface may change with it in any version.
#![forbid(unsafe_code)]

// Imports run from the lower of these rows to the upper ones:
//
//     damage     failures of damaged files, with their locations
//     thrift     checks of sizes in footers and headers before the library uses them
//     partitions columns in the path of a file
//     file       the footer, and bytes by position
//     file_schema the properties that all row groups of a file share
//     pages      the pages of a row group
//     json       values as JSON
//     compared   values that are compared or printed
//     columns    the columns that are read, and the parts of keys among them
//     rows       the rows of a row group, with these columns
//     assembly   concatenates row groups, and ends the file
//     encode     makes a row group of rows, or copies one
mod assembly;
mod columns;
mod compared;
mod damage;
mod encode;
mod file;
mod file_schema;
mod json;
mod pages;
mod partitions;
mod positioned;
mod rows;
mod thrift;

pub use assembly::{Assembly, Group, GroupCounts};
pub use columns::{Compared, KeyPaths, RowProjection};
pub use compared::ComparedRow;
pub use encode::SelectedRows;
pub use file::{Source, measure};
pub use file_schema::Added;
pub use parquet::basic::{Compression, GzipLevel, ZstdLevel};
pub use rows::{Rows, TableReader};
