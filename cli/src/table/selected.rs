//! Rows that are written: what a row group of an output is made of.

use crate::encode::Compression;
use crate::error::Error;
use crate::table::assembly::Group;
use crate::table::damage::quietly;
use crate::table::encode;
use crate::table::rows::Rows;
use std::io;
use std::sync::Arc;

/// Rows of a row group, some of which are written.
pub struct Selected {
    pub rows: Arc<Rows>,
    /// Whether each of them is.
    pub wanted: Vec<bool>,
    /// What takes the place of texts, where that is asked for; none stays as it is.
    pub texts: Option<Vec<Option<String>>>,
    pub added: Option<Added>,
    pub wish: Wish,
}

/// A column that is added, with a value for each row, or none.
pub enum Added {
    Texts(&'static str, Vec<Option<String>>),
    Numbers(&'static str, Vec<u64>),
}

/// How they are written, if it is asked for.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    pub compression: Option<Compression>,
    /// Whether the columns of keys get a Bloom filter.
    pub filter: bool,
}

impl Wish {
    /// Refuses what no table can be.
    pub fn check(self) -> io::Result<()> {
        self.compression.map_or(Ok(()), |asked| encode::asked(asked).map(drop))
    }
}

impl Selected {
    /// Makes a row group of them, or none. A group that stays as it is is copied.
    pub fn encode(&self) -> Result<Group, Error> {
        let failed = |source| Error::Rows { input: self.rows.table.name.to_string(), source };
        let damaged = || Err(io::Error::other(format!("row group {}: it is damaged", self.rows.group.unwrap_or(0))));
        quietly(|| encode::group(self)).unwrap_or_else(damaged).map_err(failed)
    }
}
