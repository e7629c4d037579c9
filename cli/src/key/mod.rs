//! The keys of lines. Lines with equal keys are duplicates.

pub mod fault;
pub mod fields;
pub mod json;
mod name;
pub mod url;

use crate::key::fault::Fault;
use crate::key::fields::{Csv, Pick, Spans, Split};
use crate::key::json::{Found, Pointer};
use crate::key::url::normal_url;
use std::mem;
use std::str::from_utf8;

/// The parts of a line that are its key, and their normalization.
#[derive(Clone)]
pub struct KeyRule {
    pub part: Part,
    /// True if a carriage return at the end of the line is not part of it.
    pub crlf: bool,
    /// The parts that are trimmed of ASCII white space.
    pub trim: Parts,
    /// The parts that are URLs, to be normalized.
    pub url: Parts,
    /// The parts that are lowercased: by Unicode if a part is UTF-8, else by ASCII.
    pub ignore_case: Parts,
    /// True if null is a value like others; otherwise a key with a null is a fault.
    pub nulls: bool,
}

/// The parts of a key that are normalized, numbered from 1 in the order of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    #[default]
    None,
    All,
    /// These, in ascending order.
    Some(Vec<usize>),
}

impl Parts {
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

impl From<bool> for Parts {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::None }
    }
}

/// The length of a line from which memory for its key is requested in advance: the libraries that build keys abort the process if
/// memory runs out.
const LONG: usize = 1 << 24;

/// Parts of a line.
#[derive(Clone)]
pub enum Part {
    /// The whole line, without its end.
    Line,
    /// The whole CSV record, as written.
    Record(Csv),
    /// All values of a row.
    Row,
    /// Fields, in this order.
    Fields { picks: Vec<Pick>, split: Split },
    /// Values of a JSON document, or of a row.
    Json(Vec<Pointer>),
}

/// A separate value, not part of a text.
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

/// Memory for keys that have to be built. It is reused.
#[derive(Default)]
pub struct Scratch {
    fields: Spans,
    json: String,
    form: Form,
    whole: Vec<u8>,
}

impl Scratch {
    /// Sets whether the next lines are known to contain no quotes.
    pub fn set_plain(&mut self, plain: bool) {
        self.fields.plain = plain;
    }
}

/// Memory for the normalized forms of a part.
#[derive(Default)]
struct Form {
    url: Vec<u8>,
    lower: Vec<u8>,
    marked: Vec<u8>,
}

/// The first byte of a key that is a JSON value but not a string. It never occurs in UTF-8.
const NO_STRING: u8 = 0xff;

impl KeyRule {
    /// True if the key depends on the order of columns or fields: it is the whole line, or has a field by number.
    pub fn is_by_place(&self) -> bool {
        match &self.part {
            Part::Line | Part::Record(_) => true,
            Part::Fields { picks, .. } => !picks.iter().all(|pick| matches!(pick, Pick::Name(_))),
            Part::Row | Part::Json(_) => false,
        }
    }

    /// True if the key is the unchanged line.
    pub fn is_line(&self) -> bool {
        let forms = [&self.trim, &self.url, &self.ignore_case];
        matches!(self.part, Part::Line) && !self.crlf && forms.iter().all(|parts| **parts == Parts::None)
    }

    /// True if a carriage return at the end of a line may be part of the key.
    pub fn may_end_with_cr(&self) -> bool {
        let is_text = matches!(self.part, Part::Line | Part::Fields { split: Split::At(_), .. });
        is_text && !self.crlf && self.trim == Parts::None && self.url == Parts::None
    }

    /// True if the key depends on the header of an input: a field is named, or CSV records must have as many fields.
    pub fn needs_header(&self) -> bool {
        match &self.part {
            Part::Record(_) | Part::Fields { split: Split::Csv(_), .. } => true,
            Part::Fields { picks, .. } => picks.iter().any(|pick| matches!(pick, Pick::Name(_))),
            _ => false,
        }
    }

    /// Returns the rule for lines with this header, with numbers instead of names.
    pub fn resolved(&self, header: &[u8]) -> Result<Self, Fault> {
        let (picks, mut split) = match &self.part {
            Part::Fields { picks, split } => (&picks[..], split.clone()),
            Part::Record(csv) => (&[][..], Split::Csv(*csv)),
            _ => return Ok(self.clone()),
        };
        let mut memory = Spans::default();
        let fields = split.fields(self.without_cr(header), usize::MAX, &mut memory)?;
        let names: Vec<&[u8]> = (1..=fields.count()).filter_map(|number| fields.get(number)).collect();
        let number = |pick: &Pick| {
            let Pick::Name(name) = pick else { return Ok(pick.clone()) };
            let mut found = (1..).zip(&names).filter(|(_, field)| **field == name.as_bytes()).map(|(number, _)| number);
            match (found.next(), found.next()) {
                (Some(first), Some(second)) => Err(Fault::TwoNames { name: name.clone(), numbers: [first, second] }),
                (Some(number), None) => Ok(Pick::Numbers(number, Some(number))),
                (None, _) => {
                    let names = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                    Err(Fault::NoName { name: name.clone(), names, is_csv: matches!(split, Split::Csv(_)) })
                }
            }
        };
        let picks = picks.iter().map(number).collect::<Result<_, _>>()?;
        if let Split::Csv(csv) = &mut split {
            csv.columns = Some(fields.count());
        }
        let part = match (&self.part, split) {
            (Part::Record(_), Split::Csv(csv)) => Part::Record(csv),
            (_, split) => Part::Fields { picks, split },
        };
        Ok(Self { part, ..self.clone() })
    }

