//! Values of the command line that other parts of the command use, and their parsers.

use crate::key::PartNumbers;
use crate::key::fields::FieldSelector;
use crate::key::json::Pointer;
use crate::read::skip::OnError;
use crate::run::print::LineEnd;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use parse_size::{ByteSuffix, Config};
use std::num::NonZero;
use std::time::Duration;

/// The delimiter between fields.
#[derive(Clone)]
pub struct Delimiter(pub Vec<u8>);

/// The treatment of a key that has a null.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Nulls {
    /// Nulls are equal, so one row stays, as with DISTINCT
    Equal,
    /// Keep all such rows
    Keep,
    /// Leave them out
    Skip,
    /// End with an error
    Fail,
}

impl Nulls {
    /// Returns the treatment of such a row, if a key with a null is not a key.
    pub fn policy(self) -> OnError {
        match self {
            Self::Keep => OnError::Keep,
            Self::Skip => OnError::Skip,
            Self::Equal | Self::Fail => OnError::Fail,
        }
    }
}

/// A list of fields.
#[derive(Clone)]
pub struct FieldList(pub Vec<FieldSelector>);

/// A list of columns, each as a pointer.
#[derive(Clone)]
pub struct ColumnList(pub Vec<Pointer>);

/// Parses fields between commas. A quoted one is a name.
pub fn fields(text: &str) -> Result<FieldList, &'static str> {
    let field =
        |(item, is_quoted): (String, bool)| if is_quoted { Ok(FieldSelector::Name(item)) } else { item.parse() };
    Ok(FieldList(items(text)?.into_iter().map(field).collect::<Result<_, _>>()?))
}

/// Parses columns between commas. A point is between a struct and its member, unless it is in quotes.
pub fn columns(text: &str) -> Result<ColumnList, &'static str> {
    let column = |(item, is_quoted): (String, bool)| match is_quoted {
        true => Pointer::from_names([&*item]),
        false => Pointer::from_names(item.split('.')),
    };
    Ok(ColumnList(items(text)?.into_iter().map(column).collect()))
}

/// Splits a list at its commas. An item in double quotes may have commas, and a doubled quote is one of it. Returns the items, and
/// whether each was in quotes.
fn items(list: &str) -> Result<Vec<(String, bool)>, &'static str> {
    const OPEN: &str = "after a name in quotes, a comma or the end has to follow, as in '\"first, last\",id'";
    let (mut items, mut rest) = (Vec::new(), list);
    loop {
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut item = String::new();
            loop {
                let (text, after) = quoted.split_once('"').ok_or(OPEN)?;
                item += text;
                let Some(more) = after.strip_prefix('"') else {
                    rest = after;
                    break;
                };
                item.push('"');
                quoted = more;
            }
            items.push((item, true));
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            items.push((rest[..end].to_owned(), false));
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(items),
            None => return Err(OPEN),
        }
    }
}

/// Parses the numbers of parts of a key, or `all`.
pub fn parts(text: &str) -> Result<PartNumbers, &'static str> {
    if text == ALL_PARTS {
        return Ok(PartNumbers::All);
    }
    let numbers = text.split(',').map(|number| number.parse().ok().filter(|number| *number > 0));
    let mut numbers: Vec<usize> = numbers
        .collect::<Option<_>>()
        .ok_or("give the numbers of parts of the key, starting at 1, such as 1 or 1,3")?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(PartNumbers::Some(numbers))
}

/// The form in which some parts of a key are compared.
#[derive(Clone)]
pub struct Normal {
    pub form: NormalForm,
    pub parts: PartNumbers,
}

/// The form in which texts are compared, or byte strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NormalForm {
    Url,
    Number,
    Time,
    Text,
}

/// Parses the form of some parts of a key, or of all.
pub fn normal(text: &str) -> Result<Normal, &'static str> {
    let (name, numbers) = text.split_once(':').map_or((text, None), |(name, numbers)| (name, Some(numbers)));
    let form = match name {
        "url" => NormalForm::Url,
        "number" => NormalForm::Number,
        "time" => NormalForm::Time,
        "text" => NormalForm::Text,
        _ => return Err("give url, number, time or text, or url:1 for the first part of the key"),
    };
    Ok(Normal { form, parts: numbers.map_or(Ok(PartNumbers::All), parts)? })
}

/// The default value of an option that selects parts of the key.
pub const ALL_PARTS: &str = "all";

/// Parses a delimiter, in which a backslash starts an escape.
pub fn delimiter(text: &str) -> Result<Delimiter, &'static str> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(b'\\') => b'\\',
                _ => return Err("after a backslash, give t for a tab, 0 for NUL, or a second backslash for one"),
            },
            byte => byte,
        });
    }
    if bytes.is_empty() { Err("it is empty") } else { Ok(Delimiter(bytes)) }
}

