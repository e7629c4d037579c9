//! Groups: similar lines, and the decisions about them, which require all lines of a group.
//!
//! ```text
//! score       the values that lines are chosen by, as words
//! written     dates and times in strings, and strings whose order is not the order of their bytes
//! choice      the choice of the member that is kept
//! values      the values read of lines beside their keys
//! places      the numbers of lines in the order of the inputs
//! ids         the ids of lines, by place
//! suspects    lines that may not be unique
//! marks       a set of places
//! decisions   the choice of one line of each group, and the decision about each line, by place
//! near        the clusters of near duplicates
//! records     the first pass: a record of each line, and the search for records of one group
//! reports     reports on groups: pairs and clusters
//! ```
//!
//! The inputs are read twice. The second pass parses and hashes nothing: a line is identified by its place.

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
