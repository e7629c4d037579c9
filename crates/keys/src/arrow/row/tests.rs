use super::*;
use crate::arrow::data_columns;
use crate::kinds::Kinds;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{IntervalUnit, Schema, UnionFields, UnionMode};
use std::collections::HashMap;
use std::sync::Arc;

fn column(name: &str, array: impl Array + 'static) -> Column {
    let field = Field::new(name, array.data_type().clone(), true).into();
    Column { field, array: Arc::new(array) }
}

fn extension(name: &str, array: impl Array + 'static) -> Column {
    let metadata = HashMap::from([("ARROW:extension:name".to_owned(), name.to_owned())]);
    let field = Field::new("x", array.data_type().clone(), true).with_metadata(metadata).into();
    Column { field, array: Arc::new(array) }
}

fn keys(column: &Column) -> Vec<Vec<u8>> {
    let key = |row| {
        let mut key = Vec::new();
        Row { columns: std::slice::from_ref(column), row }.push(0, &mut key);
        key
    };
    (0..column.array.len()).map(key).collect()
}

fn key(array: impl Array + 'static) -> Vec<u8> {
    keys(&column("x", array)).remove(0)
}

#[test]
fn numbers_do_not_depend_on_their_types() {
    let decimal = |value: i128, scale| Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale).unwrap();
    let numbers = [
        key(Int8Array::from(vec![70])),
        key(Int64Array::from(vec![70])),
        key(UInt8Array::from(vec![70])),
        key(UInt64Array::from(vec![70])),
        key(Float16Array::from_iter_values([<Float16Type as ArrowPrimitiveType>::Native::from_f64(70.0)])),
        key(Float32Array::from(vec![70.0])),
        key(Float64Array::from(vec![70.0])),
        key(decimal(7000, 2)),
        key(decimal(7, -1)),
        key(Decimal32Array::from(vec![700]).with_precision_and_scale(9, 1).unwrap()),
        key(Decimal64Array::from(vec![700]).with_precision_and_scale(18, 1).unwrap()),
        key(Decimal256Array::from(vec![i256::from(700)]).with_precision_and_scale(76, 1).unwrap()),
    ];
    assert!(numbers.iter().all(|number| number == b"\xffn7e1"), "{numbers:?}");
    // These differ, although their 64 bits are equal.
    assert_ne!(key(UInt64Array::from(vec![u64::MAX])), key(Int64Array::from(vec![-1])));
    assert_eq!(key(Decimal256Array::from(vec![i256::MIN]).with_precision_and_scale(76, 0).unwrap()), {
        let mut expected = Vec::new();
        push_number(&i256::MIN.to_string(), &mut expected);
        expected
    });
}

