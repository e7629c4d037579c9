//! The values of arrays as JSON, as in lines.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime, as_time};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use bloomline_keys::arrow::entry;
use serde::Serialize;
use std::fmt::{Debug, Write};
use std::ops::Add;
use std::sync::Arc;

/// Returns the bytes of a text or a binary.
pub fn bytes(array: &dyn Array, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        DataType::BinaryView => array.as_binary_view().value(row),
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => return None,
    })
}

/// Appends a date or a time as ISO 8601 text, with as many digits of a second as needed. An instant ends with Z.
pub fn push_time(array: &dyn Array, row: usize, out: &mut String) -> bool {
    fn write(out: &mut String, time: Option<impl Debug>, value: impl Into<i64>) {
        match time {
            Some(time) => write!(out, "{time:?}"),
            // Outside the supported years.
            None => write!(out, "{}", value.into()),
        }
        .expect("memory takes all");
    }
    macro_rules! push {
        ($kind:ty, $convert:ident) => {{
            let value = array.as_primitive::<$kind>().value(row);
            write(out, $convert::<$kind>(value.into()), value);
        }};
    }
    match array.data_type() {
        DataType::Date32 => push!(Date32Type, as_date),
        DataType::Date64 => push!(Date64Type, as_date),
        DataType::Time32(TimeUnit::Second) => push!(Time32SecondType, as_time),
        DataType::Time32(_) => push!(Time32MillisecondType, as_time),
        DataType::Time64(TimeUnit::Microsecond) => push!(Time64MicrosecondType, as_time),
        DataType::Time64(_) => push!(Time64NanosecondType, as_time),
        DataType::Timestamp(unit, zone) => {
            match unit {
                TimeUnit::Second => push!(TimestampSecondType, as_datetime),
                TimeUnit::Millisecond => push!(TimestampMillisecondType, as_datetime),
                TimeUnit::Microsecond => push!(TimestampMicrosecondType, as_datetime),
                TimeUnit::Nanosecond => push!(TimestampNanosecondType, as_datetime),
            }
            out.push_str(if zone.is_some() { "Z" } else { "" });
        }
        _ => return false,
    }
    true
}

/// Appends a date, time or duration as a number of seconds, with all digits, so that different units compare.
pub fn push_seconds(array: &dyn Array, row: usize, out: &mut String) -> bool {
    macro_rules! push_with_scale {
        ($kind:ty, $digits:expr) => {
            push_decimal(&array.as_primitive::<$kind>().value(row).to_string(), $digits, out)
        };
    }
    match array.data_type() {
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            push_decimal(&(days * 86_400).to_string(), 0, out);
        }
        DataType::Date64 => push_with_scale!(Date64Type, 3),
        DataType::Time32(TimeUnit::Second) => push_with_scale!(Time32SecondType, 0),
        DataType::Time32(_) => push_with_scale!(Time32MillisecondType, 3),
        DataType::Time64(TimeUnit::Microsecond) => push_with_scale!(Time64MicrosecondType, 6),
        DataType::Time64(_) => push_with_scale!(Time64NanosecondType, 9),
        DataType::Timestamp(TimeUnit::Second, _) => push_with_scale!(TimestampSecondType, 0),
        DataType::Timestamp(TimeUnit::Millisecond, _) => push_with_scale!(TimestampMillisecondType, 3),
        DataType::Timestamp(TimeUnit::Microsecond, _) => push_with_scale!(TimestampMicrosecondType, 6),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => push_with_scale!(TimestampNanosecondType, 9),
        DataType::Duration(TimeUnit::Second) => push_with_scale!(DurationSecondType, 0),
        DataType::Duration(TimeUnit::Millisecond) => push_with_scale!(DurationMillisecondType, 3),
        DataType::Duration(TimeUnit::Microsecond) => push_with_scale!(DurationMicrosecondType, 6),
        DataType::Duration(TimeUnit::Nanosecond) => push_with_scale!(DurationNanosecondType, 9),
        _ => return false,
    }
    true
}

