//! Hints that inputs do not have the format that the options imply.

use crate::key::byte_scan::for_each_position;
use crate::key::fields::{FieldSelector, FieldSplit, QUOTE};
use crate::key::{KeyPart, KeyRule};
use crate::read::coding;
use crate::read::inputs::{Input, Inputs};
use crate::system::error::Error;
use crate::terminal::messages::warn;
use memchr::memchr2;
use std::io::{self, BufRead, BufReader, Read};
use std::mem;

/// The maximum number of files that are examined, and the bytes of each.
const MAX_FILES: usize = 16;
const HEAD_BYTES: u64 = 1 << 16;

/// The first bytes of a WARC file.
const WARC: &[u8] = b"WARC/1.";

/// Warns of the first file that does not fit the options, unless `quiet`.
pub fn warn_of_format(all: &[&Inputs], end: u8, rule: &KeyRule, quiet: bool) {
    let files = all.iter().flat_map(|inputs| &inputs.found);
    let mut files =
        files.filter(|input| input.size.is_some() && !input.is_table).take(if quiet { 0 } else { MAX_FILES });
    if let Some(hint) = files.find_map(|input| hint_for_input(input, end, rule)) {
        warn(&hint);
    }
}

fn hint_for_input(input: &Input, end: u8, rule: &KeyRule) -> Option<String> {
    let head = input.peek(|input| {
        let mut head = Vec::new();
        input.open(0)?.contents.take(HEAD_BYTES).read_to_end(&mut head).map(|_| head)
    });
    let (head, name) = (head.ok()?, input.origin.name());
    if let Ok(Some(hint)) = hint_for_records(&*head, input, end, Some(rule)) {
        return Some(hint);
    }
    let has_ends = memchr2(b'\n', 0, &head).is_some();
    if end == b'\n' && !has_ends && head.contains(&b'\r') {
        return Some(format!(
            r"lines of {name} end with CR alone, so it is one line here; convert them, such as by tr '\r' '\n' < FILE"
        ));
    }
    let line = head.split(|&byte| byte == end).next()?;
    let has = |byte: u8| line.contains(&byte);
    match &rule.part {
        // The error names the missing field.
        KeyPart::Fields { selectors, .. }
            if selectors.iter().any(|selector| matches!(selector, FieldSelector::Name(_))) =>
        {
            None
        }
        KeyPart::Fields { split: FieldSplit::At(delimiter), .. }
            if is_named(input, "csv") && **delimiter == *b"\t" && !has(b'\t') =>
        {
            has(b',').then(|| format!("fields are split at tabs, but {name} has none; give --csv, or -d ','"))
        }
        KeyPart::Fields { split: FieldSplit::Csv(csv), .. }
            if is_named(input, "tsv") && csv.delimiter == b',' && has(b'\t') =>
        {
            Some(format!("fields are split at commas, but {name} has tabs; give -d '\\t'"))
        }
        _ => None,
    }
}

/// Refuses to replace inputs whose lines are parts of records, because removing a repeated line would damage a record.
pub fn check_replaced<'a>(
    inputs: impl Iterator<Item = &'a Input>,
    end: u8,
    rule: Option<&KeyRule>,
) -> Result<(), Error> {
    let mut files = inputs.filter(|input| input.size.is_some() && !input.is_table);
    // A file that cannot be read is reported when it is read.
    let hint = files.find_map(|input| {
        input.peek(|reopened| hint_for_records(reopened.open(0)?.contents, input, end, rule)).ok()?
    });
    match hint {
        Some(hint) => Err(Error::new(format!("nothing is replaced: {hint}, or write to another file with -o"))),
        None => Ok(()),
    }
}

/// Returns a hint if the contents of an input are records of several lines.
fn hint_for_records(
    mut contents: impl Read,
    input: &Input,
    end: u8,
    rule: Option<&KeyRule>,
) -> io::Result<Option<String>> {
    let name = input.origin.name();
    let mut head = Vec::new();
    contents.by_ref().take(WARC.len() as u64).read_to_end(&mut head)?;
    if head == WARC {
        return Ok(Some(format!(
            "{name} is a WARC file, whose records are not lines; convert each record to a line first, such as JSON"
        )));
    }
    let has_lines =
        rule.is_some_and(|rule| matches!(rule.part, KeyPart::Line | KeyPart::Fields { split: FieldSplit::At(_), .. }));
    let advice = match has_lines {
        true if is_named(input, "tsv") => "--csv -d '\\t'",
        true if is_named(input, "csv") => "--csv",
        _ => return Ok(None),
    };
    let is_open = has_open_lines(BufReader::with_capacity(HEAD_BYTES as usize, head.chain(contents)), end)?;
    Ok(is_open.then(|| format!("quoted fields of {name} seem to contain ends of lines; give {advice}")))
}

/// True if two lines have an odd number of quotes. A single one may be text.
fn has_open_lines(mut contents: impl BufRead, end: u8) -> io::Result<bool> {
    let (mut lines, mut is_open) = (0, false);
    loop {
        let piece = contents.fill_buf()?;
        for_each_position(piece, [end, QUOTE], |position| match piece[position] {
            QUOTE => is_open = !is_open,
            _ => lines += usize::from(mem::take(&mut is_open)),
        });
        let length = piece.len();
        if length == 0 || lines > 1 {
            return Ok(lines + usize::from(is_open) > 1);
        }
        contents.consume(length);
    }
}

/// True if one of the last two extensions of the input's name, before the number of a rotation, is `ending`.
fn is_named(input: &Input, ending: &str) -> bool {
    let path = coding::split_number(&input.path).0.to_string_lossy().to_ascii_lowercase();
    path.split('.').rev().take(2).any(|part| part == ending)
}
