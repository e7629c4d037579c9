//! The keys of lines. Lines with equal keys are duplicates.

pub mod byte_scan;
pub mod error;
pub mod fields;
pub mod json;
mod name;
mod part_numbers;
pub mod url;

pub use part_numbers::PartNumbers;

use crate::key::error::KeyError;
use crate::key::fields::{Csv, FieldNumbers, FieldSelector, FieldSplit, Header, Spans};
use crate::key::json::{JsonPart, Pointer};
use crate::key::url::normal_url;
#[cfg(feature = "parquet")]
use bloomline_keys::arrow::{Part, Row};
use bloomline_keys::encoding::{self, MARK, push_member, push_part};
use bloomline_keys::time::TimeValue;
use bloomline_keys::{KeyKinds, Kinds};
use std::str::from_utf8;

/// The parts of a line that are its key, and their normalization.
#[derive(Clone)]
pub struct KeyRule {
    pub part: KeyPart,
    /// True if a carriage return at the end of the line is not part of the key.
    pub crlf: bool,
    /// The parts that are trimmed of ASCII white space.
    pub trim: PartNumbers,
    /// The parts that are URLs, to be normalized.
    pub url: PartNumbers,
    /// The parts that are lowercased: by Unicode if a part is UTF-8, else by ASCII.
    pub ignore_case: PartNumbers,
    /// The parts whose texts are read as numbers.
    pub number: PartNumbers,
    /// The parts whose texts are read as dates and times.
    pub time: PartNumbers,
    /// The parts whose byte strings are read as texts.
    pub text: PartNumbers,
    /// True if null is a value like others; otherwise a key with a null is an error.
    pub nulls: bool,
}

/// The maximum number of parts whose kinds a filter distinguishes.
const MAX_PARTS: usize = 1024;

/// The length of a line from which memory for its key is requested in advance, because the libraries that build keys abort the
/// process if memory runs out.
const LONG_LINE: usize = 1 << 24;

/// The part of a line that is the key.
#[derive(Clone)]
pub enum KeyPart {
    /// The whole line, without its end.
    Line,
    /// The whole CSV record, as written.
    Record(Csv),
    /// All columns of a table, by name. Empty until a table was opened.
    Row(Vec<String>),
    /// Fields, in this order.
    Fields { selectors: Vec<FieldSelector>, split: FieldSplit },
    /// Fields that were found by their names in the header.
    NamedFields { fields: Vec<Named<usize>>, split: FieldSplit },
    /// Members of lines of JSON, or columns of a table.
    Json(Vec<Named<Pointer>>),
}

/// A part of a key that has a name. Several are sorted by their names, because their order makes no difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    /// The number of the part, from 1, in the order in which the options name the parts.
    pub part: usize,
    pub name: String,
    /// The number of the field, or the pointer to the value.
    pub at: T,
}

impl<T> Named<T> {
    /// Sorts parts by their names.
    fn sorted(parts: impl IntoIterator<Item = (String, T)>) -> Vec<Self> {
        let mut parts: Vec<Self> = (1..).zip(parts).map(|(part, (name, at))| Self { part, name, at }).collect();
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        parts
    }
}

impl KeyPart {
    /// Creates the key of the values at these pointers.
    pub fn from_pointers(pointers: impl IntoIterator<Item = Pointer>) -> Self {
        Self::Json(Named::sorted(pointers.into_iter().map(|pointer| (pointer.column(), pointer))))
    }
}

/// Reused memory for keys that are not slices of their lines.
#[derive(Default)]
pub struct KeyScratch {
    fields: Spans,
    json: String,
    buffers: FormBuffers,
    joined: Vec<u8>,
    /// The kinds of the keys so far, if they are known only from the values.
    kinds: KeyKinds,
}

impl KeyScratch {
    /// Records that the next lines contain no quotes, or no carriage return without a newline after it.
    pub fn set_plain(&mut self, no_quotes: bool, no_lone_cr: bool) {
        self.fields.plain = no_quotes;
        self.fields.no_lone_cr = no_lone_cr;
    }

    /// Returns the kinds of the keys since the last call, of a rule whose kinds are not [fixed](KeyRule::fixed_kinds).
    pub fn take_kinds(&mut self) -> KeyKinds {
        std::mem::take(&mut self.kinds)
    }
}

/// Memory for the normalized forms of a part.
#[derive(Default)]
struct FormBuffers {
    url: Vec<u8>,
    lower: Vec<u8>,
}

