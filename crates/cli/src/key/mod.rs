//! The keys of lines. Lines with equal keys are duplicates.

pub mod error;
pub mod fields;
pub mod json;
mod name;
pub mod url;

use crate::key::error::KeyError;
use crate::key::fields::{Csv, FieldSelector, FieldSplit, Spans};
use crate::key::json::{JsonSpan, Pointer};
use crate::key::url::normal_url;
use std::mem;
use std::str::from_utf8;

/// The parts of a line that are its key, and their normalization.
#[derive(Clone)]
pub struct KeyRule {
    pub part: KeyPart,
    /// True if a carriage return at the end of the line is not part of it.
    pub crlf: bool,
    /// The parts that are trimmed of ASCII white space.
    pub trim: PartNumbers,
    /// The parts that are URLs, to be normalized.
    pub url: PartNumbers,
    /// The parts that are lowercased: by Unicode if a part is UTF-8, else by ASCII.
    pub ignore_case: PartNumbers,
    /// True if null is a value like others; otherwise a key with a null is an error.
    pub nulls: bool,
}

/// The parts of a key that are normalized, numbered from 1 in the order of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PartNumbers {
    #[default]
    None,
    All,
    /// These, in ascending order.
    Some(Vec<usize>),
}

impl PartNumbers {
    /// True if the part of this number is included.
    fn has(&self, part: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(parts) => parts.contains(&part),
        }
    }

    /// Returns the largest number, if numbers are given.
    pub fn last(&self) -> Option<usize> {
        if let Self::Some(parts) = self { parts.last().copied() } else { None }
    }
}

impl From<bool> for PartNumbers {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::None }
    }
}

/// The length of a line from which memory for its key is requested in advance, because the libraries that build keys abort the
/// process if memory runs out.
const LONG_LINE: usize = 1 << 24;

/// Parts of a line.
#[derive(Clone)]
pub enum KeyPart {
    /// The whole line, without its end.
    Line,
    /// The whole CSV record, as written.
    Record(Csv),
    /// All values of a row.
    Row,
    /// Fields, in this order.
    Fields { selectors: Vec<FieldSelector>, split: FieldSplit },
    /// Values of a JSON document, or of a row.
    Json(Vec<Pointer>),
}

