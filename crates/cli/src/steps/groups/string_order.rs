//! Dates, times and numbers in strings, whose order may differ from the order of their bytes.

use crate::steps::groups::score::push_number;
use bloomline_keys::time::TimeValue;
use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::str::from_utf8;

/// The months, by the first letters of their names.
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Converts an ISO 8601 date and time, in its extended or its basic form, to UTC, formatted so that strings sort by time. Returns `None`
/// for any other string. A time without an offset is in UTC.
pub fn utc(text: &[u8]) -> Option<String> {
    TimeValue::parse(from_utf8(text).ok()?)?.to_utc()
}

/// Parses a number with a count of digits in `digits`.
fn parse_digits(text: &str, digits: RangeInclusive<usize>) -> Option<i32> {
    let is_number = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// True if both strings are numbers, or both are dates, and their order differs from the order of their bytes.
pub fn byte_order_misleads(a: &[u8], b: &[u8]) -> bool {
    let (Ok(a), Ok(b)) = (from_utf8(a), from_utf8(b)) else { return false };
    let order = if let (Some(a), Some(b)) = (number_key(a), number_key(b)) {
        a.cmp(&b)
    } else if let (Some(a), Some(b)) = (parse_date(a), parse_date(b)) {
        a.cmp(&b)
    } else {
        return false;
    };
    order != Ordering::Equal && order != a.cmp(b)
}

/// Returns bytes that sort as the number does, if a string is a number.
fn number_key(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let is_number = text.parse::<f64>().is_ok() && text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte));
    if !is_number {
        return None;
    }
    let mut bytes = Vec::new();
    let is_pushed = push_number(text.strip_prefix('+').unwrap_or(text), &mut bytes);
    is_pushed.then_some(bytes)
}

/// Parses a date and returns the year, the month and the day. The month may be a name, and numbers may lack leading zeros. Of
/// numbers between slashes, the first is the month if it can be one.
fn parse_date(text: &str) -> Option<[i32; 3]> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    if let Some(month) = words.iter().find_map(|word| named_month(word)) {
        let year = words.iter().find_map(|word| parse_digits(word, 4..=4))?;
        let day = words.iter().find_map(|word| parse_digits(word, 1..=2))?;
        return Some([year, month, day]);
    }
    let [first, second, third, ..] = words[..] else { return None };
    let numbers = [parse_digits(first, 1..=4)?, parse_digits(second, 1..=2)?, parse_digits(third, 1..=4)?];
    let [year, month, day] = match (first.len(), third.len()) {
        (4, 1..=2) => numbers,
        (1..=2, 4) => {
            let [a, b, year] = numbers;
            if text.contains('/') && a <= 12 { [year, a, b] } else { [year, b, a] }
        }
        _ => return None,
    };
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some([year, month, day])
}

/// Returns the number of a month, if a word begins like its name.
fn named_month(word: &str) -> Option<i32> {
    let start = word.get(..3)?;
    let index = MONTHS.iter().position(|month| start.eq_ignore_ascii_case(month))?;
    Some(index as i32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_to_utc() {
        for (text, expected) in [
            ("2026-11-01T10:00:00Z", "2026-11-01T10:00:00"),
            ("2026-11-01 10:00:00", "2026-11-01T10:00:00"),
            ("2026-11-01t10:00z", "2026-11-01T10:00:00"),
            ("2026-11-01T10:00:00.500Z", "2026-11-01T10:00:00.5"),
            ("2026-11-01T10:00:00,0+00:00", "2026-11-01T10:00:00"),
            ("2026-11-01T01:30:00+02:00", "2026-10-31T23:30:00"),
            ("2026-11-01T01:30:00+0545", "2026-10-31T19:45:00"),
            ("2024-03-01T00:00:00+01", "2024-02-29T23:00:00"),
            ("2023-03-01T00:00:00+01", "2023-02-28T23:00:00"),
            ("2026-01-01T00:59:60+01:00", "2026-01-01T00:00:00"),
            ("20260101T230000-0500", "2026-01-02T04:00:00"),
            ("2025-12-31T20:00:00-04:30", "2026-01-01T00:30:00"),
            ("2024-02-28T23:59:00-00:01", "2024-02-29T00:00:00"),
            ("2026-04-30T23:00:00-05:00", "2026-05-01T04:00:00"),
        ] {
            assert_eq!(utc(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "2026-11-01",
            "2026-11-01T",
            "2026-11-01T10",
            "2026-11-31T10:00:00Z",
            "2026-13-01T10:00:00Z",
            "2026-11-01T24:00:00Z",
            "2026-11-01T10:60:00Z",
            "2026-11-01T10:00:00.Z",
            "2026-11-01T10:00:00.5x",
            "2026-11-01T10:00:00+1",
            "2026-11-01T10:00:00+001",
            "2026-11-01T10:00:00+25:00",
            "2026-11-01T10:00:00Zz",
            "2026-11-01T+0:00:00Z",
            "+026-11-01T10:00:00Z",
            "äää-11-01T10:00:00Z",
            "",
        ] {
            assert_eq!(utc(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn strings_whose_bytes_sort_differently_are_misleading() {
        for (less, greater) in [
            ("9", "10"),
            ("-1", "-0.5"),
            ("9.5", "1e3"),
            ("5", "+40"),
            ("12/31/2025", "01/01/2026"),
            ("9/1/2026", "10/1/2026"),
            ("31/12/2025", "1/1/2026"),
            ("31.12.2025", "01.01.2026"),
            ("2026-9-1", "2026-10-1"),
            ("Sun, 29 Nov 2026 10:00:00 GMT", "Fri, 04 Dec 2026 10:00:00 GMT"),
            ("November 9, 2026", "December 1, 2026"),
        ] {
            assert!(byte_order_misleads(less.as_bytes(), greater.as_bytes()), "{less} {greater}");
            assert!(byte_order_misleads(greater.as_bytes(), less.as_bytes()), "{less} {greater}");
        }
        for (a, b) in [
            ("10", "11"),
            ("1", "1.0"),
            ("007", "010"),
            ("a9", "a10"),
            ("", "1"),
            ("9", "abc"),
            ("inf", "1"),
            ("2026-09-01", "2026-10-01"),
            ("01/02/2026", "03/01/2026"),
            ("1.10.0", "1.9.0"),
            ("99/99/2026", "01/01/2026"),
            ("10 lines", "9 lines"),
        ] {
            assert!(
                !byte_order_misleads(a.as_bytes(), b.as_bytes()) && !byte_order_misleads(b.as_bytes(), a.as_bytes()),
                "{a} {b}"
            );
        }
        assert!(!byte_order_misleads(b"\xff9", b"\xff10"));
    }
}
