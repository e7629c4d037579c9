//! The exact set of the rows of a table, as the numbers of rows. Values are read from the arrays, so no key is copied.

use crate::arrow::Column;
use crate::arrow::cell::{Cell, CellReader, reader};
use bloomline::KeyHasher;
use std::collections::TryReserveError;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::ops::Range;

/// The exact set of the rows of a table, whose batches have columns of the same types.
///
/// Rows are equal if their keys are: see "Keys of values" in docs/FORMAT.md. The set is empty at first and has room for all rows, in 5
/// bytes of address space a row, or 10 from 2^26 rows on. Pages of the memory become resident when a distinct row needs them.
///
/// ```
/// use arrow_array::{ArrayRef, StringArray};
/// use arrow_schema::{DataType, Field};
/// use bloomline_keys::arrow::{Column, RowSet};
/// use std::sync::Arc;
///
/// let field = Arc::new(Field::new("url", DataType::Utf8, true));
/// let array: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a")]));
/// let batches = [vec![Column { field, array }]];
/// let (mut set, mut answers) = (RowSet::new(&batches)?, Vec::new());
/// set.insert(0..3, false, false, |row, is_new| answers.push((row, is_new)));
/// assert_eq!(answers, [(0, Some(true)), (1, None), (2, Some(false))]);
/// # Ok::<(), std::collections::TryReserveError>(())
/// ```
pub struct RowSet<'a> {
    rows: Rows<'a>,
    hasher: KeyHasher,
    slots: Slots,
}

impl<'a> RowSet<'a> {
    /// Makes an empty set of rows of these batches. Takes time proportional to the number of batches.
    ///
    /// # Errors
    /// If there is no memory for the set.
    ///
    /// # Panics
    /// If the columns of a batch have different lengths.
    pub fn new(batches: &'a [Vec<Column>]) -> Result<Self, TryReserveError> {
        let rows = Rows::new(batches);
        let slots = Slots::new(rows.starts[batches.len()])?;
        // A seed that no producer of rows can know, so that no rows can be made that have one hash.
        Ok(Self { rows, hasher: KeyHasher::new(RandomState::new().hash_one(0)), slots })
    }

    /// Returns the number of rows of all batches.
    pub fn table_rows(&self) -> usize {
        self.rows.starts[self.rows.readers.len()]
    }

    /// Inserts rows in ascending order, or with `is_reversed` in descending order. Calls `found` with the number of each row and true if
    /// it is new, or with `None` if its key has a null and `nulls` is false.
    ///
    /// Takes time proportional to the size of the values.
    ///
    /// # Panics
    /// If there is no such row, if an array is invalid, or if [`kind_of`](crate::arrow::kind_of) refuses a field.
    pub fn insert(
        &mut self,
        rows: Range<usize>,
        is_reversed: bool,
        nulls: bool,
        mut found: impl FnMut(usize, Option<bool>),
    ) {
        let Self { rows: table, hasher, slots } = self;
        let insert = |rows| match slots {
            Slots::Narrow(slots) => table.insert(rows, (is_reversed, nulls), hasher, slots, &mut found),
            Slots::Wide(slots) => table.insert(rows, (is_reversed, nulls), hasher, slots, &mut found),
        };
        let portions = table.portions(rows);
        if is_reversed { portions.into_iter().rev().for_each(insert) } else { portions.into_iter().for_each(insert) }
    }
}

/// Rows whose memory is read together, so that the reads overlap.
const PORTION_ROWS: usize = 512;

/// The distance of the rows whose batches [`Rows`] stores.
const GUIDE_ROWS: usize = 1 << 12;

/// The rows of all batches, numbered in order.
struct Rows<'a> {
    /// The readers of the columns of each batch.
    readers: Vec<Vec<CellReader<'a>>>,
    /// The number of the first row of each batch, and the number of all rows.
    starts: Vec<usize>,
    /// The batches of the rows 0, [`GUIDE_ROWS`] and so on.
    guide: Vec<usize>,
}

impl<'a> Rows<'a> {
    /// # Panics
    /// If the columns of a batch have different lengths.
    fn new(batches: &'a [Vec<Column>]) -> Self {
        let (mut starts, mut guide) = (vec![0], Vec::new());
        for (number, columns) in batches.iter().enumerate() {
            let rows = columns.first().map_or(0, |column| column.array.len());
            assert!(columns.iter().all(|column| column.array.len() == rows), "columns have as many rows as the first");
            let end = starts[number] + rows;
            starts.push(end);
            guide.resize(end.div_ceil(GUIDE_ROWS), number);
        }
        let readers_of =
            |columns: &'a Vec<Column>| columns.iter().map(|column| reader(&column.field, &*column.array)).collect();
        Self { readers: batches.iter().map(readers_of).collect(), starts, guide }
    }

