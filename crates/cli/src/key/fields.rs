//! The fields of a line: split at a text, or as CSV.

use crate::key::error::KeyError;
use memchr::{memchr, memchr_iter, memchr2, memmem};
use std::ops::Range;
use std::str::FromStr;

/// A selection of fields of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldSelector {
    /// The first field, from 1, and the last, or `None` for all that follow.
    Numbers(usize, Option<usize>),
    /// The field with this name in the header.
    Name(String),
}

/// The way in which a line is split into fields.
#[derive(Clone)]
pub enum FieldSplit {
    /// At this text, which is not empty.
    At(Vec<u8>),
    /// As CSV. A field may be in quotes, and delimiters inside are part of it.
    Csv(Csv),
}

/// The byte that opens and closes a CSV field whose other bytes are text.
pub const QUOTE: u8 = b'"';

/// A dialect of CSV.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Csv {
    /// Never a quote.
    pub delimiter: u8,
    /// A byte that makes a following quote, or itself, text in a quoted field. Doubled quotes work as well.
    pub escape: Option<u8>,
    /// The number of fields of the header, if known.
    pub columns: Option<usize>,
}

impl Csv {
    /// Refuses a record that has another number of fields than the header, which is counted only if there is one.
    #[inline(always)]
    fn check_count(&self, fields: impl FnOnce() -> usize) -> Result<(), KeyError> {
        let Some(columns) = self.columns else { return Ok(()) };
        let fields = fields();
        if fields == columns { Ok(()) } else { Err(KeyError::Columns { fields, columns, may_be_escape: false }) }
    }
}

/// CSV with this delimiter.
impl From<u8> for Csv {
    fn from(delimiter: u8) -> Self {
        Self { delimiter, escape: None, columns: None }
    }
}

/// Memory for the fields of lines that are split in one way.
#[derive(Default)]
pub struct Spans {
    /// True if lines are known to contain no quotes.
    pub plain: bool,
    /// True if each carriage return in lines is known to be followed by a newline.
    pub no_lone_cr: bool,
    /// The range of each field, in the line or in `unquoted`.
    spans: Vec<Range<usize>>,
    /// The fields of CSV without their quotes.
    unquoted: Vec<u8>,
}

/// The names of the fields in a header.
pub struct Header<'a> {
    fields: Fields<'a>,
    is_csv: bool,
}

/// The numbers of some fields, from 1.
#[derive(Clone)]
pub struct FieldNumbers {
    pub split: FieldSplit,
    pub numbers: Vec<usize>,
}

/// The fields of a line.
pub struct Fields<'a> {
    text: &'a [u8],
    spans: &'a [Range<usize>],
}

impl FieldSelector {
    /// Returns the number, if a single field is selected.
    pub fn number(&self) -> Option<usize> {
        match *self {
            Self::Numbers(first, last) if last == Some(first) => Some(first),
            _ => None,
        }
    }

    /// Returns the largest field number, or the maximum if it is unknown.
    pub fn max_fields(&self) -> usize {
        match self {
            Self::Numbers(_, Some(last)) => *last,
            _ => usize::MAX,
        }
    }
}

/// Numbers are written as for `cut`: 2, 2-4, 2- and -4. Other texts are names.
impl FromStr for FieldSelector {
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
            "give the number of a field, starting at 1, or the first and the last of several, such as 2-4, 2- or -4; a filter's \
             file is given with -s, --state",
        )
    }
}

impl<'a> Fields<'a> {
    /// Returns the field with this number, from 1.
    pub fn get(&self, number: usize) -> Option<&'a [u8]> {
        Some(&self.text[self.spans.get(number - 1)?.clone()])
    }

    /// Returns all fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        self.spans.len()
    }
}

impl<'a> Header<'a> {
    /// Splits a header, without the end of its line.
    pub fn new(split: &FieldSplit, line: &'a [u8], memory: &'a mut Spans) -> Result<Self, KeyError> {
        if let [b's', b'e', b'p', b'=', delimiter] = line.trim_ascii_end() {
            return Err(KeyError::Separator { delimiter: char::from(*delimiter) });
        }
        let is_csv = matches!(split, FieldSplit::Csv(_));
        Ok(Self { fields: split.fields(line, usize::MAX, memory)?, is_csv })
    }

    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        self.fields.count()
    }

    /// Returns the number of the field with this name.
    pub fn number(&self, name: &str) -> Result<usize, KeyError> {
        let mut found = (1..).zip(self.fields.iter()).filter(|(_, field)| *field == name.as_bytes());
        match (found.next(), found.next()) {
            (Some((first, _)), Some((second, _))) => {
                Err(KeyError::TwoNames { name: name.to_owned(), numbers: [first, second] })
            }
            (Some((number, _)), None) => Ok(number),
            (None, _) => {
                let names = self.fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                Err(KeyError::NoName { name: name.to_owned(), names, is_csv: self.is_csv })
            }
        }
    }
}

