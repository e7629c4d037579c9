//! Why there are no such near duplicates.

use super::MAX_VALUES;
use core::fmt;

/// Why a [`Near`](super::Near) cannot be made.
///
/// # Examples
/// ```
/// use bloomline_text::near::{Near, NearError};
/// let error = Near::new(80.0).unwrap_err();
/// assert_eq!(error, NearError::Similarity { value: 80.0 });
/// assert_eq!(error.to_string(), "similarity 80 is not between 0 and 1 (both excluded)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NearError {
    /// The similarity is not between 0 and 1, or is not a number.
    Similarity {
        /// The similarity asked for.
        value: f64,
    },
    /// Fewer than 2 permutations, or too many.
    Permutations {
        /// The number asked for.
        value: usize,
    },
    /// No band, no row, or too many values in all.
    Bands {
        /// The number of bands asked for.
        bands: usize,
        /// The number of rows asked for.
        rows: usize,
    },
    /// Grams of 0 tokens.
    Ngram,
}

impl fmt::Display for NearError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Similarity { value } => write!(f, "similarity {value} is not between 0 and 1 (both excluded)"),
            Self::Permutations { value } => write!(f, "{value} permutations: give 2 to {MAX_VALUES}"),
            Self::Bands { bands, rows } => write!(
                f,
                "{bands} bands of {rows} rows: give at least 1 of each, and at most {MAX_VALUES} values (bands × rows)"
            ),
            Self::Ngram => write!(f, "grams of 0 tokens: give at least 1"),
        }
    }
}

impl core::error::Error for NearError {}
