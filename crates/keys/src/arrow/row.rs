//! The keys of rows: the encodings of their values.

use crate::arrow::{KeyTypeError, Meaning, kind_of};
use crate::encoding::*;
use crate::kinds::KeyKinds;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use bloomline::KeyHasher;
use std::fmt::Write;

/// An array of a row, and its field.
pub struct Column {
    /// The name, the type and the extension type.
    pub field: FieldRef,
    /// The values, of the type of the field.
    pub array: ArrayRef,
}

/// A row of some columns.
pub struct Row<'a> {
    /// The columns, all of the same length.
    pub columns: &'a [Column],
    /// The number of the row.
    pub row: usize,
}

/// A value of a row.
pub enum Part<'a> {
    /// A null.
    Null,
    /// A text.
    Text(&'a [u8]),
    /// A byte string.
    Bytes(&'a [u8]),
    /// Another value, which [`Row::push`] encodes.
    Other,
}

impl<'a> Row<'a> {
    /// Returns the value of this number.
    #[inline]
    pub fn part(&self, number: usize) -> Part<'a> {
        let column = &self.columns[number];
        part(&column.field, &*column.array, self.row)
    }

    /// Appends the key of the value of this number.
    #[inline]
    pub fn push(&self, number: usize, out: &mut Vec<u8>) {
        let column = &self.columns[number];
        push(&column.field, &*column.array, self.row, out);
    }
}

/// Returns the kinds of keys that are a value of these fields, or with `in_row`, a row of them by name.
///
/// # Errors
/// If the values of a field cannot be keys.
pub fn kinds_of(fields: &[FieldRef], in_row: bool) -> Result<KeyKinds, KeyTypeError> {
    let kinds = by_name(fields).into_iter().map(|number| kind_of(&fields[number]));
    Ok(KeyKinds::from_parts(kinds.collect::<Result<Vec<_>, _>>()?, in_row))
}

/// Returns the numbers of fields in the order of their names.
fn by_name(fields: &[FieldRef]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..fields.len()).collect();
    numbers.sort_by_key(|&number| fields[number].name());
    numbers
}

/// Calls `found` with the hash of each row's key, in order, or with `None` if the key has a null and `nulls` is false.
///
/// The key is the value of the only column, or with `in_row`, the row of all columns by name, in whatever order. It is the key of the
/// command for the same columns, so filters serve both: see "Keys of values" in docs/FORMAT.md. Time and memory are proportional to
/// the values.
///
/// # Panics
/// If [`kinds_of`] refuses the fields, if the columns have different lengths, if an array is invalid, or if there are several columns
/// without `in_row`.
///
/// ```
/// use arrow_array::{ArrayRef, StringArray};
/// use arrow_schema::{DataType, Field};
/// use bloomline::KeyHasher;
/// use bloomline_keys::arrow::{Column, hash_rows};
/// use std::sync::Arc;
///
/// let field = Arc::new(Field::new("url", DataType::Utf8, true));
/// let array: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
/// let (hasher, mut hashes) = (KeyHasher::new(0), Vec::new());
/// hash_rows(&[Column { field, array }], false, &hasher, false, |hash| hashes.push(hash));
/// assert_eq!(hashes, [Some(hasher.bytes(b"a")), None]);
/// ```
pub fn hash_rows(
    columns: &[Column],
    in_row: bool,
    hasher: &KeyHasher,
    nulls: bool,
    mut found: impl FnMut(Option<u64>),
) {
    let rows = columns.first().map_or(0, |column| column.array.len());
    assert!(columns.iter().all(|column| column.array.len() == rows), "columns have as many rows as the first");
    assert!(in_row || columns.len() < 2, "several columns are a row");
    // Most keys are a single text, and this is twice as fast as row by row.
    if let ([column], false) = (columns, in_row) {
        let null = nulls.then(|| hasher.bytes(&[MARK, b'0']));
        if each_text(&column.array, |text| found(text.map_or(null, |text| Some(hasher.bytes(text.as_bytes()))))) {
            return;
        }
    }
    let fields: Vec<FieldRef> = columns.iter().map(|column| column.field.clone()).collect();
    let order = by_name(&fields);
    let mut key = Vec::new();
    for row in 0..rows {
        let row = Row { columns, row };
        key.clear();
        let has_null = |number: &usize| matches!(row.part(*number), Part::Null);
        if !nulls && order.iter().any(has_null) {
            found(None);
            continue;
        }
        if in_row {
            begin_struct(&mut key);
            order.iter().for_each(|&number| push_member(fields[number].name(), &mut key, |key| row.push(number, key)));
        } else {
            order.iter().for_each(|&number| row.push(number, &mut key));
        }
        found(Some(hasher.bytes(&key)));
    }
}

