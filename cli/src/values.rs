//! Values of the command line that other parts of the command use, and how they are read.

use clap::ValueEnum;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What stands between fields.
#[derive(Clone)]
pub struct Delimiter(pub Vec<u8>);

/// What to do about bad input.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// End with an error; `dedup` and `check` first finish all lines before it
    Fail,
    /// Leave out the line, or the rest of a broken input
    Skip,
    /// Select the line as it is, and keep what can be read of a broken input
    Keep,
}

/// How to print statistics.
#[derive(Clone, Copy, ValueEnum)]
pub enum StatsFormat {
    /// A line for each figure.
    Text,
    /// One JSON object on one line.
    Json,
}

/// A delimiter, in which a backslash starts an escape.
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

/// The numbers of some fields: one, or from one to another.
pub fn fields(text: &str) -> Result<RangeInclusive<usize>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok(first as usize..=last as usize),
        _ => Err("give the number of a field, from 1 on, or the first and the last of several, such as 2-4"),
    }
}

/// A duration that is not zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("it must be longer than zero".to_owned()) } else { Ok(duration) }
}

/// A false-positive rate.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err("not between 0 and 1 (both excluded)".to_owned()) }
}

/// A size from one block of a filter to what a process can address.
pub fn size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 64;
    const MOST: usize = isize::MAX as usize;
    let units = ["K", "M", "G", "T"];
    let unit = units.into_iter().zip(1..).find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)));
    let (number, power) = unit.unwrap_or((text, 0));
    // Not `parse` alone, which takes a sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << (10 * power)));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| digits && (LEAST..=MOST).contains(bytes)).ok_or_else(|| {
        format!("not a size from {LEAST} to {MOST} bytes: give bytes, or a whole number with K, M, G or T, such as 16M")
    })
}
