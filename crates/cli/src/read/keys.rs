//! The keys of a batch, and the rule for hashing them.

use crate::key::KeyRule;
use crate::key::error::KeyError;
use crate::read::ends::LineEnds;
use crate::read::skip::{OnError, SkipReason};
use crate::read::split::LineFormat;
use bloomline::KeyHasher;
use bloomline_keys::KeyKinds;
use std::sync::Arc;

/// The rule for hashing keys.
#[derive(Clone)]
pub struct Hashing {
    pub format: LineFormat,
    pub rule: KeyRule,
    /// The filter's hasher.
    pub hasher: KeyHasher,
    /// A second hasher, if fingerprints are wanted.
    pub second_hasher: Option<KeyHasher>,
    /// The treatment of a line with a null in its key, if nulls are excluded.
    pub nulls: OnError,
    /// The line ends of the keys, for a warning if there are two kinds.
    pub ends: Arc<LineEnds>,
}

/// The keys of a batch. The memory is reused.
#[derive(Default)]
pub struct Keys {
    /// The hash of each key.
    pub hashes: Vec<u64>,
    /// The 128-bit fingerprint of each key: its hash and a second hash. Empty unless wanted.
    pub fingerprints: Vec<u128>,
    /// The kinds of the keys. Empty for documents.
    pub kinds: KeyKinds,
    /// The same if they were found in values; otherwise empty.
    pub found_kinds: KeyKinds,
    /// Lines without a key or a document, in order, and the reasons.
    pub skipped: Vec<(usize, SkipReason)>,
}

impl Keys {
    pub fn clear(&mut self) {
        self.kinds = KeyKinds::default();
        self.found_kinds = KeyKinds::default();
        self.hashes.clear();
        self.fingerprints.clear();
        self.skipped.clear();
    }

    /// Adds the key of a line.
    // Inlined: a call copies the `Result`, and waits for the copy to read the key's length. It took a sixth of a run by fields.
    #[inline]
    pub fn push(&mut self, line: usize, key: Result<&[u8], KeyError>, hashing: &Hashing) {
        let why = match key {
            Ok(key) => {
                let hash = hashing.hasher.bytes(key);
                self.hashes.push(hash);
                let both = |second_hasher: &KeyHasher| fingerprint(hash, second_hasher.bytes(key));
                self.fingerprints.extend(hashing.second_hasher.as_ref().map(both));
                return;
            }
            Err(KeyError::Null) => SkipReason::Null(hashing.nulls),
            Err(key_error) => SkipReason::Invalid(key_error),
        };
        self.skipped.push((line, why));
    }

    /// Adds a key by its fingerprint, whose upper half is the hash.
    pub fn push_fingerprint(&mut self, fingerprint: u128) {
        self.hashes.push((fingerprint >> 64) as u64);
        self.fingerprints.push(fingerprint);
    }

    /// Returns the numbers of the first `count` lines that have a key.
    pub fn lines(&self, count: usize) -> impl Iterator<Item = usize> {
        let mut skipped = self.skipped.iter().map(|(line, _)| *line).peekable();
        (0..count).filter(move |line| skipped.next_if_eq(line).is_none())
    }
}

/// Joins the two hashes of a key.
pub fn fingerprint(hash: u64, second: u64) -> u128 {
    u128::from(hash) << 64 | u128::from(second)
}
