//! Checks of the two kinds of inputs: files of lines, and tables, which have rows.

use crate::key::{KeyPart, KeyRule, PartNumbers};
use crate::options::ReadOptions;
use crate::read::coding::{self, Coding, ending};
use crate::read::format_of;
use crate::read::inputs::{Input, Inputs};
use crate::read::projection::Projection;
use crate::read::skip::OnError;
use crate::read::split::LineFormat;
use crate::read::table::TableOptions;
use crate::seen::kind_conflict;
use crate::system::error::Error;
use crate::system::files::cannot_open;
use bloomline_keys::KeyKinds;
use std::path::Path;

/// Extensions of names that claim lines.
const LINES: [&str; 6] = ["csv", "json", "jsonl", "ndjson", "tsv", "txt"];

/// Extensions of names that claim Parquet.
const TABLES: [&str; 3] = ["parq", "parquet", "pq"];

/// Extensions of names that claim other formats of tables.
const OTHERS: [&str; 4] = ["arrow", "avro", "feather", "orc"];

/// Refuses a mixture of lines and rows, which cannot be written to one output.
pub fn check_one(inputs: &Inputs) -> Result<(), Error> {
    if let Some(lines) = inputs.first_with_lines()
        && let Some(table) = inputs.first_table()
    {
        return Err(Error::new(format!(
            "cannot write the lines of {} and the rows of {} to one output; run the command for each kind, or give dedup and corpus \
             --output-dir",
            name(lines),
            name(table)
        )));
    }
    Ok(())
}

/// Refuses an output whose name claims another format than it will have.
pub fn check_name(output: &Path, inputs: &Inputs, total: bool) -> Result<(), Error> {
    if total {
        return check_name_of_lines(output);
    }
    if inputs.first_table().is_some() {
        return check_name_of_rows(output);
    }
    match inputs.first_with_lines() {
        Some(lines) => check_name_of(output, &format!("the lines of {}", name(lines))),
        None => Ok(()),
    }
}

/// Refuses an output of rows whose name claims lines, or a compression of whole files.
fn check_name_of_rows(output: &Path) -> Result<(), Error> {
    let ending = ending(output);
    if Coding::from_name(output)? == Coding::Plain && !LINES.contains(&&*ending) && !OTHERS.contains(&&*ending) {
        return Ok(());
    }
    Err(other_format(output, "Parquet", &ending, "choose one that ends in .parquet"))
}

/// Refuses an output of lines whose name claims a table.
pub fn check_name_of_lines(output: &Path) -> Result<(), Error> {
    check_name_of(output, "lines")
}

/// Refuses an output of lines, called `written` in errors, whose name claims a table.
fn check_name_of(output: &Path, written: &str) -> Result<(), Error> {
    let mut inner = output.to_owned();
    if Coding::from_name(output)? != Coding::Plain {
        (inner, _) = coding::split_number(output);
        inner.set_extension("");
    }
    let ending = ending(&inner);
    if !TABLES.contains(&&*ending) && !OTHERS.contains(&&*ending) {
        return Ok(());
    }
    Err(other_format(output, written, &ending, "choose another, such as one that ends in .jsonl or .txt"))
}

/// Refuses a manifest, which is not compressed, whose name claims another format.
pub fn check_name_of_manifest(manifest: &Path) -> Result<(), Error> {
    check_name_of_lines(manifest)?;
    if Coding::from_name(manifest)? == Coding::Plain {
        return Ok(());
    }
    let written = "a manifest, which is plain lines,";
    Err(other_format(manifest, written, &ending(manifest), "choose a name without it"))
}

fn other_format(output: &Path, written: &str, ending: &str, remedy: &str) -> Error {
    Error::new(format!(
        "cannot write {written} to {output:?}: its ending .{ending} stands for another format; {remedy}"
    ))
}

/// Refuses options for directories if no input is one. The files of `tests`, if there are any, are not selected by globs.
pub fn check_directories(all: &[&Inputs], tests: Option<&Inputs>, reading: &ReadOptions) -> Result<(), Error> {
    let walks = all.iter().any(|inputs| inputs.walks);
    let walks_tests = tests.is_some_and(|tests| tests.walks);
    let ignored = [
        (!reading.glob.is_empty() && !walks, "--glob"),
        (reading.hidden && !walks && !walks_tests, "--hidden"),
        (reading.follow && !walks && !walks_tests, "--follow"),
    ];
    match ignored.iter().find(|(ignored, _)| *ignored) {
        Some((_, option)) => Err(Error::new(format!(
            "{option} is for the files in directories, and no input is a directory; leave it out, or name a directory"
        ))),
        None => Ok(()),
    }
}

