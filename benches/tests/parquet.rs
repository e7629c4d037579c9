//! The split block beside Parquet's own implementation of it.

use bloomline::variants::SplitBlockBloomFilter;
use parquet::bloom_filter::Sbbf;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::properties::{ReaderProperties, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::sync::Arc;

/// Parquet's own implementation, both ways: equal bitsets from equal keys, and equal answers from the bitset of either.
#[test]
fn the_split_block_is_parquets() {
    for bytes in [32, 1024, 32 << 10, 4 << 20] {
        let mut theirs = Sbbf::new_with_num_of_bytes(bytes);
        let mut ours = SplitBlockBloomFilter::with_bitset_bytes(bytes).unwrap();
        let keys = bytes as u64 / 4;
        for i in 0..keys / 2 {
            let (text, number) = (format!("key {i}"), i as i64);
            theirs.insert(text.as_str());
            theirs.insert(&number);
            ours.insert(&text);
            ours.insert(&number.to_le_bytes());
        }
        let mut bitset = Vec::new();
        theirs.write_bitset(&mut bitset).unwrap();
        assert!(ours.to_bitset() == bitset, "{bytes} bytes");
        let read = SplitBlockBloomFilter::from_bitset(&bitset).unwrap();
        assert!(read == ours);
        let back = Sbbf::new(&ours.to_bitset());
        for i in 0..keys {
            let text = format!("key {i}");
            assert_eq!(read.contains(&text), back.check(text.as_str()), "{i}");
        }
    }
}

/// A file with a column of texts and one of integers, as `parquet` writes it: two row groups.
#[test]
fn the_split_block_is_that_of_parquets_files() {
    const ROWS: i64 = 100_000;
    let schema = parse_message_type("message m { required binary text (utf8); required int64 number; }").unwrap();
    let properties = WriterProperties::builder().set_bloom_filter_enabled(true).set_bloom_filter_fpp(0.01).build();
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties)).unwrap();
    for group in 0..2 {
        let numbers: Vec<i64> = (group * ROWS..(group + 1) * ROWS).map(|i| i * i - 100).collect();
        let texts: Vec<ByteArray> = numbers.iter().map(|i| format!("key {i}").as_str().into()).collect();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
    // Filters of thousands of blocks, and 4000 hits: the band of the other rates.
    assert_eq!(check_columns(file, 0.9..1.1), [ROWS as usize; 2]);
}

/// The same, as pyarrow writes it: tests/data/README.md. Filters of 4 and 8 blocks differ widely.
#[test]
fn the_split_block_is_that_of_arrows_files() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/columns.parquet");
    assert_eq!(check_columns(File::open(path).unwrap(), 0.3..3.0), [200, 100]);
}

/// For each row group of a file with a column of texts and one of integers: the filters find what is written, pass absent
/// keys at the model's rate, within the band, and are ours of the same keys, bit by bit. The values of each row group.
fn check_columns(file: File, band: std::ops::Range<f64>) -> Vec<usize> {
    let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
    let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
    let reader = SerializedFileReader::new_with_options(file, options).unwrap();
    let check = |group: usize| {
        let group = reader.get_row_group(group).unwrap();
        let texts: Vec<_> = values::<ByteArrayType>(&*group, 0).iter().map(|text| text.data().to_vec()).collect();
        let numbers: Vec<_> = values::<Int64Type>(&*group, 1).iter().map(|i| i.to_le_bytes().to_vec()).collect();
        let counts = [&texts, &numbers].map(Vec::len);
        check_filter(group.get_column_bloom_filter(0).unwrap(), &texts, &band);
        check_filter(group.get_column_bloom_filter(1).unwrap(), &numbers, &band);
        assert_eq!(counts[0], counts[1]);
        counts[0]
    };
    (0..reader.num_row_groups()).map(check).collect()
}

/// All values of a column that is required.
fn values<T: DataType>(group: &dyn RowGroupReader, column: usize) -> Vec<T::T> {
    let mut values = Vec::new();
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column).unwrap());
    while reader.read_records(1 << 20, None, None, &mut values).unwrap().0 > 0 {}
    values
}

fn check_filter(theirs: &Sbbf, keys: &[Vec<u8>], band: &std::ops::Range<f64>) {
    let mut bitset = Vec::new();
    theirs.write_bitset(&mut bitset).unwrap();
    let read = SplitBlockBloomFilter::from_bitset(&bitset).unwrap();
    let mut filled = SplitBlockBloomFilter::with_bitset_bytes(bitset.len()).unwrap();
    for key in keys {
        assert!(read.contains(key));
        filled.insert(key);
    }
    assert!(filled == read);
    let expected = read.expected_fpr(keys.len() as u64);
    let absent = (4000.0 / expected) as usize;
    let hits = (0..absent).filter(|i| read.contains(&format!("absent {i}"))).count();
    let ratio = hits as f64 / absent as f64 / expected;
    println!("{} keys in {} bytes: {expected:.3e} × {ratio:.3}", keys.len(), bitset.len());
    assert!(band.contains(&ratio), "{ratio:.3} times {expected:e}");
}
