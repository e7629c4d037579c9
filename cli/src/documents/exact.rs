//! The exact keys of a filter, to count the units that it wrongly reports as duplicates.

use bloomline_text::{Document, Rules};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The keys of the units decided so far.
pub struct ExactUnits {
    rules: Rules,
    keys: HashSet<u64, BuildHasherDefault<Same>>,
    /// The number of units that were removed by mistake.
    pub wrong: u64,
}

impl ExactUnits {
    /// Creates an empty set, for a filter without keys.
    pub fn new(rules: Rules) -> Self {
        Self { rules, keys: HashSet::default(), wrong: 0 }
    }

    /// Checks the units of a document after a filter decided them. A unit that was removed by mistake counts once: its copies are
    /// rightly removed.
    pub fn check(&mut self, document: &Document) {
        for (unit, hashes) in document.verdicts().zip(document.hashes()) {
            let known = hashes.iter().filter(|hash| self.keys.contains(hash)).count();
            let wrong = unit.cut && !self.rules.is_duplicate(unit.grams, known);
            self.wrong += u64::from(wrong);
            if wrong || !unit.cut {
                self.keys.extend(hashes);
            }
        }
    }
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
