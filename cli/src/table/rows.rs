//! The rows of a table: row group by row group, with the columns that their keys are made of.

use crate::input::inputs::Input;
use crate::key::json::Pointer;
use crate::table::Wanted;
use crate::table::columns::Columns;
use crate::table::file::{Place, Table, short};
use crate::table::selected::{Added, Selected, Wish};
use crate::table::value::{self, Row};
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::io;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

/// Rows that are decoded together.
pub const BATCH: usize = 8192;

/// Reads the row groups of a table, one after another.
pub struct TableReader {
    table: Arc<Table>,
    columns: Arc<Columns>,
    /// The next row group, and the rows of it that are done.
    next: usize,
    done: usize,
    /// Whether rows were given, or none because there are none.
    begun: bool,
    /// Whether its values have to be texts.
    texts: bool,
}

/// Rows of a row group, or none of a table that has no row group.
pub struct Rows {
    pub table: Arc<Table>,
    /// Its number, and which rows of it these are.
    pub group: Option<usize>,
    pub range: Range<usize>,
    pub columns: Arc<Columns>,
    /// What was read of them.
    pub batches: Vec<RecordBatch>,
}

impl TableReader {
    /// Opens a table, of which so many rows are done.
    pub fn open(input: Input, done: u64, wanted: Wanted<'_>) -> io::Result<Self> {
        let table = Table::open(input)?;
        let one;
        let pointers: Option<&[Pointer]> = match wanted {
            Wanted::Row => None,
            Wanted::Values(pointers) => Some(pointers),
            Wanted::Text(pointer) => {
                one = [pointer.clone()];
                Some(&one)
            }
            Wanted::Field => {
                let message = "it is Parquet, and has columns where lines have fields; give --column";
                return Err(io::Error::other(message));
            }
        };
        let columns = Columns::find(&table, pointers)?;
        let (mut next, mut left) = (0, done as usize);
        while next < table.metadata().num_row_groups() && left >= table.rows(next).max(1) {
            left -= table.rows(next);
            next += 1;
        }
        Ok(Self {
            table: table.into(),
            columns: columns.into(),
            next,
            done: left,
            begun: done > 0,
            texts: matches!(wanted, Wanted::Text(_)),
        })
    }

    /// The next rows. They are decoded with the columns that were asked for.
    pub fn next(&mut self) -> io::Result<Option<Rows>> {
        let groups = self.table.metadata().num_row_groups();
        if self.next == groups {
            let is_first = !std::mem::replace(&mut self.begun, true);
            return Ok(is_first.then(|| self.rows(None, 0..0, Vec::new())));
        }
        self.begun = true;
        let (group, start) = (self.next, std::mem::take(&mut self.done));
        self.next += 1;
        let range = start..self.table.rows(group);
        let batches = if self.columns.are_read() { self.read(group, start)? } else { Vec::new() };
        let read: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if self.columns.are_read() && read != range.len() {
            let place = Place { group: Some(group), column: None };
            return Err(io::Error::other(format!(
                "{place}: {read} rows are there, and its footer tells of {}",
                range.len()
            )));
        }
        if let Some(first) = batches.first() {
            let columns = self.columns.of_batch(Some(first), first.num_rows());
            columns.iter().try_for_each(|column| value::check(column.data_type(), self.texts))?;
        }
        Ok(Some(self.rows(Some(group), range, batches)))
    }

    /// Decodes the columns of a row group, from a row on. Where that fails, one column after another tells which one it is.
    fn read(&self, group: usize, from: usize) -> io::Result<Vec<RecordBatch>> {
        let all = || read(&self.table, group, self.columns.mask.clone(), from);
        in_place(Place { group: Some(group), column: None }, all).map_err(|error| {
            let schema = self.table.schema();
            let alone = |&leaf: &usize| {
                let path = schema.column(leaf).path().string();
                let place = Place { group: Some(group), column: Some(&path) };
                in_place(place, || read(&self.table, group, ProjectionMask::leaves(schema, [leaf]), from)).err()
            };
            self.columns.leaves.iter().find_map(alone).unwrap_or(error)
        })
    }

    fn rows(&self, group: Option<usize>, range: Range<usize>, batches: Vec<RecordBatch>) -> Rows {
        Rows { table: self.table.clone(), group, range, columns: self.columns.clone(), batches }
    }
}

/// Decodes columns of a row group, from a row on.
fn read(table: &Table, group: usize, mask: ProjectionMask, from: usize) -> parquet::errors::Result<Vec<RecordBatch>> {
    Ok(reader(table, group, mask, from)?.collect::<Result<_, _>>()?)
}

/// Reads columns of a row group batch by batch, from a row on.
pub fn reader(
    table: &Table,
    group: usize,
    mask: ProjectionMask,
    from: usize,
) -> parquet::errors::Result<ParquetRecordBatchReader> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(table.bytes.clone(), table.arrow.clone());
    builder.with_row_groups(vec![group]).with_projection(mask).with_offset(from).with_batch_size(BATCH).build()
}

/// Does what a damaged file may make fail, and tells where that was. The library's own checks may panic.
pub fn in_place<T>(place: Place<'_>, work: impl FnOnce() -> parquet::errors::Result<T>) -> io::Result<T> {
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let failed = |what: &str| io::Error::other(format!("{place}: {what}"));
    done.map_err(|_| failed("it is damaged"))?.map_err(|error| failed(&short(&error)))
}

impl Rows {
    pub fn count(&self) -> usize {
        self.range.len()
    }

    /// Bytes that the first of them stand for.
    pub fn bytes(&self, rows: usize) -> usize {
        let Some(group) = self.group else { return 0 };
        let all = self.table.metadata().row_group(group).total_byte_size().max(0) as f64;
        (all * rows as f64 / self.table.rows(group).max(1) as f64) as usize
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// Calls `key` with the parts of the keys of each batch, and the number of its rows.
    fn each_batch(&self, mut key: impl FnMut(&[ArrayRef], usize)) {
        if !self.columns.are_read() {
            return key(&self.columns.of_batch(None, self.count()), self.count());
        }
        self.batches
            .iter()
            .for_each(|batch| key(&self.columns.of_batch(Some(batch), batch.num_rows()), batch.num_rows()));
    }

    /// Calls `found` with the values of each row, in order.
    pub fn each_row(&self, mut found: impl FnMut(&Row<'_>)) {
        self.each_batch(|columns, rows| (0..rows).for_each(|row| found(&Row { columns, row })));
    }

    /// Calls `found` with the text of each row, in order. None is a null or no text.
    pub fn each_text(&self, mut found: impl FnMut(Option<&str>)) {
        self.each_batch(|columns, rows| {
            let texts = &*columns[0];
            (0..rows).for_each(|row| {
                let bytes = if texts.is_null(row) { None } else { value::bytes(texts, row) };
                found(bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()));
            });
        });
    }

    /// Those of them that are wanted, to be written.
    pub fn select(
        self: &Arc<Self>,
        wanted: Vec<bool>,
        texts: Option<Vec<Option<String>>>,
        added: Option<Added>,
        wish: Wish,
    ) -> Selected {
        Selected { rows: self.clone(), wanted, texts, added, wish }
    }
}
