//! The byte strings of values.
//!
//! Each function appends one value. A text is its own bytes; every other value begins with [`MARK`], which no text in UTF-8 does, and
//! a tag. docs/FORMAT.md specifies the encoding, which does not change.

/// The first byte of all values but texts in UTF-8.
pub const MARK: u8 = 0xff;

/// The second byte of a value that begins with [`MARK`].
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Null = b'0',
    Bytes = b'b',
    Number = b'n',
    False = b'f',
    True = b't',
    Date = b'd',
    Time = b'c',
    Timestamp = b's',
    Instant = b'i',
    Duration = b'u',
    List = b'[',
    Struct = b'{',
    Map = b'm',
}

fn push_tag(tag: Tag, out: &mut Vec<u8>) {
    out.extend([MARK, tag as u8]);
}

/// Appends a null.
pub fn push_null(out: &mut Vec<u8>) {
    push_tag(Tag::Null, out);
}

/// Appends a text. A text that begins with [`MARK`], which is not UTF-8, gets a second [`MARK`] before it.
pub fn push_text(text: &[u8], out: &mut Vec<u8>) {
    if text.first() == Some(&MARK) {
        out.push(MARK);
    }
    out.extend_from_slice(text);
}

/// Appends a byte string.
pub fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_tag(Tag::Bytes, out);
    out.extend_from_slice(bytes);
}

/// Appends a boolean.
pub fn push_boolean(value: bool, out: &mut Vec<u8>) {
    push_tag(if value { Tag::True } else { Tag::False }, out);
}

/// Appends an integer.
pub fn push_integer(value: impl Into<i128>, out: &mut Vec<u8>) {
    push_tag(Tag::Number, out);
    push_scaled(value.into(), 0, out);
}

/// Appends a decimal of up to 38 digits: `value` divided by the power of ten `scale`.
pub fn push_decimal(value: impl Into<i128>, scale: i8, out: &mut Vec<u8>) {
    push_tag(Tag::Number, out);
    push_scaled(value.into(), i64::from(scale), out);
}

/// Appends a number in the form of JSON: digits, perhaps with a sign, a point and an exponent. It is never expanded.
pub fn push_number(text: &str, out: &mut Vec<u8>) {
    push_tag(Tag::Number, out);
    // Most numbers are integers.
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if digits.first() > Some(&b'0') && digits.iter().all(u8::is_ascii_digit) {
        let zeros = trailing_zeros(digits);
        out.extend_from_slice(&text.as_bytes()[..text.len() - zeros]);
        return push_exponent(zeros as i128, out);
    }
    push_digits(text, 0, out);
}

/// Appends a decimal of any number of digits: an integer, divided by the power of ten `scale`.
pub fn push_long_decimal(integer: &str, scale: i8, out: &mut Vec<u8>) {
    push_tag(Tag::Number, out);
    push_digits(integer, -i128::from(scale), out);
}

/// Appends an `f32` or an `f64` as the shortest digits that read as the number in its own width: the `f32` 0.1 is the decimal 0.1.
/// −0 is 0, and all NaNs are one value.
pub fn push_float<T: zmij::Float + Copy + Into<f64>>(value: T, out: &mut Vec<u8>) {
    if !push_special(value.into(), out) {
        push_number(zmij::Buffer::new().format_finite(value), out);
    }
}

/// Appends a float of another width, to which `round` rounds a double. The key has the fewest digits that are rounded to the float, and
/// among keys with as few digits it is the nearest.
pub fn push_rounded(value: f64, digits: usize, round: impl Fn(f64) -> f64, out: &mut Vec<u8>) {
    if !push_special(value, out) {
        let shortened = (0..digits - 1).map(|digits| format!("{value:.digits$e}"));
        let exact = shortened.into_iter().find(|text| text.parse().is_ok_and(|other| round(other) == value));
        push_number(&exact.unwrap_or_else(|| format!("{value:e}")), out);
    }
}

/// Appends a float that has no digits, or returns false.
fn push_special(value: f64, out: &mut Vec<u8>) -> bool {
    let name: &[u8] = match value {
        f64::INFINITY => b"inf",
        f64::NEG_INFINITY => b"-inf",
        value if value.is_nan() => b"nan",
        _ => return false,
    };
    push_tag(Tag::Number, out);
    out.extend_from_slice(name);
    true
}

