//! The values of arrays that are compared or printed beside keys.

use crate::json::{bytes, push, push_seconds, push_time};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bloomline_keys::arrow::entry;
use bloomline_keys::{Value, Values};
use std::io;

/// The values of a row that are read beside its key.
pub struct ComparedRow<'a> {
    pub(crate) columns: &'a [ArrayRef],
    pub(crate) row: usize,
}

impl Values for ComparedRow<'_> {
    fn count(&self) -> usize {
        self.columns.len()
    }

    fn value<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a> {
        value(&*self.columns[part], self.row, json)
    }

    fn sortable<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a> {
        sortable(&*self.columns[part], self.row, json)
    }
}

/// Returns a value, with dates and times as numbers.
fn sortable<'a>(array: &'a dyn Array, row: usize, json: &'a mut String) -> Value<'a> {
    if array.is_valid(row) {
        if let Some((values, entry)) = entry(array, row) {
            return sortable(values, entry, json);
        }
        json.clear();
        if push_seconds(array, row, json) {
            return Value::Json(json);
        }
    }
    value(array, row, json)
}

/// Returns a value: texts and byte strings as bytes, dates and times as their text in JSON.
fn value<'a>(array: &'a dyn Array, row: usize, json: &'a mut String) -> Value<'a> {
    if array.is_null(row) {
        return Value::Null;
    }
    if let Some((values, entry)) = entry(array, row) {
        return value(values, entry, json);
    }
    if let Some(bytes) = bytes(array, row) {
        return Value::Text(bytes);
    }
    json.clear();
    if push_time(array, row, json) {
        return Value::Text(json.as_bytes());
    }
    push(array, row, json);
    Value::Json(json)
}

/// Refuses a type whose values cannot be compared or, if `texts`, are not texts.
pub fn check_compared(kind: &DataType, texts: bool) -> io::Result<()> {
    match kind {
        DataType::Dictionary(_, values) => check_compared(values, texts),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Ok(()),
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => Ok(()),
        DataType::Timestamp(..) => Ok(()),
        DataType::Boolean | DataType::Duration(_) if !texts => Ok(()),
        kind if kind.is_numeric() && !texts => Ok(()),
        _ => {
            let have = if texts { "are no texts" } else { "have no order" };
            Err(io::Error::other(format!(
                "values of the type {kind} {have}, and --keep compares them; choose another column"
            )))
        }
    }
}

/// Refuses a type whose values cannot be printed as JSON.
pub fn check_printed(kind: &DataType) -> io::Result<()> {
    use DataType::*;
    // All types are listed, so that a type of a later Arrow is not mistaken for one that `push` writes.
    match kind {
        Null | Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Ok(()),
        Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Ok(()),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Ok(()),
        Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_) | Duration(_) => Ok(()),
        List(inner) | LargeList(inner) | ListView(inner) | LargeListView(inner) => check_printed(inner.data_type()),
        FixedSizeList(inner, _) | Map(inner, _) => check_printed(inner.data_type()),
        Dictionary(_, values) => check_printed(values),
        Struct(fields) => fields.iter().try_for_each(|field| check_printed(field.data_type())),
        Interval(_) | Union(..) | RunEndEncoded(..) => {
            Err(io::Error::other(format!("values of the type {kind} cannot be printed as JSON; choose another column")))
        }
    }
}
