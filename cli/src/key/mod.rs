//! What the key of a line is: lines with equal keys are duplicates.

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

/// Which parts of a line are its key, and in which form.
#[derive(Clone)]
pub struct KeyRule {
    /// The parts.
    pub part: Part,
    /// Of the line without the carriage return at its end.
    pub crlf: bool,
    /// The parts without the ASCII white space around them.
    pub trim: Parts,
    /// The parts as URLs in their normal form.
    pub url: Parts,
    /// The parts in lower case: of Unicode where a part is UTF-8, of ASCII where it is not.
    pub ignore_case: Parts,
    /// Whether a null is a value like others; else a key with one is a fault.
    pub nulls: bool,
}

/// The parts of a key that are put into a form, counted from 1 in the order of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    #[default]
    None,
    All,
    /// These, in ascending order.
    Some(Vec<usize>),
}

impl Parts {
    /// True if the part of this number is one of them.
    fn has(&self, part: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(parts) => parts.contains(&part),
        }
    }

    /// The largest number that is given.
    pub fn last(&self) -> Option<usize> {
        if let Self::Some(parts) = self { parts.last().copied() } else { None }
    }
}

impl From<bool> for Parts {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::None }
    }
}

/// From this length of a line on, memory for a key that has to be made is asked for before: the libraries that make it end the
/// process if they get none.
const LONG: usize = 1 << 24;

/// Parts of a line.
#[derive(Clone)]
pub enum Part {
    /// All of it, without its end.
    Line,
    /// All of a record of CSV, as it stands.
    Record(Csv),
    /// All values of a row.
    Row,
    /// Fields, in this order.
    Fields { picks: Vec<Pick>, split: Split },
    /// Values of a JSON document, or of a row.
    Json(Vec<Pointer>),
}

/// A value that stands by itself, in no text.
pub enum Value<'a> {
    Null,
    /// A text or a binary.
    Text(&'a [u8]),
    /// Another value, as JSON.
    Json(&'a str),
}

/// Values that a key is made of.
pub trait Values {
    /// How many there are.
    fn count(&self) -> usize;

    /// The one with this number. `json` is memory for what has to be made.
    fn value<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;

    /// The one with this number in a form that can be compared: dates and times are numbers.
    fn sortable<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;
}

/// Memory for keys that have to be made, used again and again.
#[derive(Default)]
pub struct Scratch {
    fields: Spans,
    json: String,
    form: Form,
    whole: Vec<u8>,
}

impl Scratch {
    /// Says whether the lines that come have no quotes.
    pub fn set_plain(&mut self, plain: bool) {
        self.fields.plain = plain;
    }
}

/// Memory for the forms of a part.
#[derive(Default)]
struct Form {
    url: Vec<u8>,
    lower: Vec<u8>,
    marked: Vec<u8>,
}

/// What the key of a JSON value starts with that is no string. No text in UTF-8 has this byte.
const NO_STRING: u8 = 0xff;

impl KeyRule {
    /// True if it depends on the order of the columns of CSV, or of other fields: it is by number, or of whole lines.
    pub fn is_by_place(&self) -> bool {
        match &self.part {
            Part::Line | Part::Record(_) => true,
            Part::Fields { picks, .. } => !picks.iter().all(|pick| matches!(pick, Pick::Name(_))),
            Part::Row | Part::Json(_) => false,
        }
    }

    /// Whether the key is the line as it stands.
    pub fn is_line(&self) -> bool {
        let forms = [&self.trim, &self.url, &self.ignore_case];
        matches!(self.part, Part::Line) && !self.crlf && forms.iter().all(|parts| **parts == Parts::None)
    }

    /// True if a carriage return at the end of a line may be a part of the key.
    pub fn may_end_with_cr(&self) -> bool {
        let is_text = matches!(self.part, Part::Line | Part::Fields { split: Split::At(_), .. });
        is_text && !self.crlf && self.trim == Parts::None && self.url == Parts::None
    }

    /// True if the header of an input has a part in it: a field has a name, or records of CSV have as many fields.
    pub fn needs_header(&self) -> bool {
        match &self.part {
            Part::Record(_) | Part::Fields { split: Split::Csv(_), .. } => true,
            Part::Fields { picks, .. } => picks.iter().any(|pick| matches!(pick, Pick::Name(_))),
            _ => false,
        }
    }

    /// The same for lines with this header: names are numbers.
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

    /// Whether there is memory for what is made of a line with so many bytes: texts that double their size as they grow, and for a
    /// URL more of them, in which a byte takes up to three.
    fn has_memory(&self, bytes: usize) -> bool {
        let copies = match self.part {
            _ if self.url != Parts::None => 16,
            Part::Line | Part::Record(_) | Part::Row if self.ignore_case == Parts::None => 0,
            _ => 8,
        };
        Vec::<u8>::new().try_reserve_exact(bytes.saturating_mul(copies)).is_ok()
    }

    /// The key of a line without its end: a part of the line where possible. Several parts stand one after another, each after
    /// its length, so that other parts make another key.
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
                    // Names are numbers by now.
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

    /// The key of values: that of a line of JSON that has them.
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

    /// The key of a value. A string and another value of the same text are two keys.
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

    /// The line without the carriage return at its end, if that is no part of it.
    fn without_cr<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let has_none = self.crlf || matches!(self.part, Part::Record(_));
        if has_none { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    }

    /// The key of a value in a document.
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

    /// The part of this number in the form that the rule wants.
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

/// Adds a part to a key of several.
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