/// Appends a date, as days since 1970-01-01.
pub fn push_date(days: i64, out: &mut Vec<u8>) {
    push_tag(Tag::Date, out);
    push_scaled(days.into(), 0, out);
}

/// Appends a time of day, as a part of a second (10 to the power of −`scale`) since midnight.
pub fn push_time(units: impl Into<i128>, scale: u8, out: &mut Vec<u8>) {
    push_tag(Tag::Time, out);
    push_scaled(units.into(), scale.into(), out);
}

/// Appends a timestamp, as a part of a second since 1970-01-01: an instant if it has a zone, otherwise a local time.
pub fn push_timestamp(units: impl Into<i128>, scale: u8, has_zone: bool, out: &mut Vec<u8>) {
    push_tag(if has_zone { Tag::Instant } else { Tag::Timestamp }, out);
    push_scaled(units.into(), scale.into(), out);
}

/// Appends a duration, as a part of a second.
pub fn push_duration(units: i64, scale: u8, out: &mut Vec<u8>) {
    push_tag(Tag::Duration, out);
    push_scaled(units.into(), scale.into(), out);
}

/// Begins a list, whose elements follow, each by [`push_part`].
pub fn begin_list(out: &mut Vec<u8>) {
    push_tag(Tag::List, out);
}

/// Begins a struct or a row, whose members follow in the order of their names, each by [`push_member`].
pub fn begin_struct(out: &mut Vec<u8>) {
    push_tag(Tag::Struct, out);
}

/// Appends a map of entries, each a key and a value, whose order makes no difference.
pub fn push_map(mut entries: Vec<[Vec<u8>; 2]>, out: &mut Vec<u8>) {
    push_tag(Tag::Map, out);
    entries.sort_unstable();
    entries.iter().flatten().for_each(|part| push_part(out, |out| out.extend_from_slice(part)));
}

/// Appends the bytes that `push` appends, after their length.
#[inline]
pub fn push_part<T>(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = out.len() + 8;
    out.extend([0; 8]);
    let result = push(out);
    let length = (out.len() - start) as u64;
    out[start - 8..start].copy_from_slice(&length.to_le_bytes());
    result
}