/// Appends a value as compact JSON, with struct members sorted by name.
pub fn push(array: &dyn Array, row: usize, out: &mut String) {
    macro_rules! digits {
        ($kind:ty) => {
            write!(out, "{}", array.as_primitive::<$kind>().value(row)).expect("memory takes all")
        };
    }
    macro_rules! decimal {
        ($kind:ty, $scale:expr) => {
            push_decimal(&array.as_primitive::<$kind>().value(row).to_string(), i64::from($scale), out)
        };
    }
    if array.is_null(row) {
        return out.push_str("null");
    }
    if let Some((values, entry)) = entry(array, row) {
        return push(values, entry, out);
    }
    if let Some(bytes) = bytes(array, row) {
        return match std::str::from_utf8(bytes) {
            Ok(text) => push_text(text, out),
            Err(_) => push_bytes(bytes, out),
        };
    }
    match array.data_type() {
        DataType::Null => out.push_str("null"),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => digits!(Int8Type),
        DataType::Int16 => digits!(Int16Type),
        DataType::Int32 => digits!(Int32Type),
        DataType::Int64 => digits!(Int64Type),
        DataType::UInt8 => digits!(UInt8Type),
        DataType::UInt16 => digits!(UInt16Type),
        DataType::UInt32 => digits!(UInt32Type),
        DataType::UInt64 => digits!(UInt64Type),
        DataType::Float16 => push_float(array.as_primitive::<Float16Type>().value(row).to_f32(), out),
        DataType::Float32 => push_float(array.as_primitive::<Float32Type>().value(row), out),
        DataType::Float64 => push_float(array.as_primitive::<Float64Type>().value(row), out),
        DataType::Decimal32(_, scale) => decimal!(Decimal32Type, *scale),
        DataType::Decimal64(_, scale) => decimal!(Decimal64Type, *scale),
        DataType::Decimal128(_, scale) => decimal!(Decimal128Type, *scale),
        DataType::Decimal256(_, scale) => decimal!(Decimal256Type, *scale),
        DataType::Duration(TimeUnit::Second) => digits!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => digits!(DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => digits!(DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => digits!(DurationNanosecondType),
        DataType::List(_) => push_list(&array.as_list::<i32>().value(row), out),
        DataType::LargeList(_) => push_list(&array.as_list::<i64>().value(row), out),
        DataType::ListView(_) => push_list(&array.as_list_view::<i32>().value(row), out),
        DataType::LargeListView(_) => push_list(&array.as_list_view::<i64>().value(row), out),
        DataType::FixedSizeList(..) => push_list(&array.as_fixed_size_list().value(row), out),
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            push_list(&(Arc::new(entries) as ArrayRef), out);
        }
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let mut members: Vec<(&str, &ArrayRef)> =
                fields.iter().zip(array.columns()).map(|(field, column)| (&**field.name(), column)).collect();
            members.sort_by_key(|(name, _)| *name);
            let mut comma = "{";
            for (name, column) in members {
                out.push_str(comma);
                push_text(name, out);
                out.push(':');
                push(&**column, row, out);
                comma = ",";
            }
            out.push_str(if comma == "{" { "{}" } else { "}" });
        }
        _ => {
            let mut text = String::new();
            assert!(push_time(array, row, &mut text), "{} is refused before", array.data_type());
            push_text(&text, out);
        }
    }
}

fn push_list(values: &ArrayRef, out: &mut String) {
    let mut comma = "[";
    for i in 0..values.len() {
        out.push_str(comma);
        push(&**values, i, out);
        comma = ",";
    }
    out.push_str(if comma == "[" { "[]" } else { "]" });
}

/// Appends a text in quotes.
fn push_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a text is JSON"));
}

/// Appends a binary that is not UTF-8 as an array of numbers, because any text may be another binary.
fn push_bytes(bytes: &[u8], out: &mut String) {
    for (i, byte) in bytes.iter().enumerate() {
        write!(out, "{}{byte}", if i == 0 { '[' } else { ',' }).expect("memory takes all");
    }
    out.push(']');
}

/// Appends a decimal with this scale, without trailing zeros after the point, so that equal numbers are the same key.
fn push_decimal(digits: &str, scale: i64, out: &mut String) {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    if digits == "0" {
        return out.push('0');
    }
    out.push_str(sign);
    let scale = usize::try_from(scale).map_err(|_| scale.unsigned_abs() as usize);
    match scale {
        Err(zeros) => {
            out.push_str(digits);
            (0..zeros).for_each(|_| out.push('0'));
        }
        Ok(scale) => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (integer, fraction) = digits.split_at(digits.len() - scale);
            let fraction = fraction.trim_end_matches('0');
            out.push_str(integer);
            if !fraction.is_empty() {
                out.push('.');
                out.push_str(fraction);
            }
        }
    }
}

/// Appends a float as `serde_json` does, but with only one zero and one NaN.
fn push_float<T: Copy + Default + Add<Output = T> + Into<f64> + Serialize>(value: T, out: &mut String) {
    match value.into() {
        f64::INFINITY => out.push_str("Infinity"),
        f64::NEG_INFINITY => out.push_str("-Infinity"),
        wide if wide.is_nan() => out.push_str("NaN"),
        // The sum of the two zeros is 0.0.
        _ => out.push_str(&serde_json::to_string(&(value + T::default())).expect("a finite number is JSON")),
    }
}
