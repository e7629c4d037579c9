//! The assembly of an output: concatenated row groups, and the footer with their offsets.
//!
//! Row groups are encoded before, or copied from an input. Only offsets change here.

use crate::file::{Table, failure, start};
use crate::file_schema::FileSchema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use std::any::Any;
use std::io::{self, Result, Write};
use std::mem;
use std::sync::Arc;

const MAGIC: &[u8] = b"PAR1";

/// The column order that the type defines, in Thrift's compact protocol: a union whose first field is an empty struct. Column
/// orders are the last field of a footer.
const ORDER: [u8; 3] = [0x1C, 0, 0];

/// The first byte of the column order for IEEE 754 total order: the union's second field.
const TOTAL_ORDER: u8 = 0x2C;

/// The number of bytes after the last field of a footer: the end of the struct, the length and the magic.
const FOOTER_END: usize = 9;

/// A row group for an output.
pub struct Group {
    pub(crate) table: Arc<Table>,
    pub(crate) file_schema: FileSchema,
    /// True for a row group of the table. A table may have no row groups.
    pub(crate) is_row_group: bool,
    pub(crate) contents: GroupContents,
}

pub enum GroupContents {
    Nothing,
    /// A copy of the row group with this number, and the Bloom filters of its columns.
    Copied(usize, Vec<Option<Sbbf>>),
    /// The only row group of a file in memory.
    Encoded(Bytes, Box<ParquetMetaData>),
}

/// The numbers of row groups of an output.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupCounts {
    /// Row groups of the inputs.
    pub read: u64,
    /// Row groups that were copied.
    pub copied: u64,
    /// Row groups that were rewritten.
    pub written: u64,
}

/// A file that is written: concatenated row groups, and their metadata at its end.
#[derive(Default)]
pub struct Assembly {
    file_schema: Option<FileSchema>,
    groups: Vec<RowGroupMetaData>,
    index: PageIndexes,
    length: u64,
    counts: GroupCounts,
}

/// The page indexes of an output.
#[derive(Clone, Debug, Default)]
struct PageIndexes {
    columns: Vec<Vec<Option<ColumnIndexMetaData>>>,
    offsets: Vec<Vec<Option<OffsetIndexMetaData>>>,
}

impl PageIndexProvider for PageIndexes {
    fn has_offset_indexes(&self) -> bool {
        self.offsets.iter().flatten().any(Option::is_some)
    }

    fn has_column_indexes(&self) -> bool {
        self.columns.iter().flatten().any(Option::is_some)
    }

    fn column_index(&self, group: usize, column: usize) -> Option<&ColumnIndexMetaData> {
        self.columns.get(group)?.get(column)?.as_ref()
    }

