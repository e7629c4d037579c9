//! Tables: files of rows, whose row groups take the place of chunks of lines. `parquet` implements these traits.
//!
//! One thread decodes the keys of a file: if a row group is broken and the rest of the file is left out, no key of a later row
//! group may have been inserted. The arrays of the keys stay in memory until the row group is written, because reading them
//! twice took 1.45 times as long.

use crate::key::{KeyRule, KeyScratch};
use crate::read::compression::Compression;
use crate::read::inputs::Input;
use crate::read::keys::{Hashing, Keys};
use crate::read::projection::Projection;
use crate::system::error::Error;
use bloomline_keys::{KeyKinds, Values as Row};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// The column, or the JSON member, with the number of occurrences.
pub const COUNT: &str = "count";

/// The column, or the JSON member, with notes.
pub const MEMBER: &str = "bloomline";

/// A text or none for each row.
pub type Column = Vec<Option<String>>;

/// A format of tables.
pub trait Format: Sync {
    /// Opens a table whose first `done` rows are done.
    fn open(&self, input: &Input, done: u64, projection: &Projection) -> io::Result<Box<dyn Table>>;

    /// Returns the number of rows of a file, and the bytes of a column of texts, or of all columns.
    fn measure(&self, file: &File, column: Option<&[String]>) -> io::Result<(u64, u64)>;

    /// Refuses a compression that the format does not have.
    fn check(&self, compression: Compression) -> io::Result<()>;

    /// Continues an output of `length` bytes.
    fn resume(&self, saved: &Saved, length: u64) -> io::Result<Box<dyn Assembly>>;
}

/// A table that is read.
pub trait Table: Any + Send {
    /// Refuses texts that cannot be replaced, if `texts` are, a column with the name of the `added` one, and other columns than in
    /// the `first` table of the same output.
    fn check(&self, texts: bool, added: Option<&str>, first: Option<&dyn Table>) -> io::Result<()>;

    /// Returns the names of the columns of a whole row, sorted.
    fn row_columns(&self) -> Vec<String>;

    /// Returns the kinds of keys by `rule`, as far as they follow from the types of the columns.
    fn kinds(&self, rule: &KeyRule) -> KeyKinds;

    /// Returns the next rows.
    fn next(&mut self) -> io::Result<Option<Arc<dyn Rows>>>;
}

/// The rows of a row group.
pub trait Rows: Send + Sync {
    fn count(&self) -> usize;

    /// Returns the bytes that the first `rows` rows represent.
    fn bytes(&self, rows: usize) -> usize;

    /// Returns the bytes of memory in use.
    fn memory(&self) -> usize;

    /// Adds the key of each row to `keys`, in order, and sets their kinds.
    // Not a closure for each key, whose call takes 14 instructions.
    fn hash(&self, hashing: &Hashing, scratch: &mut KeyScratch, keys: &mut Keys);

    /// Calls `found` with the other values of each row, in order.
    fn each_value(&self, found: &mut dyn FnMut(&dyn Row));

    /// Calls `found` with the text of each row, in order. `None` for a null or a value that is not text.
    fn each_text(&self, found: &mut dyn FnMut(Option<&str>));

    /// Makes a row group of the `wanted` rows. An unchanged group is copied. `texts` replace those of some rows, and `notes` or
    /// `counts`, the numbers of occurrences, are a column that is added.
    fn encode(
        &self,
        wanted: &[bool],
        texts: Option<Column>,
        notes: Option<Column>,
        counts: Option<Vec<u64>>,
        write_options: TableOptions,
    ) -> Result<Box<dyn Group>, Error>;
}

/// The encoding of selected rows, for any thread.
pub type Encode = Box<dyn FnOnce() -> Result<Box<dyn Group>, Error> + Send>;

/// A row group for an output.
pub trait Group: Send {
    /// Appends it to the row groups so far.
    fn append(&self, table: &mut Option<Box<dyn Assembly>>, out: &mut dyn Write) -> io::Result<()>;
}

/// The row groups of an output so far.
pub trait Assembly: Any + Send {
    /// Writes the end of the output.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;

    fn save(&self) -> io::Result<Saved>;
}

/// The state of an unfinished table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The metadata that a resumed run needs. Empty if the table is complete.
    pub footer: String,
    pub groups: GroupCounts,
}

/// The numbers of row groups.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Row groups of the inputs.
    pub read: u64,
    /// Row groups that were copied, and those that were rewritten.
    pub copied: u64,
    pub written: u64,
}

/// The options for writing tables.
#[derive(Clone, Copy, Default)]
pub struct TableOptions {
    pub compression: Option<Compression>,
    /// True if texts are replaced, which requires a whole column.
    pub cuts: bool,
}
