//! Values that are compared with others of the same column, which costs less than their keys would.

use crate::arrow::Meaning;
use crate::arrow::row::{Part, part, push};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_schema::{DataType, Field, TimeUnit};
use bloomline::{Key, KeyHasher};

/// A value of a column. Two values of one column are equal if and only if their keys are.
#[derive(PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    /// A number or a time, as its type stores it; a float has one form for 0 and one for NaN.
    Word(u64),
    Bytes(&'a [u8]),
    /// The key of a value of another type.
    Key(Vec<u8>),
}

impl Cell<'_> {
    #[inline]
    pub(crate) fn hash(&self, hasher: &KeyHasher) -> u64 {
        match self {
            Self::Null => 0,
            Self::Word(word) => word.hash_with(hasher),
            Self::Bytes(bytes) => hasher.bytes(bytes),
            Self::Key(key) => hasher.bytes(key),
        }
    }

    /// Reads the ends of the value, so that its cache lines are loaded.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        match self {
            Self::Word(word) => *word,
            Self::Bytes([first, .., last]) => u64::from(first ^ last),
            Self::Null | Self::Bytes(_) | Self::Key(_) => 0,
        }
    }
}

/// Returns the value of a row.
pub(crate) type CellReader<'a> = Box<dyn Fn(usize) -> Cell<'a> + 'a>;

/// Returns the reader of a column of a type that [`kind_of`](crate::arrow::kind_of) takes.
pub(crate) fn reader<'a>(field: &'a Field, array: &'a dyn Array) -> CellReader<'a> {
    use DataType::*;
    macro_rules! words {
        ($kind:ty) => {
            reader_of(array.as_primitive::<$kind>(), |array, row| Cell::Word(array.value(row) as u64))
        };
    }
    macro_rules! bytes {
        ($array:expr) => {
            reader_of($array, |array, row| Cell::Bytes(array.value(row).as_ref()))
        };
    }
    match array.data_type() {
        Utf8 => bytes!(array.as_string::<i32>()),
        LargeUtf8 => bytes!(array.as_string::<i64>()),
        Utf8View => bytes!(array.as_string_view()),
        Binary => bytes!(array.as_binary::<i32>()),
        LargeBinary => bytes!(array.as_binary::<i64>()),
        BinaryView => bytes!(array.as_binary_view()),
        Boolean => reader_of(array.as_boolean(), |array, row| Cell::Word(array.value(row).into())),
        Int8 if Meaning::from_field(field) == Meaning::Plain => words!(Int8Type),
        Int16 => words!(Int16Type),
        Int32 => words!(Int32Type),
        Int64 => words!(Int64Type),
        UInt8 => words!(UInt8Type),
        UInt16 => words!(UInt16Type),
        UInt32 => words!(UInt32Type),
        UInt64 => words!(UInt64Type),
        // All values of f32 are values of f64.
        Float32 => reader_of(array.as_primitive::<Float32Type>(), |array, row| float(array.value(row).into())),
        Float64 => reader_of(array.as_primitive::<Float64Type>(), |array, row| float(array.value(row))),
        Decimal128(..) => reader_of(array.as_primitive::<Decimal128Type>(), |array, row| {
            Cell::Bytes(&array.values().inner()[size_of::<i128>() * row..][..size_of::<i128>()])
        }),
        Date32 => words!(Date32Type),
        Time32(TimeUnit::Second) => words!(Time32SecondType),
        Time32(_) => words!(Time32MillisecondType),
        Time64(TimeUnit::Microsecond) => words!(Time64MicrosecondType),
        Time64(_) => words!(Time64NanosecondType),
        Timestamp(TimeUnit::Second, _) => words!(TimestampSecondType),
        Timestamp(TimeUnit::Millisecond, _) => words!(TimestampMillisecondType),
        Timestamp(TimeUnit::Microsecond, _) => words!(TimestampMicrosecondType),
        Timestamp(TimeUnit::Nanosecond, _) => words!(TimestampNanosecondType),
        Duration(TimeUnit::Second) => words!(DurationSecondType),
        Duration(TimeUnit::Millisecond) => words!(DurationMillisecondType),
        Duration(TimeUnit::Microsecond) => words!(DurationMicrosecondType),
        Duration(TimeUnit::Nanosecond) => words!(DurationNanosecondType),
        _ => Box::new(move |row| match part(field, array, row) {
            Part::Null => Cell::Null,
            Part::Text(bytes) | Part::Bytes(bytes) => Cell::Bytes(bytes),
            Part::Other => {
                let mut key = Vec::new();
                push(field, array, row, &mut key);
                Cell::Key(key)
            }
        }),
    }
}

/// Returns a reader of the values that are not null by `value`.
fn reader_of<'a, A: Array>(array: &'a A, value: impl Fn(&'a A, usize) -> Cell<'a> + 'a) -> CellReader<'a> {
    match array.nulls() {
        None => Box::new(move |row| value(array, row)),
        Some(nulls) => Box::new(move |row| if nulls.is_null(row) { Cell::Null } else { value(array, row) }),
    }
}

fn float<'a>(value: f64) -> Cell<'a> {
    Cell::Word(if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() })
}
