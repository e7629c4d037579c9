//! The keys of lines: what is hashed of a line, and the hashes.

use crate::key::KeyRule;
use crate::key::error::KeyError;
use crate::key::fields::FieldNumbers;
use crate::options::values::OnError;
use crate::read::lines::ends::LineEnds;
use crate::read::lines::skip::SkipReason;
use crate::read::split::LineFormat;
use crate::steps::documents::DocumentBatch;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::values::ValueProjection as Values;
use bloomline::KeyHasher;
use bloomline_keys::KeyKinds;
use std::sync::Arc;

/// The options for hashing lines.
#[derive(Clone)]
pub struct HashOptions {
    pub format: LineFormat,
    /// The filter's hasher.
    pub hasher: KeyHasher,
    /// The part of a line that is hashed.
    pub what: KeySource,
    /// The treatment of a line with a null in its key, if nulls are excluded.
    pub nulls: OnError,
    /// The other values to read of lines.
    pub values: Values,
    /// The line ends of the keys, for a warning if there are two kinds.
    pub ends: Arc<LineEnds>,
}

impl HashOptions {
    /// Hashes keys and reads no other values.
    pub fn for_keys(
        hasher: &KeyHasher,
        format: LineFormat,
        what: KeySource,
        nulls: OnError,
        ends: Arc<LineEnds>,
    ) -> Self {
        let (hasher, values) = (hasher.clone(), Values::default());
        Self { format, hasher, what, nulls, values, ends }
    }
}

/// The part of a line that is hashed.
#[derive(Clone)]
pub enum KeySource {
    /// The key; with a second hasher, fingerprints too.
    Key(KeyRule, Option<KeyHasher>),
    /// The keys of its document. If lines without a document are failures, nothing is hashed after the first.
    Document(DocumentRule, OnError),
}

impl KeySource {
    /// Returns the rule for keys; `None` for documents.
    pub fn rule(&self) -> Option<&KeyRule> {
        if let Self::Key(rule, _) = self { Some(rule) } else { None }
    }

    /// Returns the rule for documents; `None` for keys.
    pub fn document(&self) -> Option<&DocumentRule> {
        if let Self::Document(rule, _) = self { Some(rule) } else { None }
    }
}

/// The parts of a rule that depend on the header of an input: the rule for keys, and the fields of other values.
pub struct HeaderRule {
    pub key: KeyRule,
    pub values: Option<FieldNumbers>,
}

impl HeaderRule {
    /// Returns the rule for lines with this header, or `None` if nothing depends on it.
    pub fn new(rule: &KeyRule, values: &Values, header: &[u8]) -> Result<Option<Self>, KeyError> {
        let names = values.names();
        let fields = if names.is_empty() { None } else { rule.named_fields(header, &names)? };
        if !rule.needs_header() && fields.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { key: rule.resolved(header)?, values: fields }))
    }
}

/// The keys of lines.
#[derive(Default)]
pub struct Keys {
    /// The hash of each key.
    pub(super) hashes: Vec<u64>,
    /// The 128-bit fingerprint of each key: its hash and a second hash. Empty unless wanted.
    pub(super) fingerprints: Vec<u128>,
    /// The kinds of the keys. Empty for documents.
    pub kinds: KeyKinds,
    /// The same if they were found in values; otherwise empty.
    pub found_kinds: KeyKinds,
    /// Lines without a key or a document, in order, and the reasons.
    pub(super) skipped: Vec<(usize, SkipReason)>,
}

impl Keys {
    pub(super) fn clear(&mut self) {
        self.kinds = KeyKinds::default();
        self.found_kinds = KeyKinds::default();
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
