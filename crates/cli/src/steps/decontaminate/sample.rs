//! A sample of the inputs, from which the words of short tests get their weights.

use crate::read::estimate::{SampleUnit, estimate_inputs};
use crate::read::format_of;
use crate::read::inputs::Input;
use crate::read::projection::{ProjectedPart, Projection};
use crate::steps::documents::rule::DocumentRule;
use crate::steps::values::ValueProjection;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use bloomline_text::Phrases;
use std::io;
use std::str::from_utf8;
use std::sync::Mutex;

/// The size of a window of a large file.
const WINDOW: usize = 1 << 16;

/// The bytes of all samples, and the minimum of each file. Templates are recognized only if the sample has two of their sentences.
const ALL_BYTES: usize = 1 << 26;
const FILE_BYTES: usize = 1 << 20;

/// The maximum number of tables that are sampled, evenly spread.
const TABLES: usize = 64;

/// Phrases that learn from the texts of samples.
struct Learner<'a> {
    rule: &'a DocumentRule,
    phrases: Mutex<Phrases>,
    /// The bytes of the sample of each file.
    bytes: usize,
}

/// Adds a sample of the inputs to the statistics of phrases. If an input cannot be sampled, such as a pipe, returns its name and the
/// phrases as they were. Inputs that cannot be read are reported when they are read as a whole.
pub fn learn(
    phrases: Phrases,
    rule: &DocumentRule,
    inputs: &[Input],
    end: u8,
) -> Result<(Phrases, Option<String>), Error> {
    if let Some(input) = inputs.iter().find(|input| input.size.is_none()) {
        return Ok((phrases, Some(input.origin.name().to_owned())));
    }
    let without_sample = phrases.clone();
    let bytes = FILE_BYTES.max(ALL_BYTES / inputs.len().max(1));
    let learner = Learner { rule, phrases: Mutex::new(phrases), bytes };
    if let Err(input) = estimate_inputs(inputs, end, &learner, true)? {
        return Ok((without_sample, Some(input)));
    }
    let tables: Vec<&Input> = inputs.iter().filter(|input| format_of(input).is_some()).collect();
    for table in tables.iter().step_by(tables.len().div_ceil(TABLES).max(1)) {
        // A broken table is reported when it is read as a whole.
        let _ = learner.learn_table(table);
    }
    Ok((learner.phrases.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()), None))
}

impl Learner<'_> {
    fn learn_table(&self, input: &Input) -> io::Result<()> {
        let Some(format) = format_of(input) else { return Ok(()) };
        let text = ProjectedPart::Text(self.rule.pointer.clone());
        let projection: Projection = ValueProjection::default().with(text);
        let mut table = format.open(input, 0, &projection)?;
        let mut bytes = 0;
        while bytes < self.bytes
            && let Some(rows) = table.next()?
        {
            rows.each_text(&mut |text| {
                if let Some(text) = text.filter(|_| bytes < self.bytes) {
                    bytes += text.len();
                    locked(&self.phrases).learn(text);
                }
            });
        }
        Ok(())
    }
}

impl SampleUnit for Learner<'_> {
    fn sampled_bytes(&self) -> usize {
        self.bytes
    }

    fn window(&self) -> usize {
        WINDOW
    }

    fn column(&self) -> Option<&[String]> {
        Some(self.rule.pointer.tokens())
    }

    fn estimate_keys(&self, rows: u64, _bytes: u64) -> u64 {
        rows
    }

    fn count(&self, piece: &[u8], end: u8, first: bool, last: bool) -> f64 {
        let start = if first { 0 } else { memchr::memchr(end, piece).map_or(piece.len(), |end| end + 1) };
        let stop = if last { piece.len() } else { memchr::memrchr(end, piece).map_or(start, |end| end + 1) };
        let mut text = String::new();
        let mut phrases = locked(&self.phrases);
        for line in piece.get(start..stop).unwrap_or_default().split(|&byte| byte == end) {
            text.clear();
            if let Ok(line) = from_utf8(line)
                && let Ok(Some(_)) = self.rule.pointer.find_string(line, &mut text, |_| ())
            {
                phrases.learn(&text);
            }
        }
        1.0
    }
}
