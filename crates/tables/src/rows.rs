//! The rows of a table, by row group, with the columns that their keys consist of.

use crate::columns::{self, Columns, RowProjection};
use crate::compared::ComparedRow;
use crate::damage::{Location, can_allocate, with_location};
use crate::file::{Source, Table};
use crate::file_schema::{self, FileSchema};
use crate::pages::Pages;
use arrow_array::RecordBatch;
use bloomline_keys::Kinds;
use bloomline_keys::arrow::{Column, Part, Row};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The number of rows that are decoded together.
pub const BATCH_ROWS: usize = 8192;

/// The bytes of memory that are left free while rows are read.
const FREE_MEMORY: u64 = 16 << 20;

/// A reader of the row groups of a table, in order.
pub struct TableReader {
    table: Arc<Table>,
    columns: Arc<Columns>,
    /// The number of the next row group.
    next: usize,
    /// The number of its first rows to skip.
    done: usize,
    /// True once rows were returned, or an empty `Rows` for a table without any.
    has_returned: bool,
}

/// Rows of a row group, or none if the table has no row groups.
pub struct Rows {
    pub(crate) table: Arc<Table>,
    /// The number of the row group, and the range of these rows in it.
    pub(crate) group: Option<usize>,
    pub(crate) range: Range<usize>,
    pub(crate) columns: Arc<Columns>,
    /// The decoded columns of the rows.
    pub(crate) batches: Vec<RecordBatch>,
}

impl TableReader {
    /// Opens a table, and skips its first `done` rows.
    ///
    /// # Errors
    /// If the file is not a sound Parquet file, or lacks a column of the projection.
    pub fn open(source: Source, done: u64, projection: &RowProjection<'_>) -> io::Result<Self> {
        let table = Table::open(source)?;
        let columns = Columns::find(&table, projection)?;
        let (mut next, mut remaining) = (0, done as usize);
        while next < table.metadata().num_row_groups() && remaining >= table.rows(next).max(1) {
            remaining -= table.rows(next);
            next += 1;
        }
        Ok(Self { table: table.into(), columns: columns.into(), next, done: remaining, has_returned: done > 0 })
    }

    /// Refuses texts that cannot be replaced if `texts`, a column with the name `added`, and other columns than in the
    /// `first` table of the same output.
    ///
    /// # Errors
    /// If the table is refused.
    pub fn check(&self, texts: bool, added: Option<&str>, first: Option<&Self>) -> io::Result<()> {
        if texts {
            self.columns.check_texts()?;
        }
        if let Some(name) = added {
            file_schema::check_added(&self.table, name)?;
        }
        let Some(first) = first else { return Ok(()) };
        let [first, file_schema] = [first, self].map(|reader| FileSchema::from_table(&reader.table, None));
        first?.check(&file_schema?, &self.table.name)
    }

    /// Returns the kinds of the values of each part of the keys.
    pub fn kinds(&self) -> &[Kinds] {
        &self.columns.kinds
    }

    /// Returns the names of the columns of a whole row, sorted.
    pub fn row_columns(&self) -> Vec<String> {
        columns::row_columns(&self.table)
    }

    /// Returns the next rows, with the requested columns decoded.
    ///
    /// # Errors
    /// If the rows are damaged or cannot be read.
    #[allow(clippy::should_implement_trait, reason = "after a failure there are no more rows")]
    pub fn next(&mut self) -> io::Result<Option<Rows>> {
        let groups = self.table.metadata().num_row_groups();
        if self.next == groups {
            let is_first = !std::mem::replace(&mut self.has_returned, true);
            return Ok(is_first.then(|| self.rows(None, 0..0, Vec::new())));
        }
        self.has_returned = true;
        let (group, start) = (self.next, std::mem::take(&mut self.done));
        self.next += 1;
        let range = start..self.table.rows(group);
        let batches = self.decode_group(group, start)?;
        let decoded: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if decoded != range.len() {
            let location = Location { group: Some(group), column: None };
            return Err(io::Error::other(format!(
                "{location}: {decoded} rows were read, but its footer states {}",
                range.len()
            )));
        }
        Ok(Some(self.rows(Some(group), range, batches)))
    }

