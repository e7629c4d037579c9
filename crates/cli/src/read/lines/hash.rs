//! The hashes of the keys of lines and rows, or of their documents.

use crate::key::error::KeyError;
use crate::options::values::OnError;
use crate::read::lines::Lines;
use crate::read::lines::ends::LineEndKinds;
use crate::read::lines::keys::{HashOptions, KeySource};
use crate::read::lines::skip::SkipReason;
use crate::read::table::Rows;
use bloomline_keys::{KeyKinds, Kinds};

impl Lines {
    /// Splits the lines without hashing them.
    pub fn split(&mut self, hashing: &HashOptions) {
        self.keys.clear();
        self.documents.clear();
        self.values.clear();
        self.chunk.split(hashing.format.end);
    }

    /// Splits the lines and hashes each. A byte order mark at the start of an input is not part of a line.
    pub fn hash(&mut self, hashing: &HashOptions) {
        self.split(hashing);
        if let Some(rows) = self.rows.clone() {
            return self.hash_rows(&*rows, hashing);
        }
        let Self { chunk, rule: own_rule, keys, documents, values, scratch, .. } = self;
        let (skip_blank, count, bytes) = (hashing.format.skip_blank, chunk.count(), chunk.bytes());
        // A carriage return is text in records that end with NUL.
        let no_lone_cr = hashing.format.csv.is_none() || chunk.end != b'\n' || !has_lone_cr(bytes);
        scratch.set_plain(!chunk.quoted, no_lone_cr);
        let lines = chunk.lines();
        let hasher = &hashing.hasher;
        // A last line without an end has no kind.
        let whole = count - usize::from(chunk.unended && count > 0);
        match &hashing.what {
            KeySource::Key(rule, None) if rule.is_line() && !skip_blank => {
                if chunk.end == b'\n' {
                    hashing.ends.take(LineEndKinds::from_sample(chunk, whole));
                }
                keys.hashes.extend(lines.map(|line| hasher.bytes(&bytes[line])));
                keys.kinds = KeyKinds::new(Kinds::TEXT);
            }
            KeySource::Key(rule, second) => {
                let own_rule = own_rule.as_deref();
                let rule = own_rule.map_or(rule, |own| &own.key);
                let value_fields = own_rule.and_then(|own| own.values.as_ref());
                let (has_cr, mut kinds) = (chunk.end == b'\n' && rule.may_end_with_cr(), LineEndKinds::default());
                for (i, line) in lines.enumerate() {
                    let line = &bytes[line];
                    if skip_blank && line.trim_ascii_start().is_empty() {
                        keys.skipped.push((i, SkipReason::Blank));
                        continue;
                    }
                    let is_open = chunk.open && i + 1 == count;
                    let key = if is_open { Err(open_quote(hashing)) } else { rule.key(line, scratch) };
                    if has_cr && i < whole {
                        key.iter().for_each(|key| kinds.add(key));
                    }
                    if keys.take(i, key, hasher, second.as_ref(), hashing.nulls) {
                        match value_fields {
                            Some(fields) => values.push_fields(&hashing.values, fields, line),
                            None => values.push(&hashing.values, line),
                        }
                    }
                }
                hashing.ends.take(kinds);
                keys.found_kinds = scratch.take_kinds();
                if !keys.hashes.is_empty() {
                    keys.kinds = rule.fixed_kinds().unwrap_or_else(|| keys.found_kinds.clone());
                }
            }
            KeySource::Document(rule, on_error) => {
                for (i, line) in lines.enumerate() {
                    match documents.push(&bytes[line.clone()], line.start, rule, hasher) {
                        Ok(()) if rule.second.is_some() && !keys.take_document(i, documents, rule) => {}
                        Ok(()) => values.push(&hashing.values, &bytes[line]),
                        Err(key_error) => {
                            keys.skipped.push((i, SkipReason::Invalid(key_error)));
                            if *on_error == OnError::Fail {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Hashes each row.
    fn hash_rows(&mut self, rows: &dyn Rows, hashing: &HashOptions) {
        let Self { keys, documents, values: found, scratch, .. } = self;
        let (hasher, mut row, mut failed) = (&hashing.hasher, 0, None);
        match &hashing.what {
            KeySource::Key(rule, second) => {
                rows.hash(rule, second.as_ref(), hashing, scratch, keys);
                let found_kinds = scratch.take_kinds();
                if keys.hashes.is_empty() {
                    keys.kinds = KeyKinds::default();
                } else if found_kinds != KeyKinds::default() {
                    keys.kinds.unite(&found_kinds);
                    keys.found_kinds = keys.kinds.clone();
                }
            }
            KeySource::Document(rule, on_error) => rows.each_text(&mut |text| {
                match text {
                    // After a failure, texts are skipped.
                    Some(text) if failed.is_none() || *on_error != OnError::Fail => {
                        documents.push_text(text, rule, hasher);
                        if rule.second.is_some() {
                            keys.take_document(row, documents, rule);
                        }
                    }
                    _ => {
                        failed.get_or_insert(row);
                        keys.skipped
                            .push((row, SkipReason::Invalid(KeyError::NoText { pointer: rule.pointer.to_string() })));
                    }
                }
                row += 1;
            }),
        }
        if hashing.values.is_nothing() {
            return;
        }
        let (mut row, mut skip) = (0, keys.skipped.iter().peekable());
        rows.each_value(&mut |values| {
            if skip.next_if(|(skip, _)| *skip == row).is_none() {
                found.push_row(&hashing.values, values);
            }
            row += 1;
        });
    }
}

/// True if a carriage return is not followed by a newline.
fn has_lone_cr(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', bytes).any(|cr| bytes.get(cr + 1).is_some_and(|next| *next != b'\n'))
}

/// Returns the fault of a record whose quoted field is not closed.
fn open_quote(hashing: &HashOptions) -> KeyError {
    KeyError::Quote { has_escape: hashing.format.csv.is_some_and(|csv| csv.escape.is_some()) }
}