/// A value with a type, unlike a part of a text line.
pub enum Value<'a> {
    Null,
    /// A text or binary.
    Text(&'a [u8]),
    /// Another value, as JSON.
    Json(&'a str),
}

/// The values of a key.
pub trait Values {
    /// Returns the number of values.
    fn count(&self) -> usize;

    /// Returns the value with this number. `json` is memory for a value that has to be built.
    fn value<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;

    /// Returns the value with this number in a form that can be compared: dates and times are numbers.
    fn sortable<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;
}

/// Reused memory for keys that are not slices of their lines.
#[derive(Default)]
pub struct KeyScratch {
    fields: Spans,
    json: String,
    buffers: FormBuffers,
    joined: Vec<u8>,
}

impl KeyScratch {
    /// Sets whether the next lines are known to contain no quotes.
    pub fn set_plain(&mut self, plain: bool) {
        self.fields.plain = plain;
    }
}

/// Memory for the normalized forms of a part.
#[derive(Default)]
struct FormBuffers {
    url: Vec<u8>,
    lower: Vec<u8>,
    tagged: Vec<u8>,
}

/// The first byte of a key that is a JSON value but not a string. It never occurs in UTF-8.
const NOT_STRING: u8 = 0xff;

impl KeyRule {
    /// True if the key depends on the order of columns or fields: it is the whole line, or has a field by number.
    pub fn depends_on_order(&self) -> bool {
        match &self.part {
            KeyPart::Line | KeyPart::Record(_) => true,
            KeyPart::Fields { selectors, .. } => {
                !selectors.iter().all(|selector| matches!(selector, FieldSelector::Name(_)))
            }
            KeyPart::Row | KeyPart::Json(_) => false,
        }
    }

    /// True if the key is the unchanged line.
    pub fn is_line(&self) -> bool {
        let forms = [&self.trim, &self.url, &self.ignore_case];
        matches!(self.part, KeyPart::Line) && !self.crlf && forms.iter().all(|parts| **parts == PartNumbers::None)
    }

    /// True if a carriage return at the end of a line may be part of the key.
    pub fn may_end_with_cr(&self) -> bool {
        let is_text = matches!(self.part, KeyPart::Line | KeyPart::Fields { split: FieldSplit::At(_), .. });
        is_text && !self.crlf && self.trim == PartNumbers::None && self.url == PartNumbers::None
    }

    /// True if the key depends on the header of an input: a field is named, or CSV records must have as many fields.
    pub fn needs_header(&self) -> bool {
        match &self.part {
            KeyPart::Record(_) | KeyPart::Fields { split: FieldSplit::Csv(_), .. } => true,
            KeyPart::Fields { selectors, .. } => {
                selectors.iter().any(|selector| matches!(selector, FieldSelector::Name(_)))
            }
            _ => false,
        }
    }

    /// Returns the rule for lines with this header, with numbers instead of names.
    pub fn resolved(&self, header: &[u8]) -> Result<Self, KeyError> {
        let (selectors, mut split) = match &self.part {
            KeyPart::Fields { selectors, split } => (&selectors[..], split.clone()),
            KeyPart::Record(csv) => (&[][..], FieldSplit::Csv(*csv)),
            _ => return Ok(self.clone()),
        };
        let mut memory = Spans::default();
        let fields = split.fields(self.without_cr(header), usize::MAX, &mut memory)?;
        let names: Vec<&[u8]> = (1..=fields.count()).filter_map(|number| fields.get(number)).collect();
        let number = |selector: &FieldSelector| {
            let FieldSelector::Name(name) = selector else { return Ok(selector.clone()) };
            let mut found = (1..).zip(&names).filter(|(_, field)| **field == name.as_bytes()).map(|(number, _)| number);
            match (found.next(), found.next()) {
                (Some(first), Some(second)) => Err(KeyError::TwoNames { name: name.clone(), numbers: [first, second] }),
                (Some(number), None) => Ok(FieldSelector::Numbers(number, Some(number))),
                (None, _) => {
                    let names = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                    Err(KeyError::NoName { name: name.clone(), names, is_csv: matches!(split, FieldSplit::Csv(_)) })
                }
            }
        };
        let selectors = selectors.iter().map(number).collect::<Result<_, _>>()?;
        if let FieldSplit::Csv(csv) = &mut split {
            csv.columns = Some(fields.count());
        }
        let part = match (&self.part, split) {
            (KeyPart::Record(_), FieldSplit::Csv(csv)) => KeyPart::Record(csv),
            (_, split) => KeyPart::Fields { selectors, split },
        };
        Ok(Self { part, ..self.clone() })
    }

    /// True if there is memory for the key of a line with so many bytes. Buffers double as they grow, and a URL needs several
    /// buffers with up to three bytes for one.
    fn has_memory(&self, bytes: usize) -> bool {
        let copies = match self.part {
            _ if self.url != PartNumbers::None => 16,
            KeyPart::Line | KeyPart::Record(_) | KeyPart::Row if self.ignore_case == PartNumbers::None => 0,
            _ => 8,
        };
        Vec::<u8>::new().try_reserve_exact(bytes.saturating_mul(copies)).is_ok()
    }

    /// Returns the key of a line without its end, as a slice of the line if possible. Several parts are concatenated, each after
    /// its length, so that different parts make different keys.
    pub fn key<'a>(&self, line: &'a [u8], scratch: &'a mut KeyScratch) -> Result<&'a [u8], KeyError> {
        if line.len() >= LONG_LINE && !self.has_memory(line.len()) {
            return Err(KeyError::Memory { bytes: line.len() });
        }
        let KeyScratch { fields, json, buffers, joined } = scratch;
        let line = self.without_cr(line);
        joined.clear();
        match &self.part {
            KeyPart::Line | KeyPart::Row => return self.normalize(1, line, buffers),
            KeyPart::Record(csv) => {
                fields.check(line, *csv)?;
                return self.normalize(1, line, buffers);
            }
            KeyPart::Fields { selectors, split } => {
                let max_fields = selectors.iter().map(FieldSelector::max_fields).max().unwrap_or(0);
                let fields = split.fields(line, max_fields, fields)?;
                let field = |number| fields.get(number).ok_or(KeyError::Field { number, fields: fields.count() });
                if let [selector] = &selectors[..]
                    && let Some(number) = selector.number()
                {
                    return self.normalize(1, field(number)?, buffers);
                }
                let mut part = 0;
                for selector in selectors {
                    // Names were resolved to numbers.
                    let &FieldSelector::Numbers(first, last) = selector else { continue };
                    for number in first..=last.unwrap_or(fields.count().max(first)) {
                        part += 1;
                        push_part(joined, self.normalize(part, field(number)?, buffers)?);
                    }
                }
            }
            KeyPart::Json(pointers) => {
                let document = from_utf8(line).map_err(KeyError::Utf8)?;
                if let [pointer] = &pointers[..] {
                    return self.value(1, document, pointer, json, buffers);
                }
                for (part, pointer) in (1..).zip(pointers) {
                    push_part(joined, self.value(part, document, pointer, json, buffers)?);
                }
            }
        }
        Ok(joined)
    }

    /// Returns the key of values, which equals the key of a line of JSON with these values.
    #[cfg(feature = "parquet")]
    pub fn key_of<'a>(&self, values: &'a impl Values, scratch: &'a mut KeyScratch) -> Result<&'a [u8], KeyError> {
        let KeyScratch { json, buffers, joined, .. } = scratch;
        if let (1, KeyPart::Json(_)) = (values.count(), &self.part) {
            return self.value_key(1, values.value(0, json), buffers, String::new);
        }
        joined.clear();
        for part in 0..values.count() {
            push_part(joined, self.value_key(part + 1, values.value(part, json), buffers, String::new)?);
        }
        Ok(joined)
    }

    /// Returns the key of a value. A string and another value with the same text have different keys.
    fn value_key<'a>(
        &self,
        part: usize,
        value: Value<'a>,
        buffers: &'a mut FormBuffers,
        pointer: impl Fn() -> String,
    ) -> Result<&'a [u8], KeyError> {
        let text = match value {
            Value::Text(text) => return self.normalize(part, text, buffers),
            Value::Null | Value::Json("null") if !self.nulls => return Err(KeyError::Null),
            _ if self.url.has(part) => return Err(KeyError::NoString { pointer: pointer() }),
            Value::Null => "null",
            Value::Json(text) => text,
        };
        let mut tagged = mem::take(&mut buffers.tagged);
        tagged.clear();
        tagged.push(NOT_STRING);
        tagged.extend_from_slice(self.normalize(part, text.as_bytes(), buffers)?);
        buffers.tagged = tagged;
        Ok(&buffers.tagged)
    }

    /// Removes the carriage return at the end of a line if it is not part of the line.
    fn without_cr<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let strips_cr = self.crlf || matches!(self.part, KeyPart::Record(_));
        if strips_cr { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    }

    /// Returns the key of a value in a document.
    fn value<'a>(
        &self,
        part: usize,
        document: &'a str,
        pointer: &Pointer,
        json: &'a mut String,
        buffers: &'a mut FormBuffers,
    ) -> Result<&'a [u8], KeyError> {
        match pointer.find(document, json).map_err(KeyError::Json)? {
            None => Err(KeyError::NoValue { pointer: pointer.to_string() }),
            Some(JsonSpan::Text(text)) => self.normalize(part, text.as_bytes(), buffers),
            Some(JsonSpan::Other(text)) => self.value_key(part, Value::Json(text), buffers, || pointer.to_string()),
        }
    }

    /// Normalizes the part of this number as the rule requires.
    fn normalize<'a>(
        &self,
        part: usize,
        mut key: &'a [u8],
        buffers: &'a mut FormBuffers,
    ) -> Result<&'a [u8], KeyError> {
        if self.trim.has(part) {
            key = key.trim_ascii();
        }
        if self.url.has(part) {
            let text = from_utf8(key).map_err(KeyError::Utf8)?;
            buffers.url = normal_url(text).map_err(KeyError::Url)?;
            key = &buffers.url;
        }
        if self.ignore_case.has(part) {
            key = lower(key, &mut buffers.lower);
        }
        Ok(key)
    }
}

/// Appends a part to a key of several parts.
fn push_part(key: &mut Vec<u8>, part: &[u8]) {
    key.extend_from_slice(&(part.len() as u64).to_le_bytes());
    key.extend_from_slice(part);
}

fn lower<'a>(key: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    match from_utf8(key) {
        Ok(text) if !key.is_ascii() => *scratch = text.to_lowercase().into_bytes(),
        _ => {
            scratch.clear();
            scratch.extend_from_slice(key);
            scratch.make_ascii_lowercase();
        }
    }
    scratch
}

#[cfg(test)]
pub mod tests;