    /// Decodes the columns of a row group, from row `from` on. After a failure, decodes them one by one to find the
    /// damaged one.
    fn decode_group(&self, group: usize, from: usize) -> io::Result<Vec<RecordBatch>> {
        let decode_all = || decode_columns(&self.table, group, self.columns.mask.clone(), from);
        with_location(Location { group: Some(group), column: None }, decode_all).map_err(|error| {
            let schema = self.table.schema();
            let decode_column = |&leaf: &usize| {
                let path = schema.column(leaf).path().string();
                let location = Location { group: Some(group), column: Some(&path) };
                with_location(location, || {
                    decode_columns(&self.table, group, ProjectionMask::leaves(schema, [leaf]), from)
                })
                .err()
            };
            self.columns.leaves.iter().find_map(decode_column).unwrap_or(error)
        })
    }

    fn rows(&self, group: Option<usize>, range: Range<usize>, batches: Vec<RecordBatch>) -> Rows {
        Rows { table: self.table.clone(), group, range, columns: self.columns.clone(), batches }
    }
}

/// Decodes columns of a row group, from row `from` on.
fn decode_columns(table: &Table, group: usize, mask: ProjectionMask, from: usize) -> Result<Vec<RecordBatch>> {
    let (mut batches, mut remaining) = (Vec::new(), table.rows(group) - from);
    for batch in reader(table, group, mask, from)? {
        let batch: RecordBatch = batch?;
        remaining = remaining.checked_sub(batch.num_rows()).ok_or_else(too_many_rows)?;
        batches.push(batch);
        if !can_allocate(FREE_MEMORY) {
            let message = "there is no memory for its rows; write smaller row groups";
            return Err(ParquetError::General(message.to_owned()));
        }
    }
    Ok(batches)
}

/// Returns the error for a row group with more rows than declared.
pub fn too_many_rows() -> ParquetError {
    ParquetError::General("it has more rows than its footer states".to_owned())
}

/// Returns a reader for columns of a row group, batch by batch, from row `from` on.
pub fn reader(table: &Table, group: usize, mask: ProjectionMask, from: usize) -> Result<ParquetRecordBatchReader> {
    let levels = parquet_to_arrow_field_levels(table.schema(), mask, Some(table.arrow.schema().fields()))?;
    let after = || RowSelection::from(vec![RowSelector::skip(from), RowSelector::select(table.rows(group) - from)]);
    let selection = (from > 0).then(after);
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &Pages { table, group }, BATCH_ROWS, selection)
}

impl Rows {
    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.range.len()
    }

    /// Returns the bytes that the first `rows` rows represent.
    pub fn bytes(&self, rows: usize) -> usize {
        let Some(group) = self.group else { return 0 };
        let all = self.table.metadata().row_group(group).total_byte_size().max(0) as f64;
        (all * rows as f64 / self.table.rows(group).max(1) as f64) as usize
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// Calls `visit` with the parts of the keys in each batch, and the number of its rows.
    fn each_batch(&self, mut visit: impl FnMut(&[Column], usize)) {
        self.batches.iter().for_each(|batch| visit(&self.columns.keys_in_batch(batch), batch.num_rows()));
    }

    /// Returns the kinds of the values of each part of the keys.
    pub fn kinds(&self) -> &[Kinds] {
        &self.columns.kinds
    }

    /// Calls `visit` with the values of each row's key, in order.
    pub fn each_key(&self, mut visit: impl FnMut(&Row<'_>)) {
        self.each_batch(|columns, rows| (0..rows).for_each(|row| visit(&Row { columns, row })));
    }

    /// Calls `visit` with the other values of each row, in order.
    pub fn each_value(&self, mut visit: impl FnMut(&ComparedRow<'_>)) {
        for batch in &self.batches {
            let columns = &self.columns.values_in_batch(batch)[..];
            (0..batch.num_rows()).for_each(|row| visit(&ComparedRow { columns, row }));
        }
    }

    /// Calls `visit` with the text of each row, in order. `None` for a null or a value that is not text.
    pub fn each_text(&self, mut visit: impl FnMut(Option<&str>)) {
        self.each_batch(|columns, rows| {
            (0..rows).for_each(|row| match (Row { columns, row }).part(0) {
                Part::Text(text) | Part::Bytes(text) => visit(std::str::from_utf8(text).ok()),
                Part::Null | Part::Other => visit(None),
            });
        });
    }
}
