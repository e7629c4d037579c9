//! Dates and times in texts, as ISO 8601 and the writers of CSV and JSON spell them.

use crate::encoding::{push_date, push_time, push_timestamp};
use crate::kinds::Kinds;

/// A date, a time of day or a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeValue {
    /// Days since 1970-01-01.
    Date(i64),
    /// A time of day.
    Time(Attoseconds),
    /// A timestamp without a zone, since 1970-01-01.
    Timestamp(Attoseconds),
    /// A timestamp with a zone, since 1970-01-01 in UTC.
    Instant(Attoseconds),
}

/// A duration, or a time since a start, in attoseconds.
type Attoseconds = i128;

/// The number of decimal digits after a second in [`Attoseconds`].
const SCALE: u8 = 18;
const SECOND: Attoseconds = 1_000_000_000_000_000_000;

impl TimeValue {
    /// Parses a date (`2026-11-23`, `20261123`), a time of day (`07:05`, `07:05:00.25`, `070500`) or both, with `T` or
    /// a space between them, and perhaps an offset (`Z`, `UTC`, `+01:00`, `+0100`, `+01`). Returns `None` for any other
    /// text, and for fractions of more than 18 digits.
    ///
    /// ```
    /// use bloomline_keys::time::TimeValue;
    ///
    /// let instant = TimeValue::parse("2026-01-01T00:00:00+01:00");
    /// assert_eq!(instant, TimeValue::parse("20251231T230000Z"));
    /// assert_eq!(TimeValue::parse("1970-01-02"), Some(TimeValue::Date(1)));
    /// assert_eq!(TimeValue::parse("yesterday"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        if let Some(days) = parse_date(text) {
            return Some(Self::Date(days));
        }
        let Some((date, time)) = text.split_once(['T', 't', ' ']) else {
            return parse_time(text).map(Self::Time);
        };
        let days = parse_date(date)?;
        let (time, offset) = split_offset(time)?;
        let seconds = Attoseconds::from(days) * 86_400 * SECOND + parse_time(time)?;
        Some(match offset {
            None => Self::Timestamp(seconds),
            Some(minutes) => Self::Instant(seconds - Attoseconds::from(minutes) * 60 * SECOND),
        })
    }

    /// Appends the value as a key.
    pub fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Date(days) => push_date(days, out),
            Self::Time(seconds) => push_time(seconds, SCALE, out),
            Self::Timestamp(seconds) => push_timestamp(seconds, SCALE, false, out),
            Self::Instant(seconds) => push_timestamp(seconds, SCALE, true, out),
        }
    }

    /// Formats a timestamp in UTC: `2026-11-23T07:05:00.25`, with as many digits of a second as it needs. Texts of
    /// four-digit years sort by time. Returns `None` for a date or a time of day. A timestamp without a zone is assumed
    /// to be in UTC.
    pub fn to_utc(self) -> Option<String> {
        let (Self::Timestamp(seconds) | Self::Instant(seconds)) = self else { return None };
        let (whole, fraction) = (seconds.div_euclid(SECOND) as i64, seconds.rem_euclid(SECOND));
        let (days, second) = (whole.div_euclid(86_400), whole.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let digits = usize::from(SCALE);
        let fraction = format!(".{fraction:0digits$}");
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}"))
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kinds {
        match self {
            Self::Date(_) => Kinds::DATE,
            Self::Time(_) => Kinds::TIME,
            Self::Timestamp(_) => Kinds::TIMESTAMP,
            Self::Instant(_) => Kinds::INSTANT,
        }
    }
}

/// Splits a time at its offset, which is returned in minutes ahead of UTC. `None` if the offset is invalid.
fn split_offset(time: &str) -> Option<(&str, Option<i32>)> {
    for utc in ["Z", "z", "UTC"] {
        if let Some(time) = time.strip_suffix(utc) {
            return Some((time.trim_ascii_end(), Some(0)));
        }
    }
    let Some(start) = time.find(['+', '-']) else { return Some((time, None)) };
    let (time, offset) = time.split_at(start);
    let (sign, digits) = offset.split_at(1);
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let minutes = 60 * number(hours, 2, 23)? + number(minutes, 2, 59)?;
    Some((time.trim_ascii_end(), Some(if sign == "-" { -minutes } else { minutes })))
}

/// Parses a text of exactly `digits` digits. `None` if the number is greater than `max`.
fn number(text: &str, digits: usize, max: i32) -> Option<i32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= max)
}

/// Parses `YYYY-MM-DD` or `YYYYMMDD` to days since 1970-01-01.
fn parse_date(text: &str) -> Option<i64> {
    let (year, month, day) = match text.len() {
        10 => {
            let (year, rest) = text.split_once('-')?;
            let (month, day) = rest.split_once('-')?;
            (year, month, day)
        }
        8 if text.is_ascii() => (&text[..4], &text[4..6], &text[6..]),
        _ => return None,
    };
    let (year, month, day) = (number(year, 4, 9999)?, number(month, 2, 12)?, number(day, 2, 31)?);
    (month > 0 && (1..=days_in_month(year, month)).contains(&day)).then(|| days_since_1970(year, month, day))
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a date in the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_since_1970(year: i32, month: i32, day: i32) -> i64 {
    let year = i64::from(if month <= 2 { year - 1 } else { year });
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    // Years begin in March, so that a leap day is the last day of a year.
    let day_of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the year, the month and the day of a number of days since 1970-01-01: the inverse of [`days_since_1970`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * months + 2) / 5 + 1)
}