    /// Returns the batch of a row.
    #[inline]
    fn batch_of(&self, row: usize) -> usize {
        let mut batch = self.guide[row / GUIDE_ROWS];
        while self.starts[batch + 1] <= row {
            batch += 1;
        }
        batch
    }

    /// Divides rows into portions, each of one batch.
    fn portions(&self, rows: Range<usize>) -> Vec<Range<usize>> {
        let (mut start, mut portions) = (rows.start, Vec::new());
        while start < rows.end {
            let end = rows.end.min(start + PORTION_ROWS).min(self.starts[self.batch_of(start) + 1]);
            portions.push(start..end);
            start = end;
        }
        portions
    }

    /// Inserts rows of a portion.
    fn insert<S: Slot>(
        &self,
        rows: Range<usize>,
        (is_reversed, nulls): (bool, bool),
        hasher: &KeyHasher,
        table: &mut Table<S>,
        found: &mut impl FnMut(usize, Option<bool>),
    ) {
        let batch = self.batch_of(rows.start);
        let (readers, first) = (&self.readers[batch], self.starts[batch]);
        let mut hashes = [Some(0); PORTION_ROWS];
        let hashes = &mut hashes[..rows.len()];
        for read in readers {
            for (row, hash) in (rows.start - first..).zip(&mut *hashes) {
                let cell = read(row);
                let is_key = nulls || cell != Cell::Null;
                *hash = hash.filter(|_| is_key).map(|hash| hasher.combine(hash, cell.hash(hasher)));
            }
        }
        // Only to load what the inserts below read one after another: the first slot of each hash, then the row that it may equal. Loops
        // without other work let the loads overlap.
        let first_slots = hashes.iter().flatten().map(|&hash| table.first_slot(hash));
        black_box(first_slots.fold(0, u64::wrapping_add));
        let (mut similar, mut count) = ([0; PORTION_ROWS], 0);
        for &hash in hashes.iter().flatten() {
            if let Ok(row) = table.search(hash, |_| true) {
                similar[count] = row;
                count += 1;
            }
        }
        black_box(similar[..count].iter().map(|&row| self.touch(row)).fold(0, u64::wrapping_add));

        let insert = |row: usize| {
            let equals = |other| self.equals(readers, row - first, other);
            found(row, hashes[row - rows.start].map(|hash| table.insert(hash, row, equals)));
        };
        if is_reversed { rows.clone().rev().for_each(insert) } else { rows.clone().for_each(insert) }
    }

    fn touch(&self, row: usize) -> u64 {
        let batch = self.batch_of(row);
        let touched = self.readers[batch].iter().map(|read| read(row - self.starts[batch]).touch());
        touched.fold(0, u64::wrapping_add)
    }

    /// Returns true if a row of a batch equals another row of the table.
    fn equals(&self, readers: &[CellReader<'a>], row: usize, other: usize) -> bool {
        let batch = self.batch_of(other);
        let other = other - self.starts[batch];
        readers.iter().zip(&self.readers[batch]).all(|(read, read_other)| read(row) == read_other(other))
    }
}

enum Slots {
    Narrow(Table<u32>),
    Wide(Table<u64>),
}

impl Slots {
    fn new(rows: usize) -> Result<Self, TryReserveError> {
        // With this number of rows a slot has 6 bits of the hash, so few rows of other hashes are compared.
        const MAX_NARROW_ROWS: usize = (1 << 26) - 1;
        Ok(if rows <= MAX_NARROW_ROWS { Self::Narrow(Table::new(rows)?) } else { Self::Wide(Table::new(rows)?) })
    }
}

/// A hash table with linear probing. The lower bits of a slot are 1 + the number of a row, or 0 if the slot is empty; the upper ones are
/// bits of the row's hash.
struct Table<S> {
    slots: Vec<S>,
    row_bits: u32,
}

/// A word of at most 64 bits.
trait Slot: Copy + From<u8> + Into<u64> {
    /// Returns the lower bits of a number.
    fn from_low(number: u64) -> Self;
}

impl Slot for u32 {
    fn from_low(number: u64) -> Self {
        number as Self
    }
}

impl Slot for u64 {
    fn from_low(number: u64) -> Self {
        number
    }
}

impl<S: Slot> Table<S> {
    fn new(rows: usize) -> Result<Self, TryReserveError> {
        // At most four fifths are full, so a new row visits three slots on average.
        let length = rows + rows / 4 + 1;
        // The allocation of zeros leaves pages untouched, but ends the process if it fails.
        let mut memory = Vec::<S>::new();
        memory.try_reserve_exact(length)?;
        drop(black_box(memory));
        Ok(Self { slots: vec![S::from(0); length], row_bits: usize::BITS - rows.leading_zeros() })
    }