impl KeyRule {
    /// Creates the rule of a part without any form.
    pub const fn new(part: KeyPart) -> Self {
        const NONE: PartNumbers = PartNumbers::None;
        Self {
            part,
            crlf: false,
            trim: NONE,
            url: NONE,
            ignore_case: NONE,
            number: NONE,
            time: NONE,
            text: NONE,
            nulls: true,
        }
    }

    /// True if the key depends on the order of columns or fields: it is the whole line, or has a field by number.
    pub fn depends_on_order(&self) -> bool {
        match &self.part {
            KeyPart::Line | KeyPart::Record(_) => true,
            KeyPart::Fields { selectors, .. } => {
                !selectors.iter().all(|selector| matches!(selector, FieldSelector::Name(_)))
            }
            KeyPart::Row(_) | KeyPart::NamedFields { .. } | KeyPart::Json(_) => false,
        }
    }

    /// True if the key is the unchanged line.
    pub fn is_line(&self) -> bool {
        matches!(self.part, KeyPart::Line) && !self.crlf && !self.has_forms()
    }

    /// True if a carriage return at the end of a line may be part of the key.
    pub fn may_end_with_cr(&self) -> bool {
        let is_text = match &self.part {
            KeyPart::Line => true,
            KeyPart::Fields { split, .. } | KeyPart::NamedFields { split, .. } => matches!(split, FieldSplit::At(_)),
            _ => false,
        };
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
        let names = Header::new(&split, self.without_cr(header), &mut memory)?;
        let numbers = selectors.iter().map(|selector| match selector {
            FieldSelector::Name(name) => names.number(name).map(|number| (Some(name), number)),
            FieldSelector::Numbers(..) => Ok((None, 0)),
        });
        let numbers: Vec<(Option<&String>, usize)> = numbers.collect::<Result<_, _>>()?;
        if let FieldSplit::Csv(csv) = &mut split {
            csv.columns = Some(names.count());
        }
        let is_named = numbers.iter().all(|(name, _)| name.is_some());
        let part = match (&self.part, split) {
            (KeyPart::Record(_), FieldSplit::Csv(csv)) => KeyPart::Record(csv),
            (_, split) if is_named => {
                let fields = numbers.into_iter().filter_map(|(name, number)| Some((name?.clone(), number)));
                KeyPart::NamedFields { fields: Named::sorted(fields), split }
            }
            (_, split) => {
                let selectors = selectors.iter().zip(numbers).map(|(selector, (name, number))| match name {
                    Some(_) => FieldSelector::Numbers(number, Some(number)),
                    None => selector.clone(),
                });
                KeyPart::Fields { selectors: selectors.collect(), split }
            }
        };
        Ok(Self { part, ..self.clone() })
    }

    /// Returns the fields of these names in lines with this header, or `None` if lines are not split into fields.
    pub fn named_fields(&self, header: &[u8], names: &[String]) -> Result<Option<FieldNumbers>, KeyError> {
        let split = match &self.part {
            KeyPart::Fields { split, .. } | KeyPart::NamedFields { split, .. } => split.clone(),
            KeyPart::Record(csv) => FieldSplit::Csv(*csv),
            KeyPart::Line | KeyPart::Row(_) | KeyPart::Json(_) => return Ok(None),
        };
        let mut memory = Spans::default();
        let header = Header::new(&split, self.without_cr(header), &mut memory)?;
        let numbers = names.iter().map(|name| header.number(name)).collect::<Result<_, _>>()?;
        Ok(Some(FieldNumbers { split, numbers }))
    }

    /// True if there is memory for the key of a line with so many bytes. Buffers double as they grow, and a URL needs several
    /// buffers with up to three bytes for one.
    fn has_memory(&self, bytes: usize) -> bool {
        let copies = match self.part {
            _ if self.url != PartNumbers::None => 16,
            KeyPart::Line | KeyPart::Record(_) if self.ignore_case == PartNumbers::None => 0,
            _ => 8,
        };
        Vec::<u8>::new().try_reserve_exact(bytes.saturating_mul(copies)).is_ok()
    }

