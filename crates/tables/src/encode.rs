//! Rewritten row groups: each column by itself, encoded and compressed as before.

use crate::assembly::{Group, GroupContents};
use crate::damage::{Location, catch_panic, with_location};
use crate::file::Table;
use crate::file_schema::{Added, FileSchema};
use crate::json;
use crate::rows::{Rows, reader, too_many_rows};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, StringViewArray, new_null_array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{
    BrotliLevel, Compression, CompressionCodec, ConvertedType, Encoding, GzipLevel, PageType, Type, ZstdLevel,
};
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use std::io;
use std::mem;
use std::sync::Arc;

/// The level of zstd, which is not stored in files.
const ZSTD_LEVEL: i32 = 3;

/// The maximum size of a dictionary with its indices, as a fraction of the plain size.
const MAX_DICTIONARY_FRACTION: f64 = 0.9;

/// The false-positive rate of the Bloom filters in a file that has some.
const FILTER_FPR: f64 = 0.01;

/// Rows of a row group, and the selection to write.
pub struct SelectedRows<'a> {
    /// The rows.
    pub rows: &'a Rows,
    /// True for each row that is written.
    pub selected_rows: &'a [bool],
    /// The replacements of texts, if any; `None` leaves a text unchanged.
    pub texts: Option<Vec<Option<String>>>,
    /// An added column.
    pub added: Option<Added>,
    /// Another compression than before.
    pub compression: Option<Compression>,
}

impl SelectedRows<'_> {
    /// Makes a row group of the selected rows, or none. An unchanged group is copied.
    ///
    /// # Errors
    /// If the group is damaged, or has values that are not written.
    pub fn encode(&self) -> io::Result<Group> {
        let damaged = || Err(io::Error::other(format!("row group {}: it is damaged", self.rows.group.unwrap_or(0))));
        catch_panic(|| group(self)).unwrap_or_else(damaged)
    }
}

/// Makes a row group of the selected rows, or none. An unchanged group is copied.
fn group(selection: &SelectedRows<'_>) -> io::Result<Group> {
    let SelectedRows { rows, selected_rows, texts, added, compression } = selection;
    let table = &rows.table;
    let file_schema = FileSchema::from_table(table, added.as_ref())?;
    let kept = selected_rows.iter().filter(|is_selected| **is_selected).count();
    let is_row_group = rows.group.is_some();
    let nothing = || Group {
        table: table.clone(),
        file_schema: file_schema.clone(),
        is_row_group,
        contents: GroupContents::Nothing,
    };
    let Some(group) = rows.group.filter(|_| kept > 0) else { return Ok(nothing()) };
    let changes = texts.as_ref().is_some_and(|texts| {
        texts.iter().zip(*selected_rows).any(|(text, is_selected)| *is_selected && text.is_some())
    });
    let is_unchanged = kept == table.rows(group) && !changes && added.is_none() && compression.is_none();
    let contents = if is_unchanged {
        GroupContents::Copied(group, filters(table, group)?)
    } else {
        encode(selection, group, kept, &file_schema)?
    };
    Ok(Group { table: table.clone(), file_schema, is_row_group, contents })
}

