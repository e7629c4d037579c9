//! The columns of a table that keys consist of.

use crate::compared::{check_compared, check_printed};
use crate::file::Table;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef};
use bloomline_keys::Kinds;
use bloomline_keys::arrow::{Column, data_columns, kind_of};
use parquet::arrow::ProjectionMask;
use std::io;
use std::mem;
use std::sync::Arc;

/// The columns to read. Each is a name, or the names on the path to a member of structs.
#[derive(Default)]
pub struct RowProjection<'a> {
    /// The columns of keys, or of a text.
    pub keys: KeyPaths<'a>,
    /// True if the only column of keys has texts.
    pub texts: bool,
    /// Other columns.
    pub values: Vec<&'a [String]>,
    /// The comparison of the first of the other columns, if it is compared.
    pub compared: Option<Compared>,
}

/// The columns of keys.
pub enum KeyPaths<'a> {
    /// These columns.
    Columns(Vec<&'a [String]>),
    /// All columns but the index that pandas recorded, which must have these names in their order.
    Row(&'a [String]),
}

impl Default for KeyPaths<'_> {
    fn default() -> Self {
        Self::Columns(Vec::new())
    }
}

/// The kinds of values that are compared. Other values are last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Numbers, times and texts.
    All,
    /// Texts.
    Texts,
}

/// The maximum number of column names in a message.
const NAMES: usize = 30;

/// The columns of a table that are read, and the parts of keys among them.
pub struct Columns {
    pub mask: ProjectionMask,
    /// The leaf columns that keys consist of.
    pub leaves: Vec<usize>,
    parts: Vec<ColumnPart>,
    /// The field of each part of the keys, and the kind of its values.
    fields: Vec<FieldRef>,
    pub kinds: Vec<Kinds>,
    /// The values that are read beside the key.
    values: Vec<ColumnPart>,
    /// For each column of the table, its index in the batches that are read, if it is read whole.
    pub batch_indexes: Vec<Option<usize>>,
}

enum ColumnPart {
    /// A column of the table, or of those that are read, and the path of struct members in it.
    Column(usize, Vec<String>),
    /// A value in the path of the file.
    Constant(Option<String>),
    /// A number in the path of the file, if values are compared as numbers.
    Number(String),
}

impl ColumnPart {
    /// Returns the field that a part has in the table.
    fn field(&self, table: &Table) -> FieldRef {
        match self {
            Self::Column(root, members) => {
                let field = through_structs(table.arrow.schema().field(*root), members).expect("it was found");
                field.clone().into()
            }
            Self::Constant(_) | Self::Number(_) => Field::new("", DataType::Utf8View, true).into(),
        }
    }

    /// Converts a text of the path to a number if it is one.
    fn make_number(&mut self) {
        if let Self::Constant(Some(text)) = self
            && text.parse().is_ok_and(f64::is_finite)
        {
            *self = Self::Number(mem::take(text));
        }
    }
}

