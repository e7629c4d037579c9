//! Parquet files that are read: the footer, and bytes by position.

use crate::damage::{Location, can_allocate, catch_failure, out_of_memory, short_message};
use crate::partitions::partitions;
use crate::positioned::{read_at, read_exact_at};
use crate::thrift::{check_schema, is_offset_index, with_typed_row_groups};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::SchemaDescriptor;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first and last bytes of a file, and the first bytes of a file with an encrypted footer.
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";

/// The maximum length of a plausible footer.
const LONGEST_FOOTER: u64 = 1 << 30;

/// The maximum number of bytes of memory for a byte of a footer.
const FOOTER_MEMORY: u64 = 40;

/// The size of the footer's length and the magic after it.
const FOOTER_SUFFIX_BYTES: usize = 8;

/// The first bytes of the header of a version 2 data page: its type, in Thrift's compact protocol.
const VERSION_2_PAGE: [u8; 2] = [0x15, 0x06];

/// The number of bytes that are read at once if pages are consecutive.
const BUFFER: usize = 1 << 16;

/// A file to read as a table.
pub struct Source {
    /// The name in messages.
    pub name: String,
    /// The path, whose folders may name columns, such as `day=2026-11-01/`.
    pub path: PathBuf,
    /// The file, which is read by position.
    pub file: File,
    /// The counter of bytes that are read.
    pub read: Arc<AtomicU64>,
}

/// A Parquet file.
pub struct Table {
    /// The name in messages.
    pub name: String,
    pub bytes: PositionedFile,
    pub arrow: ArrowReaderMetadata,
    /// The columns in the path, such as `day=2026-11-01/`, each with its value; `None` is null.
    pub partitions: Vec<(String, Option<String>)>,
}

/// The bytes of a file, read by position, so that threads do not interfere.
#[derive(Clone)]
pub struct PositionedFile {
    file: Arc<File>,
    length: u64,
    /// The counter of bytes that are read.
    read: Arc<AtomicU64>,
}

/// A sequential reader from a position.
pub struct PositionedReader {
    bytes: PositionedFile,
    position: u64,
}

impl Table {
    /// Reads the footer of a file.
    pub fn open(Source { name, path, file, read }: Source) -> io::Result<Self> {
        let partitions = partitions(&path);
        let bytes = PositionedFile::new(file.into(), read)?;
        let (metadata, schema) = footer(&bytes)?;
        let arrow = in_footer(|| {
            let mut reader = ParquetMetaDataReader::new_with_metadata(metadata);
            reader = reader.with_page_index_policy(PageIndexPolicy::Optional);
            reader.read_page_indexes(&bytes)?;
            ArrowReaderMetadata::try_new(reader.finish()?.into(), options().with_schema(with_views(&schema)))
        })?;
        Ok(Self { name, bytes, arrow, partitions })
    }

    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.arrow.metadata()
    }

    pub fn schema(&self) -> &SchemaDescriptor {
        self.metadata().file_metadata().schema_descr()
    }

    pub fn key_values(&self) -> Option<&Vec<KeyValue>> {
        self.metadata().file_metadata().key_value_metadata()
    }

    /// Returns the number of rows in a row group.
    pub fn rows(&self, group: usize) -> usize {
        self.metadata().row_group(group).num_rows() as usize
    }

    /// True if a column of a row group has version 2 pages. Footers do not show it: some writers always claim version 1.
    pub fn has_version_2_pages(&self, column: &ColumnChunkMetaData) -> bool {
        let mut start = [0; VERSION_2_PAGE.len()];
        let read = read_exact_at(&self.bytes.file, &mut start, column.data_page_offset() as u64);
        read.is_ok() && start == VERSION_2_PAGE
    }
}

/// Returns the options for reading footers.
fn options() -> ArrowReaderOptions {
    // The stored Arrow types are not part of the format. `with_meanings` adds the types that the format lacks.
    ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_encoding_stats_as_mask(false)
}

/// Returns the schema of a file, extended by the stored Arrow schema: types that the format stores as integers, such as
/// durations, extension types, and the metadata of pandas. If that cannot be read, the schema is unchanged.
fn with_meanings(schema: &SchemaRef, metadata: &ParquetMetaData) -> SchemaRef {
    let file = metadata.file_metadata();
    let stored = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata());
    let Some(stored) = stored.ok().filter(|stored| stored.fields().len() == schema.fields().len()) else {
        return schema.clone();
    };
    let fields: Fields =
        schema.fields().iter().zip(stored.fields()).map(|(own, stored)| with_meaning(own, stored)).collect();
    Arc::new(Schema::new_with_metadata(fields, stored.metadata().clone()))
}

