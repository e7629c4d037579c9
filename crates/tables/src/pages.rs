//! The pages of a row group. Sizes in their headers are checked before memory is allocated.

use crate::damage::{can_allocate, out_of_memory};
use crate::file::{PositionedFile, PositionedReader, Table};
use crate::thrift::{page_sizes, parse_delta_run};
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{CompressionCodec, Encoding};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::sync::Arc;

/// The bytes that a value of a page takes: a view of a text, and two levels with their copies.
const VALUE_BYTES: u64 = 24;

/// A row group that is read.
pub struct Pages<'a> {
    pub table: &'a Table,
    pub group: usize,
}

impl RowGroups for Pages<'_> {
    fn num_rows(&self) -> usize {
        self.table.rows(self.group)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let column = self.table.metadata().row_group(self.group).column(leaf);
        let bytes = PageHeaders { bytes: self.table.bytes.clone(), codec: column.compression_codec() };
        let levels = column.column_descr();
        let levels = [levels.max_rep_level(), levels.max_def_level()];
        // Pages are consecutive, so the locations in an index are not needed.
        let pages = SerializedPageReader::new(Arc::new(bytes), column, self.num_rows(), None)?;
        Ok(Box::new(ColumnChunk(Some(Box::new(CheckedPages { pages, levels })))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.metadata().row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.table.metadata()
    }
}

/// The only column chunk.
struct ColumnChunk(Option<Box<dyn PageReader>>);

impl Iterator for ColumnChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for ColumnChunk {}

/// Pages that are checked before they are decoded.
struct CheckedPages {
    pages: SerializedPageReader<PageHeaders>,
    /// The maximum repetition and definition levels.
    levels: [i16; 2],
}

impl CheckedPages {
    fn check(&self, page: Option<Page>) -> Result<Option<Page>> {
        match &page {
            // Each value takes at least a byte.
            Some(Page::DictionaryPage { buf, num_values, .. }) if *num_values as usize > buf.len() => {
                return Err(damaged(format!("a dictionary claims {num_values} values in {} bytes", buf.len())));
            }
            Some(Page::DataPage { buf, num_values, encoding, rep_level_encoding, def_level_encoding, .. }) => {
                let encodings = [rep_level_encoding, def_level_encoding];
                let values = || {
                    let levels = self.levels.iter().zip(encodings);
                    levels.filter(|(max_level, _)| **max_level > 0).try_fold(
                        &buf[..],
                        |bytes, (&max_level, encoding)| {
                            let length = match encoding {
                                Encoding::RLE => {
                                    bytes.first_chunk().map(|length| 4 + u32::from_le_bytes(*length) as usize)?
                                }
                                _ => (*num_values as usize * (16 - max_level.leading_zeros() as usize)).div_ceil(8),
                            };
                            bytes.get(length..)
                        },
                    )
                };
                check_values(values, *encoding, *num_values)?;
            }
            Some(Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. }) => {
                let values = || buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..);
                check_values(values, *encoding, *num_values)?;
            }
            _ => {}
        }
        Ok(page)
    }
}

/// Refuses values, or lengths of texts, that would not fit into memory.
fn check_values<'a>(bytes: impl FnOnce() -> Option<&'a [u8]>, encoding: Encoding, values: u32) -> Result<()> {
    let memory = u64::from(values) * VALUE_BYTES;
    if !can_allocate(memory) {
        return Err(out_of_memory(&format!("a page of {values} values"), memory));
    }
    let has_prefixes = encoding == Encoding::DELTA_BYTE_ARRAY;
    if !has_prefixes && encoding != Encoding::DELTA_LENGTH_BYTE_ARRAY {
        return Ok(());
    }
    let cut = || damaged("a page of texts is cut".to_owned());
    let mut bytes = bytes().ok_or_else(cut)?;
    for is_prefix_run in if has_prefixes { &[true, false][..] } else { &[false] } {
        // Nulls have no length.
        if bytes.is_empty() {
            break;
        }
        let (count, rest) = parse_delta_run(bytes, *is_prefix_run).ok_or_else(cut)?;
        if count > values.into() {
            return Err(damaged(format!("a page of {values} values claims {count} lengths")));
        }
        bytes = rest;
    }
    Ok(())
}

fn damaged(subject: String) -> ParquetError {
    ParquetError::General(format!("it is damaged: {subject}"))
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.check(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.check(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// The bytes of a file. Bytes that are read sequentially are the header of a page.
struct PageHeaders {
    bytes: PositionedFile,
    codec: CompressionCodec,
}

impl Length for PageHeaders {
    fn len(&self) -> u64 {
        self.bytes.len()
    }
}

impl ChunkReader for PageHeaders {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> Result<PageHeader> {
        Ok(PageHeader { bytes: self.bytes.get_read(start)?, codec: Some(self.codec) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.bytes.get_bytes(start, length)
    }
}

/// The header of a page. It is checked when the first byte is read: before that, it is unknown whether there is a page.
struct PageHeader {
    bytes: BufReader<PositionedReader>,
    codec: Option<CompressionCodec>,
}

impl Read for PageHeader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(codec) = self.codec.take() {
            check_header(self.bytes.fill_buf()?, codec)?;
        }
        self.bytes.read(buffer)
    }
}

/// Refuses a page that cannot decompress to its declared size, or that does not fit into memory.
fn check_header(header: &[u8], codec: CompressionCodec) -> io::Result<()> {
    // The maximum expansion of a byte in each format.
    let max_expansion = match codec {
        CompressionCodec::SNAPPY => 22,
        CompressionCodec::LZ4 | CompressionCodec::LZ4_RAW => 256,
        CompressionCodec::GZIP => 1040,
        CompressionCodec::UNCOMPRESSED => return Ok(()),
        _ => u64::MAX,
    };
    let (size, compressed) = page_sizes(header).ok_or_else(|| io::Error::other("the header of a page is damaged"))?;
    if size > compressed.saturating_mul(max_expansion).saturating_add(64) {
        let message = format!("the header of a page is damaged: it makes {size} bytes of {compressed}");
        return Err(io::Error::other(message));
    }
    // Some codecs need a second buffer.
    if !can_allocate(2 * size) { Err(io::Error::other(out_of_memory("a page", 2 * size).to_string())) } else { Ok(()) }
}