impl FieldSplit {
    /// Splits a line into its fields, at most `max_fields`. Fails if the quotes of CSV do not follow RFC 4180, or if a record has another
    /// number of fields than the header.
    pub fn fields<'a>(&self, line: &'a [u8], max_fields: usize, memory: &'a mut Spans) -> Result<Fields<'a>, KeyError> {
        memory.spans.clear();
        let text = match *self {
            Self::At(ref delimiter) => {
                match **delimiter {
                    [byte] => split(line, 1, memchr_iter(byte, line), max_fields, &mut memory.spans),
                    _ => {
                        split(line, delimiter.len(), memmem::find_iter(line, delimiter), max_fields, &mut memory.spans)
                    }
                };
                line
            }
            Self::Csv(csv) => {
                // RFC 4180 ends lines with CRLF.
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if memory.has_quotes(line) {
                    memory.unquote(line, csv)?;
                    &memory.unquoted
                } else {
                    memory.check_cr(line)?;
                    let mut starts = memchr_iter(csv.delimiter, line);
                    let split_fields = split(line, 1, starts.by_ref(), max_fields, &mut memory.spans);
                    csv.check_count(|| split_fields + starts.count())?;
                    line
                }
            }
        };
        Ok(Fields { text, spans: &memory.spans })
    }
}

/// Splits a line at `starts`, the delimiters, into at most `max_fields` fields. Returns the number of fields up to the last delimiter that
/// was taken, and of the one after it.
#[inline]
fn split(
    line: &[u8],
    delimiter: usize,
    starts: impl Iterator<Item = usize>,
    max_fields: usize,
    spans: &mut Vec<Range<usize>>,
) -> usize {
    let mut field = 0;
    for end in starts.take(max_fields) {
        spans.push(field..end);
        field = end + delimiter;
    }
    let fields = spans.len() + 1;
    if fields <= max_fields {
        spans.push(field..line.len());
    }
    fields
}

impl Spans {
    /// Refuses a carriage return outside of quotes, which would end a line alone.
    fn check_cr(&self, text: &[u8]) -> Result<(), KeyError> {
        if !self.no_lone_cr && memchr(b'\r', text).is_some() { Err(KeyError::LoneCr) } else { Ok(()) }
    }

    fn has_quotes(&self, line: &[u8]) -> bool {
        !self.plain && memchr(QUOTE, line).is_some()
    }

    /// Fails if the quotes of a record do not follow RFC 4180, or if it has another number of fields than the header.
    pub fn check(&mut self, record: &[u8], csv: Csv) -> Result<(), KeyError> {
        self.spans.clear();
        if self.has_quotes(record) {
            return self.unquote(record, csv);
        }
        self.check_cr(record)?;
        csv.check_count(|| memchr_iter(csv.delimiter, record).count() + 1)
    }

    /// Reads all fields of a CSV record.
    ///
    /// A backslash before a closing quote may be text, or an escape although none is configured. In the second case the field
    /// continues, which shows as a quote inside another field or as a wrong number of fields. Fields without a header may be of any
    /// number.
    fn unquote(&mut self, record: &[u8], csv: Csv) -> Result<(), KeyError> {
        let Csv { delimiter, escape, columns } = csv;
        let mut at = 0;
        let mut behind_backslash = false;
        let mut amid = None;
        self.unquoted.clear();
        loop {
            let start = self.unquoted.len();
            if record.get(at) == Some(&QUOTE) {
                at += 1;
                loop {
                    let rest = &record[at..];
                    let place = escape.map_or_else(|| memchr(QUOTE, rest), |escape| memchr2(QUOTE, escape, rest));
                    let place = place.ok_or(KeyError::Quote { has_escape: escape.is_some() })?;
                    self.unquoted.extend_from_slice(&rest[..place]);
                    at += place + 1;
                    match (rest[place], record.get(at)) {
                        (byte, Some(&next)) if next == QUOTE || byte != QUOTE && byte == next => {
                            self.unquoted.push(next);
                            at += 1;
                        }
                        (QUOTE, next) if next.is_none_or(|&next| next == delimiter) => {
                            behind_backslash |= place > 0 && rest[place - 1] == b'\\';
                            break;
                        }
                        (QUOTE, _) => {
                            return Err(KeyError::BehindQuote {
                                field: self.spans.len() + 1,
                                has_escape: escape.is_some(),
                            });
                        }
                        // This backslash escapes nothing.
                        (byte, _) => self.unquoted.push(byte),
                    }
                }
            } else {
                let rest = &record[at..];
                let field = &rest[..memchr(delimiter, rest).unwrap_or(rest.len())];
                self.check_cr(field)?;
                if memchr(QUOTE, field).is_some() {
                    amid.get_or_insert(self.spans.len() + 1);
                }
                self.unquoted.extend_from_slice(field);
                at += field.len();
            }
            self.spans.push(start..self.unquoted.len());
            if at == record.len() {
                break;
            }
            at += 1;
        }
        let (fields, may_be_escape) = (self.spans.len(), behind_backslash && escape.is_none());
        match (amid, columns.filter(|&columns| columns != fields)) {
            (Some(field), _) if may_be_escape => Err(KeyError::Amid { field }),
            (_, Some(columns)) => Err(KeyError::Columns { fields, columns, may_be_escape }),
            (_, None) => Ok(()),
        }
    }
}
