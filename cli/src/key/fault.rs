//! Why a line has no key.

use crate::key::json::Unreadable;
use std::fmt;
use std::str::Utf8Error;
use url::ParseError;

/// The most names of a header or of columns that a message has.
const NAMES: usize = 30;

/// Why a line has no key.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// Too few fields.
    Field { number: usize, fields: usize },
    /// The header has no field of this name, but these. It is split as CSV, or as lines are.
    NoName { name: String, names: Vec<String>, is_csv: bool },
    /// The header has two of this name, with these numbers.
    TwoNames { name: String, numbers: [usize; 2] },
    /// A field of CSV goes on up to the end of the input.
    Quote { has_escape: bool },
    /// Text comes behind the quote that closes this field of CSV.
    BehindQuote { field: usize, has_escape: bool },
    /// A quote stands amid this field of CSV, and a backslash before one that closes a field.
    Amid { field: usize },
    /// A record of CSV has not as many fields as the header, and a backslash stands before a quote that closes a field.
    Columns { fields: usize, columns: usize },
    /// JSON and URLs are text.
    Utf8(Utf8Error),
    /// Not JSON, or a value that cannot be a key.
    Json(Unreadable),
    /// A value is null, and nulls are no keys.
    Null,
    /// The document has no value there.
    NoValue { pointer: String },
    /// A value that is no text, and so no URL.
    NoString { pointer: String },
    /// A value that is no string, and so no text.
    NoText { pointer: String },
    /// No JSON object, which could tell what would be cut.
    NoObject,
    /// Not an absolute URL.
    Url(ParseError),
    /// A line of so many bytes, whose key cannot be made.
    Memory { bytes: usize },
}

impl fmt::Display for Fault {
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
                    _ if ends => "give --crlf, as lines end with CR LF".to_owned(),
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
            Self::Quote { has_escape } => write!(f, "a quoted field does not end; {}", quotes(*has_escape)),
            Self::BehindQuote { field, has_escape } => {
                write!(f, "behind the quote that ends field {field} comes text; {}", quotes(*has_escape))
            }
            Self::Amid { field } => write!(f, "there is a quote amid field {field}; {}", quotes(false)),
            Self::Columns { fields, columns } => {
                write!(f, "it has {fields} fields, and the header has {columns}; {}", quotes(false))
            }
            Self::Utf8(error) => write!(f, "not UTF-8: {error}"),
            Self::Json(unreadable) => unreadable.fmt(f),
            Self::Null => f.write_str("the key has a null"),
            Self::NoValue { pointer } => write!(f, "there is no value at {pointer:?}"),
            Self::NoString { pointer } if pointer.is_empty() => f.write_str("the value is no string, and so no URL"),
            Self::NoString { pointer } => write!(f, "the value at {pointer:?} is no string, and so no URL"),
            Self::NoText { pointer } => write!(f, "the value at {pointer:?} is no string, and so no text"),
            Self::NoObject => {
                f.write_str("the line is no JSON object, and has no place for what --annotate or --count adds")
            }
            Self::Url(error) => write!(f, "not an absolute URL: {error}"),
            Self::Memory { bytes } => write!(f, "memory for a key of a line of {bytes} bytes cannot be had"),
        }
    }
}

/// How to read quotes that are not those of RFC 4180.
fn quotes(has_escape: bool) -> &'static str {
    match has_escape {
        true => "if quotes are text here, leave out --csv",
        false => r"if a backslash escapes quotes, give --escape '\', and if they are text, leave out --csv",
    }
}

/// Names for a message, of which there may be thousands.
pub fn shown(names: &[impl fmt::Debug]) -> String {
    let shown = names.iter().take(NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES { format!("{shown} and {} more", names.len() - NAMES) } else { shown }
}
