//! Keys from Arrow arrays, through the C data interface: pyarrow, Polars, pandas, DuckDB.

use crate::error;
use crate::kinds::Forms;
use crate::lock::{Detached, detach};
use crate::portion::{PORTION_KEYS, Take};
use crate::signals::{self, Signals};
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ByteArrayType, ByteViewType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, RecordBatch, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bloomline::{Key, KeyHasher};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple, PyType};
use std::ffi::{CStr, c_int};
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The end of errors about arrays of other types.
const KEY_TYPES: &str = "keys are strings, binary, integers of 64 bits or less or booleans, and structs of these";

/// Values that are checked before signals are handled.
const CHECKED_ROWS: usize = 1 << 16;

/// The error about structs with wrong contents.
const PROTOCOL_VIOLATION: &str = "it breaks the rules of the C interface";

/// Takes the keys of an object that exports Arrow arrays; `false` if it does not.
pub(crate) fn take_all(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, take: &mut Take<'_>) -> PyResult<bool> {
    let py = keys.py();
    if keys.getattr_opt("__arrow_c_array__")?.is_some() {
        take_exported(hasher, keys, 0, take)?;
    } else if is_reader(keys)? {
        // The types are checked before any key is taken.
        take_all(hasher, &frames(py)?.call_method1("no_rows", (keys.getattr("schema")?,))?, take)?;
        let mut first = 0;
        for batch in keys.try_iter()? {
            first += take_exported(hasher, &batch?, first, take)?;
        }
    } else if is_from_package("pyarrow", keys)? && keys.hasattr("chunks")? && !keys.hasattr("__arrow_c_stream__")? {
        // Before pyarrow 16, only chunks are exported.
        let mut first = 0;
        for chunk in keys.getattr("chunks")?.try_iter()? {
            first += take_exported(hasher, &chunk?, first, take)?;
        }
    } else if let Some(mut stream) = stream(keys)? {
        let kind = detach(py, |_| key_type(&stream_schema(&mut stream)?))?;
        detach(py, |detached| {
            let mut first = 0;
            while let Some(array) = next_array(&mut stream)? {
                let rows = array.len();
                take_import(detached, hasher, array, &kind, first, take)?;
                first += rows;
            }
            PyResult::Ok(())
        })?;
    } else {
        frames(py)?.call_method1("check_package", (keys,))?;
        return Ok(false);
    }
    Ok(true)
}

/// Takes the keys of an object that exports one Arrow array, whose row 0 is key number `first`. Returns their number.
fn take_exported(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, first: usize, take: &mut Take<'_>) -> PyResult<usize> {
    let (schema, array) = array(&keys.call_method0("__arrow_c_array__")?)?;
    let (kind, rows) = (key_type(&schema)?, array.len());
    detach(keys.py(), |detached| take_import(detached, hasher, array, &kind, first, take))?;
    Ok(rows)
}

/// Returns true for a reader of pyarrow. It may run code of Python, and the C stream interface reports exceptions only as texts.
fn is_reader(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("read_next_batch")? && is_from_package("pyarrow", object)?)
}

