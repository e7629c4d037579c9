//! Parquet files as tables.

use crate::key::json::Pointer;
use crate::key::{KeyPart, KeyRule, KeyScratch};
use crate::read::coding::Coding;
use crate::read::compression::Compression;
use crate::read::inputs::Input;
use crate::read::keys::{Hashing, Keys};
use crate::read::projection::{Compared, ProjectedPart, Projection};
use crate::read::table::{
    Assembly, COUNT, Column, Format, Group, GroupCounts, MEMBER, Rows, Saved, Table, TableOptions,
};
use crate::system::error::Error;
use bloomline_keys::{KeyKinds, Values as RowValues};
use bloomline_tables::{self as tables, Added, GzipLevel, KeyPaths, RowProjection, SelectedRows, Source, ZstdLevel};
use std::any::Any;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// The format.
pub struct Parquet;

impl Format for Parquet {
    fn open(&self, input: &Input, done: u64, projection: &Projection) -> io::Result<Box<dyn Table>> {
        let file = input.with_file(File::try_clone)?;
        let name = input.origin.name().to_owned();
        let source = Source { name, path: input.path.clone(), file, read: input.read.clone() };
        let compared = projection.compared.map(|compared| match compared {
            Compared::All => tables::Compared::All,
            Compared::Texts => tables::Compared::Texts,
        });
        let mut has_fields = false;
        let keys = match &projection.part {
            ProjectedPart::Text(pointer) => KeyPaths::Columns(vec![pointer.tokens()]),
            ProjectedPart::Key(rule) => match &rule.part {
                // Whole lines are resolved to rows after a table was opened.
                KeyPart::Line => KeyPaths::default(),
                KeyPart::Row(names) => KeyPaths::Row(names),
                KeyPart::Json(values) => KeyPaths::Columns(values.iter().map(|value| value.at.tokens()).collect()),
                KeyPart::Record(_) | KeyPart::Fields { .. } | KeyPart::NamedFields { .. } => {
                    has_fields = true;
                    KeyPaths::default()
                }
            },
        };
        let projection = RowProjection {
            keys,
            texts: matches!(projection.part, ProjectedPart::Text(_)),
            values: projection.values.iter().map(Pointer::tokens).collect(),
            compared,
        };
        let table = tables::TableReader::open(source, done, &projection)?;
        if has_fields {
            let message = "it is Parquet, which has columns instead of fields; give --column";
            return Err(io::Error::other(message));
        }
        Ok(Box::new(table))
    }

    fn measure(&self, file: &File, column: Option<&[String]>) -> io::Result<(u64, u64)> {
        tables::measure(file, column)
    }

    fn check(&self, compression: Compression) -> io::Result<()> {
        codec(compression).map(drop)
    }

    fn resume(&self, saved: &Saved, length: u64) -> io::Result<Box<dyn Assembly>> {
        let GroupCounts { read, copied, written } = saved.groups;
        let counts = tables::GroupCounts { read, copied, written };
        Ok(Box::new(tables::Assembly::resume(&saved.footer, counts, length)?))
    }
}

/// Returns Parquet's own name of a compression.
fn codec(requested: Compression) -> io::Result<tables::Compression> {
    let refused =
        |_| io::Error::other(format!("Parquet has no compression {requested}; choose another with --compress"));
    Ok(match requested.coding {
        Coding::Plain => tables::Compression::UNCOMPRESSED,
        Coding::Gzip => tables::Compression::GZIP(GzipLevel::try_new(requested.level as u32).map_err(refused)?),
        Coding::Zstd => tables::Compression::ZSTD(ZstdLevel::try_new(requested.level).map_err(refused)?),
        Coding::Lz4 => tables::Compression::LZ4_RAW,
        _ => {
            return Err(io::Error::other(format!(
                "Parquet has no compression {requested}; choose zstd, gzip, lz4 or none"
            )));
        }
    })
}

impl Table for tables::TableReader {
    fn check(&self, texts: bool, added: Option<&str>, first: Option<&dyn Table>) -> io::Result<()> {
        let first = first.map(|first| (first as &dyn Any).downcast_ref().expect("there is one format"));
        self.check(texts, added, first)
    }

    fn row_columns(&self) -> Vec<String> {
        self.row_columns()
    }

    fn kinds(&self, rule: &KeyRule) -> KeyKinds {
        rule.kinds_of_columns(self.kinds())
    }

    fn next(&mut self) -> io::Result<Option<Arc<dyn Rows>>> {
        Ok(self.next()?.map(|rows| Arc::new(rows) as Arc<dyn Rows>))
    }
}

impl Rows for tables::Rows {
    fn count(&self) -> usize {
        self.count()
    }

    fn bytes(&self, rows: usize) -> usize {
        self.bytes(rows)
    }

    fn memory(&self) -> usize {
        self.memory()
    }

    fn hash(&self, hashing: &Hashing, scratch: &mut KeyScratch, keys: &mut Keys) {
        let mut row = 0;
        self.each_key(|values| {
            keys.push(row, hashing.rule.row_key(values, scratch), hashing);
            row += 1;
        });
        keys.kinds = hashing.rule.kinds_of_columns(self.kinds());
    }

    fn each_value(&self, found: &mut dyn FnMut(&dyn RowValues)) {
        self.each_value(|row| found(row));
    }

    fn each_text(&self, found: &mut dyn FnMut(Option<&str>)) {
        self.each_text(found);
    }

    fn encode(
        &self,
        wanted: &[bool],
        texts: Option<Column>,
        notes: Option<Column>,
        counts: Option<Vec<u64>>,
        write_options: TableOptions,
    ) -> Result<Box<dyn Group>, Error> {
        let counts = counts.map(|counts| Added::Numbers(COUNT, counts));
        let added = counts.or_else(|| notes.map(|notes| Added::Texts(MEMBER, notes)));
        let encode = || {
            let compression = write_options.compression.map(codec).transpose()?;
            SelectedRows { rows: self, selected_rows: wanted, texts, added, compression }.encode()
        };
        let failed = |source| {
            let name = self.name();
            Error::new(format!("cannot read {name}: {source}; the run cannot go on, so leave this file out"))
        };
        encode().map(|group| Box::new(group) as Box<dyn Group>).map_err(failed)
    }
}

impl Group for tables::Group {
    fn append(&self, table: &mut Option<Box<dyn Assembly>>, mut out: &mut dyn Write) -> io::Result<()> {
        let table: &mut dyn Any = &mut **table.get_or_insert_with(|| Box::new(tables::Assembly::default()));
        table.downcast_mut::<tables::Assembly>().expect("there is one format").append(self, &mut out)
    }
}

impl Assembly for tables::Assembly {
    fn finish(&mut self, mut out: &mut dyn Write) -> io::Result<()> {
        self.finish(&mut out)
    }

    fn save(&self) -> io::Result<Saved> {
        let tables::GroupCounts { read, copied, written } = self.counts();
        Ok(Saved { footer: self.save()?, groups: GroupCounts { read, copied, written } })
    }
}

#[cfg(test)]
mod tests;
