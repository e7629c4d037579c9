//! The keys of lines, as far as they are hashed.

use crate::documents::Documents;
use crate::documents::rule::DocumentRule;
use crate::input::lines::aside::Aside;
use crate::key::fault::Fault;
use crate::values::OnError;
use bloomline::KeyHasher;

/// The keys of lines.
#[derive(Default)]
pub(super) struct Keys {
    /// The hash of each: of every line but those aside.
    pub(super) hashes: Vec<u64>,
    /// The hash of each and a second one: 128 bits that tell keys apart for certain. Empty unless wanted.
    pub(super) fingerprints: Vec<u128>,
    /// Lines without a key or a document, in order, and why.
    pub(super) asides: Vec<(usize, Aside)>,
}

impl Keys {
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.fingerprints.clear();
        self.asides.clear();
    }

    /// Takes the key of a line, where nulls that are no keys are treated so. Returns whether it has one.
    // Inlined: a call copies the `Result`, and waits for the copy to read the key's length. It took a sixth of a run by fields.
    #[inline]
    pub(super) fn take(
        &mut self,
        line: usize,
        key: Result<&[u8], Fault>,
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
            Err(Fault::Null) => Aside::Null(nulls),
            Err(fault) => Aside::Fault(fault),
        };
        self.asides.push((line, why));
        false
    }

    /// Takes the fingerprint of the last document, which is that of a line. Returns whether it has one.
    pub(super) fn take_document(&mut self, line: usize, documents: &Documents, rule: &DocumentRule) -> bool {
        let Some(fingerprint) = documents.fingerprint(rule) else {
            self.asides.push((line, Aside::Empty(documents.stays_alone(rule))));
            return false;
        };
        self.hashes.push((fingerprint >> 64) as u64);
        self.fingerprints.push(fingerprint);
        true
    }
}