/// Returns the batches of a frame or a table, completely checked, and the result of `read_schema`, which is called
/// before rows are read.
pub(crate) fn record_batches<T: Send>(
    rows: &Bound<'_, PyAny>,
    read_schema: impl FnOnce(&Schema) -> PyResult<T> + Send,
) -> PyResult<(T, Vec<RecordBatch>)> {
    let py = rows.py();
    frames(py)?.call_method1("check_package", (rows,))?;
    let parts: Vec<Bound<'_, PyAny>> = match is_from_package("polars", rows)? {
        true => frames(py)?.call_method1("polars_for_arrow", (rows,))?.extract()?,
        false if is_reader(rows)? => vec![rows.call_method0("read_all")?],
        false => vec![rows.clone()],
    };
    let Some(mut streams) = parts.iter().map(stream).collect::<PyResult<Option<Vec<_>>>>()? else {
        return Err(PyTypeError::new_err("rows are those of a frame or a table: pandas, Polars, pyarrow, DuckDB"));
    };
    let field = detach(py, |_| {
        let schema = stream_schema(&mut streams[0])?;
        if let Some((column, name)) = import(|| Ok(extension_in_dictionary(&schema, None)))? {
            let column = column.unwrap_or_default();
            return Err(PyTypeError::new_err(format!(
                "column {column:?}: values of the extension type {name} in a dictionary cannot be keys; convert the column, such as \
                 to texts"
            )));
        }
        import(|| Ok(Field::try_from(&schema).map_err(|_| unknown_format(&schema))))?.map_err(|format| {
            PyTypeError::new_err(format!("values of the unknown type {format:?} cannot be keys; cast the column"))
        })
    })?;
    let kind = field.data_type();
    detach(py, |_| {
        let DataType::Struct(columns) = kind else {
            return Err(PyTypeError::new_err(format!(
                "rows are those of a frame or a table, and this is one array of {kind}; select it as a frame, such as \
                 frame[[\"url\"]]"
            )));
        };
        let read = read_schema(&Schema::new_with_metadata(columns.clone(), field.metadata().clone()))?;
        let (mut batches, mut signals) = (Vec::new(), Signals::after(signals::TICK));
        for stream in &mut streams {
            while let Some(array) = next_array(stream)? {
                let array = import_array(array, kind)?;
                check_data(&array.to_data(), None, &mut signals)?;
                let rows = array.as_struct();
                if rows.null_count() > 0 {
                    return Err(array_error("rows are null as a whole"));
                }
                batches.push(rows.into());
            }
        }
        Ok((read, batches))
    })
}

/// Makes the checks of [`ArrayData::validate_full`], and handles signals meanwhile.
fn check_data(data: &ArrayData, column: Option<&str>, signals: &mut Signals) -> PyResult<()> {
    let check = |data: &ArrayData| {
        import(|| data.validate_values()).map_err(|error| match error.to_string().contains("UTF8") {
            true => PyValueError::new_err(format!(
                "column {:?}: a text is not UTF-8: cast the column to binary ({error})",
                column.unwrap_or_default()
            )),
            false => error,
        })
    };
    import(|| data.validate().and_then(|()| data.validate_nulls()))?;
    if !data.child_data().is_empty() {
        check(data)?;
        let names = match (column, data.data_type()) {
            (None, DataType::Struct(columns)) => columns.iter().map(|column| Some(column.name().as_str())).collect(),
            _ => vec![column; data.child_data().len()],
        };
        return data.child_data().iter().zip(names).try_for_each(|(child, name)| check_data(child, name, signals));
    }
    for start in (0..data.len()).step_by(CHECKED_ROWS) {
        let part = data.slice(start, CHECKED_ROWS.min(data.len() - start));
        // An error names the row by its number in the whole.
        check(&part).or_else(|error| check(data).and(Err(error)))?;
        signals.handle()?;
    }
    Ok(())
}

/// Refuses columns of Polars' type Object. Polars exports their pointers, or aborts.
fn refuse_objects(exporter: &Bound<'_, PyAny>) -> PyResult<()> {
    let kinds = match exporter.getattr_opt("dtypes")? {
        Some(kinds) => kinds.try_iter()?.zip(exporter.getattr("columns")?.try_iter()?).collect::<Vec<_>>(),
        None => vec![(exporter.getattr("dtype"), exporter.getattr("name"))],
    };
    for (kind, name) in kinds {
        if kind?.str()? == "Object" {
            let name = name?;
            return Err(PyTypeError::new_err(format!(
                "column {:?} has Polars' type Object: {KEY_TYPES}; cast the column, or give a list",
                name.str()?.to_cow()?
            )));
        }
    }
    Ok(())
}

/// Returns the part of this package that is about frames.
fn frames(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("bloomline._frames")
}

