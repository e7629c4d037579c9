//! The values that are read from lines beside their keys: the value that decides, and the id.

use crate::key::fields::{FieldNumbers, Spans};
use crate::key::json::Pointer;
use crate::key::parse_number;
use crate::read::batch::Batch;
use crate::read::keys::Keys;
use crate::read::projection::{Compared, ProjectedPart, Projection};
use crate::steps::groups::choice::KeepPolicy;
use bloomline_keys::{Value, Values};
use serde::de::IgnoredAny;
use std::str::from_utf8;

/// The values to read.
#[derive(Clone, Default)]
pub struct ValueProjection {
    /// A choice by a value.
    pub keep: Option<KeepPolicy>,
    pub id: Option<Pointer>,
    /// The answer of a test.
    pub answer: Option<Pointer>,
}

impl ValueProjection {
    /// Returns the projection of lines that reads this part and these values.
    pub fn with(&self, part: ProjectedPart) -> Projection {
        let values = self.keep.as_ref().and_then(KeepPolicy::pointer).into_iter().chain(&self.id).chain(&self.answer);
        let compared = self.keep.as_ref().map(|keep| match keep {
            KeepPolicy::Order(..) => Compared::Texts,
            _ => Compared::All,
        });
        Projection { part, values: values.cloned().collect(), compared }
    }

    /// True if no value is read.
    fn is_nothing(&self) -> bool {
        self.keep.is_none() && self.id.is_none() && self.answer.is_none()
    }
}

/// The values read of the lines of a chunk with keys, in order. Values that are not wanted are empty.
#[derive(Default)]
pub struct FoundValues {
    /// The words of scores, and the end of each line's score.
    scores: Vec<u64>,
    score_ends: Vec<usize>,
    ids: String,
    ends: Vec<usize>,
    answers: Vec<Option<String>>,
    scratch: String,
    bytes: Vec<u8>,
    spans: Spans,
}

impl FoundValues {
    /// Reads the values of the lines of a batch that have keys.
    pub fn read(&mut self, wanted: &ValueProjection, batch: &Batch, keys: &Keys) {
        self.scores.clear();
        self.score_ends.clear();
        self.ids.clear();
        self.ends.clear();
        self.answers.clear();
        if wanted.is_nothing() {
            return;
        }
        let mut with_key = keys.lines(batch.count()).peekable();
        if let Some(rows) = batch.rows() {
            let mut rows_before = 0;
            rows.each_value(&mut |values| {
                if with_key.next_if_eq(&rows_before).is_some() {
                    self.push_row(wanted, values);
                }
                rows_before += 1;
            });
            return;
        }
        for line in with_key {
            let line = &batch.bytes()[batch.line(line)];
            match batch.value_fields() {
                Some(fields) => self.push_fields(wanted, fields, line),
                None => self.push(wanted, line),
            }
        }
    }

    /// Adds the values of a line.
    fn push(&mut self, wanted: &ValueProjection, line: &[u8]) {
        let Self { scores, score_ends, ids, ends, scratch, bytes, .. } = self;
        let document = from_utf8(line).unwrap_or_default();
        if let Some(keep) = &wanted.keep {
            keep.push_score_of(document, scratch, bytes, scores);
            score_ends.push(scores.len());
        }
        if let Some(id) = &wanted.id {
            ids.push_str(&id.find_compact(document).ok().flatten().unwrap_or_else(|| "null".into()));
            ends.push(ids.len());
        }
        if let Some(answer) = &wanted.answer {
            let found = answer.find_compact(document).ok().flatten();
            self.answers.push(found.and_then(|json| match serde_json::from_str(&json).ok()? {
                serde_json::Value::String(text) => Some(text),
                serde_json::Value::Number(number) => Some(number.to_string()),
                _ => None,
            }));
        }
    }

    /// Adds the values of a line that is split into fields: the value that decides and the id, if wanted. A field that is a number counts
    /// as one, and an empty field as a null.
    fn push_fields(&mut self, wanted: &ValueProjection, fields: &FieldNumbers, line: &[u8]) {
        let Self { scores, score_ends, ids, ends, spans, bytes, .. } = self;
        let found = fields.split.fields(line, usize::MAX, spans).ok();
        let mut numbers = fields.numbers.iter();
        let mut next = || found.as_ref()?.get(*numbers.next()?);
        if let Some(keep) = &wanted.keep {
            let text = if keep.pointer().is_some() { next() } else { None };
            let value = match text.filter(|text| !text.is_empty()) {
                None => Value::Null,
                Some(text) => match parse_number(text.trim_ascii()) {
                    Some((number, float)) if float.is_finite() && !matches!(keep, KeepPolicy::Order(..)) => {
                        Value::Json(number)
                    }
                    _ => Value::Text(text),
                },
            };
            keep.push_score(&value, bytes, scores);
            score_ends.push(scores.len());
        }
        if wanted.id.is_some() {
            let id = next().map(|text| serde_json::Value::from(String::from_utf8_lossy(text)));
            ids.push_str(&id.unwrap_or_default().to_string());
            ends.push(ids.len());
        }
    }

    /// Adds the values of a row: the value that decides and the id, if wanted.
    fn push_row(&mut self, wanted: &ValueProjection, values: &dyn Values) {
        let Self { scores, score_ends, ids, ends, scratch, bytes, .. } = self;
        let mut next = 0..values.count();
        if let Some(keep) = &wanted.keep {
            let value = next.next().map_or(Value::Null, |part| match keep {
                KeepPolicy::Order(..) => values.value(part, scratch),
                _ => values.sortable(part, scratch),
            });
            keep.push_score(&value, bytes, scores);
            score_ends.push(scores.len());
        }
        if wanted.id.is_some()
            && let Some(part) = next.next()
        {
            match values.value(part, scratch) {
                Value::Null => ids.push_str("null"),
                Value::Text(text) => ids.push_str(&serde_json::Value::from(String::from_utf8_lossy(text)).to_string()),
                Value::Json(json) if is_json(json) => ids.push_str(json),
                // NaN and Infinity, which occur in tables, are strings in JSON.
                Value::Json(text) => ids.push_str(&serde_json::Value::from(text).to_string()),
            }
            ends.push(ids.len());
        }
        if wanted.answer.is_some()
            && let Some(part) = next.next()
        {
            self.answers.push(match values.value(part, scratch) {
                Value::Null => None,
                Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                Value::Json(json) => Some(json.to_owned()),
            });
        }
    }

    /// Returns the score of the line with this number; nothing if scores are not wanted.
    pub fn score(&self, line: usize) -> &[u64] {
        let start = line.checked_sub(1).and_then(|before| self.score_ends.get(before)).copied().unwrap_or(0);
        self.score_ends.get(line).map_or(&[], |&end| &self.scores[start..end])
    }

    /// Returns the id of the line as JSON; nothing if ids are not wanted.
    pub fn id(&self, line: usize) -> &str {
        let start = line.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(line).map_or("", |&end| &self.ids[start..end])
    }

    /// Returns the answer of the line, if it has one and answers are wanted.
    pub fn answer(&self, line: usize) -> Option<&str> {
        self.answers.get(line)?.as_deref()
    }
}

/// True if a value of a table is JSON. Only some numbers are not.
fn is_json(text: &str) -> bool {
    !text.contains(['N', 'I']) || serde_json::from_str::<IgnoredAny>(text).is_ok()
}
