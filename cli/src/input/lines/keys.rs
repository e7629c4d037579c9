//! The hashes of the keys of lines.

use crate::documents::DocumentBatch;
use crate::documents::rule::DocumentRule;
use crate::input::lines::skip::SkipReason;
use crate::key::error::KeyError;
use crate::values::OnError;
use bloomline::KeyHasher;

/// The keys of lines.
#[derive(Default)]
pub struct Keys {
    /// The hash of each key.
    pub(super) hashes: Vec<u64>,
    /// The 128-bit fingerprint of each key: its hash and a second hash. Empty unless wanted.
    pub(super) fingerprints: Vec<u128>,
    /// Lines without a key or a document, in order, and the reasons.
    pub(super) skipped: Vec<(usize, SkipReason)>,
}

impl Keys {
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.fingerprints.clear();
        self.skipped.clear();
    }

    /// Adds the key of a line, treating excluded nulls as `nulls`. Returns true if there is a key.
    // Inlined: a call copies the `Result`, and waits for the copy to read the key's length. It took a sixth of a run by fields.
    #[inline]
    pub fn take(
        &mut self,
        line: usize,
        key: Result<&[u8], KeyError>,
        hasher: &KeyHasher,
        second: Option<&KeyHasher>,
        nulls: OnError,
    ) -> bool {
        let why = match key {
            Ok(key) => {
                let hash = hasher.bytes(key);
                let both = |second: &KeyHasher| u128::from(hash) << 64 | u128::from(second.bytes(key));
                self.hashes.push(hash);
                self.fingerprints.extend(second.map(both));
                return true;
            }
            Err(KeyError::Null) => SkipReason::Null(nulls),
            Err(key_error) => SkipReason::Invalid(key_error),
        };
        self.skipped.push((line, why));
        false
    }

    /// Adds the fingerprint of the last document, which is on line `line`. Returns false if there is nothing to compare.
    pub(super) fn take_document(&mut self, line: usize, documents: &DocumentBatch, rule: &DocumentRule) -> bool {
        let Some(fingerprint) = documents.fingerprint(rule) else {
            self.skipped.push((line, SkipReason::Empty(documents.stays_alone(rule))));
            return false;
        };
        self.hashes.push((fingerprint >> 64) as u64);
        self.fingerprints.push(fingerprint);
        true
    }
}