fn with_meaning(own: &Arc<Field>, stored: &Arc<Field>) -> Arc<Field> {
    use DataType::*;
    let data_type = match (own.data_type(), stored.data_type()) {
        (Int64, Duration(_) | Date64 | Time64(_))
        | (Int32, Time32(_))
        | (Int32 | Int64, Timestamp(..))
        | (Binary, Utf8) => stored.data_type().clone(),
        (
            List(own),
            List(stored) | LargeList(stored) | FixedSizeList(stored, _) | ListView(stored) | LargeListView(stored),
        ) => List(with_meaning(own, stored)),
        (Map(own, sorted), Map(stored, _)) => Map(with_meaning(own, stored), *sorted),
        (Struct(own), Struct(stored)) if own.len() == stored.len() => {
            Struct(own.iter().zip(stored).map(|(own, stored)| with_meaning(own, stored)).collect())
        }
        (own, _) => own.clone(),
    };
    let metadata = own.metadata().iter().chain(stored.metadata().iter());
    let metadata: HashMap<String, String> = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
    Arc::new(own.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// Returns the schema with texts and binaries as views, which are not copied when read.
fn with_views(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(with_view_type).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn with_view_type(field: &Arc<Field>) -> Arc<Field> {
    let kind = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::List(inner) => DataType::List(with_view_type(inner)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(with_view_type).collect()),
        DataType::Map(entries, sorted) => DataType::Map(with_view_type(entries), *sorted),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// Reads the footer of a file, without the page indexes, and the types of its columns.
fn footer(bytes: &PositionedFile) -> io::Result<(ParquetMetaData, SchemaRef)> {
    let (start, length) = bytes.check_ends()?;
    let memory = length * FOOTER_MEMORY;
    if !can_allocate(memory) {
        return Err(io::Error::other(short_message(&out_of_memory("its footer", memory))));
    }
    let footer = bytes.get_bytes(start, length as usize)?;
    check_schema(&footer).map_err(io::Error::other)?;
    let (metadata, schema) = in_footer(|| {
        let arrow = match with_typed_row_groups(&footer) {
            None => ArrowReaderMetadata::load(bytes, options())?,
            Some(footer) => {
                let options = options();
                let read =
                    ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(options.metadata_options()))?;
                ArrowReaderMetadata::try_new(read.into(), options)?
            }
        };
        let metadata = without_absent_dictionaries(arrow.metadata())?;
        let schema = with_meanings(arrow.schema(), &metadata);
        Ok((metadata, schema))
    })?;
    let metadata = Arc::unwrap_or_clone(metadata);
    bytes.check_groups(&metadata)?;
    Ok((metadata, schema))
}

/// Runs `work`, which may fail for a damaged footer.
fn in_footer<T>(work: impl FnOnce() -> Result<T>) -> io::Result<T> {
    catch_failure(work).map_err(|reason| {
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        io::Error::other(format!("its footer is damaged{reason}"))
    })
}

/// Removes dictionary offsets of 0, with which old writers mark a missing dictionary. The library would read there.
fn without_absent_dictionaries(metadata: &Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
    let is_absent = |column: &ColumnChunkMetaData| column.dictionary_page_offset().is_some_and(|offset| offset <= 0);
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_absent) {
        return Ok(metadata.clone());
    }
    let mut repaired = metadata.as_ref().clone().into_builder();
    for group in repaired.take_row_groups() {
        let columns = group.columns().iter().map(|column| match is_absent(column) {
            true => column.clone().into_builder().set_dictionary_page_offset(None).build(),
            false => Ok(column.clone()),
        });
        let columns = columns.collect::<Result<_>>()?;
        repaired = repaired.add_row_group(group.into_builder().set_column_metadata(columns).build()?);
    }
    Ok(repaired.build().into())
}

/// Returns the offset of a column in a row group.
pub fn start(column: &ColumnChunkMetaData) -> i64 {
    let data = column.data_page_offset();
    column.dictionary_page_offset().filter(|&dictionary| dictionary < data).unwrap_or(data)
}

/// Returns the number of rows of a file, and the bytes of a column of texts, or of all columns.
///
/// # Errors
/// If the footer is damaged or cannot be read.
pub fn measure(file: &File, column: Option<&[String]>) -> io::Result<(u64, u64)> {
    let bytes = PositionedFile::new(Arc::new(file.try_clone()?), Arc::default())?;
    let (metadata, _) = footer(&bytes)?;
    let literal = column.map(|path| [path.join(".")]);
    let is_requested = |path: &[String]| {
        column.is_none_or(|column| path == column) || literal.as_ref().is_some_and(|name| path == name)
    };
    let (mut rows, mut size) = (0u64, 0u64);
    for group in metadata.row_groups() {
        // Each row has a value, or a null, in each column. So a single wrong number does no harm.
        let values = group.columns().iter().map(|chunk| chunk.num_values()).max().unwrap_or(0);
        rows = rows.saturating_add(group.num_rows().min(values).max(0) as u64);
        let columns = group.columns().iter();
        let requested = columns.filter(|chunk| is_requested(chunk.column_path().parts()));
        size = requested.map(|chunk| chunk.uncompressed_size().max(0) as u64).fold(size, u64::saturating_add);
    }
    Ok((rows, size))
}

/// Returns the system's error for a failed write.
pub fn failure(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => source.downcast().map_or_else(io::Error::other, |source| *source),
        error => io::Error::other(error),
    }
}

impl PositionedFile {
    fn new(file: Arc<File>, read: Arc<AtomicU64>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length, read })
    }

    /// Refuses a truncated or encrypted file, and a footer that does not fit. Returns the footer's start and length.
    fn check_ends(&self) -> io::Result<(u64, u64)> {
        let truncated = || io::Error::other("the file is cut: it begins as Parquet, but does not end as Parquet");
        let mut end = [0; FOOTER_SUFFIX_BYTES];
        let suffix_start = self
            .length
            .checked_sub(FOOTER_SUFFIX_BYTES as u64)
            .filter(|&start| start >= MAGIC.len() as u64)
            .ok_or_else(truncated)?;
        read_exact_at(&self.file, &mut end, suffix_start)?;
        let (length, magic) = end.split_at(4);
        if magic == ENCRYPTED {
            return Err(io::Error::other("its footer is encrypted; decrypt the file first"));
        }
        if magic != MAGIC {
            return Err(truncated());
        }
        let length = u64::from(u32::from_le_bytes(length.try_into().expect("four bytes")));
        if length > suffix_start.min(LONGEST_FOOTER) {
            return Err(io::Error::other(format!(
                "its footer is damaged: it would take {length} bytes of {suffix_start}"
            )));
        }
        Ok((suffix_start - length, length))
    }

    /// Refuses a footer that refers to bytes outside the file.
    fn check_groups(&self, metadata: &ParquetMetaData) -> io::Result<()> {
        let damaged = |group: usize, column: String, problem: &str| {
            let location = Location { group: Some(group), column: Some(&column) };
            Err(io::Error::other(format!("{location}: {problem}")))
        };
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let range = |start: Option<i64>, length: Option<i64>| {
            let (start, length) = (u64::try_from(start?).ok()?, u64::try_from(length?).ok()?);
            start.checked_add(length).filter(|&end| end <= self.length).map(|end| start..end)
        };
        let mut indexes = Vec::new();
        for (i, group) in metadata.row_groups().iter().enumerate() {
            // The number of rows without columns could not be checked.
            let is_empty = columns == 0 && group.num_rows() > 0;
            if group.num_rows() < 0 || group.num_columns() != columns || is_empty {
                return Err(io::Error::other(format!("row group {i}: its footer is damaged")));
            }
            for column in group.columns() {
                let path = || column.column_path().string();
                if column.crypto_metadata().is_some() {
                    return damaged(i, path(), "the column is encrypted; decrypt the file first");
                }
                if column.file_path().is_some() {
                    return damaged(i, path(), "its bytes are in another file; write the table to one file first");
                }
                if range(Some(start(column)), Some(column.compressed_size())).is_none() {
                    return damaged(i, path(), "its bytes are beyond the end of the file, which is cut or damaged");
                }
                if let Some(start) = column.offset_index_offset() {
                    let Some(range) = range(Some(start), column.offset_index_length().map(i64::from)) else {
                        return damaged(i, path(), "the index of its pages is beyond the end of the file");
                    };
                    indexes.push(range);
                }
            }
        }
        self.check_offset_indexes(&indexes)
    }

    /// Refuses page indexes that declare more pages than they have bytes. The indexes are adjacent.
    fn check_offset_indexes(&self, indexes: &[Range<u64>]) -> io::Result<()> {
        let start = indexes.iter().map(|index| index.start).min().unwrap_or(0);
        let end = indexes.iter().map(|index| index.end).max().unwrap_or(0);
        let bytes = self.get_bytes(start, (end - start) as usize)?;
        let index_bytes = |index: &Range<u64>| &bytes[(index.start - start) as usize..(index.end - start) as usize];
        if indexes.iter().all(|index| index.is_empty() || is_offset_index(index_bytes(index))) {
            return Ok(());
        }
        Err(io::Error::other("an index of its pages is damaged"))
    }

    /// Copies bytes of the file. A failed read is reported as a failure of the input.
    pub fn copy(&self, start: u64, length: u64, out: &mut impl io::Write) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER.min(length as usize)];
        let (mut position, end) = (start, start + length);
        while position < end {
            let length = buffer.len().min((end - position) as usize);
            let read = read_exact_at(&self.file, &mut buffer[..length], position);
            read.map_err(|source| io::Error::other(format!("an input cannot be read at byte {position}: {source}")))?;
            out.write_all(&buffer[..length])?;
            position += length as u64;
            self.read.fetch_add(length as u64, Relaxed);
        }
        Ok(())
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<PositionedReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = PositionedReader { bytes: self.clone(), position: start };
        // Only the header of a page is read.
        Ok(BufReader::with_capacity(512, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A wrong length must not allocate memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            let message = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(message));
        }
        let mut buffer = vec![0; length];
        read_exact_at(&self.file, &mut buffer, start)?;
        self.read.fetch_add(length as u64, Relaxed);
        Ok(buffer.into())
    }
}

impl Read for PositionedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.bytes.file, buffer, self.position)?;
        self.position += read as u64;
        self.bytes.read.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}
