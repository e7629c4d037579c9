//! Values that are compared with others of the same column, which costs less than their keys would.

use crate::arrow::Meaning;
use crate::arrow::row::{Part, entry, part, push};
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
    Wide(i128),
    Bytes(&'a [u8]),
    /// The key of a value of another type.
    Key(Vec<u8>),
}

impl<'a> Cell<'a> {
    /// Returns the value of a row of a type that [`kind_of`](crate::arrow::kind_of) takes.
    #[inline]
    pub(crate) fn new(field: &Field, array: &'a dyn Array, row: usize) -> Self {
        use DataType::*;
        match part(field, array, row) {
            Part::Null => return Self::Null,
            Part::Text(bytes) | Part::Bytes(bytes) => return Self::Bytes(bytes),
            Part::Other => {}
        }
        macro_rules! value {
            ($kind:ty) => {
                array.as_primitive::<$kind>().value(row)
            };
        }
        macro_rules! word {
            ($kind:ty) => {
                Self::Word(value!($kind) as u64)
            };
        }
        match array.data_type() {
            Boolean => Self::Word(array.as_boolean().value(row).into()),
            Int8 if Meaning::from_field(field) == Meaning::Plain => word!(Int8Type),
            Int16 => word!(Int16Type),
            Int32 => word!(Int32Type),
            Int64 => word!(Int64Type),
            UInt8 => word!(UInt8Type),
            UInt16 => word!(UInt16Type),
            UInt32 => word!(UInt32Type),
            UInt64 => word!(UInt64Type),
            // All values of f32 are values of f64.
            Float32 => Self::Word(bits(value!(Float32Type).into())),
            Float64 => Self::Word(bits(value!(Float64Type))),
            Decimal128(..) => Self::Wide(value!(Decimal128Type)),
            Date32 => word!(Date32Type),
            Time32(TimeUnit::Second) => word!(Time32SecondType),
            Time32(_) => word!(Time32MillisecondType),
            Time64(TimeUnit::Microsecond) => word!(Time64MicrosecondType),
            Time64(_) => word!(Time64NanosecondType),
            Timestamp(TimeUnit::Second, _) => word!(TimestampSecondType),
            Timestamp(TimeUnit::Millisecond, _) => word!(TimestampMillisecondType),
            Timestamp(TimeUnit::Microsecond, _) => word!(TimestampMicrosecondType),
            Timestamp(TimeUnit::Nanosecond, _) => word!(TimestampNanosecondType),
            Duration(TimeUnit::Second) => word!(DurationSecondType),
            Duration(TimeUnit::Millisecond) => word!(DurationMillisecondType),
            Duration(TimeUnit::Microsecond) => word!(DurationMicrosecondType),
            Duration(TimeUnit::Nanosecond) => word!(DurationNanosecondType),
            Dictionary(..) | RunEndEncoded(..) => {
                let (values, index) = entry(array, row).expect("it has entries");
                Self::new(field, values, index)
            }
            _ => {
                let mut key = Vec::new();
                push(field, array, row, &mut key);
                Self::Key(key)
            }
        }
    }

    #[inline]
    pub(crate) fn hash(&self, hasher: &KeyHasher) -> u64 {
        match self {
            Self::Null => 0,
            Self::Word(word) => word.hash_with(hasher),
            Self::Wide(number) => number.hash_with(hasher),
            Self::Bytes(bytes) => hasher.bytes(bytes),
            Self::Key(key) => hasher.bytes(key),
        }
    }
}

/// Returns the bits of a float, the same ones for 0 and −0, and for all NaNs.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}