/// Refuses options for lines if all inputs are tables, and options for nulls if no key can be null.
pub fn check_format(all: &[&Inputs], format: LineFormat, rule: Option<&KeyRule>, crlf: bool) -> Result<(), Error> {
    let Some(table) = all.iter().find_map(|inputs| inputs.first_table()) else {
        // An empty text that is read as a number or a time is a null.
        let reads_texts = |rule: &KeyRule| [&rule.number, &rule.time].iter().any(|parts| **parts != PartNumbers::None);
        let has_nulls =
            rule.is_none_or(|rule| rule.nulls || reads_texts(rule) || matches!(rule.part, KeyPart::Json(_)));
        let lines = all.iter().find_map(|inputs| inputs.first_with_lines()).filter(|_| !has_nulls);
        return match lines {
            Some(lines) => Err(of_rows("--nulls without --json-pointer or --column", lines)),
            None => Ok(()),
        };
    };
    let has_lines = all.iter().any(|inputs| inputs.first_with_lines().is_some());
    let given = [
        (format.end == 0, "--zero-terminated"),
        (format.header, "--header"),
        (format.skip_blank, "--skip-blank"),
        (crlf, "--eol"),
    ];
    match given.iter().find(|(given, _)| *given && !has_lines) {
        Some((_, option)) => {
            let table = name(table);
            Err(Error::new(format!("{option} is for lines, and {table} is Parquet, which has rows; leave it out")))
        }
        None => Ok(()),
    }
}

/// Requirements for tables, beside the columns that are read.
#[derive(Clone, Copy, Default)]
pub struct TableRequirements {
    pub write_options: TableOptions,
    /// A column that is added.
    pub added: Option<&'static str>,
    /// True if the rows of all tables are written to one output.
    pub together: bool,
}

/// Refuses tables that lack columns or cannot be written, before an output is emptied. An unreadable table is reported when its turn comes, if it may be skipped. Returns the kinds of the keys of
/// all inputs, as far as they do not depend on values.
pub fn check_tables(
    inputs: &Inputs,
    projection: &Projection,
    demand: TableRequirements,
    on_error: OnError,
) -> Result<KeyKinds, Error> {
    let TableRequirements { write_options, added, together } = demand;
    let of_lines = inputs.first_with_lines().and_then(|_| projection.rule()?.fixed_kinds());
    let mut kinds = of_lines.unwrap_or_default();
    let Some(table) = inputs.first_table() else { return Ok(kinds) };
    if let (Some(format), Some(compression)) = (format_of(table), write_options.compression) {
        format.check(compression).map_err(cannot_open(name(table)))?;
    }
    let mut first = None;
    for (table, format) in inputs.found.iter().filter_map(|input| Some((input, format_of(input)?))) {
        let reader = match format.open(table, 0, projection) {
            Ok(reader) => reader,
            Err(source) if on_error == OnError::Fail => return Err(cannot_open(name(table))(source)),
            Err(_) => continue,
        };
        reader.check(write_options.cuts, added, first.as_deref()).map_err(cannot_open(name(table)))?;
        if let Some(rule) = projection.rule() {
            let of_table = reader.kinds(rule);
            if let Some(conflict) = of_table.conflict(&kinds) {
                return Err(kind_conflict(name(table), conflict));
            }
            kinds.unite(&of_table);
        }
        if together && first.is_none() {
            first = Some(reader);
        }
    }
    Ok(kinds)
}

/// Returns the key rule of all these inputs: if whole lines were asked for and all are tables, the rule of whole rows.
pub fn rule(all: &[&Inputs], rule: KeyRule) -> Result<KeyRule, Error> {
    let lines = all.iter().find_map(|inputs| inputs.first_with_lines());
    let table = all.iter().find_map(|inputs| inputs.first_table());
    match (&rule.part, lines, table) {
        (KeyPart::Line, Some(lines), Some(table)) => Err(Error::new(format!(
            "a line of {} and a row of {} are never equal as a whole; name the key with --column",
            name(lines),
            name(table)
        ))),
        (KeyPart::Line, None, Some(_)) => Ok(KeyRule { part: KeyPart::Row(row_columns(all)), ..rule }),
        _ => Ok(rule),
    }
}

/// Returns the columns of a whole row of the first table that can be opened. Others are refused when they are opened.
fn row_columns(all: &[&Inputs]) -> Vec<String> {
    let projection = Projection::whole();
    let mut tables = all.iter().flat_map(|inputs| &inputs.found).filter_map(|input| Some((input, format_of(input)?)));
    let columns = tables.find_map(|(input, format)| format.open(input, 0, &projection).ok());
    columns.map_or_else(Vec::new, |table| table.row_columns())
}

/// Refuses keys of NEW that can never be equal to those of OLD.
pub fn check_kinds(old: &KeyKinds, new: &KeyKinds) -> Result<(), Error> {
    match new.conflict(old) {
        Some(conflict) => Err(kind_conflict("NEW", conflict)),
        None => Ok(()),
    }
}

/// Returns the error for an option of tables that is given for lines.
fn of_rows(option: &str, lines: &Input) -> Error {
    Error::new(format!("{option} is for the rows of Parquet, and {} has lines; leave it out", name(lines)))
}

fn name(input: &Input) -> &str {
    input.origin.name()
}