/// Returns true if an object's class is from this package, or derived from one that is.
fn is_from_package(package: &str, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for class in object.get_type().mro() {
        let module = class.cast::<PyType>()?.module()?;
        if module.to_cow()?.split('.').next() == Some(package) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Converts a frame of pandas to a table of Arrow, and a column to an array. A frame's own export adds most indexes as
/// a column and leaves times unconverted, and pandas before 2.2 has no export. Exports of objects by pandas do not
/// handle signals.
fn from_pandas<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let function = if object.hasattr("set_index")? {
        "table_of_pandas"
    } else if object.hasattr("__arrow_c_stream__")? {
        "array_of_pandas"
    } else {
        return Ok(object.clone());
    };
    frames(object.py())?.call_method1(function, (object,))
}

/// Returns the error of pyarrow for a column of pandas that it does not read, with the remedy. Errors about frames name the column and
/// have one.
fn pandas_error(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    let is_about_type = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyNotImplementedError>(py);
    if !is_about_type || object.hasattr("set_index").unwrap_or(false) {
        return error;
    }
    let reason = error.value(py);
    let type_error =
        PyTypeError::new_err(format!("it cannot be read as an Arrow array: {reason}; give a list of the keys"));
    type_error.set_cause(py, Some(error));
    type_error
}

/// Returns the result of `__arrow_c_array__`.
fn array(exported: &Bound<'_, PyAny>) -> PyResult<(FFI_ArrowSchema, FFI_ArrowArray)> {
    let pair = exported.cast::<PyTuple>()?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_schema"))?.cast();
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array"))?.cast();
    // SAFETY: capsules of these names point to these structs. They are moved out, which leaves released ones behind.
    #[allow(unsafe_code)]
    let (schema, array) =
        unsafe { (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr())) };
    if array.is_released() {
        return Err(array_error("another reader took it"));
    }
    Ok((schema, array))
}

/// Returns the stream that an object exports, if it exports one.
fn stream<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<FFI_ArrowArrayStream>> {
    let is_pandas = is_from_package("pandas", object)?;
    if is_from_package("polars", object)? && object.hasattr("__arrow_c_stream__")? {
        refuse_objects(object)?;
    }
    let export = |object: &Bound<'py, PyAny>| match object.getattr_opt("__arrow_c_stream__")? {
        Some(export) => export.call0().map(Some),
        None => Ok(None),
    };
    let exported = match is_pandas {
        true => from_pandas(object).and_then(|object| export(&object)),
        false => export(object),
    };
    let exported = exported.or_else(|error| {
        // The export of a version that is too old may fail.
        frames(object.py())?.call_method1("check_package", (object,))?;
        Err(if is_pandas { pandas_error(object, error) } else { error })
    })?;
    let Some(exported) = exported else { return Ok(None) };
    let stream = exported.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array_stream"))?.cast();
    // SAFETY: as above.
    #[allow(unsafe_code)]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    if stream.release().is_none() {
        return Err(array_error("another reader took it"));
    }
    Ok(Some(stream))
}

/// Returns the schema of all arrays of a stream.
fn stream_schema(stream: &mut FFI_ArrowArrayStream) -> PyResult<FFI_ArrowSchema> {
    let mut schema = FFI_ArrowSchema::empty();
    let get_schema = stream.get_schema().ok_or_else(|| array_error(PROTOCOL_VIOLATION))?;
    // SAFETY: the function of a stream that is not released, and memory for its result, as the C stream interface
    // requires.
    #[allow(unsafe_code)]
    let code = unsafe { get_schema(stream, &raw mut schema) };
    check(stream, code).map(|()| schema)
}

/// Returns the next array of a stream; `None` at its end.
fn next_array(stream: &mut FFI_ArrowArrayStream) -> PyResult<Option<FFI_ArrowArray>> {
    let mut array = FFI_ArrowArray::empty();
    let get_next = stream.get_next().ok_or_else(|| array_error(PROTOCOL_VIOLATION))?;
    // SAFETY: as above.
    #[allow(unsafe_code)]
    let code = unsafe { get_next(stream, &raw mut array) };
    check(stream, code).map(|()| (!array.is_released()).then_some(array))
}