    /// Returns the first slot of a hash, which its upper bits choose.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    fn first_slot(&self, hash: u64) -> u64 {
        self.slots[self.home(hash)].into()
    }

    /// Returns the slot of a hash and a row. Its bits of the hash are the lower ones, because rows that share slots share upper ones.
    #[inline]
    fn slot(&self, hash: u64, row: usize) -> u64 {
        S::from_low(hash << self.row_bits | (row as u64 + 1)).into()
    }

    /// Returns the row of this hash for which `equals` is true, or else the index of the empty slot where such a row belongs.
    #[inline]
    fn search(&self, hash: u64, equals: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let (slot, mut index) = (self.slot(hash, 0), self.home(hash));
        loop {
            let other: u64 = self.slots[index].into();
            let number = other & ((1 << self.row_bits) - 1);
            if number == 0 {
                return Err(index);
            }
            if (other ^ slot) >> self.row_bits == 0 && equals(number as usize - 1) {
                return Ok(number as usize - 1);
            }
            index += 1;
            if index == self.slots.len() {
                index = 0;
            }
        }
    }

    /// Inserts a row unless an equal one is there. Returns true if it was inserted.
    #[inline]
    fn insert(&mut self, hash: u64, row: usize, equals: impl Fn(usize) -> bool) -> bool {
        let Err(index) = self.search(hash, equals) else { return false };
        self.slots[index] = S::from_low(self.slot(hash, row));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::{Part, Row};
    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
    use arrow_schema::Field;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    type Values = (Option<i64>, Option<f64>, Option<&'static str>);

    fn batch(rows: &[Values]) -> Vec<Column> {
        let arrays: [ArrayRef; 3] = [
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>()),
            Arc::new(rows.iter().map(|row| row.2).collect::<StringArray>()),
        ];
        let column =
            |array: ArrayRef| Column { field: Arc::new(Field::new("x", array.data_type().clone(), true)), array };
        arrays.map(column).into()
    }

    /// Returns the key of a row; `None` if it has a null and `nulls` is false.
    fn key(columns: &[Column], row: usize, nulls: bool) -> Option<Vec<Vec<u8>>> {
        let row = Row { columns, row };
        let value = |number| {
            let mut key = Vec::new();
            row.push(number, &mut key);
            (nulls || !matches!(row.part(number), Part::Null)).then_some(key)
        };
        (0..columns.len()).map(value).collect()
    }

    fn values() -> impl Strategy<Value = Values> {
        let floats = [0.0, -0.0, 1.5, f64::NAN, -f64::NAN, f64::INFINITY].map(Some);
        let texts = ["", "a", "b"].map(Some);
        (
            prop::sample::select(vec![None, Some(0), Some(-1), Some(i64::MIN)]),
            prop::sample::select([&[None], &floats[..]].concat()),
            prop::sample::select([&[None], &texts[..]].concat()),
        )
    }

    proptest! {
        #[test]
        fn the_first_of_equal_keys_is_new(
            table in prop::collection::vec(prop::collection::vec(values(), 0..40), 0..5),
            is_reversed: bool,
            nulls: bool,
        ) {
            let batches: Vec<_> = table.iter().map(|rows| batch(rows)).collect();
            let keys: Vec<_> = batches
                .iter()
                .flat_map(|columns| (0..columns[0].array.len()).map(move |row| key(columns, row, nulls)))
                .collect();
            let mut numbers: Vec<_> = (0..keys.len()).collect();
            if is_reversed {
                numbers.reverse();
            }
            let mut seen = HashSet::new();
            let expected: Vec<_> =
                numbers.iter().map(|&row| (row, keys[row].as_ref().map(|key| seen.insert(key)))).collect();

            let (mut set, mut found) = (RowSet::new(&batches).unwrap(), Vec::new());
            prop_assert_eq!(set.table_rows(), keys.len());
            let parts = [0..keys.len() / 2, keys.len() / 2..keys.len()];
            for part in if is_reversed { [1, 0] } else { [0, 1] } {
                set.insert(parts[part].clone(), is_reversed, nulls, |row, is_new| found.push((row, is_new)));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn rows_of_one_hash_are_compared() {
        fn check<S: Slot>() {
            // The first slot of this hash is the last one of the table.
            let (rows, hash) = (100, u64::MAX);
            let mut table = Table::<S>::new(rows).unwrap();
            for row in 0..rows {
                assert!(table.insert(hash, row, |_| false), "{row}");
            }
            for row in 0..rows {
                assert!(!table.insert(hash, row, |other| other == row), "{row}");
            }
        }
        check::<u32>();
        check::<u64>();
    }
}