/// The treatment of line ends, if LF and CR LF are equal.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Eol {
    /// Print lines unchanged
    Keep,
    /// Write a newline
    Lf,
    /// Write a carriage return and a newline
    Crlf,
}

impl Eol {
    /// Returns the end that lines get, unless they are unchanged.
    pub fn written(self) -> Option<LineEnd> {
        match self {
            Self::Keep => None,
            Self::Lf => Some(LineEnd::Lf),
            Self::Crlf => Some(LineEnd::Crlf),
        }
    }
}

/// Parses the character that escapes quotes in CSV.
pub fn escape(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        [b'"'] => Err("a doubled quote needs no --escape"),
        &[byte] | &[byte @ b'\\', b'\\'] if byte.is_ascii_graphic() => Ok(byte),
        _ => Err("give one visible character of ASCII, such as '\\'"),
    }
}

/// Parses a duration that is not zero.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    // humantime reads M as months, which is not meant here.
    let mut units = text.split(|character: char| !character.is_alphabetic()).filter(|unit| !unit.is_empty());
    let known = units.all(|unit| ["ms", "s", "m", "min", "h", "d"].contains(&unit));
    let duration = humantime::parse_duration(text).ok().filter(|duration| known && !duration.is_zero());
    duration.ok_or("not a duration longer than zero: give a number with ms, s, m (minutes), h or d, such as 10s or 5m")
}

/// Parses a false-positive rate.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err("not between 0 and 1 (both excluded)".to_owned()) }
}

/// Parses a share above which others may be.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "not a number".to_owned())?;
    let is_exceeded = (0.0..1.0).contains(&share);
    if is_exceeded { Ok(share) } else { Err("not from 0 to below 1, which no share exceeds".to_owned()) }
}

/// Parses a share that others reach or exceed.
pub fn whole_share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("not from 0 to 1".to_owned()) }
}

/// Parses the number of words of a window.
pub fn window_length(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "not a number of words from 1 on, such as 50".to_owned())
}

/// Parses a number of keys, in powers of 1000.
pub fn count(text: &str) -> Result<u64, String> {
    let config = Config::new().with_decimal().with_byte_suffix(ByteSuffix::Deny);
    number(text, &config).filter(|&count| count > 0).ok_or_else(|| {
        format!("not a whole number from 1 to {}: give digits, or a number with k, M, G or T for powers of 1000, such as 10M or 1e7", u64::MAX)
    })
}

/// Parses the seed of a hash.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a whole number from 0 to {}", u64::MAX))
}

/// Parses a size from one block of a filter to the largest that a process can address.
pub fn size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 64;
    const MOST: usize = isize::MAX as usize;
    let bytes = number(text.strip_suffix(" bytes").unwrap_or(text), &Config::new().with_binary());
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| (LEAST..=MOST).contains(bytes)).ok_or_else(|| {
        format!("not a size from {LEAST} to {MOST} bytes: give bytes, or a number with K, M, G or T for powers of 1024, such as 16M or 1.5GiB")
    })
}

/// Returns a parser that accepts only these values.
pub fn only<T: ValueEnum + Send + Sync + 'static>(values: &[T]) -> impl TypedValueParser<Value = T> + use<T> {
    let names = values.iter().map(|value| value.to_possible_value().expect("no value is skipped"));
    PossibleValuesParser::new(names)
        .map(|name| T::from_str(&name, false).expect("the parser accepts only possible values"))
}

/// Parses a number, with a unit or without. A point without a unit may be a thousands separator, and is refused.
fn number(text: &str, units: &Config) -> Option<u64> {
    let number = units.parse_size(text).ok()?;
    (!text.contains('.') || text.contains(char::is_alphabetic)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::figures::{readable_count, readable_size};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printed_numbers_are_parsed(number in (6u32..62, any::<u64>()).prop_map(|(bits, any)| 1 << bits | any >> (64 - bits))) {
            let sizes = size(&number.to_string()).and_then(|bytes| size(&readable_size(bytes)));
            // Printed numbers have two decimals of a unit.
            let (sizes, counts) = (sizes.unwrap() as f64, count(&readable_count(number as f64)).unwrap() as f64);
            prop_assert!((sizes / number as f64 - 1.0).abs() <= 0.005, "{number} {sizes}");
            prop_assert!((counts / number as f64 - 1.0).abs() <= 0.05, "{number} {counts}");
            prop_assert_eq!(count(&number.to_string()), Ok(number));
            prop_assert_eq!(size(&number.to_string()), Ok(number as usize));
        }
    }
}
