//! Parquet files as tables.

use crate::coding::Coding;
use crate::documents::{Column, MEMBER};
use crate::encode::Compression;
use crate::error::Error;
use crate::groups::choice::KeepPolicy;
use crate::groups::values::ValueProjection as Values;
use crate::input::inputs::Input;
use crate::input::lines::keys::{HashOptions, KeySource, Keys};
use crate::input::table::{Assembly, COUNT, Format, Group, GroupCounts, Rows, Saved, Table, TableOptions};
use crate::key::json::Pointer;
use crate::key::{KeyPart, KeyRule, KeyScratch, Value, Values as KeyValues};
use bloomline::KeyHasher;
use bloomline_tables::{self as tables, Added, Compared, GzipLevel, RowProjection, SelectedRows, Source, ZstdLevel};
use std::any::Any;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// The format.
pub struct Parquet;

impl Format for Parquet {
    fn open(&self, input: &Input, done: u64, what: &KeySource, values: &Values) -> io::Result<Box<dyn Table>> {
        let file = input.with_file(File::try_clone)?;
        let (name, read) = (input.origin.name().to_owned(), input.read.clone());
        let source = Source { name, path: input.path.clone(), file, read };
        let keep = values.keep.as_ref();
        let others = keep.and_then(KeepPolicy::pointer).into_iter().chain(&values.id);
        let mut projection = RowProjection {
            keys: None,
            texts: what.document().is_some(),
            values: others.map(Pointer::tokens).collect(),
            compared: keep.map(|by| if matches!(by, KeepPolicy::Order(..)) { Compared::Texts } else { Compared::All }),
        };
        let mut has_fields = false;
        match what {
            KeySource::Document(rule, _) => projection.keys = Some(vec![rule.pointer.tokens()]),
            KeySource::Key(rule, _) => match &rule.part {
                KeyPart::Line | KeyPart::Row => {}
                KeyPart::Json(pointers) => projection.keys = Some(pointers.iter().map(Pointer::tokens).collect()),
                KeyPart::Record(_) | KeyPart::Fields { .. } => (projection.keys, has_fields) = (Some(Vec::new()), true),
            },
        }
        let table = tables::TableReader::open(source, done, &projection)?;
        if has_fields {
            let message = "it is Parquet, which has columns instead of fields; give --column";
            return Err(io::Error::other(message));
        }
        Ok(Box::new(table))
    }

    fn measure(&self, file: &File, column: Option<&[String]>) -> io::Result<(u64, u64)> {
        tables::measure(file, column)
    }

    fn check(&self, compression: Compression) -> io::Result<()> {
        codec(compression).map(drop)
    }

    fn resume(&self, saved: &Saved, length: u64) -> io::Result<Box<dyn Assembly>> {
        let GroupCounts { read, copied, written } = saved.groups;
        let counts = tables::GroupCounts { read, copied, written };
        Ok(Box::new(tables::Assembly::resume(&saved.footer, counts, length)?))
    }
}

/// Returns Parquet's own name of a compression.
fn codec(asked: Compression) -> io::Result<tables::Compression> {
    let refused = |_| io::Error::other(format!("Parquet has no compression {asked}; choose another with --compress"));
    Ok(match asked.coding {
        Coding::Plain => tables::Compression::UNCOMPRESSED,
        Coding::Gzip => tables::Compression::GZIP(GzipLevel::try_new(asked.level as u32).map_err(refused)?),
        Coding::Zstd => tables::Compression::ZSTD(ZstdLevel::try_new(asked.level).map_err(refused)?),
        Coding::Lz4 => tables::Compression::LZ4_RAW,
        Coding::Xz | Coding::Bzip2 => {
            return Err(io::Error::other(format!(
                "Parquet has no compression {asked}; choose zstd, gzip, lz4 or none"
            )));
        }
    })
}

impl Table for tables::TableReader {
    fn check(&self, texts: bool, added: Option<&str>, first: Option<&dyn Table>) -> io::Result<()> {
        let first = first.map(|first| (first as &dyn Any).downcast_ref().expect("there is one format"));
        self.check(texts, added, first)
    }

    fn next(&mut self) -> io::Result<Option<Arc<dyn Rows>>> {
        Ok(self.next()?.map(|rows| Arc::new(rows) as Arc<dyn Rows>))
    }
}

impl Rows for tables::Rows {
    fn count(&self) -> usize {
        self.count()
    }

    fn bytes(&self, rows: usize) -> usize {
        self.bytes(rows)
    }

    fn memory(&self) -> usize {
        self.memory()
    }

    fn hash(
        &self,
        rule: &KeyRule,
        second: Option<&KeyHasher>,
        hashing: &HashOptions,
        scratch: &mut KeyScratch,
        keys: &mut Keys,
    ) {
        let mut row = 0;
        self.each_key(|values| {
            keys.take(row, rule.key_of(values, scratch), &hashing.hasher, second, hashing.nulls);
            row += 1;
        });
    }