fn encode(
    selection: &SelectedRows<'_>,
    group: usize,
    kept: usize,
    file_schema: &FileSchema,
) -> io::Result<GroupContents> {
    let SelectedRows { rows, selected_rows, texts, added, .. } = selection;
    let (table, metadata) = (&*rows.table, rows.table.metadata().row_group(group));
    let schema = table.schema();

    check(selection, group)?;
    let replaced = texts.as_ref().and_then(|_| rows.columns.root());
    let properties = properties(selection, metadata, kept as u64, replaced);
    let in_group = |error: ParquetError| io::Error::other(format!("row group {group}: {error}"));
    let mut writer = SerializedFileWriter::new(Vec::new(), file_schema.schema.root_schema_ptr(), properties.into())
        .map_err(in_group)?;
    let mut fields: Vec<Arc<Field>> = table.arrow.schema().fields().iter().map(|field| stored(field, schema)).collect();
    fields.extend(added.as_ref().map(|added| Arc::new(added.field())));
    let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::new(Schema::new(fields.clone())));
    let mut writers = factory.create_column_writers(0).map_err(in_group)?.into_iter();
    let mut row_group = writer.next_row_group().map_err(in_group)?;
    let filtered: Vec<BooleanArray> = match &rows.batches[..] {
        [] => Vec::new(),
        batches => masks(selected_rows, batches.iter().map(|batch| batch.num_rows())),
    };
    let mut leaves = vec![0; schema.root_schema().get_fields().len()];
    (0..schema.num_columns()).for_each(|leaf| leaves[schema.get_column_root_idx(leaf)] += 1);
    for (root, field) in fields.iter().enumerate() {
        let leaves = leaves.get(root).copied().unwrap_or(1);
        let mut writers: Vec<ArrowColumnWriter> = writers.by_ref().take(leaves).collect();
        let location = Location { group: Some(group), column: Some(field.name()) };
        with_location(location, || {
            let mut write = |array: &ArrayRef, mask: &BooleanArray| {
                let array = match mask.true_count() {
                    0 => return Ok(()),
                    kept if array.data_type().is_null() => new_null_array(field.data_type(), kept),
                    all if all == mask.len() => array.clone(),
                    _ => filter(array, mask)?,
                };
                let mut columns = writers.iter_mut();
                compute_leaves(field, &array)?
                    .iter()
                    .try_for_each(|leaf| columns.next().expect("one for each").write(leaf))
            };
            let decoded_column = rows.columns.batch_indexes.get(root).copied().flatten();
            match (decoded_column, added) {
                (Some(column), _) => {
                    let mut texts = texts.iter().filter(|_| replaced == Some(root)).flatten();
                    for (batch, mask) in rows.batches.iter().zip(&filtered) {
                        let array = batch.column(column);
                        let texts: Vec<&Option<String>> = texts.by_ref().take(array.len()).collect();
                        let array = if texts.is_empty() { array.clone() } else { with_texts(array, &texts) };
                        write(&array, mask)?;
                    }
                }
                (None, Some(added)) if root == schema.root_schema().get_fields().len() => {
                    write(&added.array(), &BooleanArray::from(selected_rows.to_vec()))?;
                }
                (None, _) => {
                    let mask = ProjectionMask::roots(schema, [root]);
                    let mut done = 0;
                    for batch in reader(table, group, mask, rows.range.start)? {
                        let batch = batch?;
                        let mask = selected_rows.get(done..done + batch.num_rows()).map(<[bool]>::to_vec);
                        done += batch.num_rows();
                        write(batch.column(0), &BooleanArray::from(mask.ok_or_else(too_many_rows)?))?;
                    }
                    if done != selected_rows.len() {
                        let message = format!("{done} rows were read, but its footer states {}", selected_rows.len());
                        return Err(ParquetError::General(message));
                    }
                }
            }
            writers.drain(..).try_for_each(|writer| writer.close()?.append_to_row_group(&mut row_group))
        })?;
    }
    row_group.close().map_err(in_group)?;
    let metadata = writer.finish().map_err(in_group)?;
    Ok(GroupContents::Encoded(mem::take(writer.inner_mut()).into(), metadata.into()))
}

/// Returns the field in which a column is written. Spark stores a column without a type as booleans, all of them nulls.
fn stored(field: &Arc<Field>, schema: &SchemaDescriptor) -> Arc<Field> {
    let is_boolean = |column: &ColumnDescPtr| {
        column.path().parts() == std::slice::from_ref(field.name()) && column.physical_type() == Type::BOOLEAN
    };
    match field.data_type() {
        DataType::Null if schema.columns().iter().any(is_boolean) => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Boolean))
        }
        _ => field.clone(),
    }
}