    /// Returns the kinds of the keys of lines, or `None` if they depend on the values.
    pub fn fixed_kinds(&self) -> Option<KeyKinds> {
        let mut in_row = matches!(&self.part, KeyPart::NamedFields { fields, .. } if fields.len() > 1);
        let numbers: Vec<usize> = match &self.part {
            KeyPart::Row(_) | KeyPart::Json(_) => return None,
            KeyPart::Line | KeyPart::Record(_) => vec![1],
            KeyPart::NamedFields { fields, .. } => fields.iter().map(|field| field.part).collect(),
            // Names that are not resolved to numbers yet.
            KeyPart::Fields { selectors, .. } if name::names(selectors).is_some() => {
                in_row = selectors.len() > 1;
                let names = name::names(selectors).into_iter().flatten();
                Named::sorted(names.map(|name| (name.to_owned(), ()))).iter().map(|field| field.part).collect()
            }
            KeyPart::Fields { selectors, .. } => {
                // The number of all fields that follow is not known.
                let count = |selector: &FieldSelector| match *selector {
                    FieldSelector::Name(_) | FieldSelector::Numbers(_, None) => 1,
                    FieldSelector::Numbers(first, Some(last)) => last - first + 1,
                };
                (1..=selectors.iter().map(count).fold(0, usize::saturating_add).min(MAX_PARTS)).collect()
            }
        };
        if numbers.iter().any(|&part| self.time.has(part)) {
            return None;
        }
        let kind = |&part: &usize| if self.number.has(part) { Kinds::NUMBER } else { Kinds::TEXT };
        Some(KeyKinds::from_parts(numbers.iter().map(kind), in_row))
    }

    /// Returns the key of a line without its end, as a slice of the line if possible. Several parts are concatenated, each after
    /// its length, so that different parts make different keys.
    pub fn key<'a>(&self, line: &'a [u8], scratch: &'a mut KeyScratch) -> Result<&'a [u8], KeyError> {
        if line.len() >= LONG_LINE && !self.has_memory(line.len()) {
            return Err(KeyError::Memory { bytes: line.len() });
        }
        let KeyScratch { fields, json, buffers, joined, kinds } = scratch;
        let line = self.without_cr(line);
        joined.clear();
        match &self.part {
            KeyPart::Line | KeyPart::Row(_) => return self.text_key(1, line, false, buffers, joined, kinds),
            KeyPart::Record(csv) => {
                fields.check(line, *csv)?;
                return self.text_key(1, line, false, buffers, joined, kinds);
            }
            KeyPart::Fields { selectors, split } => {
                let max_fields = selectors.iter().map(FieldSelector::max_fields).max().unwrap_or(0);
                let fields = split.fields(line, max_fields, fields)?;
                let field = |number| fields.get(number).ok_or(KeyError::Field { number, fields: fields.count() });
                if let [selector] = &selectors[..]
                    && let Some(number) = selector.number()
                {
                    return self.text_key(1, field(number)?, true, buffers, joined, kinds);
                }
                let mut part = 0;
                for selector in selectors {
                    // Names were resolved to numbers.
                    let &FieldSelector::Numbers(first, last) = selector else { continue };
                    for number in first..=last.unwrap_or(fields.count().max(first)) {
                        part += 1;
                        let field = field(number)?;
                        let kind = push_part(joined, |joined| self.push_text(part, field, buffers, joined))?;
                        if self.time != PartNumbers::None {
                            kinds.add(part.min(MAX_PARTS) - 1, kind);
                        }
                    }
                }
            }
            KeyPart::NamedFields { fields: named, split } => {
                let max_fields = named.iter().map(|field| field.at).max().unwrap_or(0);
                let fields = split.fields(line, max_fields, fields)?;
                let field = |number| fields.get(number).ok_or(KeyError::Field { number, fields: fields.count() });
                if let [named] = &named[..] {
                    return self.text_key(1, field(named.at)?, true, buffers, joined, kinds);
                }
                encoding::begin_struct(joined);
                for (i, Named { part, name, at }) in named.iter().enumerate() {
                    let field = field(*at)?;
                    let kind = push_member(name, joined, |joined| self.push_text(*part, field, buffers, joined))?;
                    if self.time != PartNumbers::None {
                        kinds.add(i, kind | Kinds::IN_ROW);
                    }
                }
            }
            KeyPart::Json(values) => {
                let document = from_utf8(line).map_err(KeyError::Utf8)?;
                if let [value] = &values[..] {
                    match find(&value.at, document, json)? {
                        JsonPart::Text(text) => {
                            if !self.number.has(1) && !self.time.has(1) {
                                kinds.add(0, Kinds::TEXT);
                            }
                            return self.text_key(1, text.as_bytes(), true, buffers, joined, kinds);
                        }
                        JsonPart::Other(text) => kinds.add(0, self.push_json(1, text, &value.at, joined)?),
                    }
                    return Ok(joined);
                }
                encoding::begin_struct(joined);
                for (i, Named { part, name, at }) in values.iter().enumerate() {
                    let found = find(at, document, json)?;
                    let kind = push_member(name, joined, |joined| match found {
                        JsonPart::Text(text) => self.push_text(*part, text.as_bytes(), buffers, joined),
                        JsonPart::Other(text) => self.push_json(*part, text, at, joined),
                    })?;
                    kinds.add(i, kind | Kinds::IN_ROW);
                }
            }
        }
        Ok(joined)
    }