/// Calls `found` with each text, in order. Returns false, without a call, for other types.
fn each_text(array: &dyn Array, found: impl FnMut(Option<&str>)) -> bool {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(found),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(found),
        DataType::Utf8View => array.as_string_view().iter().for_each(found),
        _ => return false,
    }
    true
}

/// Returns the values of a dictionary or of a run-end encoded array, and the index of a row's value, in time logarithmic in the number
/// of runs. For other arrays it returns `None`.
///
/// # Panics
///
/// If the array has no such row, or the row of a dictionary is null and its index is out of range.
#[inline]
pub fn entry(array: &dyn Array, row: usize) -> Option<(&dyn Array, usize)> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            macro_rules! key {
                ($kind:ty) => {
                    dictionary.keys().as_primitive::<$kind>().value(row) as usize
                };
            }
            let key = match dictionary.keys().data_type() {
                DataType::Int8 => key!(Int8Type),
                DataType::Int16 => key!(Int16Type),
                DataType::Int32 => key!(Int32Type),
                DataType::Int64 => key!(Int64Type),
                DataType::UInt8 => key!(UInt8Type),
                DataType::UInt16 => key!(UInt16Type),
                DataType::UInt32 => key!(UInt32Type),
                _ => key!(UInt64Type),
            };
            Some((&**dictionary.values(), key))
        }
        DataType::RunEndEncoded(ends, _) => {
            macro_rules! run {
                ($kind:ty) => {{
                    let runs = array.as_run::<$kind>();
                    (&**runs.values(), runs.get_physical_index(row))
                }};
            }
            Some(match ends.data_type() {
                DataType::Int16 => run!(Int16Type),
                DataType::Int32 => run!(Int32Type),
                _ => run!(Int64Type),
            })
        }
        _ => None,
    }
}

/// Returns the field of the values of runs, which may have an extension type. The values of a dictionary have none of their own.
fn field_of_values(field: &Field) -> &Field {
    match field.data_type() {
        DataType::RunEndEncoded(_, values) => values,
        _ => field,
    }
}

#[inline]
pub(crate) fn part<'a>(field: &Field, array: &'a dyn Array, row: usize) -> Part<'a> {
    use DataType::*;
    if array.is_null(row) {
        return Part::Null;
    }
    match array.data_type() {
        Utf8 => Part::Text(array.as_string::<i32>().value(row).as_bytes()),
        LargeUtf8 => Part::Text(array.as_string::<i64>().value(row).as_bytes()),
        Utf8View => Part::Text(array.as_string_view().value(row).as_bytes()),
        Binary => Part::Bytes(array.as_binary::<i32>().value(row)),
        LargeBinary => Part::Bytes(array.as_binary::<i64>().value(row)),
        BinaryView => Part::Bytes(array.as_binary_view().value(row)),
        FixedSizeBinary(_) if Meaning::from_field(field) == Meaning::Plain => {
            Part::Bytes(array.as_fixed_size_binary().value(row))
        }
        Null => Part::Null,
        Dictionary(..) | RunEndEncoded(..) => match entry(array, row) {
            Some((values, index)) => part(field_of_values(field), values, index),
            None => Part::Other,
        },
        _ => Part::Other,
    }
}

