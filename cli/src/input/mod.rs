//! Inputs, from names to numbered chunks of lines.

pub mod chunks;
pub mod contents;
pub mod decode;
pub mod estimate;
pub mod find;
pub mod foreign;
pub mod glob;
pub mod header;
pub mod hints;
pub mod inputs;
pub mod lines;
pub mod members;
pub mod position;
pub mod split;
