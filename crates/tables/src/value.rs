//! The values of arrays as parts of keys, equal to the values of lines of JSON.

use crate::json::{bytes, entry, push, push_seconds, push_time};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bloomline::KeyHasher;
use std::io;

/// The first byte of a value that is neither a text nor a binary. It never occurs in UTF-8.
const NO_TEXT: u8 = 0xff;

/// A value as a part of a key.
pub enum Value<'a> {
    /// A null.
    Null,
    /// A text, a binary, or a date or time as its text in JSON.
    Text(&'a [u8]),
    /// Another value, as JSON.
    Json(&'a str),
}

/// A row of arrays.
pub struct Row<'a> {
    pub(crate) columns: &'a [ArrayRef],
    pub(crate) row: usize,
}

impl<'a> Row<'a> {
    /// Returns the row of this number of some columns.
    pub fn new(columns: &'a [ArrayRef], row: usize) -> Self {
        Self { columns, row }
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the value of this number. `json` is memory for a value that has to be built.
    pub fn value<'b>(&'b self, part: usize, json: &'b mut String) -> Value<'b> {
        value(&*self.columns[part], self.row, json)
    }

    /// Returns the value of this number in a form that can be compared: dates and times are numbers.
    pub fn sortable<'b>(&'b self, part: usize, json: &'b mut String) -> Value<'b> {
        sortable(&*self.columns[part], self.row, json)
    }

    /// Makes the key of the row, or returns false if it has a null and `nulls` is false.
    fn key(&self, nulls: bool, json: &mut String, key: &mut Vec<u8>) -> bool {
        key.clear();
        for part in 0..self.count() {
            let (mark, value): (&[u8], &[u8]) = match self.value(part, json) {
                Value::Null | Value::Json("null") if !nulls => return false,
                Value::Null => (&[NO_TEXT], b"null"),
                Value::Text(text) => (&[], text),
                Value::Json(json) => (&[NO_TEXT], json.as_bytes()),
            };
            if self.count() > 1 {
                key.extend_from_slice(&((mark.len() + value.len()) as u64).to_le_bytes());
            }
            key.extend_from_slice(mark);
            key.extend_from_slice(value);
        }
        true
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

/// Returns a value: texts and binaries as bytes, dates and times as their text in JSON.
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

/// Calls `found` with the bytes of each text or binary, in order. Returns false, without a call, for other types.
fn each_bytes(array: &dyn Array, mut found: impl FnMut(Option<&[u8]>)) -> bool {
    fn texts<'a>(array: impl Iterator<Item = Option<&'a str>>, mut found: impl FnMut(Option<&[u8]>)) {
        array.for_each(|text| found(text.map(str::as_bytes)));
    }
    match array.data_type() {
        DataType::Utf8 => texts(array.as_string::<i32>().iter(), found),
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter(), found),
        DataType::Utf8View => texts(array.as_string_view().iter(), found),
        DataType::Binary => array.as_binary::<i32>().iter().for_each(&mut found),
        DataType::LargeBinary => array.as_binary::<i64>().iter().for_each(&mut found),
        DataType::BinaryView => array.as_binary_view().iter().for_each(&mut found),
        _ => return false,
    }
    true
}

/// Calls `found` with the hash of each row's key, in order, or with `None` if the key has a null and `nulls` is false.
///
/// The key is the same as the command's for a row with these values in the selected columns, and for a line of JSON with them, so
/// filters serve both: see "Keys of rows" in docs/FORMAT.md. Time and memory are proportional to the values.
///
/// # Errors
/// If the values of a column cannot be keys: intervals, unions and run-end encoded arrays.
///
/// # Panics
/// If the columns have different lengths, or an array is invalid.
///
/// ```
/// use arrow_array::{ArrayRef, StringArray};
/// use bloomline::KeyHasher;
/// use std::sync::Arc;
///
/// let urls: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
/// let (hasher, mut hashes) = (KeyHasher::new(0), Vec::new());
/// bloomline_tables::hash_rows(&[urls], &hasher, false, |hash| hashes.push(hash))?;
/// assert_eq!(hashes, [Some(hasher.bytes(b"a")), None]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn hash_rows(
    columns: &[ArrayRef],
    hasher: &KeyHasher,
    nulls: bool,
    mut found: impl FnMut(Option<u64>),
) -> io::Result<()> {
    columns.iter().try_for_each(|column| check(column.data_type(), false))?;
    let rows = columns.first().map_or(0, |column| column.len());
    assert!(columns.iter().all(|column| column.len() == rows), "columns have as many rows as the first");
    // Most keys are a single text, and this is twice as fast as row by row.
    if let [column] = columns {
        let null = nulls.then(|| hasher.bytes(b"\xffnull"));
        if each_bytes(column, |bytes| found(bytes.map_or(null, |bytes| Some(hasher.bytes(bytes))))) {
            return Ok(());
        }
    }
    let (mut json, mut key) = (String::new(), Vec::new());
    (0..rows).for_each(|row| {
        let has_key = Row { columns, row }.key(nulls, &mut json, &mut key);
        found(has_key.then(|| hasher.bytes(&key)));
    });
    Ok(())
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

/// Refuses a type whose values cannot be keys or, if `texts`, are not texts.
pub fn check(kind: &DataType, texts: bool) -> io::Result<()> {
    use DataType::*;
    // All types are listed, so that a type of a later Arrow is not mistaken for one that `push` writes.
    match kind {
        Utf8View | BinaryView => Ok(()),
        _ if texts => {
            Err(io::Error::other(format!("the column has values of the type {kind}, not texts; choose another column")))
        }
        Null | Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Ok(()),
        Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Ok(()),
        Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_) => Ok(()),
        Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_) | Duration(_) => Ok(()),
        List(inner) | LargeList(inner) | ListView(inner) | LargeListView(inner) => check(inner.data_type(), false),
        FixedSizeList(inner, _) | Map(inner, _) => check(inner.data_type(), false),
        Dictionary(_, values) => check(values, false),
        Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type(), false)),
        Interval(_) | Union(..) | RunEndEncoded(..) => {
            Err(io::Error::other(format!("values of the type {kind} cannot be keys; choose another column")))
        }
    }
}
