//! Groups: similar lines, and the decisions about them, which require all lines of a group.
//!
//! ```text
//! score       the values that lines are chosen by, as words
//! string_order  dates and times in strings, and strings whose order is not the order of their bytes
//! choice      the choice of the member that is kept
//! ordinals      the numbers of lines in the order of the inputs
//! ids         the ids of lines, by ordinal
//! candidates  lines that may not be unique
//! ranked_bitmap a set of ordinals
//! decisions   the choice of one line of each group, and the decision about each line, by ordinal
//! near        the survivors of near duplicates
//! records     the first pass: a record of each line, and the search for records of one group
//! reports     reports on groups: pairs and clusters
//! ```
//!
//! The inputs are read twice. The second pass parses and hashes nothing: a line is identified by its ordinal.

pub mod candidates;
pub mod choice;
pub mod collect;
pub mod decisions;
pub mod ids;
pub mod near;
pub mod ordinals;
pub mod ranked_bitmap;
pub mod record;
pub mod records;
pub mod replay;
pub mod reports;
pub mod score;
pub mod string_order;