    /// True if there is memory for the key of a line with so many bytes: for texts that double in size as they grow, and for
    /// several of these if the key is a URL, where a byte may become three.
    fn has_memory(&self, bytes: usize) -> bool {
        let copies = match self.part {
            _ if self.url != Parts::None => 16,
            Part::Line | Part::Record(_) | Part::Row if self.ignore_case == Parts::None => 0,
            _ => 8,
        };
        Vec::<u8>::new().try_reserve_exact(bytes.saturating_mul(copies)).is_ok()
    }

    /// Returns the key of a line without its end, as a slice of the line if possible. Several parts are concatenated, each after
    /// its length, so that different parts make different keys.
    pub fn key<'a>(&self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<&'a [u8], Fault> {
        if line.len() >= LONG && !self.has_memory(line.len()) {
            return Err(Fault::Memory { bytes: line.len() });
        }
        let Scratch { fields, json, form, whole } = scratch;
        let line = self.without_cr(line);
        whole.clear();
        match &self.part {
            Part::Line | Part::Row => return self.form(1, line, form),
            Part::Record(csv) => {
                fields.check(line, *csv)?;
                return self.form(1, line, form);
            }
            Part::Fields { picks, split } => {
                let most = picks.iter().map(Pick::most).max().unwrap_or(0);
                let fields = split.fields(line, most, fields)?;
                let field = |number| fields.get(number).ok_or(Fault::Field { number, fields: fields.count() });
                if let [pick] = &picks[..]
                    && let Some(number) = pick.number()
                {
                    return self.form(1, field(number)?, form);
                }
                let mut part = 0;
                for pick in picks {
                    // Names were resolved to numbers.
                    let &Pick::Numbers(first, last) = pick else { continue };
                    for number in first..=last.unwrap_or(fields.count().max(first)) {
                        part += 1;
                        push_part(whole, self.form(part, field(number)?, form)?);
                    }
                }
            }
            Part::Json(pointers) => {
                let document = from_utf8(line).map_err(Fault::Utf8)?;
                if let [pointer] = &pointers[..] {
                    return self.value(1, document, pointer, json, form);
                }
                for (part, pointer) in (1..).zip(pointers) {
                    push_part(whole, self.value(part, document, pointer, json, form)?);
                }
            }
        }
        Ok(whole)
    }

    /// Returns the key of values, which equals the key of a line of JSON with these values.
    #[cfg(feature = "parquet")]
    pub fn key_of<'a>(&self, values: &'a impl Values, scratch: &'a mut Scratch) -> Result<&'a [u8], Fault> {
        let Scratch { json, form, whole, .. } = scratch;
        if let (1, Part::Json(_)) = (values.count(), &self.part) {
            return self.found(1, values.value(0, json), form, String::new);
        }
        whole.clear();
        for part in 0..values.count() {
            push_part(whole, self.found(part + 1, values.value(part, json), form, String::new)?);
        }
        Ok(whole)
    }

    /// Returns the key of a value. A string and another value with the same text have different keys.
    fn found<'a>(
        &self,
        part: usize,
        value: Value<'a>,
        form: &'a mut Form,
        pointer: impl Fn() -> String,
    ) -> Result<&'a [u8], Fault> {
        let text = match value {
            Value::Text(text) => return self.form(part, text, form),
            Value::Null | Value::Json("null") if !self.nulls => return Err(Fault::Null),
            _ if self.url.has(part) => return Err(Fault::NoString { pointer: pointer() }),
            Value::Null => "null",
            Value::Json(text) => text,
        };
        let mut marked = mem::take(&mut form.marked);
        marked.clear();
        marked.push(NO_STRING);
        marked.extend_from_slice(self.form(part, text.as_bytes(), form)?);
        form.marked = marked;
        Ok(&form.marked)
    }

    /// Removes the carriage return at the end of a line if it is not part of the line.
    fn without_cr<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let has_none = self.crlf || matches!(self.part, Part::Record(_));
        if has_none { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    }

    /// Returns the key of a value in a document.
    fn value<'a>(
        &self,
        part: usize,
        document: &'a str,
        pointer: &Pointer,
        json: &'a mut String,
        form: &'a mut Form,
    ) -> Result<&'a [u8], Fault> {
        match pointer.find(document, json).map_err(Fault::Json)? {
            None => Err(Fault::NoValue { pointer: pointer.to_string() }),
            Some(Found::Text(text)) => self.form(part, text.as_bytes(), form),
            Some(Found::Other(text)) => self.found(part, Value::Json(text), form, || pointer.to_string()),
        }
    }

    /// Normalizes the part of this number as the rule requires.
    fn form<'a>(&self, part: usize, mut key: &'a [u8], form: &'a mut Form) -> Result<&'a [u8], Fault> {
        if self.trim.has(part) {
            key = key.trim_ascii();
        }
        if self.url.has(part) {
            let text = from_utf8(key).map_err(Fault::Utf8)?;
            form.url = normal_url(text).map_err(Fault::Url)?;
            key = &form.url;
        }
        if self.ignore_case.has(part) {
            key = lower(key, &mut form.lower);
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
mod tests;