/// A half float has fewer digits than the same number in more bits.
#[test]
fn half_floats_have_the_digits_of_their_width() {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let half = |value: f64| key(Float16Array::from_iter_values([Half::from_f64(value)]));
    assert_eq!(half(0.1), key(Float64Array::from(vec![0.1])));
    assert_eq!(half(65504.0), b"\xffn655e2");
    // The smallest, which is 2 to the power of -24.
    assert_eq!(half(5.960464477539063e-8), b"\xffn6e-8");
    let bits = (0..=u16::MAX).map(Half::from_bits).filter(|half| half.is_finite() && *half != Half::from_f64(-0.0));
    let mut all = keys(&column("x", Float16Array::from_iter_values(bits.clone())));
    assert!(all.iter().zip(bits).all(|(key, half)| {
        let text = str::from_utf8(&key[2..]).unwrap();
        Half::from_f64(text.parse().unwrap()) == half
    }));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn texts_and_byte_strings_differ_and_do_not_depend_on_their_types() {
    let texts = [
        key(StringArray::from(vec!["a"])),
        key(LargeStringArray::from(vec!["a"])),
        key(StringViewArray::from(vec!["a"])),
        key(["a"].into_iter().collect::<DictionaryArray<Int8Type>>()),
        key(["a", "a"].into_iter().collect::<RunArray<Int32Type>>()),
    ];
    assert!(texts.iter().all(|text| text == b"a"));
    let bytes = [
        key(BinaryArray::from(vec![&b"a"[..]])),
        key(LargeBinaryArray::from(vec![&b"a"[..]])),
        key(BinaryViewArray::from(vec![&b"a"[..]])),
        key(FixedSizeBinaryArray::try_from_iter([b"a"].into_iter()).unwrap()),
    ];
    assert!(bytes.iter().all(|bytes| bytes == b"\xffba"));
}

#[test]
fn times_do_not_depend_on_their_units() {
    for (kind, equal) in [
        (
            Kinds::DURATION,
            vec![
                column("x", DurationSecondArray::from(vec![5])),
                column("x", DurationMillisecondArray::from(vec![5000])),
                column("x", DurationMicrosecondArray::from(vec![5_000_000])),
                column("x", DurationNanosecondArray::from(vec![5_000_000_000])),
            ],
        ),
        (
            Kinds::TIMESTAMP,
            vec![
                column("x", TimestampSecondArray::from(vec![-5])),
                column("x", TimestampNanosecondArray::from(vec![-5_000_000_000])),
            ],
        ),
        (
            Kinds::INSTANT,
            vec![
                column("x", TimestampMillisecondArray::from(vec![5]).with_timezone("Europe/Oslo")),
                column("x", TimestampMicrosecondArray::from(vec![5000]).with_timezone("+05:00")),
            ],
        ),
        (
            Kinds::DATE,
            vec![column("x", Date32Array::from(vec![-2])), column("x", Date64Array::from(vec![-172_800_000]))],
        ),
        (
            Kinds::TIME,
            vec![
                column("x", Time32SecondArray::from(vec![7])),
                column("x", Time32MillisecondArray::from(vec![7000])),
                column("x", Time64MicrosecondArray::from(vec![7_000_000])),
                column("x", Time64NanosecondArray::from(vec![7_000_000_000])),
            ],
        ),
    ] {
        assert!(equal.iter().all(|column| keys(column) == keys(&equal[0])), "{kind}");
        assert!(equal.iter().all(|column| kind_of(&column.field) == Ok(kind)), "{kind}");
    }
    // Five milliseconds are not five microseconds, and a date is not the midnight with which it begins.
    assert_ne!(key(DurationMillisecondArray::from(vec![5])), key(DurationMicrosecondArray::from(vec![5])));
    assert_ne!(key(TimestampSecondArray::from(vec![0])), key(Date32Array::from(vec![0])));
    assert_ne!(key(TimestampSecondArray::from(vec![0])), key(TimestampSecondArray::from(vec![0]).with_timezone("UTC")));
}

#[test]
fn extension_types_are_read_by_their_meaning_or_refused_by_name() {
    let uuid: [u8; 16] = *b"\x55\x0e\x84\x00\xe2\x9b\x41\xd4\xa7\x16\x44\x66\x55\x44\x00\x00";
    let column = extension("arrow.uuid", FixedSizeBinaryArray::try_from_iter([uuid].into_iter()).unwrap());
    assert_eq!(keys(&column), [b"550e8400-e29b-41d4-a716-446655440000"]);
    assert_eq!(kind_of(&column.field), Ok(Kinds::TEXT));
    let column = extension("arrow.bool8", Int8Array::from(vec![0, 1, 2]));
    assert_eq!(keys(&column), keys(&self::column("x", BooleanArray::from(vec![false, true, true]))));
    // Runs of them.
    let ends = Field::new("run_ends", DataType::Int32, false).into();
    let values = Field::clone(&column.field).with_name("values").into();
    let field = Field::new("x", DataType::RunEndEncoded(ends, values), true);
    let runs = RunArray::try_new(&Int32Array::from(vec![2, 3, 5]), &column.array).unwrap();
    assert_eq!(kind_of(&field), Ok(Kinds::BOOLEAN));
    let runs = Column { field: field.into(), array: Arc::new(runs) };
    assert_eq!(keys(&runs), [b"\xfff", b"\xfff", b"\xfft", b"\xfft", b"\xfft"]);
    let column = extension("arrow.json", StringArray::from(vec!["{}"]));
    assert_eq!((keys(&column).remove(0), kind_of(&column.field)), (b"{}".to_vec(), Ok(Kinds::TEXT)));
    let periods = extension("pandas.period", Int64Array::from(vec![1]));
    let refused = kind_of(&periods.field).unwrap_err().to_string();
    assert!(refused.contains("pandas.period") && refused.contains("convert"), "{refused}");
    let list = Field::new_list("x", periods.field, true);
    assert!(kind_of(&list).is_err());
    let fields = UnionFields::try_new([0], [Field::new("a", DataType::Int8, true)]).unwrap();
    for data_type in [DataType::Interval(IntervalUnit::DayTime), DataType::Union(fields, UnionMode::Sparse)] {
        let refused = kind_of(&Field::new("x", data_type, true)).unwrap_err().to_string();
        assert!(refused.contains("cannot be keys"), "{refused}");
    }
}

#[test]
fn values_behind_dictionaries_and_runs_may_be_null() {
    let dictionary: DictionaryArray<Int32Type> = [Some("a"), None, Some("a")].into_iter().collect();
    assert_eq!(keys(&column("x", dictionary)), [&b"a"[..], b"\xff0", b"a"]);
    let runs: RunArray<Int16Type> = [Some("a"), None, None, Some("b")].into_iter().collect();
    assert_eq!(keys(&column("x", runs.slice(1, 3))), [&b"\xff0"[..], b"\xff0", b"b"]);
    let (hasher, mut hashes) = (KeyHasher::new(0), Vec::new());
    hash_rows(&[column("x", runs)], false, &hasher, false, |hash| hashes.push(hash));
    assert_eq!(hashes, [Some(hasher.bytes(b"a")), None, None, Some(hasher.bytes(b"b"))]);
    assert_eq!(keys(&column("x", NullArray::new(1))), [b"\xff0"]);
}

fn person(names: [&str; 2], values: [&str; 2]) -> StructArray {
    let member = |i: usize| {
        let field: FieldRef = Field::new(names[i], DataType::Utf8, true).into();
        (field, Arc::new(StringArray::from(vec![values[i]])) as ArrayRef)
    };
    StructArray::from(vec![member(0), member(1)])
}

#[test]
fn structs_have_named_members_lists_have_elements_and_maps_have_entries() {
    assert_eq!(key(person(["a", "b"], ["1", "2"])), key(person(["b", "a"], ["2", "1"])));
    assert_ne!(key(person(["a", "b"], ["1", "2"])), key(person(["a", "b"], ["2", "1"])));
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
    let long = LargeListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
    let other = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([None, Some(1)])]);
    assert_eq!(key(list.clone()), key(ListViewArray::from(list.clone())));
    assert_eq!(key(list.clone()), key(long));
    assert_ne!(key(list), key(other));
    let map = |pairs: &[(&str, i32)]| {
        let mut builder = builder_of_maps();
        for (name, value) in pairs {
            builder.0.keys().append_value(name);
            builder.0.values().append_value(*value);
        }
        builder.0.append(true).unwrap();
        key(builder.0.finish())
    };
    assert_eq!(map(&[("a", 1), ("b", 2)]), map(&[("b", 2), ("a", 1)]));
    assert_ne!(map(&[("a", 1)]), map(&[("a", 2)]));
}