/// Parses `hh:mm`, `hh:mm:ss`, `hhmm` or `hhmmss`, perhaps with a fraction of a second.
fn parse_time(text: &str) -> Option<Attoseconds> {
    let (text, fraction) = text.split_once(['.', ',']).map_or((text, None), |(text, fraction)| (text, Some(fraction)));
    if !text.is_ascii() {
        return None;
    }
    let (hour, minute, second) = match (text.len(), text.contains(':')) {
        (8, true) => (&text[..2], &text[2..5], Some(&text[5..])),
        (5, true) => (&text[..2], &text[2..], None),
        (6, false) => (&text[..2], &text[2..4], Some(&text[4..])),
        (4, false) => (&text[..2], &text[2..], None),
        _ => return None,
    };
    let after_colon =
        |part: &str| if text.contains(':') { part.strip_prefix(':').map(str::to_owned) } else { Some(part.to_owned()) };
    let minutes = 60 * number(hour, 2, 23)? + number(&after_colon(minute)?, 2, 59)?;
    let second = match second {
        Some(second) => number(&after_colon(second)?, 2, 60)?,
        None if fraction.is_some() => return None,
        None => 0,
    };
    let seconds = Attoseconds::from(60 * minutes + second) * SECOND;
    let Some(fraction) = fraction else { return Some(seconds) };
    let is_fraction =
        (1..=usize::from(SCALE)).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let digits = usize::from(SCALE);
    let fraction =
        if is_fraction { format!("{fraction:0<digits$}").parse::<Attoseconds>().ok()? } else { return None };
    Some(seconds + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        TimeValue::parse(text).unwrap_or_else(|| panic!("{text}")).push(&mut out);
        out
    }

    #[test]
    fn spellings_of_one_time_are_equal() {
        for equal in [
            &["2026-01-01", "20260101"][..],
            &["07:05:00.25", "070500.250", "07:05:00,25", "07:05:00.250000000000000000"],
            &["07:05", "07:05:00", "0705"],
            &["2026-01-01T00:00:00", "2026-01-01 00:00", "20260101T000000", "2026-01-01t00:00:00.000"],
            &[
                "2026-01-01T00:00:00Z",
                "2026-01-01 00:00:00+00",
                "2026-01-01 00:00:00 UTC",
                "2026-01-01T01:00:00+01:00",
                "20251231T190000-0500",
                "2026-01-01T05:30:00.0+0530",
            ],
        ] {
            assert!(equal.iter().all(|text| key(text) == key(equal[0])), "{equal:?}");
        }
        assert_ne!(key("2026-01-01T00:00:00"), key("2026-01-01T00:00:00Z"));
        assert_ne!(key("2026-01-01T00:00:00"), key("2026-01-01"));
    }

    #[test]
    fn keys_of_times_are_seconds_and_keys_of_dates_are_days() {
        for (text, expected) in [
            ("1970-01-01", &b"\xffd0"[..]),
            ("2000-03-01", b"\xffd11017"),
            ("1969-12-31", b"\xffd-1"),
            ("0001-01-01", b"\xffd-719162"),
            ("9999-12-31", b"\xffd2932896"),
            ("00:00:01.5", b"\xffc15e-1"),
            ("23:59:59.999999999999999999", b"\xffc86399999999999999999999e-18"),
            ("1970-01-01T00:01:40", b"\xffs1e2"),
            ("1969-12-31T23:59:59.75Z", b"\xffi-25e-2"),
        ] {
            assert_eq!(key(text), expected, "{text}");
        }
    }

    /// Compares with the sum of the days of all months.
    #[test]
    fn days_since_1970_agree_with_a_count_of_all_months() {
        let (mut days, mut found) = (0, Vec::new());
        for year in 1970..2405 {
            for month in 1..=12 {
                found.push((days_since_1970(year, month, 1), days));
                days += i64::from(days_in_month(year, month));
            }
        }
        assert!(found.iter().all(|(computed, counted)| computed == counted));
        for days in -719_162..=2_932_896 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_since_1970(year as i32, month as i32, day as i32), days);
        }
        assert_eq!(days_since_1970(2400, 2, 29) - days_since_1970(2000, 2, 29), 146_097);
    }

    #[test]
    fn timestamps_are_formatted_in_utc() {
        for (text, utc) in [
            ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00"),
            ("20251231T230000-0500", "2026-01-01T04:00:00"),
            ("2024-02-29 23:59:59.250Z", "2024-02-29T23:59:59.25"),
            ("1969-12-31T23:59:59.5", "1969-12-31T23:59:59.5"),
        ] {
            assert_eq!(TimeValue::parse(text).unwrap().to_utc().as_deref(), Some(utc), "{text}");
        }
        assert_eq!(TimeValue::parse("2026-01-01").unwrap().to_utc(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-29",
            "2026-00-01",
            "2026-01-00",
            "26-01-01",
            "2026/01/01",
            "24:00",
            "07:60",
            "7:05",
            "07:05:61",
            "07:05.5",
            "07:05:00.",
            "07:05:00.1234567890123456789",
            "2026-01-01T",
            "2026-01-01T07:05:00+1",
            "07:05:00Z",
            "2026-01-01T07:05:00+24:00",
            "2026-01-01T07:05:00+01:60",
            "１970-01-0",
            "2026-01-01 yesterday",
            "0٧:05",
            "07é05",
            "2026-01-01T07:0500",
            "-1970-01-1",
        ] {
            assert_eq!(TimeValue::parse(text), None, "{text}");
        }
    }
}
