//! A file of Parquet that is read: its footer, and its bytes by position.

use crate::input::inputs::Input;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::SchemaDescriptor;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::table::columns::views;

/// What a file begins and ends with, and what one begins with whose footer is encrypted.
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";

/// A footer that takes more would not be one that somebody wrote on purpose.
const LONGEST_FOOTER: u64 = 1 << 30;

/// The length of a footer, and the magic after it.
const END: usize = 8;

/// What the header of a data page of the second version begins with: its type, in Thrift's compact protocol.
const SECOND_PAGE: [u8; 2] = [0x15, 0x06];

/// Bytes that are read at once where pages follow one another.
const BUFFER: usize = 1 << 16;

/// A file of Parquet.
pub struct Table {
    /// What it is called.
    pub name: Arc<str>,
    pub bytes: Positioned,
    pub arrow: ArrowReaderMetadata,
    /// The columns that its path tells, such as `day=2026-11-01/`, each with its value; none is a null.
    pub partitions: Vec<(String, Option<String>)>,
}

/// The bytes of a file. Threads that read it do not move each other.
#[derive(Clone)]
pub struct Positioned {
    file: Arc<File>,
    length: u64,
    /// Counts the bytes that are read.
    read: Arc<AtomicU64>,
}

/// Reads on from a position.
pub struct From {
    bytes: Positioned,
    position: u64,
}

impl Table {
    /// Reads the footer of an input.
    pub fn open(input: Input) -> io::Result<Self> {
        let name: Arc<str> = input.origin.name().into();
        let partitions = partitions(&input.path);
        let bytes = Positioned::of(input)?;
        bytes.check_ends()?;
        let options = || {
            // What it says of Arrow's types is no part of the file. Nothing is lost without it, for the file's own types stay.
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_encoding_stats_as_mask(false);
            options.with_page_index_policy(PageIndexPolicy::Optional)
        };
        let footer = |error: ParquetError| io::Error::other(format!("its footer is damaged: {}", short(&error)));
        let arrow = ArrowReaderMetadata::load(&bytes, options()).map_err(footer)?;
        let viewed = options().with_schema(views(arrow.schema()));
        let metadata = without_absent_dictionaries(arrow.metadata()).map_err(footer)?;
        let arrow = ArrowReaderMetadata::try_new(metadata, viewed).map_err(footer)?;
        let table = Self { name, bytes, arrow, partitions };
        table.check_groups()?;
        Ok(table)
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

    /// The rows of a row group.
    pub fn rows(&self, group: usize) -> usize {
        self.metadata().row_group(group).num_rows() as usize
    }

    /// Whether a column of a row group has pages of the second version. Footers do not tell: some writers call them the first.
    pub fn has_second_pages(&self, column: &ColumnChunkMetaData) -> bool {
        let mut start = [0; SECOND_PAGE.len()];
        let read = self.bytes.file.read_exact_at(&mut start, column.data_page_offset() as u64);
        read.is_ok() && start == SECOND_PAGE
    }

    /// Refuses a footer that tells of bytes which are not there.
    fn check_groups(&self) -> io::Result<()> {
        let damaged = |group: usize, column: String, what: &str| {
            let place = Place { group: Some(group), column: Some(&column) };
            Err(io::Error::other(format!("{place}: {what}")))
        };
        for (i, group) in self.metadata().row_groups().iter().enumerate() {
            if group.num_rows() < 0 || group.num_columns() != self.schema().num_columns() {
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
                let (start, length) = (start(column), column.compressed_size());
                let end = start.checked_add(length).filter(|_| start >= 0 && length >= 0);
                if end.is_none_or(|end| end as u64 > self.bytes.length) {
                    return damaged(i, path(), "its bytes are beyond the end of the file, which is cut or damaged");
                }
            }
        }
        Ok(())
    }
}

/// Old writers give a place of 0 to a dictionary that is not there, and the library would read it.
fn without_absent_dictionaries(metadata: &Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
    let is_absent = |column: &ColumnChunkMetaData| column.dictionary_page_offset().is_some_and(|place| place <= 0);
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_absent) {
        return Ok(metadata.clone());
    }
    let mut sound = metadata.as_ref().clone().into_builder();
    for group in sound.take_row_groups() {
        let columns = group.columns().iter().map(|column| match is_absent(column) {
            true => column.clone().into_builder().set_dictionary_page_offset(None).build(),
            false => Ok(column.clone()),
        });
        let columns = columns.collect::<Result<_>>()?;
        sound = sound.add_row_group(group.into_builder().set_column_metadata(columns).build()?);
    }
    Ok(sound.build().into())
}

/// Where the bytes of a column of a row group start.
pub fn start(column: &ColumnChunkMetaData) -> i64 {
    let data = column.data_page_offset();
    column.dictionary_page_offset().filter(|&dictionary| dictionary < data).unwrap_or(data)
}