/// Appends a member of a struct: its name, and the value that `push` appends.
#[inline]
pub fn push_member<T>(name: &str, out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    out.extend((name.len() as u64).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    push_part(out, push)
}

/// Appends the digits of an integer, without zeros at the end, and the exponent of the last digit unless it is 0.
fn push_scaled(value: i128, scale: i64, out: &mut Vec<u8>) {
    if value == 0 {
        return out.push(b'0');
    }
    let mut buffer = [0; 40];
    let digits = digits_of(value, &mut buffer);
    let zeros = trailing_zeros(digits);
    out.extend_from_slice(&digits[..digits.len() - zeros]);
    push_exponent(zeros as i128 - i128::from(scale), out);
}

/// Returns the digits of an integer, after a minus sign if it is negative.
fn digits_of(value: i128, buffer: &mut [u8; 40]) -> &[u8] {
    let mut start = buffer.len();
    let mut push = |digit: u8| {
        start -= 1;
        buffer[start] = b'0' + digit;
    };
    match u64::try_from(value.unsigned_abs()) {
        Ok(mut rest) => {
            while rest > 0 {
                push((rest % 10) as u8);
                rest /= 10;
            }
        }
        Err(_) => {
            let mut rest = value.unsigned_abs();
            while rest > 0 {
                push((rest % 10) as u8);
                rest /= 10;
            }
        }
    }
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
}

fn trailing_zeros(digits: &[u8]) -> usize {
    digits.iter().rev().take_while(|digit| **digit == b'0').count()
}

fn push_exponent(exponent: i128, out: &mut Vec<u8>) {
    if exponent != 0 {
        out.push(b'e');
        out.extend_from_slice(digits_of(exponent, &mut [0; 40]));
    }
}

/// Appends the digits of a number, without zeros at both ends, and the exponent of the last digit unless it is 0. `shift` is added to
/// the exponent. An exponent of more than 36 digits is kept as written.
fn push_digits(text: &str, shift: i128, out: &mut Vec<u8>) {
    const MAX_EXPONENT_DIGITS: usize = 36;
    let (negative, number) = text.strip_prefix('-').map_or((false, text), |number| (true, number));
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let integer = integer.trim_start_matches('0');
    // The digits of both parts, from the first to the last that is not a zero.
    let (integer, zeros) = match fraction {
        "" => (integer.trim_end_matches('0'), integer.len() - integer.trim_end_matches('0').len()),
        _ => (integer, 0),
    };
    let fraction_digits = if integer.is_empty() { fraction.trim_start_matches('0') } else { fraction };
    if integer.is_empty() && fraction_digits.is_empty() {
        return out.push(b'0');
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(integer.as_bytes());
    out.extend_from_slice(fraction_digits.as_bytes());
    let (sign, digits) = match exponent.strip_prefix(['+', '-']) {
        Some(digits) => (&exponent[..1], digits),
        None => ("", exponent),
    };
    let digits = digits.trim_start_matches('0');
    let last = zeros as i128 - fraction.len() as i128 + shift;
    if digits.len() <= MAX_EXPONENT_DIGITS {
        let exponent: i128 = digits.parse().unwrap_or(0);
        return push_exponent(if sign == "-" { last - exponent } else { last + exponent }, out);
    }
    out.extend_from_slice(if sign == "-" { b"e-" } else { b"e" });
    out.extend_from_slice(digits.as_bytes());
    push_exponent(last, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out);
        out
    }

    fn number(text: &str) -> Vec<u8> {
        encoded(|out| push_number(text, out))
    }

    /// Returns the form by definition: an integer without zeros at its end, and an exponent.
    fn canonical(digits: i128, exponent: i128) -> Vec<u8> {
        let (mut digits, mut exponent) = (digits, exponent);
        while digits != 0 && digits % 10 == 0 {
            (digits, exponent) = (digits / 10, exponent + 1);
        }
        let suffix = if digits == 0 || exponent == 0 { String::new() } else { format!("e{exponent}") };
        [b"\xffn", format!("{digits}{suffix}").as_bytes()].concat()
    }

    #[test]
    fn equal_numbers_have_equal_keys() {
        for equal in [
            &["1", "1.0", "1e0", "1.00", "10e-1", "0.1E+1", "1000e-3", "1E-0"][..],
            &["0", "-0", "0.0", "0e7", "-0.00E+5", "0e-99999999999999999999999999999999999999999999"],
            &["1e999999999", "10e999999998", "0.1e1000000000", "1.0e+999999999"],
            &["-0.005", "-5e-3", "-0.0050"],
            &["120", "12e1", "1.2E2", "0120.0"],
            &["100.5", "1005e-1", "100.50"],
        ] {
            let first = number(equal[0]);
            assert!(equal.iter().all(|text| number(text) == first), "{equal:?}");
        }
        assert_eq!(number("1e999999999"), b"\xffn1e999999999");
        assert_eq!(number("-0.005"), b"\xffn-5e-3");
        let far = format!("1e{}", "9".repeat(50));
        assert!(number(&far) == number(&far.replace('e', "E+")) && number(&far) != number(&far.replace('e', "e-")));
        assert_ne!(number(&far), number(&format!("{far}9")));
    }

    #[test]
    fn floats_have_the_shortest_digits_of_their_width() {
        assert_eq!(encoded(|out| push_float(0.1f32, out)), number("0.1"));
        assert_eq!(encoded(|out| push_float(0.1f64, out)), number("0.1"));
        assert_ne!(encoded(|out| push_float(f64::from(0.1f32), out)), number("0.1"));
        assert_eq!(encoded(|out| push_float(-0.0f64, out)), number("0"));
        assert_eq!(encoded(|out| push_float(-f64::NAN, out)), encoded(|out| push_float(f32::NAN, out)));
        assert_eq!(encoded(|out| push_float(f64::NEG_INFINITY, out)), b"\xffn-inf");
        // The greatest integer up to which all integers are doubles, and one whose shortest digits are not the integer's.
        assert_eq!(encoded(|out| push_float(9007199254740992f64, out)), encoded(|out| push_integer(1i64 << 53, out)));
        assert_eq!(encoded(|out| push_float(9223372036854775808f64, out)), number("9223372036854776e3"));
    }

    #[test]
    fn a_float_of_another_width_has_the_fewest_digits() {
        // A fraction of two bits.
        let round = |value: f64| (value * 4.0).round() / 4.0;
        for (value, text) in [(0.25, "0.2"), (0.75, "0.8"), (1.0, "1"), (2.5, "2.5"), (100.25, "100.2")] {
            assert_eq!(encoded(|out| push_rounded(value, 6, round, out)), number(text), "{value}");
        }
    }

    #[test]
    fn values_of_different_kinds_have_different_keys() {
        let mut keys: Vec<Vec<u8>> = vec![
            encoded(push_null),
            encoded(|out| push_text(b"", out)),
            encoded(|out| push_text(b"1", out)),
            encoded(|out| push_text(b"\xffn1", out)),
            encoded(|out| push_text(b"\xff\xffn1", out)),
            encoded(|out| push_text(b"\xff", out)),
            encoded(|out| push_bytes(b"1", out)),
            encoded(|out| push_bytes(b"", out)),
            encoded(|out| push_bytes(b"\xffn1", out)),
            encoded(|out| push_integer(1, out)),
            encoded(|out| push_boolean(true, out)),
            encoded(|out| push_boolean(false, out)),
            encoded(|out| push_date(1, out)),
            encoded(|out| push_time(1, 0, out)),
            encoded(|out| push_timestamp(1, 0, false, out)),
            encoded(|out| push_timestamp(1, 0, true, out)),
            encoded(|out| push_duration(1, 0, out)),
            encoded(begin_list),
            encoded(begin_struct),
            encoded(|out| push_map(Vec::new(), out)),
        ];
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn times_do_not_depend_on_their_units() {
        let times = [(5, 0), (5_000, 3), (5_000_000, 6), (5_000_000_000, 9)];
        for (units, scale) in times {
            assert_eq!(encoded(|out| push_duration(units, scale, out)), b"\xffu5");
            assert_eq!(encoded(|out| push_time(units, scale, out)), b"\xffc5");
            assert_eq!(encoded(|out| push_timestamp(units, scale, true, out)), b"\xffi5");
        }
        assert_eq!(encoded(|out| push_duration(5, 6, out)), b"\xffu5e-6");
    }

    #[test]
    fn the_order_of_map_entries_does_not_matter() {
        let entry = |key: &[u8], value: &[u8]| [key.to_vec(), value.to_vec()];
        let map = |entries: &[[Vec<u8>; 2]]| encoded(|out| push_map(entries.to_vec(), out));
        assert_eq!(map(&[entry(b"a", b"b"), entry(b"c", b"d")]), map(&[entry(b"c", b"d"), entry(b"a", b"b")]));
        assert_ne!(map(&[entry(b"a", b"b")]), map(&[entry(b"b", b"a")]));
    }

    proptest! {
        #[test]
        fn numbers_have_their_canonical_form(digits in any::<i64>(), few in 0..4u32, exponent in -400..400i64, scale in 0..20i8) {
            let digits = i128::from(if few > 0 { digits % 10i64.pow(few) } else { digits });
            prop_assert_eq!(number(&format!("{digits}e{exponent}")), canonical(digits, exponent.into()));
            let decimal = encoded(|out| push_decimal(digits, scale, out));
            prop_assert_eq!(&decimal, &canonical(digits, -i128::from(scale)));
            prop_assert_eq!(&encoded(|out| push_long_decimal(&digits.to_string(), scale, out)), &decimal);
            let width = usize::from(scale.unsigned_abs()) + 1;
            let text = format!("{:0>width$}", digits.unsigned_abs());
            let (integer, fraction) = text.split_at(text.len() - width + 1);
            let sign = if digits < 0 { "-" } else { "" };
            let point = if fraction.is_empty() { "" } else { "." };
            prop_assert_eq!(number(&format!("{sign}{integer}{point}{fraction}")), decimal);
        }

        #[test]
        fn integers_and_doubles_of_one_value_are_equal(value in -(1i64 << 53)..1 << 53, wide: i128) {
            prop_assert_eq!(encoded(|out| push_integer(value, out)), encoded(|out| push_float(value as f64, out)));
            prop_assert_eq!(encoded(|out| push_integer(wide, out)), canonical(wide, 0));
        }

        #[test]
        fn doubles_are_equal_if_they_are_one_number(a: f64, b: f64) {
            let [one, other] = [a, b].map(|value| encoded(|out| push_float(value, out)));
            prop_assert_eq!(one == other, a == b || a.is_nan() && b.is_nan());
        }
    }
}