/// Refuses a row group that cannot be rewritten as it was.
fn check(SelectedRows { rows, texts, compression, .. }: &SelectedRows<'_>, group: usize) -> io::Result<()> {
    for column in rows.table.metadata().row_group(group).columns() {
        let refused = match (column.column_type(), column.compression_codec()) {
            (Type::INT96, _) => {
                "its values are of the old type INT96, which cannot be written; convert them to timestamps"
            }
            _ if column.column_descr().converted_type() == ConvertedType::INTERVAL => {
                "its values are intervals, which would be written without their months; convert them to texts or numbers"
            }
            (_, CompressionCodec::LZO) if compression.is_none() => {
                "it is compressed by LZO, which cannot be written; give --compress"
            }
            _ => continue,
        };
        let location = Location { group: Some(group), column: Some(&column.column_path().string()) };
        return Err(io::Error::other(format!("{location}: {refused}")));
    }
    if texts.is_some() { rows.columns.check_texts() } else { Ok(()) }
}

/// Returns the Bloom filters of a row group that is copied.
fn filters(table: &Table, group: usize) -> io::Result<Vec<Option<Sbbf>>> {
    let filter = |column: &ColumnChunkMetaData| {
        let name = column.column_path().string();
        let location = Location { group: Some(group), column: Some(&name) };
        with_location(location, || Sbbf::read_from_column_chunk(column, &table.bytes))
    };
    table.metadata().row_group(group).columns().iter().map(filter).collect()
}

/// Splits a selection into masks for batches with these numbers of rows.
fn masks(selected_rows: &[bool], rows: impl Iterator<Item = usize>) -> Vec<BooleanArray> {
    let mut rest = selected_rows;
    let cut = |rows: usize| {
        let (mask, after) = rest.split_at(rows);
        rest = after;
        BooleanArray::from(mask.to_vec())
    };
    rows.map(cut).collect()
}

/// Replaces some of the texts.
fn with_texts(array: &ArrayRef, texts: &[&Option<String>]) -> ArrayRef {
    let is_text = array.data_type() == &DataType::Utf8View;
    let old = |row: usize| if array.is_null(row) { None } else { json::bytes(&**array, row) };
    let changed = texts.iter().enumerate().map(|(row, text)| text.as_deref().map(str::as_bytes).or_else(|| old(row)));
    if is_text {
        // The array was UTF-8, and still is.
        let texts = changed.map(|text| text.map(|text| std::str::from_utf8(text).unwrap_or_default()));
        return Arc::new(StringViewArray::from_iter(texts));
    }
    Arc::new(BinaryViewArray::from_iter(changed))
}

