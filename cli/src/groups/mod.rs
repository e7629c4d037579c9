//! Groups: lines that are alike, and what becomes of each of them, which only all of them together tell.
//!
//! ```text
//! score       what is compared for that, in words
//! written     dates and times in strings, and strings whose order is not that of their bytes
//! choice      which one of a group stays
//! values      what is read of lines beside their keys
//! places      the numbers of lines in the order of the inputs
//! ids         what lines are called, by their places
//! suspects    what may have others of its kind
//! marks       bits at places
//! decisions   of each group one is chosen; what becomes of each line, by its place
//! near        the clusters of near duplicates
//! records     the first reading: a record of each line, and which of them may have others of their kind
//! reports     what is told of groups: pairs and clusters
//! ```
//!
//! The inputs are read twice. The second time nothing is parsed or hashed: a line is known by its place.

pub mod choice;
pub mod decisions;
pub mod ids;
pub mod marks;
pub mod near;
pub mod places;
pub mod records;
pub mod reports;
pub mod score;
pub mod suspects;
pub mod values;
pub mod written;
