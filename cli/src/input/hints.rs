//! Hints that inputs are not what the options take them for.

use crate::input::inputs::{Input, Inputs};
use crate::key::fields::{Pick, QUOTE, Split};
use crate::key::{KeyRule, Part};
use crate::messages::warn;
use std::io::Read;

/// So many files are looked into, and so many bytes of each.
const FILES: usize = 16;
const HEAD: u64 = 1 << 16;

/// Tells of the first file that does not look as the options have it, unless `quiet`.
pub fn give(all: &[&Inputs], end: u8, rule: &KeyRule, quiet: bool) {
    let files = all.iter().flat_map(|inputs| &inputs.found);
    let mut files = files.filter(|input| input.size.is_some() && !input.is_table).take(if quiet { 0 } else { FILES });
    if let Some(hint) = files.find_map(|input| of_input(input, end, rule)) {
        warn(&hint);
    }
}

fn of_input(input: &Input, end: u8, rule: &KeyRule) -> Option<String> {
    let head = input.peek(|input| {
        let mut head = Vec::new();
        input.open(0)?.contents.take(HEAD).read_to_end(&mut head).map(|_| head)
    });
    let (head, name) = (head.ok()?, input.origin.name());
    if head.starts_with(b"WARC/1.") {
        return Some(format!(
            "{name} is a WARC, and its records are no lines; make a line of each, such as JSON, first"
        ));
    }
    let path = input.path.to_string_lossy().to_ascii_lowercase();
    let is_named = |ending: &str| path.split('.').rev().take(2).any(|part| part == ending);
    let line = head.split(|&byte| byte == end).next()?;
    let has = |byte: u8| line.contains(&byte);
    match &rule.part {
        // The error tells which name is missing.
        Part::Fields { picks, .. } if picks.iter().any(|pick| matches!(pick, Pick::Name(_))) => None,
        Part::Fields { split: Split::At(delimiter), .. } if is_named("csv") && **delimiter == *b"\t" && !has(b'\t') => {
            has(b',').then(|| format!("fields are split at tabs, and {name} has none; give --csv, or -d ','"))
        }
        Part::Fields { split: Split::Csv(csv), .. } if is_named("tsv") && csv.delimiter == b',' && has(b'\t') => {
            Some(format!("fields are split at commas, and {name} has tabs; give -d '\\t'"))
        }
        Part::Line | Part::Fields { split: Split::At(_), .. } if is_named("csv") || is_named("tsv") => {
            let is_open = |line: &[u8]| memchr::memchr_iter(QUOTE, line).count() % 2 == 1;
            let lines = head.split(|&byte| byte == end);
            let advice = if is_named("tsv") { "--csv -d '\\t'" } else { "--csv" };
            (lines.filter(|line| is_open(line)).take(2).count() == 2)
                .then(|| format!("records of {name} seem to go on over ends of lines, in quotes; give {advice}"))
        }
        _ => None,
    }
}