/// The rows of a file, and the bytes of the texts of a column, or of all columns.
pub fn measure(file: &File, column: Option<&[String]>) -> io::Result<(u64, u64)> {
    let bytes = Positioned::new(file.try_clone()?, Arc::default())?;
    bytes.check_ends()?;
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let arrow = ArrowReaderMetadata::load(&bytes, options).map_err(io::Error::other)?;
    let mut sizes = (0, 0);
    for group in arrow.metadata().row_groups() {
        sizes.0 += group.num_rows().max(0) as u64;
        let columns = group.columns().iter();
        let wanted = columns.filter(|chunk| column.is_none_or(|path| chunk.column_path().parts() == path));
        sizes.1 += wanted.map(|chunk| chunk.uncompressed_size().max(0) as u64).sum::<u64>();
    }
    Ok(sizes)
}

/// Where in a file something is wrong.
pub struct Place<'a> {
    pub group: Option<usize>,
    pub column: Option<&'a str>,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(group) = self.group {
            write!(f, "row group {group}")?;
        }
        self.column.map_or(Ok(()), |column| write!(f, ", column {column:?}"))
    }
}

/// The failure of a write, as the system told it.
pub fn failure(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => source.downcast().map_or_else(io::Error::other, |source| *source),
        error => io::Error::other(error),
    }
}

/// What the library puts before a message, once or several times.
const PREFIXES: [&str; 3] = ["External: ", "Parquet argument error: ", "Parquet error: "];

/// What the library says, on one line and without its own prefixes.
pub fn short(error: &ParquetError) -> String {
    let text = match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => text.clone(),
        ParquetError::ArrowError(text) => text.clone(),
        other => other.to_string(),
    };
    let mut text = text.as_str();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Positioned {
    fn of(input: Input) -> io::Result<Self> {
        let (file, read) = input.into_file()?;
        Self::new(file, read)
    }

    fn new(file: File, read: Arc<AtomicU64>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length, read })
    }

    /// Refuses what is cut or encrypted, and a footer that has no place.
    fn check_ends(&self) -> io::Result<()> {
        let cut = || io::Error::other("the file is cut: it begins as Parquet and has no end of it");
        let mut end = [0; END];
        let at = self.length.checked_sub(END as u64).filter(|&at| at >= MAGIC.len() as u64).ok_or_else(cut)?;
        self.file.read_exact_at(&mut end, at)?;
        let (length, magic) = end.split_at(4);
        if magic == ENCRYPTED {
            return Err(io::Error::other("its footer is encrypted; decrypt the file first"));
        }
        if magic != MAGIC {
            return Err(cut());
        }
        let length = u64::from(u32::from_le_bytes(length.try_into().expect("four bytes")));
        if length > at.min(LONGEST_FOOTER) {
            return Err(io::Error::other(format!("its footer is damaged: it would take {length} bytes of {at}")));
        }
        Ok(())
    }

    /// Copies bytes of the file. A failure to read them is told as that of an input.
    pub fn copy(&self, start: u64, length: u64, out: &mut impl io::Write) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER.min(length as usize)];
        let (mut at, end) = (start, start + length);
        while at < end {
            let some = buffer.len().min((end - at) as usize);
            let read = self.file.read_exact_at(&mut buffer[..some], at);
            read.map_err(|source| io::Error::other(format!("an input cannot be read at byte {at}: {source}")))?;
            out.write_all(&buffer[..some])?;
            at += some as u64;
            self.read.fetch_add(some as u64, Relaxed);
        }
        Ok(())
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = From { bytes: self.clone(), position: start };
        // The header of a page alone.
        Ok(BufReader::with_capacity(512, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length that is wrong takes no memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            let message = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(message));
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        self.read.fetch_add(length as u64, Relaxed);
        Ok(buffer.into())
    }
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        self.bytes.read.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

/// The columns that the folders of a path tell, as Hive has them.
fn partitions(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let names = folders.filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_bytes()),
        _ => None,
    });
    let pairs = names.filter_map(|name| name.split_once_at(b'='));
    pairs
        .map(|(name, value)| {
            let value = (value != b"__HIVE_DEFAULT_PARTITION__").then(|| unescaped(value));
            (unescaped(name), value)
        })
        .collect()
}

trait SplitAt {
    fn split_once_at(&self, byte: u8) -> Option<(&[u8], &[u8])>;
}

impl SplitAt for [u8] {
    fn split_once_at(&self, byte: u8) -> Option<(&[u8], &[u8])> {
        let at = memchr::memchr(byte, self).filter(|&at| at > 0)?;
        Some((&self[..at], &self[at + 1..]))
    }
}

/// A name without the escapes `%3D` for signs that no folder's name may have.
fn unescaped(name: &[u8]) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_tell_columns() {
        let some = |value: &str| Some(value.to_owned());
        for (path, expected) in [
            ("a/day=2026-11-01/b=x%2Fy/part.parquet", vec![("day", some("2026-11-01")), ("b", some("x/y"))]),
            ("day=__HIVE_DEFAULT_PARTITION__/p", vec![("day", None)]),
            ("=x/a=/p=q", vec![("a", some(""))]),
            ("%zz=%/p", vec![("%zz", some("%"))]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            assert_eq!(partitions(Path::new(path)), expected, "{path}");
        }
    }
}
