//! What is read of lines beside their keys: what they are chosen by, and what they are called.

use crate::groups::choice::Choice;
use crate::key::json::Pointer;
use crate::key::{Value, Values};
use serde::de::IgnoredAny;
use std::str::from_utf8;

/// What is read.
#[derive(Clone, Default)]
pub struct Wanted {
    /// A choice by a value.
    pub choice: Option<Choice>,
    pub id: Option<Pointer>,
}

impl Wanted {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        self.choice.is_none() && self.id.is_none()
    }

    /// Where the values are.
    pub fn pointers(&self) -> Vec<Pointer> {
        let choice = self.choice.as_ref().and_then(Choice::pointer);
        choice.into_iter().chain(&self.id).cloned().collect()
    }
}

/// What was read of the lines of a chunk that have keys, in order. What is not wanted has no entries.
#[derive(Default)]
pub struct Found {
    /// The words of scores, and where that of each line ends.
    scores: Vec<u64>,
    score_ends: Vec<usize>,
    ids: String,
    ends: Vec<usize>,
    scratch: String,
    bytes: Vec<u8>,
}

impl Found {
    pub fn clear(&mut self) {
        self.scores.clear();
        self.score_ends.clear();
        self.ids.clear();
        self.ends.clear();
    }

    /// Adds what a line has.
    pub fn push(&mut self, wanted: &Wanted, line: &[u8]) {
        if wanted.is_nothing() {
            return;
        }
        let Self { scores, score_ends, ids, ends, scratch, bytes } = self;
        let document = from_utf8(line).unwrap_or_default();
        if let Some(choice) = &wanted.choice {
            choice.push_score_of(document, scratch, bytes, scores);
            score_ends.push(scores.len());
        }
        if let Some(id) = &wanted.id {
            ids.push_str(&id.find_compact(document).ok().flatten().unwrap_or_else(|| "null".into()));
            ends.push(ids.len());
        }
    }

    /// Adds what a row has: values where the pointers are.
    pub fn push_row(&mut self, wanted: &Wanted, values: &impl Values) {
        let Self { scores, score_ends, ids, ends, scratch, bytes } = self;
        let mut next = 0..values.count();
        if let Some(choice) = &wanted.choice {
            let value = next.next().map_or(Value::Null, |part| match choice {
                Choice::Order(..) => values.value(part, scratch),
                _ => values.sortable(part, scratch),
            });
            choice.push_score(&value, bytes, scores);
            score_ends.push(scores.len());
        }
        if let Some(part) = next.next() {
            match values.value(part, scratch) {
                Value::Null => ids.push_str("null"),
                Value::Text(text) => ids.push_str(&serde_json::Value::from(String::from_utf8_lossy(text)).to_string()),
                Value::Json(json) if is_json(json) => ids.push_str(json),
                // A table has NaN and Infinity, which JSON has as strings alone.
                Value::Json(text) => ids.push_str(&serde_json::Value::from(text).to_string()),
            }
            ends.push(ids.len());
        }
    }

    /// The score of the line with this number; nothing if that is not wanted.
    pub fn score(&self, line: usize) -> &[u64] {
        let start = line.checked_sub(1).and_then(|before| self.score_ends.get(before)).copied().unwrap_or(0);
        self.score_ends.get(line).map_or(&[], |&end| &self.scores[start..end])
    }

    /// What it is called as JSON; nothing if that is not wanted.
    pub fn id(&self, line: usize) -> &str {
        let start = line.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(line).map_or("", |&end| &self.ids[start..end])
    }
}

/// Whether what a table has is JSON: all but some numbers are.
fn is_json(text: &str) -> bool {
    !text.contains(['N', 'I']) || serde_json::from_str::<IgnoredAny>(text).is_ok()
}