/// Checks the result of a stream's function: 0, or there is an error, which the stream may describe.
fn check(stream: &mut FFI_ArrowArrayStream, code: c_int) -> PyResult<()> {
    if code == 0 {
        return Ok(());
    }
    let message = stream.get_last_error().and_then(|get_last_error| {
        // SAFETY: the stream's own function, after a failure, as the C stream interface requires. The text is null, or
        // ends with a zero and is valid until the stream's next call.
        #[allow(unsafe_code)]
        unsafe {
            let text = get_last_error(stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    Err(array_error(message.unwrap_or_else(|| format!("its producer failed with error {code}"))))
}

/// Imports an array of keys in place.
fn import_array(array: FFI_ArrowArray, kind: &DataType) -> PyResult<ArrayRef> {
    if !import(|| Ok(all_arrays(&array, kind, &has_lengths)))? {
        return Err(array_error("its length or its offset is negative or too large"));
    }
    if !import(|| Ok(all_arrays(&array, kind, &is_aligned)))? {
        return Err(array_error(
            "its offsets are not aligned; copy it, such as by pyarrow.concat_arrays([array]), or a dictionary by \
             array.dictionary_decode()",
        ));
    }
    // SAFETY: the producer filled the array and the schema as the C data interface requires.
    #[allow(unsafe_code)]
    import(|| unsafe { from_ffi_and_data_type(array, kind.clone()) }.map(make_array))
}

/// Returns true if a predicate holds for an array, and for all arrays within it.
fn all_arrays(array: &FFI_ArrowArray, kind: &DataType, predicate: &dyn Fn(&FFI_ArrowArray, &DataType) -> bool) -> bool {
    use DataType::*;
    let all = |child: usize, field: &Field| all_arrays(array.child(child), field.data_type(), predicate);
    let holds_within = || match kind {
        List(items) | LargeList(items) | ListView(items) | LargeListView(items) => all(0, items),
        FixedSizeList(items, _) | Map(items, _) => all(0, items),
        RunEndEncoded(ends, values) => all(0, ends) && all(1, values),
        Struct(columns) => (0..).zip(columns).all(|(i, column)| all(i, column)),
        Union(members, _) => (0..).zip(members.iter()).all(|(i, (_, member))| all(i, member)),
        Dictionary(_, values) => array.dictionary().is_none_or(|array| all_arrays(array, values, predicate)),
        _ => true,
    };
    predicate(array, kind) && holds_within()
}

/// Returns true if the values of an array could be in memory, with 32 bytes each at most. Arrow's crate computes with other lengths.
fn has_lengths(array: &FFI_ArrowArray, _: &DataType) -> bool {
    array.len().checked_add(array.offset()).is_some_and(|end| end <= isize::MAX as usize / 32)
}

/// Returns true if Arrow's crate may read the numbers that it reads on import, which are ends of data. It copies other data
/// that are not aligned.
fn is_aligned(array: &FFI_ArrowArray, kind: &DataType) -> bool {
    use DataType::*;
    let is_aligned_at = |buffer: usize, multiple: usize| array.buffer(buffer).addr().is_multiple_of(multiple);
    let has_rows = !array.is_empty() || array.offset() > 0;
    match kind {
        Utf8 | Binary => !has_rows || is_aligned_at(1, align_of::<i32>()),
        LargeUtf8 | LargeBinary => !has_rows || is_aligned_at(1, align_of::<i64>()),
        // The last buffer has the lengths of the buffers between the views and itself.
        Utf8View | BinaryView => array.num_buffers() <= 3 || is_aligned_at(array.num_buffers() - 1, align_of::<i64>()),
        _ => true,
    }
}

/// Imports with `read`. Arrow's crate panics over some structs with wrong contents.
fn import<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> PyResult<T> {
    let read = catch_unwind(AssertUnwindSafe(read)).map_err(|_| array_error(PROTOCOL_VIOLATION))?;
    read.map_err(array_error)
}

fn array_error(error: impl Display) -> PyErr {
    PyValueError::new_err(format!("no Arrow array can be read: {error}"))
}

/// The type of keys, and their form.
struct KeyType {
    data_type: DataType,
    forms: Forms,
}

/// Returns the column and the extension type of a dictionary's values, which Arrow's crate drops from their type, in a schema or within
/// it. Their keys would be those of the stored values.
fn extension_in_dictionary(schema: &FFI_ArrowSchema, column: Option<&str>) -> Option<(Option<String>, String)> {
    let name_of = |values: &FFI_ArrowSchema| values.metadata().ok()?.remove("ARROW:extension:name");
    let in_values = |values: &FFI_ArrowSchema| match name_of(values) {
        None => extension_in_dictionary(values, column),
        Some(name) => (name != "arrow.json").then(|| (column.map(str::to_owned), name)),
    };
    let within = |child: &FFI_ArrowSchema| extension_in_dictionary(child, column.or_else(|| child.name()));
    schema.dictionary().and_then(in_values).or_else(|| schema.children().find_map(within))
}

/// Returns the type of keys in a schema; other types are an error before any key is taken.
fn key_type(schema: &FFI_ArrowSchema) -> PyResult<KeyType> {
    if let Some((_, name)) = import(|| Ok(extension_in_dictionary(schema, None)))? {
        return Err(extension_error(&format!("{name} in a dictionary")));
    }
    let field = import(|| Ok(Field::try_from(schema).map_err(|_| unknown_format(schema))))?.map_err(|format| {
        PyTypeError::new_err(format!("an Arrow array of the unknown type {format:?}: {KEY_TYPES}; cast it"))
    })?;
    check_field(&field)?;
    Ok(KeyType { forms: forms_of(&field), data_type: field.data_type().clone() })
}

fn forms_of(field: &Field) -> Forms {
    use DataType::*;
    // The 16 bytes of a UUID are not its key as a value.
    if field.extension_type_name() == Some("arrow.uuid") {
        return Forms::OTHER;
    }
    match field.data_type() {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Forms::TEXT,
        // A row of one column has the key of its value.
        Struct(columns) if columns.len() == 1 => forms_of(&columns[0]),
        Dictionary(_, values) => forms_of(&Field::new("", (**values).clone(), true)),
        _ => Forms::OTHER,
    }
}

/// Returns the first type that is unknown here, in the producer's notation.
fn unknown_format(schema: &FFI_ArrowSchema) -> String {
    let column = schema.children().find(|column| DataType::try_from(*column).is_err());
    column.map_or_else(|| schema.format().to_owned(), unknown_format)
}

/// Checks an extension type. Its values may have another meaning than the stored ones, such as the number of a period.
fn check_field(field: &Field) -> PyResult<()> {
    match field.extension_type_name() {
        None | Some("arrow.bool8" | "arrow.json" | "arrow.uuid") => check_type(field.data_type()),
        Some(name) => Err(extension_error(name)),
    }
}

fn extension_error(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "an Arrow array of the extension type {name}: {KEY_TYPES}; cast it, or give what it stores"
    ))
}

fn check_type(found: &DataType) -> PyResult<()> {
    use DataType::*;
    match found {
        // The type of an empty list, without values; its rows are nulls.
        Null => Ok(()),
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Ok(()),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Ok(()),
        Dictionary(_, values) if !values.is_nested() => check_type(values),
        Struct(columns) if !columns.is_empty() => columns.iter().try_for_each(|column| check_field(column)),
        _ => Err(PyTypeError::new_err(format!(
            "an Arrow array of {found}: {KEY_TYPES}; cast it, such as dates to integers"
        ))),
    }
}

/// Returns true if a type is of a kind, or one of its columns is.
fn any_type(found: &DataType, predicate: fn(&DataType) -> bool) -> bool {
    match found {
        DataType::Struct(columns) => columns.iter().any(|column| any_type(column.data_type(), predicate)),
        _ => predicate(found),
    }
}

/// Imports and takes an array in place.
fn take_import(
    detached: Detached,
    hasher: &KeyHasher,
    array: FFI_ArrowArray,
    kind: &KeyType,
    first: usize,
    take: &mut Take<'_>,
) -> PyResult<()> {
    if array.is_empty() {
        return Ok(());
    }
    // Not imported, because Polars' array has a buffer, which the format does not allow.
    if any_type(&kind.data_type, DataType::is_null) {
        return Err(null_error(first));
    }
    let array = import_array(array, &kind.data_type)?;
    take_array(detached, hasher, &array, kind.forms, first, take)
}

/// Takes an array whose row 0 is key number `first`.
fn take_array(
    detached: Detached,
    hasher: &KeyHasher,
    array: &dyn Array,
    forms: Forms,
    first: usize,
    take: &mut Take<'_>,
) -> PyResult<()> {
    refuse_nulls(array, first)?;
    let dictionaries = Dictionaries::new(hasher, array)?;
    let mut hashes = [0; PORTION_KEYS];
    for start in (0..array.len()).step_by(PORTION_KEYS) {
        let rows = start..array.len().min(start + PORTION_KEYS);
        let hashes = &mut hashes[..rows.len()];
        hash(hasher, array, &dictionaries, rows, hashes)?;
        take(detached.into(), hashes, forms)?;
    }
    Ok(())
}

/// Refuses nulls, which are not keys, in any column.
fn refuse_nulls(array: &dyn Array, first: usize) -> PyResult<()> {
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let row = (0..array.len()).find(|&row| nulls.is_null(row)).unwrap_or_default();
        return Err(null_error(first + row));
    }
    array
        .as_struct_opt()
        .map_or(Ok(()), |columns| columns.columns().iter().try_for_each(|column| refuse_nulls(column, first)))
}

fn null_error(row: usize) -> PyErr {
    PyValueError::new_err(format!("keys[{row}]: a null is not a key; drop nulls first, or fill them"))
}

/// The hashes of a dictionary's values, so that each is hashed once; and the same for the columns of a struct.
#[derive(Default)]
struct Dictionaries {
    values: Vec<u64>,
    columns: Vec<Dictionaries>,
}

impl Dictionaries {
    fn new(hasher: &KeyHasher, array: &dyn Array) -> PyResult<Self> {
        let mut dictionaries = Self::default();
        if let Some(columns) = array.as_struct_opt() {
            dictionaries.columns =
                columns.columns().iter().map(|column| Self::new(hasher, column)).collect::<PyResult<_>>()?;
        } else if let Some(dictionary) = array.as_any_dictionary_opt() {
            let values = dictionary.values();
            dictionaries.values.try_reserve_exact(values.len()).map_err(error::memory)?;
            dictionaries.values.resize(values.len(), 0);
            let (nested, mut signals) = (Self::new(hasher, values)?, Signals::after(signals::TICK));
            for (part, hashes) in dictionaries.values.chunks_mut(CHECKED_ROWS).enumerate() {
                let start = part * CHECKED_ROWS;
                hash(hasher, values, &nested, start..start + hashes.len(), hashes)?;
                signals.handle()?;
            }
        }
        Ok(dictionaries)
    }
}

/// Hashes some rows. Integers of every width are hashed as 8 bytes, and a struct as the tuple of its columns.
fn hash(
    hasher: &KeyHasher,
    array: &dyn Array,
    dictionaries: &Dictionaries,
    rows: Range<usize>,
    hashes: &mut [u64],
) -> PyResult<()> {
    use DataType::*;
    match array.data_type() {
        Null => {}
        Boolean => {
            let array = array.as_boolean();
            rows.zip(hashes).for_each(|(row, hash)| *hash = u64::from(array.value(row)).hash_with(hasher));
        }
        Utf8 => bytes(hasher, array.as_string::<i32>(), rows, hashes)?,
        LargeUtf8 => bytes(hasher, array.as_string::<i64>(), rows, hashes)?,
        Binary => bytes(hasher, array.as_binary::<i32>(), rows, hashes)?,
        LargeBinary => bytes(hasher, array.as_binary::<i64>(), rows, hashes)?,
        Utf8View => views(hasher, array.as_string_view(), rows, hashes)?,
        BinaryView => views(hasher, array.as_binary_view(), rows, hashes)?,
        FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            rows.zip(hashes).for_each(|(row, hash)| *hash = hasher.bytes(array.value(row)));
        }
        Struct(_) => {
            let mut members = array.as_struct().columns().iter().zip(&dictionaries.columns);
            if let Some((column, dictionaries)) = members.next() {
                hash(hasher, column, dictionaries, rows.clone(), hashes)?;
            }
            let mut next = vec![0; rows.len()];
            for (column, dictionaries) in members {
                hash(hasher, column, dictionaries, rows.clone(), &mut next)?;
                hashes.iter_mut().zip(&next).for_each(|(hash, &next)| *hash = hasher.combine(*hash, next));
            }
        }
        Dictionary(..) => {
            let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok(()) };
            integers(dictionary.keys(), rows, hashes);
            for hash in hashes {
                let value = usize::try_from(*hash).ok().and_then(|key| dictionaries.values.get(key));
                *hash = *value.ok_or_else(|| array_error("keys beyond the dictionary"))?;
            }
        }
        // `check_type` refuses all others.
        _ => {
            integers(array, rows, hashes);
            hashes.iter_mut().for_each(|hash| *hash = hash.hash_with(hasher));
        }
    }
    Ok(())
}