struct Maps(builder::MapBuilder<builder::StringBuilder, builder::Int32Builder>);

fn builder_of_maps() -> Maps {
    Maps(builder::MapBuilder::new(None, builder::StringBuilder::new(), builder::Int32Builder::new()))
}

#[test]
fn rows_are_found_by_name() {
    let text = |name, value: &str| column(name, StringArray::from(vec![value]));
    let hash = |columns: &[Column], in_row| {
        let mut hashes = Vec::new();
        hash_rows(columns, in_row, &KeyHasher::new(0), true, |hash| hashes.push(hash.unwrap()));
        hashes
    };
    let row = [text("id", "x"), text("name", "y")];
    assert_eq!(hash(&row, true), hash(&[text("name", "y"), text("id", "x")], true));
    assert_ne!(hash(&row, true), hash(&[text("name", "x"), text("id", "y")], true));
    assert_ne!(hash(&row, true), hash(&[text("id", "x"), text("title", "y")], true));
    // A row is the struct of its values, even of a single value.
    let person = column("p", person(["id", "name"], ["x", "y"]));
    assert_eq!(hash(&row, true), hash(&[person], false));
    assert_ne!(hash(&row[..1], true), hash(&row[..1], false));
    let fields: Vec<FieldRef> = row.iter().map(|column| column.field.clone()).collect();
    assert_eq!(kinds_of(&fields, true).unwrap(), KeyKinds::from_parts([Kinds::TEXT; 2], true));
}

#[test]
fn the_index_that_pandas_recorded_is_not_data() {
    let schema = |recorded: &str| {
        let fields = ["a", "__index_level_0__", "b"].map(|name| Field::new(name, DataType::Int64, true));
        Schema::new(fields.to_vec()).with_metadata(HashMap::from([("pandas".to_owned(), recorded.to_owned())]))
    };
    assert_eq!(data_columns(&schema(r#"{"index_columns": ["__index_level_0__"], "columns": []}"#)), [0, 2]);
    let numbers = r#"{"index_columns": [{"kind": "range", "name": null, "start": 0, "stop": 3, "step": 1}]}"#;
    assert_eq!(data_columns(&schema(numbers)), [0, 1, 2]);
    for recorded in ["", "{}", "not JSON", "[]"] {
        assert_eq!(data_columns(&schema(recorded)), [0, 1, 2]);
    }
}
