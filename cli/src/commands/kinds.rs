//! Inputs of two kinds: files of lines, and tables, which have rows.

use crate::error::Error;
use crate::input::chunks::Cut;
use crate::input::header;
use crate::input::inputs::{Input, Inputs};
use crate::input::split::LineFormat;
use crate::key::json::Pointer;
use crate::key::{KeyRule, Part};
use crate::table::{TableReader, Wanted, Wish};
use crate::values::OnError;

/// Refuses what cannot stand in one output: lines and rows, and lines under different headers. Where bad input does not end the run,
/// inputs with another header than the first are left out.
pub fn check_one(inputs: &mut Inputs, cut: Cut, on_error: OnError) -> Result<(), Error> {
    match inputs.kinds() {
        (Some(lines), Some(table)) => Err(Error::Kinds { lines: name(lines), table: name(table) }),
        _ => header::check_all(inputs, cut, on_error != OnError::Fail),
    }
}

/// Refuses what is said of lines where there are none, and of nulls where there are none.
pub fn check_format(all: &[&Inputs], format: LineFormat, rule: Option<&KeyRule>) -> Result<(), Error> {
    let Some(table) = all.iter().find_map(|inputs| inputs.kinds().1) else {
        let has_nulls = rule.is_none_or(|rule| rule.nulls || matches!(rule.part, Part::Json(_)));
        let lines = all.iter().find_map(|inputs| inputs.kinds().0).filter(|_| !has_nulls);
        return lines.map_or(Ok(()), |lines| {
            Err(Error::OfRows { option: "--nulls without --json-pointer or --column", lines: name(lines) })
        });
    };
    let has_lines = all.iter().any(|inputs| inputs.kinds().0.is_some());
    let given = [
        (format.end == 0, "--zero-terminated"),
        (format.header, "--header"),
        (format.skip_blank, "--skip-blank"),
        (rule.is_some_and(|rule| rule.crlf), "--crlf"),
    ];
    match given.iter().find(|(given, _)| *given && !has_lines) {
        Some((_, option)) => Err(Error::OfLines { option, table: name(table) }),
        None => Ok(()),
    }
}

/// Refuses what no table can be, and what the first table has not, before an output is emptied. That of others is told when their turn
/// comes, and that of all if they may be left out.
pub fn check_first_table(
    inputs: &Inputs,
    wanted: Wanted<'_>,
    values: &[Pointer],
    wish: Wish,
    on_error: OnError,
) -> Result<(), Error> {
    let Some(table) = inputs.kinds().1 else {
        let lines = inputs.kinds().0.filter(|_| wish.filter);
        return lines.map_or(Ok(()), |lines| Err(Error::OfRows { option: "--column-filter", lines: name(lines) }));
    };
    let open = || table.again().and_then(|table| TableReader::open(table, 0, wanted, values)).map(drop);
    let checked = wish.check().and_then(|()| if on_error == OnError::Fail { open() } else { Ok(()) });
    checked.map_err(|source| Error::Open { input: name(table), source })
}

/// The rule for keys of all these: that of whole rows, if they are tables and whole lines were asked for.
pub fn rule(all: &[&Inputs], rule: KeyRule) -> Result<KeyRule, Error> {
    let lines = all.iter().find_map(|inputs| inputs.kinds().0);
    let table = all.iter().find_map(|inputs| inputs.kinds().1);
    match (&rule.part, lines, table) {
        (Part::Line, Some(lines), Some(table)) => Err(Error::WholeKinds { lines: name(lines), table: name(table) }),
        (Part::Line, None, Some(_)) => Ok(KeyRule { part: Part::Row, ..rule }),
        _ => Ok(rule),
    }
}

fn name(input: &Input) -> String {
    input.origin.name().to_owned()
}
