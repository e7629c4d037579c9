//! The properties that all row groups of a file share.

use crate::file::Table;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::{encode_arrow_schema, parquet_to_arrow_schema};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};
use std::io::{self, Result};
use std::sync::Arc;

/// The key of the metadata with the original Arrow types.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// An added column: its name, and a value for each row.
pub enum Added {
    /// Texts, or nulls.
    Texts(&'static str, Vec<Option<String>>),
    /// Numbers without nulls.
    Numbers(&'static str, Vec<u64>),
}

/// The properties that all row groups of a file share.
#[derive(Clone)]
pub struct FileSchema {
    pub schema: SchemaDescPtr,
    pub key_values: Option<Vec<KeyValue>>,
    pub version: i32,
}

impl Added {
    pub(crate) fn field(&self) -> Field {
        match self {
            Self::Texts(name, _) => Field::new(*name, DataType::Utf8, true),
            Self::Numbers(name, _) => Field::new(*name, DataType::Int64, false),
        }
    }

    pub(crate) fn array(&self) -> ArrayRef {
        match self {
            Self::Texts(_, texts) => Arc::new(StringArray::from_iter(texts)),
            Self::Numbers(_, numbers) => {
                Arc::new(Int64Array::from_iter_values(numbers.iter().map(|&number| number as i64)))
            }
        }
    }
}

impl FileSchema {
    /// Returns the schema of a table, with the added column if any.
    pub fn from_table(table: &Table, added: Option<&Added>) -> Result<Self> {
        let file = table.metadata().file_metadata();
        let key_values = table.key_values().cloned();
        let Some(added) = added else {
            return Ok(Self { schema: file.schema_descr_ptr(), key_values, version: file.version() });
        };
        let field = added.field();
        let column = match added {
            Added::Texts(..) => Type::primitive_type_builder(field.name(), Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String)),
            Added::Numbers(..) => Type::primitive_type_builder(field.name(), Physical::INT64),
        };
        let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column: TypePtr = column.with_repetition(repetition).build()?.into();
        let root = file.schema();
        check_added(table, column.name())?;
        let fields = root.get_fields().iter().cloned().chain([column]).collect();
        let root = Type::group_type_builder(root.name()).with_fields(fields).build()?;
        // The Arrow types describe fewer columns.
        let with_field = |mut pair: KeyValue| {
            if pair.key == ARROW_SCHEMA {
                let arrow = parquet_to_arrow_schema(&file.schema_descr_ptr(), table.key_values())?;
                let fields: Vec<_> = arrow.fields().iter().cloned().chain([Arc::new(field.clone())]).collect();
                let arrow = Schema::new_with_metadata(fields, arrow.metadata().clone());
                pair.value = Some(encode_arrow_schema(&arrow));
            }
            Ok(pair)
        };
        let key_values =
            key_values.map(|pairs| pairs.into_iter().map(with_field).collect::<Result<_>>()).transpose()?;
        Ok(Self { schema: Arc::new(SchemaDescriptor::new(root.into())), key_values, version: file.version() })
    }

    /// Refuses a table, called `name`, with other columns or with values of another meaning.
    pub fn check(&self, other: &Self, name: &str) -> Result<()> {
        match self.difference(other)?.or(self.difference_in_meaning(other)?) {
            Some(column) => Err(io::Error::other(format!(
                "the column {column:?} of {name} differs from the one in the inputs before it; give --output-dir, or inputs of \
                 one schema"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the first column that the other table lacks or stores in another way.
    fn difference(&self, other: &Self) -> Result<Option<String>> {
        let [ours, theirs] = [self, other].map(|file_schema| file_schema.schema.root_schema().get_fields());
        let pairs = (0..ours.len().max(theirs.len())).map(|i| (ours.get(i), theirs.get(i)));
        let mut other = pairs.filter(|(ours, theirs)| ours != theirs);
        Ok(other.next().map(|(ours, theirs)| ours.or(theirs).expect("one of them is there").name().to_owned()))
    }

    /// Returns the first column that has another type in the other table, although it is stored in the same way:
    /// Parquet stores a duration of any unit as an integer, and an extension type as its storage type.
    fn difference_in_meaning(&self, other: &Self) -> Result<Option<String>> {
        if self.key_values == other.key_values {
            return Ok(None);
        }
        let types = |schema: &Self| parquet_to_arrow_schema(&schema.schema, schema.key_values.as_ref());
        let (ours, theirs) = (types(self)?, types(other)?);
        let mut pairs = ours.fields().iter().zip(theirs.fields());
        Ok(pairs.find(|(ours, theirs)| !is_same_meaning(ours, theirs)).map(|(ours, _)| ours.name().clone()))
    }

    /// Returns the footer of a file with these row groups.
    pub fn footer(&self, groups: Vec<RowGroupMetaData>, index: Option<Arc<dyn PageIndexProvider>>) -> ParquetMetaData {
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let created_by = Some(concat!("bloomline version ", env!("CARGO_PKG_VERSION")).to_owned());
        let file =
            FileMetaData::new(self.version, rows, created_by, self.key_values.clone(), self.schema.clone(), None);
        ParquetMetaDataBuilder::new(file).set_row_groups(groups).set_page_index(index).build()
    }

    /// Returns a file with the metadata of row groups and their indexes, but without their bytes.
    pub fn metadata_file(&self, groups: Vec<RowGroupMetaData>, index: Arc<dyn PageIndexProvider>) -> Result<Bytes> {
        let mut metadata_file = Vec::new();
        let metadata = self.footer(groups, Some(index));
        ParquetMetaDataWriter::new(&mut metadata_file, &metadata).finish()?;
        Ok(metadata_file.into())
    }
}

/// Returns true if values of two fields, which are stored in the same way, mean the same.
fn is_same_meaning(ours: &Field, theirs: &Field) -> bool {
    let extension = |field: &Field| {
        let metadata = |key| field.metadata().get(key).cloned();
        ["ARROW:extension:name", "ARROW:extension:metadata"].map(metadata)
    };
    extension(ours) == extension(theirs) && is_same_type(ours.data_type(), theirs.data_type())
}

/// Returns true if values of two types mean the same: the kind of a dictionary, the width of offsets and the name of a zone make no
/// difference.
fn is_same_type(ours: &DataType, theirs: &DataType) -> bool {
    use DataType::*;
    match (ours, theirs) {
        (Dictionary(_, ours), theirs) => is_same_type(ours, theirs),
        (ours, Dictionary(_, theirs)) => is_same_type(ours, theirs),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => true,
        (Timestamp(ours, our_zone), Timestamp(theirs, their_zone)) => {
            ours == theirs && our_zone.is_some() == their_zone.is_some()
        }
        (
            List(ours) | LargeList(ours) | ListView(ours) | LargeListView(ours) | FixedSizeList(ours, _),
            List(theirs) | LargeList(theirs) | ListView(theirs) | LargeListView(theirs) | FixedSizeList(theirs, _),
        )
        | (Map(ours, _), Map(theirs, _)) => is_same_meaning(ours, theirs),
        (Struct(ours), Struct(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same_meaning(ours, theirs))
        }
        (ours, theirs) => ours == theirs,
    }
}

/// Refuses a table that already has a column with the name of the added one.
pub fn check_added(table: &Table, name: &str) -> Result<()> {
    let has_it = table.schema().root_schema().get_fields().iter().any(|field| field.name() == name);
    let refused = || io::Error::other(format!("it has a column {name:?} already; rename or remove that"));
    if has_it { Err(refused()) } else { Ok(()) }
}
