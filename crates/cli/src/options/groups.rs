//! The options of groups of equal lines or documents.

use crate::key::json::Pointer;
use crate::steps::groups::choice::{KeepPolicy, parse_value_pointer};
use clap::Args;
use std::path::PathBuf;

/// The choice of the member of each group that is kept, and the reports.
#[derive(Args)]
pub struct GroupOptions {
    /// Which of equal lines to keep, such as last or max:/score [default: first]
    ///
    /// WHICH is first, last, longest, max:POINTER, min:POINTER or order:POINTER=A,B,C. longest is for `corpus`, and compares the
    /// bytes of the texts. max and min compare the values at POINTER: numbers
    /// exactly, with true as 1 and false as 0, dates with times of ISO 8601 by their instants, in UTC where they have no offset,
    /// and other strings by their bytes. A warning is printed if that is not the order of numbers or dates in them. Dates and
    /// times of Parquet are numbers, and so is a folder's value that is one. If a group has both kinds, numbers are kept before
    /// strings. order keeps the line whose string at POINTER comes first in the list. Other values rank last, and ties go to the
    /// first line. POINTER is a JSON pointer such as /score, or the name of a column of Parquet or, with --header, of CSV, where a
    /// field that is a number counts as one.
    ///
    /// The inputs are read twice, and input from a pipe is kept in a temporary file. With --output-dir, every WHICH follows the
    /// order of the inputs, even first.
    #[arg(long, value_name = "WHICH", help_heading = "Output")]
    pub keep: Option<KeepPolicy>,

    /// Write each duplicate and what it repeats to FILE, as JSON.
    ///
    /// A line of JSON has the file and the line of both, counted from 1. In a table the line is the row, and in CSV the record.
    /// For a name that is not UTF-8, file_hex has the bytes. Near duplicates have the similarity of both, and as "contained" the
    /// share of the duplicate's grams that the other has. Repeats of an earlier run's state have "kept":null. With this option
    /// no line is lost by mistake. The inputs are read twice, and a record of 16 bytes for each line is kept in a temporary
    /// file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub pairs: Option<PathBuf>,

    /// Write each group of two or more to FILE, as JSON.
    ///
    /// Each line of JSON is a group. Its members are written as in --pairs, the one that is kept first.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub clusters: Option<PathBuf>,

    /// With --pairs or --clusters, write the value at POINTER too, such as /id.
    ///
    /// POINTER is a JSON pointer, or the name of a column.
    #[arg(long, value_name = "POINTER", value_parser = parse_value_pointer, help_heading = "Output")]
    pub id: Option<Pointer>,
}

impl GroupOptions {
    /// Returns the first option that needs more than the first or the last member of a group.
    pub fn first_given(&self) -> Option<&'static str> {
        let keep = match self.keep {
            None | Some(KeepPolicy::First | KeepPolicy::Last) => None,
            Some(KeepPolicy::Longest) => Some("--keep longest"),
            Some(KeepPolicy::Max(_)) => Some("--keep max"),
            Some(KeepPolicy::Min(_)) => Some("--keep min"),
            Some(KeepPolicy::Order(..)) => Some("--keep order"),
        };
        let pairs = self.pairs.as_ref().map(|_| "--pairs");
        keep.or(pairs).or(self.clusters.as_ref().map(|_| "--clusters"))
    }

    /// Returns an option that names a value of lines of JSON, or a column.
    pub fn first_with_pointer(&self) -> Option<&'static str> {
        if let Some(keep) = &self.keep
            && keep.pointer().is_some()
        {
            return self.first_given();
        }
        self.id.as_ref().map(|_| "--id")
    }
}
