//! The hashes of the keys of lines and rows.

use crate::key::error::KeyError;
use crate::read::batch::Batch;
use crate::read::ends::LineEndKinds;
use crate::read::keys::{Hashing, Keys, fingerprint};
use crate::read::skip::SkipReason;
use bloomline_keys::{KeyKinds, Kinds};

impl Batch {
    /// Hashes the key of each line or row. A byte order mark at the start of an input is not part of a line.
    pub fn hash(&mut self, hashing: &Hashing, keys: &mut Keys) {
        if let Some(rows) = &self.rows {
            rows.hash(hashing, &mut self.scratch, keys);
            let found_kinds = self.scratch.take_kinds();
            if keys.hashes.is_empty() {
                keys.kinds = KeyKinds::default();
            } else if found_kinds != KeyKinds::default() {
                keys.kinds.unite(&found_kinds);
                keys.found_kinds = keys.kinds.clone();
            }
            return;
        }
        let Self { chunk, rule: own_rule, scratch, .. } = self;
        let Hashing { format, rule, hasher, second_hasher, .. } = hashing;
        let count = chunk.count();
        let bytes = chunk.bytes();
        // A carriage return is text in records that end with NUL.
        let no_lone_cr = format.csv.is_none() || chunk.end != b'\n' || !has_lone_cr(bytes);
        scratch.set_plain(!chunk.quoted, no_lone_cr);
        // A last line without an end has no kind.
        let whole = count - usize::from(chunk.unended && count > 0);
        if rule.is_line() && !format.skip_blank {
            if chunk.end == b'\n' {
                hashing.ends.take(LineEndKinds::from_sample(chunk, whole));
            }
            match second_hasher {
                None => keys.hashes.extend(chunk.lines().map(|line| hasher.bytes(&bytes[line]))),
                Some(second_hasher) => chunk.lines().for_each(|line| {
                    let line = &bytes[line];
                    keys.push_fingerprint(fingerprint(hasher.bytes(line), second_hasher.bytes(line)));
                }),
            }
            keys.kinds = KeyKinds::new(Kinds::TEXT);
            return;
        }
        let rule = own_rule.as_ref().map_or(rule, |own| &own.key);
        let has_cr = chunk.end == b'\n' && rule.may_end_with_cr();
        let mut kinds = LineEndKinds::default();
        for (i, line) in chunk.lines().enumerate() {
            let line = &bytes[line];
            if format.skip_blank && line.trim_ascii_start().is_empty() {
                keys.skipped.push((i, SkipReason::Blank));
                continue;
            }
            let is_open = chunk.open && i + 1 == count;
            let key = if is_open { Err(open_quote(hashing)) } else { rule.key(line, scratch) };
            if has_cr && i < whole {
                key.iter().for_each(|key| kinds.add(key));
            }
            keys.push(i, key, hashing);
        }
        hashing.ends.take(kinds);
        keys.found_kinds = scratch.take_kinds();
        if !keys.hashes.is_empty() {
            keys.kinds = rule.fixed_kinds().unwrap_or_else(|| keys.found_kinds.clone());
        }
    }
}

/// True if a carriage return is not followed by a newline.
fn has_lone_cr(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', bytes).any(|cr| bytes.get(cr + 1).is_some_and(|next| *next != b'\n'))
}

/// Returns the fault of a record whose quoted field is not closed.
fn open_quote(hashing: &Hashing) -> KeyError {
    KeyError::Quote { has_escape: hashing.format.csv.is_some_and(|csv| csv.escape.is_some()) }
}
