//! The kinds of the values of Arrow's types, and the types that cannot be keys.

use crate::kinds::Kinds;
use arrow_schema::{DataType, Field, Metadata, Schema};
use std::fmt;

/// The key of the metadata that pandas adds to a schema.
const PANDAS: &str = "pandas";

/// The meaning of a field's values beside their type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The meaning of the type.
    Plain,
    /// UUIDs in 16 bytes. Their keys are texts of 36 characters, as all writers of text spell them.
    Uuid,
    /// Booleans stored in 8 bits: 0 is false, and any other value is true.
    Bool8,
}

/// The reason why the values of a field cannot be keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTypeError {
    /// The type, or the name of the extension type.
    type_name: String,
    is_extension: bool,
}

impl fmt::Display for KeyTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { type_name, is_extension } = self;
        if !is_extension {
            return write!(f, "values of the type {type_name} cannot be keys; choose another column, or convert it");
        }
        write!(
            f,
            "values of the extension type {type_name} mean more than the column stores, so they cannot be keys; convert the column, \
             such as to timestamps, numbers or texts"
        )
    }
}

impl std::error::Error for KeyTypeError {}

impl Meaning {
    /// Returns the meaning of a field that can be a key.
    pub(crate) fn from_field(field: &Field) -> Self {
        let Some(name) = field.extension_type_name() else { return Self::Plain };
        match (name, field.data_type()) {
            ("arrow.uuid", DataType::FixedSizeBinary(16)) => Self::Uuid,
            ("arrow.bool8", DataType::Int8) => Self::Bool8,
            _ => Self::Plain,
        }
    }
}

/// Returns the kind of a field's values: no kind for a column of nulls.
///
/// # Errors
/// If the values cannot be keys: intervals, unions and unknown extension types.
pub fn kind_of(field: &Field) -> Result<Kinds, KeyTypeError> {
    match (field.extension_type_name(), Meaning::from_field(field)) {
        (_, Meaning::Uuid) => Ok(Kinds::TEXT),
        (_, Meaning::Bool8) => Ok(Kinds::BOOLEAN),
        (None | Some("arrow.json"), Meaning::Plain) => kind_of_type(field.data_type()),
        (Some(name), Meaning::Plain) => Err(KeyTypeError { type_name: name.to_owned(), is_extension: true }),
    }
}

fn kind_of_type(data_type: &DataType) -> Result<Kinds, KeyTypeError> {
    use DataType::*;
    // All types are listed, so that a type of a later Arrow is refused.
    Ok(match data_type {
        Null => Kinds::NONE,
        Boolean => Kinds::BOOLEAN,
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Kinds::NUMBER,
        Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Kinds::NUMBER,
        Utf8 | LargeUtf8 | Utf8View => Kinds::TEXT,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Kinds::BYTES,
        Date32 | Date64 => Kinds::DATE,
        Time32(_) | Time64(_) => Kinds::TIME,
        Timestamp(_, None) => Kinds::TIMESTAMP,
        Timestamp(_, Some(_)) => Kinds::INSTANT,
        Duration(_) => Kinds::DURATION,
        List(inner) | LargeList(inner) | ListView(inner) | LargeListView(inner) | FixedSizeList(inner, _) => {
            kind_of(inner)?;
            Kinds::LIST
        }
        Map(entries, _) => {
            kind_of(entries)?;
            Kinds::MAP
        }
        Struct(fields) => {
            fields.iter().try_for_each(|field| kind_of(field).map(drop))?;
            Kinds::STRUCT
        }
        Dictionary(_, values) => kind_of_type(values)?,
        RunEndEncoded(_, values) => kind_of(values)?,
        Interval(_) | Union(..) => {
            return Err(KeyTypeError { type_name: data_type.to_string(), is_extension: false });
        }
    })
}

/// Returns the numbers of the columns that are data: all but the index that pandas recorded.
pub fn data_columns(schema: &Schema) -> Vec<usize> {
    let index = index_columns(schema.metadata());
    let is_data = |number: &usize| !index.contains(schema.field(*number).name());
    (0..schema.fields().len()).filter(is_data).collect()
}

/// Returns the names of the columns that pandas recorded as an index. An index of consecutive numbers has no column.
fn index_columns(metadata: &Metadata) -> Vec<String> {
    let recorded = metadata.get(PANDAS).and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let columns = recorded.as_ref().and_then(|recorded| recorded.get("index_columns")?.as_array());
    columns.into_iter().flatten().filter_map(|column| column.as_str().map(str::to_owned)).collect()
}