    /// Returns the key of a row of a table, whose columns are those of the key in its order.
    #[cfg(feature = "parquet")]
    pub fn row_key<'a>(&self, row: &'a Row<'_>, scratch: &'a mut KeyScratch) -> Result<&'a [u8], KeyError> {
        let KeyScratch { buffers, joined, kinds, .. } = scratch;
        joined.clear();
        match &self.part {
            KeyPart::Json(values) if values.len() == 1 => match row.part(0) {
                Part::Text(text) => return self.text_key(1, text, true, buffers, joined, kinds),
                other => self.push_cell(1, other, row, 0, buffers, joined, kinds)?,
            },
            KeyPart::Json(values) => {
                encoding::begin_struct(joined);
                for (i, Named { part, name, .. }) in values.iter().enumerate() {
                    let push =
                        |joined: &mut Vec<u8>| self.push_cell(*part, row.part(i), row, i, buffers, joined, kinds);
                    push_member(name, joined, push)?;
                }
            }
            KeyPart::Row(names) => {
                encoding::begin_struct(joined);
                for (i, name) in names.iter().enumerate() {
                    let push = |joined: &mut Vec<u8>| self.push_cell(1, row.part(i), row, i, buffers, joined, kinds);
                    push_member(name, joined, push)?;
                }
            }
            KeyPart::Line | KeyPart::Record(_) | KeyPart::Fields { .. } | KeyPart::NamedFields { .. } => {}
        }
        Ok(joined)
    }

    /// Returns the kinds of the keys of a table's rows, whose columns have these kinds.
    #[cfg(feature = "parquet")]
    pub fn kinds_of_columns(&self, columns: &[Kinds]) -> KeyKinds {
        let (parts, in_row): (Vec<usize>, bool) = match &self.part {
            KeyPart::Json(values) => (values.iter().map(|value| value.part).collect(), values.len() > 1),
            _ => (vec![1; columns.len()], true),
        };
        let kind = |(&kinds, part): (&Kinds, usize)| match kinds {
            Kinds::BYTES if self.text.has(part) => self.kind_of_text(part),
            Kinds::TEXT => self.kind_of_text(part),
            other => other,
        };
        KeyKinds::from_parts(columns.iter().zip(parts).map(kind), in_row)
    }

    /// Returns the kind of the texts of a part: no kind if they are times, whose kinds depend on the values.
    #[cfg(feature = "parquet")]
    fn kind_of_text(&self, part: usize) -> Kinds {
        if self.number.has(part) {
            return Kinds::NUMBER;
        }
        if self.time.has(part) { Kinds::NONE } else { Kinds::TEXT }
    }

    /// Appends the key of the value of a row with this number.
    #[cfg(feature = "parquet")]
    #[expect(clippy::too_many_arguments, reason = "the memory of a key is in several places")]
    fn push_cell(
        &self,
        part: usize,
        value: Part<'_>,
        row: &Row<'_>,
        number: usize,
        buffers: &mut FormBuffers,
        joined: &mut Vec<u8>,
        kinds: &mut KeyKinds,
    ) -> Result<(), KeyError> {
        let text = match value {
            Part::Text(text) => text,
            Part::Bytes(bytes) if self.text.has(part) => bytes,
            Part::Null if !self.nulls => return Err(KeyError::Null),
            _ if self.url.has(part) => return Err(KeyError::NoString { pointer: String::new() }),
            _ => {
                row.push(number, joined);
                return Ok(());
            }
        };
        let kind = self.push_text(part, text, buffers, joined)?;
        if self.time.has(part) {
            let is_row = !matches!(&self.part, KeyPart::Json(values) if values.len() == 1);
            kinds.add(number, if is_row { kind | Kinds::IN_ROW } else { kind });
        }
        Ok(())
    }

    /// Appends the key of a value of JSON that is not a string, and returns its kind.
    fn push_json(&self, part: usize, json: &str, pointer: &Pointer, joined: &mut Vec<u8>) -> Result<Kinds, KeyError> {
        if json == "null" && !self.nulls {
            return Err(KeyError::Null);
        }
        if self.url.has(part) {
            return Err(KeyError::NoString { pointer: pointer.to_string() });
        }
        json::push(json, joined).map_err(KeyError::Json)
    }

    /// Returns the key that is a single text, as a slice of the text if it is unchanged.
    ///
    /// If `is_escaped`, a text that begins like the key of another value gets an escape. A whole line gets none, because a filter of
    /// lines has no other values.
    #[inline(always)]
    fn text_key<'a>(
        &self,
        part: usize,
        text: &'a [u8],
        is_escaped: bool,
        buffers: &'a mut FormBuffers,
        joined: &'a mut Vec<u8>,
        kinds: &mut KeyKinds,
    ) -> Result<&'a [u8], KeyError> {
        let text = if self.has_forms() {
            if self.number.has(part) || self.time.has(part) {
                kinds.add(0, self.push_text(part, text, buffers, joined)?);
                return Ok(joined);
            }
            self.normalize(part, text, buffers)?
        } else {
            text
        };
        if is_escaped && text.first() == Some(&MARK) {
            encoding::push_text(text, joined);
            return Ok(joined);
        }
        Ok(text)
    }

    /// True if some texts are not compared as they are.
    #[inline]
    fn has_forms(&self) -> bool {
        let forms = [&self.trim, &self.url, &self.ignore_case, &self.number, &self.time];
        forms.iter().any(|parts| !matches!(parts, PartNumbers::None))
    }

    /// Appends the key of a text, and returns its kind. An empty text that is read as a number or a time is a null.
    fn push_text(
        &self,
        part: usize,
        text: &[u8],
        buffers: &mut FormBuffers,
        joined: &mut Vec<u8>,
    ) -> Result<Kinds, KeyError> {
        let is_number = self.number.has(part);
        let is_time = self.time.has(part);
        if !is_number && !is_time {
            encoding::push_text(self.normalize(part, text, buffers)?, joined);
            return Ok(Kinds::TEXT);
        }
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() {
            encoding::push_null(joined);
            return if self.nulls { Ok(Kinds::NONE) } else { Err(KeyError::Null) };
        }
        let shown = || String::from_utf8_lossy(trimmed).into_owned();
        if is_number {
            return if push_number(trimmed, joined) {
                Ok(Kinds::NUMBER)
            } else {
                Err(KeyError::NoNumber { text: shown() })
            };
        }
        let time = from_utf8(trimmed).ok().and_then(TimeValue::parse);
        let time = time.ok_or_else(|| KeyError::NoTime { text: shown() })?;
        time.push(joined);
        Ok(time.kind())
    }

    /// Removes the carriage return at the end of a line if it is not part of the line.
    fn without_cr<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let strips_cr = self.crlf || matches!(self.part, KeyPart::Record(_));
        if strips_cr { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
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

/// Returns the value at a pointer.
#[inline]
fn find<'a>(pointer: &Pointer, document: &'a str, memory: &'a mut String) -> Result<JsonPart<'a>, KeyError> {
    let found = pointer.find_part(document, memory).map_err(KeyError::Json)?;
    found.ok_or_else(|| KeyError::no_value(pointer, document))
}

/// Appends the key of a number that a text spells, with a sign or without, or returns false.
fn push_number(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((number, float)) = parse_number(text) else { return false };
    let is_finite = number.bytes().all(|byte| b"0123456789.eE+-".contains(&byte));
    if is_finite {
        encoding::push_number(number, out);
    } else {
        encoding::push_float(float, out);
    }
    true
}

/// Parses a number, with a sign or without, or infinity or NaN. Returns its text without a plus sign, and the nearest double.
pub fn parse_number(text: &[u8]) -> Option<(&str, f64)> {
    let text = from_utf8(text).ok()?;
    let number = text.strip_prefix('+').unwrap_or(text);
    let has_two_signs = number.len() < text.len() && number.starts_with(['+', '-']);
    if has_two_signs {
        return None;
    }
    Some((number, number.parse().ok()?))
}

/// Converts a part to lower case: by Unicode if it is UTF-8, else by ASCII.
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
