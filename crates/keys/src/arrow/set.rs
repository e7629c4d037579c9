//! The exact set of the rows of a table, as the numbers of rows. Values are read from the arrays, so no key is copied.

use crate::arrow::Column;
use crate::arrow::cell::Cell;
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
/// set.insert(0, false, false, |row, is_new| answers.push((row, is_new)));
/// assert_eq!(answers, [(0, Some(true)), (1, None), (2, Some(false))]);
/// # Ok::<(), std::collections::TryReserveError>(())
/// ```
pub struct RowSet<'a> {
    rows: Rows<'a>,
    hasher: KeyHasher,
    slots: Slots,
    /// The hashes of the rows of a call; `None` for a row without a key.
    hashes: Vec<Option<u64>>,
}

impl<'a> RowSet<'a> {
    /// Makes an empty set of rows of these batches.
    ///
    /// # Errors
    /// If there is no memory for the set.
    ///
    /// # Panics
    /// If the columns of a batch have different lengths.
    pub fn new(batches: &'a [Vec<Column>]) -> Result<Self, TryReserveError> {
        let (mut starts, mut count) = (Vec::new(), 0);
        for batch in batches {
            starts.push(count);
            let rows = batch.first().map_or(0, |column| column.array.len());
            assert!(batch.iter().all(|column| column.array.len() == rows), "columns have as many rows as the first");
            count += rows;
        }
        // A seed that no producer of rows can know, so that no rows can be made that have one hash.
        let hasher = KeyHasher::new(RandomState::new().hash_one(0));
        Ok(Self { rows: Rows { batches, starts }, hasher, slots: Slots::new(count)?, hashes: Vec::new() })
    }

    /// Returns the number of rows of all batches. O(batches).
    pub fn table_rows(&self) -> usize {
        (0..self.rows.batches.len()).map(|batch| self.rows.of_batch(batch).len()).sum()
    }

    /// Inserts the rows of a batch, from its last one to its first with `is_reversed`. Calls `found` with the number of each row in the
    /// table and true if it is new, or with `None` if its key has a null and `nulls` is false.
    ///
    /// Takes time proportional to the size of the values, and 16 bytes of memory for each row of the batch.
    ///
    /// # Panics
    /// If there is no such batch, if an array is invalid, or if [`kind_of`](crate::arrow::kind_of) refuses a field.
    pub fn insert(&mut self, batch: usize, is_reversed: bool, nulls: bool, mut found: impl FnMut(usize, Option<bool>)) {
        self.hash(batch, nulls);
        match &mut self.slots {
            Slots::Narrow(table) => table.prefetch(&self.hashes),
            Slots::Wide(table) => table.prefetch(&self.hashes),
        }
        let (rows, hashes) = (self.rows.of_batch(batch), &self.hashes);
        let first = rows.start;
        let insert = |row: usize| {
            let equals = |other| self.rows.are_equal(row, other);
            let is_new = hashes[row - first].map(|hash| match &mut self.slots {
                Slots::Narrow(table) => table.insert(hash, row, equals),
                Slots::Wide(table) => table.insert(hash, row, equals),
            });
            found(row, is_new);
        };
        if is_reversed { rows.rev().for_each(insert) } else { rows.for_each(insert) }
    }

    fn hash(&mut self, batch: usize, nulls: bool) {
        let hasher = &self.hasher;
        self.hashes.clear();
        self.hashes.resize(self.rows.of_batch(batch).len(), Some(0));
        for column in &self.rows.batches[batch] {
            for (row, hash) in self.hashes.iter_mut().enumerate() {
                let cell = Cell::new(&column.field, &*column.array, row);
                let is_key = nulls || cell != Cell::Null;
                *hash = hash.filter(|_| is_key).map(|hash| hasher.combine(hash, cell.hash(hasher)));
            }
        }
    }
}

/// The rows of all batches, numbered in order.
struct Rows<'a> {
    batches: &'a [Vec<Column>],
    /// The number of the first row of each batch.
    starts: Vec<usize>,
}

impl Rows<'_> {
    fn of_batch(&self, batch: usize) -> Range<usize> {
        let start = self.starts[batch];
        start..start + self.batches[batch].first().map_or(0, |column| column.array.len())
    }

    fn are_equal(&self, left: usize, right: usize) -> bool {
        let locate = |number: usize| {
            let batch = self.starts.partition_point(|&start| start <= number) - 1;
            (&self.batches[batch], number - self.starts[batch])
        };
        let ((left, left_row), (right, right_row)) = (locate(left), locate(right));
        left.iter().zip(right).all(|(left, right)| {
            Cell::new(&left.field, &*left.array, left_row) == Cell::new(&right.field, &*right.array, right_row)
        })
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

    /// Reads the first slot of each hash. These reads overlap, those of inserts would not.
    fn prefetch(&self, hashes: &[Option<u64>]) {
        let read = |hash: &Option<u64>| hash.map_or(0, |hash| self.slots[self.home(hash)].into());
        black_box(hashes.iter().map(read).fold(0, u64::wrapping_add));
    }

    /// Inserts a row unless an equal one is there. Returns true if it was inserted.
    #[inline]
    fn insert(&mut self, hash: u64, row: usize, equals: impl Fn(usize) -> bool) -> bool {
        // The lower bits of the hash, because rows that share slots share its upper ones.
        let slot: u64 = S::from_low(hash << self.row_bits | (row as u64 + 1)).into();
        let mut index = self.home(hash);
        loop {
            let other: u64 = self.slots[index].into();
            let number = other & ((1 << self.row_bits) - 1);
            if number == 0 {
                self.slots[index] = S::from_low(slot);
                return true;
            }
            if (other ^ slot) >> self.row_bits == 0 && equals(number as usize - 1) {
                return false;
            }
            index += 1;
            if index == self.slots.len() {
                index = 0;
            }
        }
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
            let mut numbers_of_batches: Vec<_> = (0..batches.len()).collect();
            if is_reversed {
                numbers.reverse();
                numbers_of_batches.reverse();
            }
            let mut seen = HashSet::new();
            let expected: Vec<_> =
                numbers.iter().map(|&row| (row, keys[row].as_ref().map(|key| seen.insert(key)))).collect();

            let (mut set, mut found) = (RowSet::new(&batches).unwrap(), Vec::new());
            prop_assert_eq!(set.table_rows(), keys.len());
            for number in numbers_of_batches {
                set.insert(number, is_reversed, nulls, |row, is_new| found.push((row, is_new)));
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
