//! The values of arrays as parts of keys, equal to the values of lines of JSON.

use crate::key::{KeyRule, Part, Parts, Scratch, Value, Values};
use crate::table::json::{bytes, entry, push, push_seconds, push_time};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bloomline::KeyHasher;
use std::io;

/// The key of a null.
const NULL: &[u8] = b"\xffnull";

/// A row of arrays.
pub struct Row<'a> {
    pub columns: &'a [ArrayRef],
    pub row: usize,
}

impl Values for Row<'_> {
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
/// bloomline_cli::hash_rows(&[urls], &hasher, false, |hash| hashes.push(hash))?;
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
    let part = Part::Json(Vec::new());
    let rule = KeyRule { part, crlf: false, trim: Parts::None, url: Parts::None, ignore_case: Parts::None, nulls };
    let mut scratch = Scratch::default();
    // Most keys are a single text, and this is twice as fast as row by row.
    if let [column] = columns {
        let null = nulls.then(|| hasher.bytes(NULL));
        if each_bytes(column, |bytes| found(bytes.map_or(null, |bytes| Some(hasher.bytes(bytes))))) {
            return Ok(());
        }
    }
    // Nulls are the only possible fault.
    (0..rows).for_each(|row| found(rule.key_of(&Row { columns, row }, &mut scratch).ok().map(|key| hasher.bytes(key))));
    Ok(())
}

