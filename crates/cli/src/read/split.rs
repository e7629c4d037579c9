//! The format of lines, and the ends of CSV records.

use crate::key::byte_scan::for_each_position;
use crate::key::fields::{Csv, QUOTE};
use std::mem;

/// The format of lines.
#[derive(Clone, Copy)]
pub struct LineFormat {
    /// The byte that ends a line.
    pub end: u8,
    /// The dialect, if lines are CSV records. Inside quotes, nothing ends a record.
    pub csv: Option<Csv>,
    /// True if the first line of an input is a header.
    pub header: bool,
    /// True if lines of white space are skipped.
    pub skip_blank: bool,
}

impl LineFormat {
    /// Returns the format of lines that end with `end`.
    pub fn plain(end: u8) -> Self {
        Self { end, csv: None, header: false, skip_blank: false }
    }
}

/// A scanner for the ends of CSV records, in bytes that arrive piece by piece. A quote opens a field only at the field's start. A
/// doubled or escaped quote in a field is text. After the closing quote, bytes are skipped up to the next delimiter.
#[derive(Default)]
pub struct RecordScanner {
    end: u8,
    delimiter: u8,
    escape: Option<u8>,
    /// The number of bytes searched.
    searched: usize,
    /// True if a quoted field is open there.
    open: bool,
    /// The position where a quote opens a field whatever precedes it: the start of the first record, or after a closing quote.
    opens: usize,
    /// The position of a quote or an escape that is text.
    escaped: usize,
    /// The ends so far, after the byte that ends a record.
    pub ends: Vec<usize>,
}

impl RecordScanner {
    /// Restarts with bytes whose first record starts at `start`.
    pub fn begin(&mut self, end: u8, csv: Csv, start: usize) {
        self.ends.clear();
        let ends = mem::take(&mut self.ends);
        let Csv { delimiter, escape, .. } = csv;
        *self = Self { end, delimiter, escape, searched: start, open: false, opens: start, escaped: usize::MAX, ends };
    }

    /// Continues to the end of `bytes`, which begin with the bytes searched before.
    pub fn search(&mut self, bytes: &[u8]) {
        let start = self.searched;
        match self.escape {
            None => for_each_position(&bytes[start..], [self.end, QUOTE], |place| self.take(bytes, start + place)),
            Some(escape) => for_each_position(&bytes[start..], [self.end, QUOTE, escape], |place| {
                let place = start + place;
                match bytes[place] == escape {
                    _ if place == self.escaped => {}
                    true => self.escaped = if self.open { place + 1 } else { usize::MAX },
                    false => self.take(bytes, place),
                }
            }),
        }
        self.searched = bytes.len();
    }

    /// Processes an end or a quote.
    #[inline(always)]
    fn take(&mut self, bytes: &[u8], place: usize) {
        let Self { end, delimiter, open, opens, ends, .. } = self;
        if bytes[place] != QUOTE {
            if !*open {
                ends.push(place + 1);
            }
        } else if *open {
            (*open, *opens) = (false, place + 1);
        } else {
            *open = place == *opens || [*end, *delimiter].contains(&bytes[place - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csv_core::{ReadRecordResult, ReaderBuilder, Terminator};
    use proptest::prelude::*;

    /// Returns the ends of the records, searched piece by piece, and whether the last record is open.
    fn ours(bytes: &[u8], end: u8, csv: Csv, pieces: &[usize]) -> (Vec<usize>, bool) {
        let mut records = RecordScanner::default();
        records.begin(end, csv, 0);
        pieces.iter().chain([&bytes.len()]).for_each(|&piece| records.search(&bytes[..piece.min(bytes.len())]));
        (records.ends, records.open)
    }

    /// Returns the fields of each record according to the csv library, which ignores empty lines.
    fn theirs(bytes: &[u8], end: u8, csv: Csv) -> Vec<Vec<Vec<u8>>> {
        let mut reader = ReaderBuilder::new();
        let mut reader = reader.delimiter(csv.delimiter).escape(csv.escape).terminator(Terminator::Any(end)).build();
        // The library removes a byte order mark at the start, so another record precedes the bytes.
        let first = [b'x', end];
        let (mut rest, mut fields, mut ends) = (bytes, vec![0; bytes.len() + 2], vec![0; bytes.len() + 2]);
        reader.read_record(&first, &mut fields, &mut ends);
        let mut records = Vec::new();
        let (mut had, mut found) = (0, 0);
        loop {
            let (result, read, written, ended) = reader.read_record(rest, &mut fields[had..], &mut ends[found..]);
            rest = &rest[read..];
            (had, found) = (had + written, found + ended);
            match result {
                ReadRecordResult::Record => {
                    let starts = [0].into_iter().chain(ends[..found].iter().copied());
                    records.push(starts.zip(&ends[..found]).map(|(start, &end)| fields[start..end].to_vec()).collect());
                    (had, found) = (0, 0);
                }
                ReadRecordResult::End => return records,
                _ => assert!(rest.is_empty()),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn records_match_a_csv_library(
            bytes in prop::collection::vec(prop::sample::select(&b"\"\"\"\",,,;\n\n\r\0ab\\\\\xef\xbb\xbf"[..]), 0..200),
            end in prop::sample::select(&b"\n\0"[..]),
            delimiter in prop::sample::select(&b",;\t"[..]),
            escape in prop::sample::select(&[None, Some(b'\\')][..]),
            mut pieces in prop::collection::vec(0..200usize, 0..4),
        ) {
            pieces.sort();
            let csv = Csv { escape, ..delimiter.into() };
            let (ends, open) = ours(&bytes, end, csv, &pieces);
            let (starts, last) = ([0].iter().chain(&ends), [bytes.len()]);
            let records = starts.zip(ends.iter().chain(&last)).map(|(&start, &end)| &bytes[start..end]);
            let records: Vec<&[u8]> = records.filter(|record| ![&[][..], &[end]].contains(record)).collect();
            let whole = theirs(&bytes, end, csv);
            prop_assert_eq!(records.len(), whole.len());
            for (record, expected) in records.iter().zip(&whole) {
                prop_assert_eq!(&theirs(record, end, csv), &vec![expected.clone()]);
            }
            // Text after an open record belongs to that record.
            let more = theirs(&[&bytes, &[end, b'x'][..]].concat(), end, csv);
            prop_assert_eq!(open, more.last().unwrap() != &[b"x".to_vec()]);
        }
    }
}