/// Appends the key of a value of a type that [`kind_of`] takes.
pub(crate) fn push(field: &Field, array: &dyn Array, row: usize, out: &mut Vec<u8>) {
    use DataType::*;
    match part(field, array, row) {
        Part::Null => return push_null(out),
        Part::Text(text) => return push_text(text, out),
        Part::Bytes(bytes) => return push_bytes(bytes, out),
        Part::Other => {}
    }
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    match array.data_type() {
        Boolean => push_boolean(array.as_boolean().value(row), out),
        Int8 if Meaning::from_field(field) == Meaning::Bool8 => push_boolean(value!(Int8Type) != 0, out),
        Int8 => push_integer(value!(Int8Type), out),
        Int16 => push_integer(value!(Int16Type), out),
        Int32 => push_integer(value!(Int32Type), out),
        Int64 => push_integer(value!(Int64Type), out),
        UInt8 => push_integer(value!(UInt8Type), out),
        UInt16 => push_integer(value!(UInt16Type), out),
        UInt32 => push_integer(value!(UInt32Type), out),
        UInt64 => push_integer(value!(UInt64Type), out),
        Float16 => {
            type Half = <Float16Type as arrow_array::ArrowPrimitiveType>::Native;
            push_rounded(value!(Float16Type).to_f64(), 6, |value| Half::from_f64(value).to_f64(), out);
        }
        Float32 => push_float(value!(Float32Type), out),
        Float64 => push_float(value!(Float64Type), out),
        Decimal32(_, scale) => push_decimal(value!(Decimal32Type), *scale, out),
        Decimal64(_, scale) => push_decimal(value!(Decimal64Type), *scale, out),
        Decimal128(_, scale) => push_decimal(value!(Decimal128Type), *scale, out),
        Decimal256(_, scale) => push_long_decimal(&value!(Decimal256Type).to_string(), *scale, out),
        Date32 => push_date(value!(Date32Type).into(), out),
        Date64 => push_date(value!(Date64Type).div_euclid(86_400_000), out),
        Time32(TimeUnit::Second) => push_time(value!(Time32SecondType), 0, out),
        Time32(_) => push_time(value!(Time32MillisecondType), 3, out),
        Time64(TimeUnit::Microsecond) => push_time(value!(Time64MicrosecondType), 6, out),
        Time64(_) => push_time(value!(Time64NanosecondType), 9, out),
        Timestamp(unit, zone) => {
            let value = match unit {
                TimeUnit::Second => value!(TimestampSecondType),
                TimeUnit::Millisecond => value!(TimestampMillisecondType),
                TimeUnit::Microsecond => value!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => value!(TimestampNanosecondType),
            };
            push_timestamp(value, scale(*unit), zone.is_some(), out);
        }
        Duration(unit) => {
            let value = match unit {
                TimeUnit::Second => value!(DurationSecondType),
                TimeUnit::Millisecond => value!(DurationMillisecondType),
                TimeUnit::Microsecond => value!(DurationMicrosecondType),
                TimeUnit::Nanosecond => value!(DurationNanosecondType),
            };
            push_duration(value, scale(*unit), out);
        }
        List(item) => push_list(item, &array.as_list::<i32>().value(row), out),
        LargeList(item) => push_list(item, &array.as_list::<i64>().value(row), out),
        ListView(item) => push_list(item, &array.as_list_view::<i32>().value(row), out),
        LargeListView(item) => push_list(item, &array.as_list_view::<i64>().value(row), out),
        FixedSizeList(item, _) => push_list(item, &array.as_fixed_size_list().value(row), out),
        Map(..) => {
            let entries = array.as_map().value(row);
            let entry = |row| {
                [0, 1].map(|member| {
                    let mut key = Vec::new();
                    push(&entries.fields()[member], &**entries.column(member), row, &mut key);
                    key
                })
            };
            push_map((0..entries.len()).map(entry).collect(), out);
        }
        Struct(_) => push_struct(array.as_struct(), row, out),
        Dictionary(..) | RunEndEncoded(..) => {
            let (values, index) = entry(array, row).expect("it has entries");
            push(field_of_values(field), values, index, out);
        }
        // The 16 bytes of a UUID.
        FixedSizeBinary(_) => push_uuid(array.as_fixed_size_binary().value(row), out),
        other => unreachable!("values of the type {other} are refused before"),
    }
}

fn push_list(item: &Field, values: &ArrayRef, out: &mut Vec<u8>) {
    begin_list(out);
    (0..values.len()).for_each(|row| push_part(out, |out| push(item, &**values, row, out)));
}

fn push_struct(array: &StructArray, row: usize, out: &mut Vec<u8>) {
    begin_struct(out);
    let fields = array.fields();
    for number in by_name(fields) {
        push_member(fields[number].name(), out, |out| push(&fields[number], &**array.column(number), row, out));
    }
}

/// Appends a UUID as its text: 8, 4, 4, 4 and 12 digits.
fn push_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    let mut text = String::with_capacity(36);
    for (number, byte) in bytes.iter().enumerate() {
        let hyphen = if [4, 6, 8, 10].contains(&number) { "-" } else { "" };
        write!(text, "{hyphen}{byte:02x}").expect("memory takes all");
    }
    push_text(text.as_bytes(), out);
}

/// Returns the number of decimal digits of a second in a unit.
fn scale(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
mod tests;