/// Refuses a type whose values cannot be compared or, if `texts`, are not texts.
pub fn check_choice(kind: &DataType, texts: bool) -> io::Result<()> {
    match kind {
        DataType::Dictionary(_, values) => check_choice(values, texts),
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
        _ if texts => Err(io::Error::other(format!(
            "the column has values of the type {kind} and no texts; choose another column"
        ))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::json::Pointer;
    use arrow_array::types::*;
    use arrow_array::*;
    use arrow_schema::Field;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn rule(names: &[&str]) -> KeyRule {
        let part = Part::Json(names.iter().map(|name| Pointer::of_names([*name])).collect());
        KeyRule { part, crlf: false, trim: Parts::None, url: Parts::None, ignore_case: Parts::None, nulls: true }
    }

    fn of_row(columns: &[ArrayRef], row: usize, rule: &KeyRule) -> Vec<u8> {
        rule.key_of(&Row { columns, row }, &mut Scratch::default()).unwrap().to_vec()
    }

    fn of_line(line: &str, rule: &KeyRule) -> Vec<u8> {
        rule.key(line.as_bytes(), &mut Scratch::default()).unwrap().to_vec()
    }

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    /// Equal to the hashes of single rows.
    #[test]
    fn texts_are_hashed_as_other_values_are() {
        let texts = [Some("a"), None, Some(""), Some("a text that is longer than a view")];
        let bytes = texts.map(|text| text.map(str::as_bytes)).to_vec();
        let hasher = KeyHasher::new(1);
        for column in [
            array(StringArray::from(texts.to_vec())),
            array(LargeStringArray::from(texts.to_vec())),
            array(StringViewArray::from(texts.to_vec())),
            array(BinaryArray::from(bytes.clone())),
            array(LargeBinaryArray::from(bytes.clone())),
            array(BinaryViewArray::from(bytes)),
        ] {
            let column = [column.slice(0, 4)];
            let expected: Vec<_> = (0..4).map(|row| Some(hasher.bytes(&of_row(&column, row, &rule(&["a"]))))).collect();
            let mut found = Vec::new();
            hash_rows(&column, &hasher, true, |hash| found.push(hash)).unwrap();
            assert_eq!(found, expected);
            found.clear();
            hash_rows(&column, &hasher, false, |hash| found.push(hash)).unwrap();
            assert_eq!(found, [expected[0], None, expected[2], expected[3]]);
        }
    }

    /// A row's value equals the value in a line of JSON, so that one filter serves both.
    #[test]
    fn values_are_those_of_lines_of_json() {
        let micros = |zone: Option<&str>| {
            let array = TimestampMicrosecondArray::from(vec![1_700_000_000_120_000]);
            array.with_timezone_opt(zone)
        };
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None, Some(-3)])]);
        let field = |name: &str, kind| Arc::new(Field::new(name, kind, true));
        let inner = StructArray::from(vec![
            (field("z", DataType::Utf8), array(StringArray::from(vec!["q\"\n"]))),
            (field("a", DataType::Float64), array(Float64Array::from(vec![2.0]))),
        ]);
        for (array, json) in [
            (array(StringArray::from(vec!["a\tb"])), r#""a\tb""#),
            (array(StringViewArray::from(vec!["äöü"])), r#""äöü""#),
            (array(BinaryArray::from(vec![&b"abc"[..]])), r#""abc""#),
            (array(Int8Array::from(vec![-7])), "-7"),
            (array(UInt64Array::from(vec![u64::MAX])), "18446744073709551615"),
            (array(BooleanArray::from(vec![true])), "true"),
            (array(Float64Array::from(vec![0.1])), "0.1"),
            (array(Float64Array::from(vec![-0.0])), "0.0"),
            (array(Float32Array::from(vec![0.1])), "0.1"),
            (array(Float64Array::from(vec![1e300])), "1e+300"),
            (array(Decimal128Array::from(vec![12500]).with_precision_and_scale(10, 3).unwrap()), "12.5"),
            (array(Decimal128Array::from(vec![-5]).with_precision_and_scale(10, 3).unwrap()), "-0.005"),
            (array(Decimal128Array::from(vec![7000]).with_precision_and_scale(10, 3).unwrap()), "7"),
            (array(Decimal128Array::from(vec![7]).with_precision_and_scale(10, -2).unwrap()), "700"),
            (array(Date32Array::from(vec![20_780])), r#""2026-11-23""#),
            (array(micros(None)), r#""2023-11-14T22:13:20.120""#),
            (array(micros(Some("Europe/Berlin"))), r#""2023-11-14T22:13:20.120Z""#),
            (array(TimestampMillisecondArray::from(vec![1_700_000_000_120])), r#""2023-11-14T22:13:20.120""#),
            (array(Time64MicrosecondArray::from(vec![3_600_000_001])), r#""01:00:00.000001""#),
            (array(NullArray::new(1)), "null"),
            (array(["b"].into_iter().collect::<DictionaryArray<Int8Type>>()), r#""b""#),
            (array(ListViewArray::from(list.clone())), "[1, null, -3]"),
            (array(list), "[1, null, -3]"),
            (array(inner), r#"{"a": 2.0, "z": "q\"\n"}"#),
        ] {
            let line = format!(r#"{{"x": {json}}}"#);
            assert_eq!(of_row(&[array], 0, &rule(&["x"])), of_line(&line, &rule(&["x"])), "{json}");
        }
    }

    #[test]
    fn nothing_is_taken_for_a_number_that_is_none() {
        let floats = array(Float64Array::from(vec![f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY]));
        let keys: Vec<_> = (0..4).map(|row| of_row(std::slice::from_ref(&floats), row, &rule(&["x"]))).collect();
        assert_eq!(
            (&keys[0], &keys[0][1..], &keys[2][1..], &keys[3][1..]),
            (&keys[1], &b"NaN"[..], &b"Infinity"[..], &b"-Infinity"[..])
        );
    }

    proptest! {
        #[test]
        fn rows_of_several_columns_are_lines_of_several_values(
            texts in prop::collection::vec(prop::option::of("[a\"\\\\\n]{0,3}"), 1..20),
            numbers in prop::collection::vec(prop::option::of(any::<i64>()), 20),
        ) {
            let numbers = &numbers[..texts.len()];
            let columns = [array(StringViewArray::from_iter(texts.iter())), array(Int64Array::from(numbers.to_vec()))];
            let rule = rule(&["t", "n"]);
            for (row, (text, number)) in texts.iter().zip(numbers).enumerate() {
                let line = serde_json::json!({ "n": number, "t": text }).to_string();
                prop_assert_eq!(of_row(&columns, row, &rule), of_line(&line, &rule));
            }
        }

        /// Decimals are equal if their numbers are, whatever their scales.
        #[test]
        fn equal_decimals_are_one_key(digits in -10_000i128..10_000, zeros in 0..4u32, scale in -2..4i8) {
            let decimal = |digits: i128, scale| array(Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).unwrap());
            let more = decimal(digits * 10i128.pow(zeros), scale + zeros as i8);
            prop_assert_eq!(of_row(&[decimal(digits, scale)], 0, &rule(&["x"])), of_row(&[more], 0, &rule(&["x"])));
        }
    }
}
