//! Inserting lines into a filter, in order, and counting them.

use crate::batch::Batch;
use crate::cli::Sizing;
use crate::error::Error;
use crate::figures::readable;
use crate::input::Input;
use crate::output::say;
use bloomline::BloomFilter;

/// A filter and what went into it.
pub struct Inserter {
    /// The filter.
    pub filter: BloomFilter,
    /// The distinct keys that it was made for; of a filter from a file nobody knows.
    expected_keys: Option<u64>,
    /// Lines so far.
    pub lines: u64,
    /// Lines so far that were new to the filter.
    pub new: u64,
    /// The length of the lines with their newlines.
    pub bytes: u64,
}

impl Inserter {
    /// Makes a filter for the keys that the user or the inputs tell.
    pub fn sized(options: &Sizing, inputs: &[Input]) -> Result<Self, Error> {
        let expected_keys = match options.expected_keys {
            Some(keys) => keys,
            None => inputs.iter().map(Input::estimate_lines).sum::<Result<u64, _>>()?.max(1),
        };
        let builder = BloomFilter::builder().expected_keys(expected_keys).false_positive_rate(options.fpr);
        Ok(Self { expected_keys: Some(expected_keys), ..Self::extending(builder.seed(options.seed).build()?) })
    }

    /// Goes on with a filter.
    pub fn extending(filter: BloomFilter) -> Self {
        Self { filter, expected_keys: None, lines: 0, new: 0, bytes: 0 }
    }

    /// Inserts the lines of a batch that is hashed, and marks those that are new.
    pub fn insert(&mut self, batch: &mut Batch) {
        let planned = self.expected_keys.filter(|&keys| self.new <= keys);
        self.new += batch.mark(|hashes, new| self.filter.insert_hashes(hashes, new)) as u64;
        self.lines += batch.lines() as u64;
        self.bytes += batch.bytes() as u64;
        if let Some(keys) = planned
            && self.new > keys
        {
            say(&format!(
                "bloomline: warning: passed the {keys} distinct lines planned for: the false-positive rate is now {} and \
                 rises with every line; plan for more with -n",
                readable(self.filter.current_fpr()),
            ));
        }
    }
}
