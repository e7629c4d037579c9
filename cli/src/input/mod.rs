//! Inputs, from names to numbered chunks of lines.

pub mod chunks;
pub mod contents;
pub mod estimate;
pub mod find;
pub mod foreign;
pub mod glob;
pub mod header;
pub mod hints;
pub mod inputs;
pub mod lines;
pub mod members;
#[cfg(feature = "parquet")]
mod parquet;
pub mod position;
pub mod split;
pub mod table;