impl Columns {
    /// Finds the requested columns. Refuses those that cannot be keys, texts or compared.
    pub fn find(table: &Table, projection: &RowProjection<'_>) -> io::Result<Self> {
        let &RowProjection { ref keys, texts, ref values, compared } = projection;
        let schema = table.schema();
        let roots = schema.root_schema().get_fields().len();
        let (_, mut values) = Self::parts(table, values)?;
        match (compared, values.first_mut()) {
            (Some(compared), Some(ColumnPart::Column(root, members))) => {
                let field = through_structs(table.arrow.schema().field(*root), members).expect("it was found");
                check_compared(field.data_type(), compared == Compared::Texts)?;
            }
            (Some(Compared::All), Some(value)) => value.make_number(),
            _ => {}
        }
        for value in &values {
            if let ColumnPart::Column(root, members) = value {
                let field = through_structs(table.arrow.schema().field(*root), members).expect("it was found");
                check_printed(field.data_type())?;
            }
        }
        let names: Vec<[String; 1]>;
        let paths: Vec<&[String]> = match keys {
            KeyPaths::Columns(paths) => paths.clone(),
            KeyPaths::Row(expected) => {
                check_row(table, expected)?;
                names = expected.iter().map(|name| [name.clone()]).collect();
                names.iter().map(|name| &name[..]).collect()
            }
        };
        let (leaves, parts) = Self::parts(table, &paths)?;
        let fields: Vec<FieldRef> = parts.iter().map(|part| part.field(table)).collect();
        let kinds = fields.iter().map(|field| if texts { check_text(field) } else { key_kind(field) });
        let kinds = kinds.collect::<io::Result<_>>()?;
        let roots_of_values =
            values.iter().filter_map(|part| if let ColumnPart::Column(root, _) = part { Some(*root) } else { None });
        let leaves_of_values: Vec<usize> = roots_of_values
            .flat_map(|root| (0..schema.num_columns()).filter(move |&leaf| schema.get_column_root_idx(leaf) == root))
            .collect();
        // If keys have no column of the file, the smallest column is read to count the rows.
        let groups = table.metadata().row_groups();
        let size = |leaf: &usize| groups.iter().map(|group| group.column(*leaf).compressed_size()).sum::<i64>();
        let counted = if leaves.is_empty() { (0..schema.num_columns()).min_by_key(size) } else { None };
        let mut decoded: Vec<usize> = leaves.iter().copied().chain(counted).chain(leaves_of_values).collect();
        decoded.sort_unstable();
        decoded.dedup();
        let mut read: Vec<usize> = decoded.iter().map(|&leaf| schema.get_column_root_idx(leaf)).collect();
        read.dedup();
        let index = |root: usize| read.iter().position(|&other| other == root);
        let is_whole = |root: usize| {
            (0..schema.num_columns())
                .filter(|&leaf| schema.get_column_root_idx(leaf) == root)
                .all(|leaf| decoded.contains(&leaf))
        };
        let batch_indexes = (0..roots).map(|root| index(root).filter(|_| is_whole(root))).collect();
        // Indexes among the columns that are read.
        let read_as = |part| match part {
            ColumnPart::Column(root, members) => ColumnPart::Column(index(root).expect("it is read"), members),
            constant => constant,
        };
        let read_as = |parts: Vec<ColumnPart>| parts.into_iter().map(read_as).collect();
        let mask = ProjectionMask::leaves(schema, decoded);
        Ok(Self { mask, leaves, parts: read_as(parts), fields, kinds, values: read_as(values), batch_indexes })
    }

    /// Returns the leaf columns at these paths, in order, and the parts.
    fn parts(table: &Table, paths: &[&[String]]) -> io::Result<(Vec<usize>, Vec<ColumnPart>)> {
        let schema = table.schema();
        let (mut leaves, mut parts) = (Vec::new(), Vec::new());
        for &path in paths {
            let literal = [path.join(".")];
            let leaves_below = |path: &[String]| -> Vec<usize> {
                let columns = schema.columns().iter().enumerate();
                columns.filter(|(_, column)| column.path().parts().starts_with(path)).map(|(leaf, _)| leaf).collect()
            };
            let by_name = leaves_below(&literal);
            let (found, own_leaves) =
                if by_name.is_empty() { (path, leaves_below(path)) } else { (&literal[..], by_name) };
            let Some((&first, (_, members))) = own_leaves.first().zip(found.split_first()) else {
                let partition = match path {
                    [name] => table.partitions.iter().rfind(|(partition, _)| partition == name),
                    _ => None,
                };
                let (_, value) = partition.ok_or_else(|| unknown_column(table, path))?;
                parts.push(ColumnPart::Constant(value.clone()));
                continue;
            };
            let root = schema.get_column_root_idx(first);
            if own_leaves.iter().any(|&leaf| schema.get_column_root_idx(leaf) != root) {
                return Err(io::Error::other(format!("it has several columns {:?}; rename them", literal[0])));
            }
            through_structs(table.arrow.schema().field(root), members).ok_or_else(|| {
                io::Error::other(format!("the column {:?} is in a list; give the column of the list", literal[0]))
            })?;
            parts.push(ColumnPart::Column(root, members.to_vec()));
            leaves.extend(own_leaves);
        }
        leaves.sort_unstable();
        leaves.dedup();
        Ok((leaves, parts))
    }

    /// Returns the column of the table that is the first part of the key, if the part is a whole column.
    pub fn root(&self) -> Option<usize> {
        let Some(ColumnPart::Column(column, members)) = self.parts.first() else { return None };
        self.batch_indexes.iter().position(|read| *read == Some(*column)).filter(|_| members.is_empty())
    }

    /// Refuses texts that cannot be replaced.
    pub fn check_texts(&self) -> io::Result<()> {
        let why = "the texts are in a part of a column, which is not rewritten; choose a column of texts, or give --by document";
        self.root().map_or_else(|| Err(io::Error::other(why)), |_| Ok(()))
    }

