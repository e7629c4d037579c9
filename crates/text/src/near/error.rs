//! The error of invalid parameters for near duplicates.

use super::MAX_VALUES;
use core::fmt;

/// An error from the constructors of [`Near`](super::Near) and [`Survivors`](super::Survivors).
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
        /// The requested similarity.
        value: f64,
    },
    /// The number of permutations is below 2 or too large.
    Permutations {
        /// The requested number.
        value: usize,
    },
    /// The number of bands or rows is 0, or their product is too large.
    Bands {
        /// The requested number of bands.
        bands: usize,
        /// The requested number of rows.
        rows: usize,
    },
    /// The number of tokens in a gram is 0.
    Ngram,
    /// The share of contained grams is not from 0 to 1.
    Contained {
        /// The requested share.
        value: f64,
    },
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
            Self::Contained { value } => write!(f, "a contained share of {value} is not from 0 to 1"),
        }
    }
}

impl core::error::Error for NearError {}
