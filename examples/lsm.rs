//! Tables of an LSM tree that keep their filters inside: `cargo run --example lsm`.
//!
//! A get asks one table after the other, newest first. Most do not have the key, and their filters say so without a look
//! at the data. A table is one file, mapped once, and nothing in it is copied:
//!
//! ```text
//! records   16 bytes each, a key and a value, in the order of their keys
//! padding   to a multiple of 64
//! filter    as `BloomFilter::save` would write it
//! footer    16 bytes: the number of records, and where the filter begins
//! ```

use bloomline::{BloomFilter, BorrowedBloomFilter};
use memmap2::Mmap;
use std::cell::Cell;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// Writes a table of these records, which are sorted by key.
fn write(path: &Path, records: &[(u64, u64)]) -> Result<(), Box<dyn Error>> {
    let mut filter = BloomFilter::new(records.len() as u64, 0.01)?;
    filter.extend(records.iter().map(|(key, _)| key));
    let mut table: Vec<u8> = records.iter().flat_map(|&(key, value)| [key, value]).flat_map(u64::to_le_bytes).collect();
    let start = table.len().next_multiple_of(64);
    table.resize(start + filter.file_bytes(), 0);
    filter.write_to_slice(&mut table[start..])?;
    table.extend([records.len() as u64, start as u64].into_iter().flat_map(u64::to_le_bytes));
    Ok(fs::write(path, table)?)
}

/// The bytes of a table from its filter on. The filter owns them together with the rest of the table.
struct Section {
    table: Arc<Mmap>,
    start: usize,
}

impl AsRef<[u8]> for Section {
    fn as_ref(&self) -> &[u8] {
        self.table.get(self.start..).unwrap_or_default()
    }
}

struct Table {
    filter: BorrowedBloomFilter<'static>,
    bytes: Arc<Mmap>,
    records: usize,
    /// Gets that the filter let pass.
    looks: Cell<u32>,
}

impl Table {
    fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        // SAFETY: tables are written once, before they are opened, and nobody changes them.
        #[allow(unsafe_code)]
        let bytes = Arc::new(unsafe { Mmap::map(&File::open(path)?)? });
        let footer: &[u8; 16] = bytes.last_chunk().ok_or("a table without a footer")?;
        let [records, start] =
            [0, 8].map(|i| u64::from_le_bytes(std::array::from_fn(|byte| footer[i + byte])) as usize);
        if records > start.min(bytes.len()) / 16 {
            return Err("a table whose footer has more records than there are".into());
        }
        // Its header is checked. `verify` would check the rest, and read all of it.
        let filter = BorrowedBloomFilter::new(Section { table: bytes.clone(), start })?;
        Ok(Self { filter, bytes, records, looks: Cell::new(0) })
    }

    fn get(&self, key: u64) -> Option<u64> {
        if !self.filter.contains(&key) {
            return None;
        }
        self.looks.set(self.looks.get() + 1);
        let records = &self.bytes.as_chunks::<8>().0[..2 * self.records].as_chunks::<2>().0;
        let found = records.binary_search_by_key(&key, |[key, _]| u64::from_le_bytes(*key)).ok()?;
        Some(u64::from_le_bytes(records[found][1]))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const TABLES: u64 = 10;
    const RECORDS: u64 = 10_000;
    let folder = tempfile::tempdir()?;
    let mut tables = Vec::new();
    for i in 0..TABLES {
        let path = folder.path().join(format!("{i}.table"));
        // Every table has keys from the whole range, as those have that were flushed one after the other.
        let records: Vec<_> = (0..RECORDS).map(|record| (record * TABLES + i, record)).collect();
        write(&path, &records)?;
        tables.push(Table::open(&path)?);
    }
    let get = |key| tables.iter().rev().find_map(|table| table.get(key));
    assert!((0..TABLES * RECORDS).all(|key| get(key) == Some(key / TABLES)));
    // One table has the key. The filters of those before it let 1 % pass.
    let looks = tables.iter().map(|table| table.looks.get()).sum::<u32>() as f64 / (TABLES * RECORDS) as f64;
    println!("{looks:.3} of {TABLES} tables looked into for a key");
    assert!(looks < 1.06);
    Ok(())
}

// Big-endian machines do not borrow filters.
#[cfg(target_endian = "little")]
#[test]
fn runs() {
    main().unwrap();
}

#[cfg(target_endian = "little")]
#[test]
fn a_footer_of_more_records_than_there_are_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    write(&path, &[(1, 2), (3, 4)]).unwrap();
    assert_eq!(Table::open(&path).unwrap().get(3), Some(4));
    let mut table = fs::read(&path).unwrap();
    let footer = table.len() - 16;
    table[footer] = 5; // the 64 bytes before the filter have room for four
    fs::write(&path, table).unwrap();
    assert!(Table::open(&path).is_err());
}
