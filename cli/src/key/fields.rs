//! The fields of a line: split at a text, or as CSV.

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;
use std::str::FromStr;

/// Which fields of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    /// From one number to another, or to the last field. The first is 1.
    Numbers(usize, Option<usize>),
    /// The one that has this name in the header.
    Name(String),
}

/// How a line is split.
#[derive(Clone)]
pub enum Split {
    /// At this text, which is not empty.
    At(Vec<u8>),
    /// As CSV, at this byte, which is no quote. Quotes may enclose a field, and a delimiter in them is a part of it.
    Csv(u8),
}

/// Memory for the fields of lines that are split in one way.
#[derive(Default)]
pub struct Spans {
    /// Whether lines are known to have no quotes.
    pub plain: bool,
    /// Where each field is, in the line or in `unquoted`.
    spans: Vec<Range<usize>>,
    /// The fields of CSV without quotes.
    unquoted: Vec<u8>,
    /// What reads them. It takes long to build.
    reader: Option<Reader>,
}

/// The fields of a line.
pub struct Fields<'a> {
    text: &'a [u8],
    spans: &'a [Range<usize>],
}

impl Pick {
    /// The number, if it is one field.
    pub fn number(&self) -> Option<usize> {
        match *self {
            Self::Numbers(first, last) if last == Some(first) => Some(first),
            _ => None,
        }
    }

    /// The largest number of a field, as far as that is known.
    pub fn most(&self) -> usize {
        match self {
            Self::Numbers(_, Some(last)) => *last,
            _ => usize::MAX,
        }
    }
}

/// As `cut` has it: numbers such as 2, 2-4, 2- and -4. All else is a name.
impl FromStr for Pick {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_numbers =
            text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && text.matches('-').count() < 2;
        if !is_numbers && !text.starts_with('-') {
            return Ok(Self::Name(text.to_owned()));
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0).map(|number| number as usize);
        let range = match text.split_once('-') {
            None => number(text).map(|number| (number, Some(number))),
            Some(("", last)) => number(last).map(|last| (1, Some(last))),
            Some((first, "")) => number(first).map(|first| (first, None)),
            Some((first, last)) => number(first).zip(number(last).map(Some)),
        };
        let range = range.filter(|(first, last)| last.is_none_or(|last| *first <= last));
        range.map(|(first, last)| Self::Numbers(first, last)).ok_or(
            "give the number of a field, from 1 on, or the first and the last of several, such as 2-4, 2- or -4; a filter's file \
             is given with -s, --state",
        )
    }
}

impl<'a> Fields<'a> {
    /// The field with this number; the first is 1.
    pub fn get(&self, number: usize) -> Option<&'a [u8]> {
        Some(&self.text[self.spans.get(number - 1)?.clone()])
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.spans.len()
    }
}

impl Split {
    /// The fields of a line up to this number, or all if there are fewer. None if a quoted field does not end.
    pub fn fields<'a>(&self, line: &'a [u8], most: usize, memory: &'a mut Spans) -> Option<Fields<'a>> {
        memory.spans.clear();
        let text = match *self {
            Self::At(ref delimiter) => {
                match **delimiter {
                    [byte] => split(line, 1, memchr_iter(byte, line), most, &mut memory.spans),
                    _ => split(line, delimiter.len(), memmem::find_iter(line, delimiter), most, &mut memory.spans),
                }
                line
            }
            Self::Csv(delimiter) => {
                // RFC 4180 ends a line with both.
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if !memory.plain && memchr(b'"', line).is_some() {
                    memory.unquote(line, delimiter).then_some(&memory.unquoted[..])?
                } else {
                    split(line, 1, memchr_iter(delimiter, line), most, &mut memory.spans);
                    line
                }
            }
        };
        Some(Fields { text, spans: &memory.spans })
    }
}

/// Splits a line where delimiters start, up to this number of fields.
fn split(
    line: &[u8],
    delimiter: usize,
    starts: impl Iterator<Item = usize>,
    most: usize,
    spans: &mut Vec<Range<usize>>,
) {
    let mut field = 0;
    for end in starts.take(most) {
        spans.push(field..end);
        field = end + delimiter;
    }
    if spans.len() < most {
        spans.push(field..line.len());
    }
}

impl Spans {
    /// Reads all fields of a line of CSV; `false` if the quotes of the last are open.
    fn unquote(&mut self, line: &[u8], delimiter: u8) -> bool {
        let Self { spans, unquoted, reader, .. } = self;
        // A delimiter ends a field before it could end a record. So a line is never more than one record, whatever is in it.
        let one_record = || ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(delimiter)).build();
        let reader = reader.get_or_insert_with(one_record);
        reader.reset();
        // After a first field, the reader takes no byte order mark away, and passes over no delimiter.
        reader.read_field(&[b'"', b'"', delimiter], &mut [0]);
        // With room for one more byte, it never asks for room.
        unquoted.resize(unquoted.len().max(line.len() + 1), 0);
        let (mut start, mut end, mut ended) = (0, 0, false);
        // A delimiter ends the last field too, unless it is in quotes.
        for mut rest in [line, &[delimiter]] {
            while !rest.is_empty() {
                let (result, read, written) = reader.read_field(rest, &mut unquoted[end..]);
                rest = &rest[read..];
                end += written;
                ended = matches!(result, ReadFieldResult::Field { .. });
                if ended {
                    spans.push(start..end);
                    start = end;
                }
            }
        }
        ended
    }
}
