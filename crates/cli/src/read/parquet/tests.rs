use super::*;
use crate::key::tests::LINE;
use crate::key::{Named, PartNumbers};
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field};
use bloomline::KeyHasher;
use bloomline_keys::arrow::{Column, Row, hash_rows};
use proptest::prelude::*;

fn rule(names: &[&str]) -> KeyRule {
    let part = KeyPart::from_pointers(names.iter().map(|name| Pointer::from_names([*name])));
    KeyRule { part, ..LINE }
}

/// Returns the key of a row, after a check that its hash matches.
fn row_key(arrays: &[ArrayRef], row: usize, rule: &KeyRule) -> Vec<u8> {
    let KeyPart::Json(values) = &rule.part else { panic!("it has no columns") };
    let column = |(value, array): (&Named<Pointer>, &ArrayRef)| Column {
        field: Field::new(&value.name, array.data_type().clone(), true).into(),
        array: array.clone(),
    };
    let columns: Vec<Column> = values.iter().zip(arrays).map(column).collect();
    let key = rule.row_key(&Row { columns: &columns, row }, &mut KeyScratch::default()).unwrap().to_vec();
    let slice = |column: &Column| Column { field: column.field.clone(), array: column.array.slice(row, 1) };
    let alone: Vec<Column> = columns.iter().map(slice).collect();
    let hasher = KeyHasher::new(1);
    let check = |hash| assert_eq!(hash, Some(hasher.bytes(&key)));
    hash_rows(&alone, columns.len() > 1, &hasher, rule.nulls, check);
    key
}

fn line_key(line: &str, rule: &KeyRule) -> Vec<u8> {
    rule.key(line.as_bytes(), &mut KeyScratch::default()).unwrap().to_vec()
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

/// A value has the same key in a row and in a line of JSON, so that one filter serves both.
#[test]
fn values_have_the_keys_of_json_values() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None, Some(-3)])]);
    let field = |name: &str, kind| Arc::new(Field::new(name, kind, true));
    let inner = StructArray::from(vec![
        (field("z", DataType::Utf8), array(StringArray::from(vec!["q\"\n"]))),
        (field("a", DataType::Float64), array(Float64Array::from(vec![2.0]))),
    ]);
    for (array, json) in [
        (array(StringArray::from(vec!["a\tb"])), r#""a\tb""#),
        (array(StringViewArray::from(vec!["äöü"])), r#""äöü""#),
        (array(Int8Array::from(vec![-7])), "-7"),
        (array(UInt64Array::from(vec![u64::MAX])), "18446744073709551615"),
        (array(BooleanArray::from(vec![true])), "true"),
        (array(Float64Array::from(vec![0.1])), "0.1"),
        (array(Float64Array::from(vec![-0.0])), "0"),
        (array(Int64Array::from(vec![1])), "1.0"),
        (array(Float64Array::from(vec![1.0])), "1"),
        (array(Int64Array::from(vec![1200])), "12e2"),
        (array(Float32Array::from(vec![0.1])), "0.1"),
        (array(Float64Array::from(vec![1e300])), "1e+300"),
        (array(Decimal128Array::from(vec![12500]).with_precision_and_scale(10, 3).unwrap()), "12.5"),
        (array(Decimal128Array::from(vec![-5]).with_precision_and_scale(10, 3).unwrap()), "-0.005"),
        (array(Decimal128Array::from(vec![7000]).with_precision_and_scale(10, 3).unwrap()), "7"),
        (array(Decimal128Array::from(vec![7]).with_precision_and_scale(10, -2).unwrap()), "700"),
        (array(NullArray::new(1)), "null"),
        (array(["b"].into_iter().collect::<DictionaryArray<Int8Type>>()), r#""b""#),
        (array(ListViewArray::from(list.clone())), "[1, null, -3]"),
        (array(list), "[1, null, -3]"),
        (array(inner), r#"{"a": 2.0, "z": "q\"\n"}"#),
    ] {
        let line = format!(r#"{{"x": {json}}}"#);
        assert_eq!(row_key(&[array], 0, &rule(&["x"])), line_key(&line, &rule(&["x"])), "{json}");
    }
}

/// Texts are parsed as times only if the rule requests it.
#[test]
fn texts_are_times_only_on_request() {
    let (none, time) = (rule(&["x"]), KeyRule { time: PartNumbers::All, ..rule(&["x"]) });
    let micros = |zone: Option<&str>| {
        let array = TimestampMicrosecondArray::from(vec![1_700_000_000_120_000]);
        array.with_timezone_opt(zone)
    };
    for (array, texts) in [
        (array(Date32Array::from(vec![20_780])), &["2026-11-23"][..]),
        (array(micros(None)), &["2023-11-14T22:13:20.120", "2023-11-14 22:13:20.12"]),
        (array(micros(Some("Europe/Berlin"))), &["2023-11-14T22:13:20.120Z", "2023-11-14 23:13:20.12+01"]),
        (array(Time64MicrosecondArray::from(vec![3_600_000_001])), &["01:00:00.000001"]),
    ] {
        for text in texts {
            let line = format!(r#"{{"x": "{text}"}}"#);
            assert_eq!(row_key(std::slice::from_ref(&array), 0, &time), line_key(&line, &time), "{text}");
            assert_eq!(line_key(&line, &none), text.as_bytes());
        }
    }
}

proptest! {
    #[test]
    fn rows_have_the_keys_of_json_lines(
        texts in prop::collection::vec(prop::option::of("[a\"\\\\\n]{0,3}"), 1..20),
        numbers in prop::collection::vec(prop::option::of(any::<i64>()), 20),
    ) {
        let numbers = &numbers[..texts.len()];
        let columns = [array(Int64Array::from(numbers.to_vec())), array(StringViewArray::from_iter(texts.iter()))];
        let rule = rule(&["t", "n"]);
        for (row, (text, number)) in texts.iter().zip(numbers).enumerate() {
            let line = serde_json::json!({ "n": number, "t": text }).to_string();
            prop_assert_eq!(row_key(&columns, row, &rule), line_key(&line, &rule));
        }
    }
}
