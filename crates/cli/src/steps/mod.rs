//! Steps: each decides about the lines of the inputs, chunk by chunk.

pub mod decontaminate;
pub mod documents;
pub mod groups;
pub mod insert;
pub mod look_up;
pub mod substrings;
pub mod values;