/// Widens integers to 8 bytes.
fn integers(array: &dyn Array, rows: Range<usize>, integers: &mut [u64]) {
    use DataType::*;
    macro_rules! widened {
        ($type:ty) => {{
            let values = &array.as_primitive::<$type>().values()[rows];
            values.iter().zip(integers).for_each(|(&value, integer)| *integer = value as u64);
        }};
    }
    match array.data_type() {
        Int8 => widened!(Int8Type),
        Int16 => widened!(Int16Type),
        Int32 => widened!(Int32Type),
        Int64 => widened!(Int64Type),
        UInt8 => widened!(UInt8Type),
        UInt16 => widened!(UInt16Type),
        UInt32 => widened!(UInt32Type),
        _ => widened!(UInt64Type),
    }
}

/// Hashes byte strings. Offsets are checked, because the C data interface does not require a producer to do so.
fn bytes<T: ByteArrayType>(
    hasher: &KeyHasher,
    array: &GenericByteArray<T>,
    rows: Range<usize>,
    hashes: &mut [u64],
) -> PyResult<()> {
    let (offsets, data) = (array.value_offsets(), array.value_data());
    let offsets = &offsets[rows.start..=rows.end];
    for (ends, hash) in offsets.windows(2).zip(hashes) {
        let value = data.get(ends[0].as_usize()..ends[1].as_usize());
        *hash = hasher.bytes(value.ok_or_else(|| array_error("offsets beyond the data"))?);
    }
    Ok(())
}

/// Hashes views. A view is a length, and up to 12 bytes in place; or 4 bytes, the number of a buffer and an offset in
/// it.
fn views<T: ByteViewType + ?Sized>(
    hasher: &KeyHasher,
    array: &GenericByteViewArray<T>,
    rows: Range<usize>,
    hashes: &mut [u64],
) -> PyResult<()> {
    let views = array.views().inner().as_chunks::<16>().0;
    for (view, hash) in views[rows].iter().zip(hashes) {
        let [length, _, buffer, start] =
            [0, 4, 8, 12].map(|offset| u32::from_ne_bytes([0, 1, 2, 3].map(|i| view[offset + i])));
        let (start, length) = (start as usize, length as usize);
        let value = if length <= 12 {
            &view[4..4 + length]
        } else {
            let data = array.data_buffers().get(buffer as usize);
            let value = data.and_then(|data| data.get(start..start.checked_add(length)?));
            value.ok_or_else(|| array_error("views beyond the data"))?
        };
        *hash = hasher.bytes(value);
    }
    Ok(())
}