    fn each_value(&self, found: &mut dyn FnMut(&dyn KeyValues)) {
        self.each_value(|row| found(row));
    }

    fn each_text(&self, found: &mut dyn FnMut(Option<&str>)) {
        self.each_text(found);
    }

    fn encode(
        &self,
        wanted: &[bool],
        texts: Option<Column>,
        notes: Option<Column>,
        counts: Option<Vec<u64>>,
        write_options: TableOptions,
    ) -> Result<Box<dyn Group>, Error> {
        let counts = counts.map(|counts| Added::Numbers(COUNT, counts));
        let added = counts.or_else(|| notes.map(|notes| Added::Texts(MEMBER, notes)));
        let encode = || {
            let compression = write_options.compression.map(codec).transpose()?;
            SelectedRows {
                rows: self,
                selected_rows: wanted,
                texts,
                added,
                compression,
                bloom_filter: write_options.filter,
            }
            .encode()
        };
        let failed = |source| {
            let name = self.name();
            Error::new(format!("cannot read {name}: {source}; the run cannot go on, so leave this file out"))
        };
        encode().map(|group| Box::new(group) as Box<dyn Group>).map_err(failed)
    }
}

impl KeyValues for tables::Row<'_> {
    fn count(&self) -> usize {
        self.count()
    }

    fn value<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a> {
        self.value(part, json).into()
    }

    fn sortable<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a> {
        self.sortable(part, json).into()
    }
}

impl<'a> From<tables::Value<'a>> for Value<'a> {
    fn from(value: tables::Value<'a>) -> Self {
        match value {
            tables::Value::Null => Self::Null,
            tables::Value::Text(text) => Self::Text(text),
            tables::Value::Json(json) => Self::Json(json),
        }
    }
}

impl Group for tables::Group {
    fn append(&self, table: &mut Option<Box<dyn Assembly>>, mut out: &mut dyn Write) -> io::Result<()> {
        let table: &mut dyn Any = &mut **table.get_or_insert_with(|| Box::new(tables::Assembly::default()));
        table.downcast_mut::<tables::Assembly>().expect("there is one format").append(self, &mut out)
    }
}

impl Assembly for tables::Assembly {
    fn finish(&mut self, mut out: &mut dyn Write) -> io::Result<()> {
        self.finish(&mut out)
    }

    fn save(&self) -> io::Result<Saved> {
        let tables::GroupCounts { read, copied, written } = self.counts();
        Ok(Saved { footer: self.save()?, groups: GroupCounts { read, copied, written } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::LINE;
    use arrow_array::types::*;
    use arrow_array::*;
    use arrow_schema::{DataType, Field};
    use bloomline_tables::hash_rows;
    use proptest::prelude::*;

    fn rule(names: &[&str]) -> KeyRule {
        let part = KeyPart::Json(names.iter().map(|name| Pointer::from_names([*name])).collect());
        KeyRule { part, ..LINE }
    }

    /// Returns the key of a row, after a comparison with its hash.
    fn row_key(columns: &[ArrayRef], row: usize, rule: &KeyRule) -> Vec<u8> {
        let key = rule.key_of(&tables::Row::new(columns, row), &mut KeyScratch::default()).unwrap().to_vec();
        let alone: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
        let hasher = KeyHasher::new(1);
        hash_rows(&alone, &hasher, rule.nulls, |hash| assert_eq!(hash, Some(hasher.bytes(&key)))).unwrap();
        key
    }

    fn line_key(line: &str, rule: &KeyRule) -> Vec<u8> {
        rule.key(line.as_bytes(), &mut KeyScratch::default()).unwrap().to_vec()
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
            let expected: Vec<_> =
                (0..4).map(|row| Some(hasher.bytes(&row_key(&column, row, &rule(&["a"]))))).collect();
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
            assert_eq!(row_key(&[array], 0, &rule(&["x"])), line_key(&line, &rule(&["x"])), "{json}");
        }
    }

    #[test]
    fn nothing_is_taken_for_a_number_that_is_none() {
        let floats = array(Float64Array::from(vec![f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY]));
        let keys: Vec<_> = (0..4).map(|row| row_key(std::slice::from_ref(&floats), row, &rule(&["x"]))).collect();
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
                prop_assert_eq!(row_key(&columns, row, &rule), line_key(&line, &rule));
            }
        }

        /// Decimals are equal if their numbers are, whatever their scales.
        #[test]
        fn equal_decimals_are_one_key(digits in -10_000i128..10_000, zeros in 0..4u32, scale in -2..4i8) {
            let decimal = |digits: i128, scale| array(Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).unwrap());
            let more = decimal(digits * 10i128.pow(zeros), scale + zeros as i8);
            prop_assert_eq!(row_key(&[decimal(digits, scale)], 0, &rule(&["x"])), row_key(&[more], 0, &rule(&["x"])));
        }
    }
}