/// Returns the properties of a row group: those that each column had before.
fn properties(
    selection: &SelectedRows<'_>,
    group: &RowGroupMetaData,
    kept: u64,
    replaced: Option<usize>,
) -> WriterProperties {
    let SelectedRows { rows, compression, .. } = *selection;
    let table = &*rows.table;
    let number = rows.group.unwrap_or(0);
    let index = table.metadata().page_index_for_row_group(number);
    let columns = || group.columns().iter().enumerate();
    let pages = |column: &ColumnChunkMetaData| column.page_encoding_stats().cloned().unwrap_or_default();
    let uses_version_2 = columns().any(|(_, column)| table.has_version_2_pages(column));
    let version = if uses_version_2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    // Cuts in texts may change their order.
    let sorted = group.sorting_columns().filter(|sorted| {
        let root = |leaf: i32| table.schema().get_column_root_idx(leaf as usize);
        !sorted.iter().any(|column| replaced == Some(root(column.column_idx)))
    });
    let mut properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_max_row_group_row_count(None)
        .set_sorting_columns(sorted.cloned())
        .set_offset_index_disabled(columns().all(|(leaf, _)| index.offset_index(leaf).is_none()));
    if let Some(compression) = compression {
        properties = properties.set_compression(compression);
    }
    for (leaf, column) in columns() {
        let path = column.column_path().clone();
        let pages = pages(column);
        let data = || pages.iter().filter(|page| page.page_type != PageType::DICTIONARY_PAGE);
        let dictionary = is_worth(column, data());
        let is_preserved = |encoding: &Encoding| {
            matches!(
                encoding,
                Encoding::DELTA_BINARY_PACKED
                    | Encoding::DELTA_BYTE_ARRAY
                    | Encoding::DELTA_LENGTH_BYTE_ARRAY
                    | Encoding::BYTE_STREAM_SPLIT
            )
        };
        let plain = if column.column_type() == Type::BOOLEAN && data().any(|page| page.encoding == Encoding::RLE) {
            Encoding::RLE
        } else {
            Encoding::PLAIN
        };
        let encoding = column.encodings().find(is_preserved).unwrap_or(plain);
        let statistics = match (index.column_index(leaf), column.statistics()) {
            (Some(_), _) => EnabledStatistics::Page,
            (None, Some(_)) => EnabledStatistics::Chunk,
            (None, None) => EnabledStatistics::None,
        };
        properties = properties
            .set_column_dictionary_enabled(path.clone(), dictionary)
            .set_column_encoding(path.clone(), encoding)
            .set_column_statistics_enabled(path.clone(), statistics);
        if compression.is_none() {
            properties =
                properties.set_column_compression(path.clone(), default_compression(column.compression_codec()));
        }
        if column.bloom_filter_offset().is_some() {
            properties = properties
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), FILTER_FPR)
                .set_column_bloom_filter_max_ndv(path, kept);
        }
    }
    properties.build()
}

/// True if a column has a dictionary that saves space. If most values did not fit into the dictionary, they would not
/// fit again. Writers try a dictionary by default, so one may hold nearly all values and save nothing.
fn is_worth<'a>(column: &ColumnChunkMetaData, pages: impl Iterator<Item = &'a PageEncodingStats>) -> bool {
    let (by_dictionary, others) = pages.fold((0, 0), |(dictionary, others), page| match page.encoding {
        Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => (dictionary + page.count, others),
        _ => (dictionary, others + page.count),
    });
    let nulls = column.statistics().and_then(|statistics| statistics.null_count_opt()).unwrap_or(0);
    let values = column.num_values() - nulls as i64;
    let plain = match column.column_type() {
        Type::INT32 | Type::FLOAT => Some(4 * values),
        Type::INT64 | Type::DOUBLE => Some(8 * values),
        Type::FIXED_LEN_BYTE_ARRAY => Some(i64::from(column.column_descr().type_length()) * values),
        // Each value is preceded by its length.
        Type::BYTE_ARRAY => column.unencoded_byte_array_data_bytes().map(|bytes| bytes + 4 * values),
        Type::BOOLEAN | Type::INT96 => None,
    };
    let saves_space =
        plain.is_none_or(|plain| (column.uncompressed_size() as f64) < MAX_DICTIONARY_FRACTION * plain as f64);
    column.dictionary_page_offset().is_some_and(|offset| offset > 0) && by_dictionary >= others && saves_space
}

/// Returns the codec at its usual level.
fn default_compression(codec: CompressionCodec) -> Compression {
    match codec {
        CompressionCodec::UNCOMPRESSED => Compression::UNCOMPRESSED,
        CompressionCodec::SNAPPY => Compression::SNAPPY,
        CompressionCodec::GZIP => Compression::GZIP(GzipLevel::default()),
        CompressionCodec::LZO => Compression::LZO,
        CompressionCodec::BROTLI => Compression::BROTLI(BrotliLevel::default()),
        CompressionCodec::LZ4 => Compression::LZ4,
        CompressionCodec::ZSTD => Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).expect("there is such a level")),
        CompressionCodec::LZ4_RAW => Compression::LZ4_RAW,
    }
}
