//! The reasons why a line has no key.

use crate::key::json::{JsonError, Pointer};
use std::fmt;
use std::str::Utf8Error;
use url::ParseError;

/// The maximum number of field or column names in a message.
const NAMES: usize = 30;

/// The reason why a line has no key.
#[derive(Debug, PartialEq)]
pub enum KeyError {
    /// Too few fields.
    Field { number: usize, fields: usize },
    /// The header has no field of this name. `names` are its fields, split as CSV or by a delimiter.
    NoName { name: String, names: Vec<String>, is_csv: bool },
    /// The header has this name twice, at these numbers.
    TwoNames { name: String, numbers: [usize; 2] },
    /// A quoted CSV field is not closed before the end of the input.
    Quote { has_escape: bool },
    /// Text follows the closing quote of this CSV field.
    BehindQuote { field: usize, has_escape: bool },
    /// A quote is inside this CSV field, and a backslash precedes a closing quote.
    Amid { field: usize },
    /// A CSV record has another number of fields than the header. True if a backslash precedes a closing quote, and may escape it.
    Columns { fields: usize, columns: usize, may_be_escape: bool },
    /// A carriage return stands alone, outside of the quotes of CSV.
    LoneCr,
    /// The header is a line with which spreadsheets name the delimiter.
    Separator { delimiter: char },
    /// Invalid UTF-8 in JSON or a URL.
    Utf8(Utf8Error),
    /// Not JSON, or a value that cannot be a key.
    Json(JsonError),
    /// A null, and nulls are excluded.
    Null,
    /// The document has no value at the pointer. If it is an array, it may be a whole file.
    NoValue { pointer: String, is_array: bool },
    /// The value is not a string, and so not a URL.
    NoString { pointer: String },
    /// The value is not a string, and so not a text.
    NoText { pointer: String },
    /// The line is not a JSON object, so it cannot hold a note.
    NoObject,
    /// A text that is read as a number, and is not one.
    NoNumber { text: String },
    /// A text that is read as a date or time, and is not one.
    NoTime { text: String },
    /// Not an absolute URL.
    Url(ParseError),
    /// The line has so many bytes that there is no memory for its key.
    Memory { bytes: usize },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { number, fields: 1 } => write!(f, "there is no field {number}: the line has 1 field"),
            Self::Field { number, fields } => write!(f, "there is no field {number}: the line has {fields} fields"),
            Self::NoName { name, names, is_csv } => {
                let ends = names.iter().any(|other| other.strip_suffix('\r') == Some(name));
                let at = |delimiter: &char| {
                    let [line] = &names[..] else { return false };
                    let mut fields = line.split(*delimiter).map(|field| field.trim_matches(['"', '\r', '\u{feff}']));
                    fields.any(|field| field == name)
                };
                let advice = match [',', '\t', ';', '|'].iter().find(|delimiter| at(delimiter)) {
                    _ if ends => "give --eol keep, as lines end with CR LF".to_owned(),
                    None => "give one of these with -f, or its number".to_owned(),
                    Some(',') if !is_csv => "give --csv, or -d ',', as it is split at commas".to_owned(),
                    Some('\t') => "give -d '\\t', as it is split at tabs".to_owned(),
                    Some(delimiter) => format!("give -d '{delimiter}', as it is split there"),
                };
                write!(f, "the header has no field {name:?}, but {}; {advice}", shown(names))
            }
            Self::TwoNames { name, numbers: [first, second] } => {
                write!(
                    f,
                    "the header has {name:?} twice, as fields {first} and {second}; give one of these numbers with -f"
                )
            }
            Self::Quote { has_escape } => write!(f, "a quoted field is not closed; {}", quotes(*has_escape)),
            Self::BehindQuote { field, has_escape } => {
                write!(f, "text follows the closing quote of field {field}; {}", quotes(*has_escape))
            }
            Self::Amid { field } => write!(f, "there is a quote inside field {field}; {}", quotes(false)),
            Self::Columns { fields, columns, may_be_escape } => {
                let s = if *fields == 1 { "" } else { "s" };
                write!(f, "it has {fields} field{s}, but the header has {columns}; ")?;
                f.write_str(match may_be_escape {
                    true => quotes(false),
                    false if *fields == 1 => "--skip-blank leaves blank lines out",
                    false => "a field with a delimiter is in quotes, without a space before them",
                })
            }
            Self::LoneCr => f.write_str(
                r"a carriage return stands alone, outside of quotes; if it ends a line, convert it, such as by tr '\r' '\n' < FILE",
            ),
            Self::Separator { delimiter } => write!(
                f,
                "its first line \"sep={delimiter}\" is for spreadsheets, and not a header; remove it, such as by tail -n +2, and give -d \
                 '{delimiter}'"
            ),
            Self::Utf8(error) => write!(f, "not UTF-8: {error}"),
            Self::Json(unreadable) => unreadable.fmt(f),
            Self::Null => f.write_str("the key has a null"),
            Self::NoValue { pointer, is_array } => {
                let remedy = if *is_array { "; the line is an array, of which jq -c '.[]' makes lines" } else { "" };
                write!(f, "there is no value at {pointer:?}{remedy}")
            }
            Self::NoString { pointer } if pointer.is_empty() => {
                f.write_str("the value is not a string, so it is not a URL")
            }
            Self::NoString { pointer } => write!(f, "the value at {pointer:?} is not a string, so it is not a URL"),
            Self::NoText { pointer } => write!(f, "the value at {pointer:?} is not a string, so it is not a text"),
            Self::NoObject => {
                f.write_str("the line is not a JSON object, so --annotate or --count cannot add a member to it")
            }
            Self::NoNumber { text } => write!(f, "{} is not a number", excerpt(text)),
            Self::NoTime { text } => write!(f, "{} is not a date or time in ISO 8601", excerpt(text)),
            Self::Url(error) => write!(f, "not an absolute URL: {error}"),
            Self::Memory { bytes } => write!(f, "there is no memory for the key of a line of {bytes} bytes"),
        }
    }
}

impl KeyError {
    /// Creates the error for a document without a value at a pointer.
    pub fn no_value(pointer: &Pointer, document: &str) -> Self {
        Self::NoValue { pointer: pointer.to_string(), is_array: document.trim_ascii_start().starts_with('[') }
    }
}

/// Returns the options for quotes that differ from RFC 4180.
fn quotes(has_escape: bool) -> &'static str {
    match has_escape {
        true => "if quotes are text here, leave out --csv",
        false => r"if a backslash escapes quotes, give --escape '\', and if they are text, leave out --csv",
    }
}

/// Quotes the beginning of a text for a message.
pub fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 60;
    let start: String = text.chars().take(CHARACTERS).collect();
    let rest = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{rest}")
}

/// Lists names for a message. There may be thousands.
pub fn shown(names: &[impl fmt::Debug]) -> String {
    let shown = names.iter().take(NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES { format!("{shown} and {} more", names.len() - NAMES) } else { shown }
}