    /// Returns the parts of the keys of the rows in a batch.
    pub fn keys_in_batch(&self, batch: &RecordBatch) -> Vec<Column> {
        let arrays = Self::arrays(&self.parts, batch).into_iter();
        self.fields.iter().cloned().zip(arrays).map(|(field, array)| Column { field, array }).collect()
    }

    /// Returns the other values of the rows in a batch.
    pub fn values_in_batch(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        Self::arrays(&self.values, batch)
    }

    fn arrays(parts: &[ColumnPart], batch: &RecordBatch) -> Vec<ArrayRef> {
        let part = |part: &ColumnPart| match part {
            ColumnPart::Constant(value) => {
                Arc::new(StringViewArray::from_iter((0..batch.num_rows()).map(|_| value.as_deref()))) as ArrayRef
            }
            ColumnPart::Number(text) => match text.parse() {
                Ok(integer) => Arc::new(Int64Array::from_value(integer, batch.num_rows())) as ArrayRef,
                Err(_) => Arc::new(Float64Array::from_value(text.parse().unwrap_or(f64::NAN), batch.num_rows())),
            },
            ColumnPart::Column(column, members) => {
                members.iter().fold(batch.column(*column).clone(), |array, member| struct_member(&array, member))
            }
        };
        parts.iter().map(part).collect()
    }
}

/// Returns the kind of a field's values, or refuses it by its name.
fn key_kind(field: &Field) -> io::Result<Kinds> {
    kind_of(field).map_err(|refused| io::Error::other(format!("its column {:?}: {refused}", field.name())))
}

/// Refuses a column of other values than texts. Texts are read as views.
fn check_text(field: &Field) -> io::Result<Kinds> {
    match field.data_type() {
        DataType::Utf8View | DataType::BinaryView => Ok(Kinds::TEXT),
        other => Err(io::Error::other(format!(
            "the column has values of the type {other}, not texts; choose another column"
        ))),
    }
}

/// Returns the names of a table's columns, sorted, without an index that pandas recorded.
pub fn row_columns(table: &Table) -> Vec<String> {
    let schema = table.arrow.schema();
    let mut names: Vec<String> = data_columns(schema).into_iter().map(|i| schema.field(i).name().clone()).collect();
    names.sort_unstable();
    names
}

/// Refuses a table whose rows have other columns.
fn check_row(table: &Table, expected: &[String]) -> io::Result<()> {
    let names = row_columns(table);
    if names == expected {
        return Ok(());
    }
    let shown = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => list_names(&names.iter().collect::<Vec<_>>()),
    };
    Err(io::Error::other(format!(
        "a row of it has the columns {}, but a row of the inputs before it {}; name the columns of the key with --column",
        shown(&names),
        shown(expected)
    )))
}

/// Returns a member of a struct, which is null if the struct is.
fn struct_member(array: &ArrayRef, member: &str) -> ArrayRef {
    let array = array.as_any().downcast_ref::<StructArray>().expect("members are of structs");
    let inner = array.column_by_name(member).expect("it is read").clone();
    let nulls = arrow_buffer::NullBuffer::union(array.nulls(), inner.nulls());
    let data = inner.to_data().into_builder().nulls(nulls).build().expect("the lengths are equal");
    arrow_array::make_array(data)
}

/// Returns the field at a path of struct members below `field`.
fn through_structs<'a>(field: &'a Field, path: &[String]) -> Option<&'a Field> {
    let mut current = field;
    for name in path {
        let DataType::Struct(fields) = current.data_type() else { return None };
        current = fields.iter().find(|field| field.name() == name)?;
    }
    Some(current)
}

fn unknown_column(table: &Table, path: &[String]) -> io::Error {
    let schema = table.arrow.schema();
    let partitions = table.partitions.iter().map(|(name, _)| name);
    let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).chain(partitions).collect();
    let shown = if names.is_empty() { "none".to_owned() } else { list_names(&names) };
    io::Error::other(format!("it has no column {:?}, but {shown}; name one of these", path.join(".")))
}

/// Lists names for a message. There may be thousands.
fn list_names(names: &[&String]) -> String {
    let shown = names.iter().take(NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES { format!("{shown} and {} more", names.len() - NAMES) } else { shown }
}