    fn offset_index(&self, group: usize, column: usize) -> Option<&OffsetIndexMetaData> {
        self.offsets.get(group)?.get(column)?.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Assembly {
    /// Appends a row group, writing its bytes to `out`. All row groups must have the columns of the first.
    ///
    /// # Errors
    /// If the columns differ, bytes that are copied cannot be read, or `out` fails.
    pub fn append(&mut self, group: &Group, out: &mut impl Write) -> Result<()> {
        let file_schema = self.file_schema.get_or_insert_with(|| group.file_schema.clone());
        file_schema.check(&group.file_schema, &group.table.name)?;
        if self.length == 0 {
            out.write_all(MAGIC)?;
            self.length = MAGIC.len() as u64;
        }
        self.counts.read += u64::from(group.is_row_group);
        match &group.contents {
            GroupContents::Copied(..) => self.counts.copied += 1,
            GroupContents::Encoded(..) => self.counts.written += 1,
            GroupContents::Nothing => {}
        }
        match &group.contents {
            GroupContents::Nothing => Ok(()),
            GroupContents::Copied(number, filters) => {
                let copy = |start, length, out: &mut _| group.table.bytes.copy(start, length, out);
                self.add(group.table.metadata(), *number, filters, copy, out)
            }
            GroupContents::Encoded(bytes, metadata) => {
                let copy =
                    |start, length, out: &mut _| Write::write_all(out, &bytes[start as usize..][..length as usize]);
                let columns = metadata.row_group(0).columns().iter();
                let filters = columns.map(|column| Sbbf::read_from_column_chunk(column, bytes));
                self.add(metadata, 0, &filters.collect::<parquet::errors::Result<Vec<_>>>()?, copy, out)
            }
        }
    }

    fn add<W: Write>(
        &mut self,
        metadata: &ParquetMetaData,
        number: usize,
        filters: &[Option<Sbbf>],
        copy: impl Fn(u64, u64, &mut W) -> Result<()>,
        out: &mut W,
    ) -> Result<()> {
        let (group, group_offset) = (metadata.row_group(number), self.length);
        let index = metadata.page_index_for_row_group(number);
        let mut columns = Vec::new();
        let (mut column_indexes, mut offset_indexes) = (Vec::new(), Vec::new());
        for (i, column) in group.columns().iter().enumerate() {
            let (start, length) = (start(column), column.compressed_size());
            copy(start as u64, length as u64, out)?;
            let move_offset = |offset: i64| offset - start + self.length as i64;
            columns.push(
                column
                    .clone()
                    .into_builder()
                    .set_data_page_offset(move_offset(column.data_page_offset()))
                    .set_dictionary_page_offset(column.dictionary_page_offset().map(move_offset))
                    .set_index_page_offset(None)
                    .set_bloom_filter_offset(None)
                    .set_bloom_filter_length(None)
                    .set_column_index_offset(None)
                    .set_column_index_length(None)
                    .set_offset_index_offset(None)
                    .set_offset_index_length(None)
                    .build()?,
            );
            column_indexes.push(index.column_index(i).cloned());
            offset_indexes.push(index.offset_index(i).map(|index| with_moved_pages(index, move_offset)));
            self.length += length as u64;
        }
        for (column, filter) in columns.iter_mut().zip(filters) {
            let Some(filter) = filter else { continue };
            let mut written = Vec::new();
            filter.write(&mut written)?;
            out.write_all(&written)?;
            *column = column
                .clone()
                .into_builder()
                .set_bloom_filter_offset(Some(self.length as i64))
                .set_bloom_filter_length(Some(written.len() as i32))
                .build()?;
            self.length += written.len() as u64;
        }
        let group = group.clone().into_builder().set_column_metadata(columns).set_file_offset(group_offset as i64);
        let ordinal = i32::try_from(self.groups.len()).unwrap_or(i32::MAX);
        self.groups.push(group.set_ordinal(ordinal).build()?);
        self.index.columns.push(column_indexes);
        self.index.offsets.push(offset_indexes);
        Ok(())
    }

    /// Writes the end of the file. Nothing can be added after it.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn finish(&mut self, out: &mut impl Write) -> Result<()> {
        let Some(file_schema) = self.file_schema.take() else { return Ok(()) };
        // An output may be kept until the end of a run with many outputs.
        let metadata_file =
            file_schema.metadata_file(mem::take(&mut self.groups), Arc::new(mem::take(&mut self.index)))?;
        // In `metadata_file`, indexes have the offsets of a file that starts with them. Here they follow the row groups.
        let index = |offset: i64| offset + self.length as i64;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&metadata_file)?;
        let mut end = 0;
        let mut groups = Vec::new();
        for group in metadata.row_groups() {
            let mut columns = Vec::new();
            for column in group.columns() {
                let ranges = [column.column_index_range(), column.offset_index_range()];
                end = ranges.iter().flatten().map(|range| range.end as usize).fold(end, usize::max);
                let builder = column.clone().into_builder();
                let builder = builder.set_column_index_offset(column.column_index_offset().map(index));
                columns.push(builder.set_offset_index_offset(column.offset_index_offset().map(index)).build()?);
            }
            groups.push(group.clone().into_builder().set_column_metadata(columns).build()?);
        }
        out.write_all(&metadata_file[..end])?;
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &file_schema.footer(groups, None)).finish().map_err(failure)?;
        order_floats(&mut footer, file_schema.schema.num_columns());
        out.write_all(&footer)
    }

    /// Returns the numbers of row groups so far.
    pub fn counts(&self) -> GroupCounts {
        self.counts
    }

    /// Returns the metadata that [`resume`](Self::resume) needs, as text. Empty if the file is finished.
    ///
    /// # Errors
    /// If the metadata is too large for the format.
    pub fn save(&self) -> Result<String> {
        let metadata_file =
            |file_schema: &FileSchema| file_schema.metadata_file(self.groups.clone(), Arc::new(self.index.clone()));
        let metadata_file = self.file_schema.as_ref().map(metadata_file).transpose()?;
        Ok(metadata_file.map_or_else(String::new, |metadata_file| STANDARD_NO_PAD.encode(metadata_file)))
    }

    /// Resumes a file of `length` bytes with this metadata and these row groups.
    ///
    /// # Errors
    /// If the metadata is damaged.
    pub fn resume(saved: &str, counts: GroupCounts, length: u64) -> Result<Self> {
        let metadata_file: Bytes = STANDARD_NO_PAD.decode(saved).map_err(io::Error::other)?.into();
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = reader.parse_and_finish(&metadata_file)?;
        let file = metadata.file_metadata();
        let (schema, key_values) = (file.schema_descr_ptr(), file.key_value_metadata().cloned());
        let file_schema = FileSchema { schema, key_values, version: file.version() };
        let numbers = 0..metadata.num_row_groups();
        let indexes: Vec<_> = numbers.map(|group| metadata.page_index_for_row_group(group)).collect();
        let leaves = || 0..file.schema_descr().num_columns();
        let index = PageIndexes {
            columns: indexes
                .iter()
                .map(|index| leaves().map(|leaf| index.column_index(leaf).cloned()).collect())
                .collect(),
            offsets: indexes
                .iter()
                .map(|index| leaves().map(|leaf| index.offset_index(leaf).cloned()).collect())
                .collect(),
        };
        // The offsets are set when the file is finished.
        let without_index_offsets = |column: &ColumnChunkMetaData| {
            let column = column.clone().into_builder().set_column_index_offset(None).set_column_index_length(None);
            Ok(column.set_offset_index_offset(None).set_offset_index_length(None).build()?)
        };
        let group = |group: &RowGroupMetaData| {
            let columns = group.columns().iter().map(without_index_offsets).collect::<Result<_>>()?;
            Ok(group.clone().into_builder().set_column_metadata(columns).build()?)
        };
        let groups = metadata.row_groups().iter().map(group).collect::<Result<_>>()?;
        Ok(Self { file_schema: Some(file_schema), groups, index, length, counts })
    }
}

/// Declares the order of each float column as defined by its type. The library declares total order, and readers
/// without it ignore the statistics. All statistics, also of copied columns, are valid in both orders: NaN is not
/// counted, and -0.0 is below 0.0.
fn order_floats(footer: &mut [u8], columns: usize) {
    let Some(end) = footer.len().checked_sub(FOOTER_END) else { return };
    let Some(start) = end.checked_sub(ORDER.len() * columns) else { return };
    let (orders, _) = footer[start..end].as_chunks_mut::<3>();
    // Anything else is not a list of column orders.
    if orders.iter().all(|order| order[0] & 0x0F == ORDER[0] & 0x0F && order[1..] == ORDER[1..]) {
        orders.iter_mut().filter(|order| order[0] == TOTAL_ORDER).for_each(|order| *order = ORDER);
    }
}

/// Returns the page locations with moved offsets.
fn with_moved_pages(index: &OffsetIndexMetaData, move_offset: impl Fn(i64) -> i64) -> OffsetIndexMetaData {
    let mut index = index.clone();
    index.page_locations.iter_mut().for_each(|page| page.offset = move_offset(page.offset));
    index
}
