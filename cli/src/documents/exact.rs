//! All keys of a filter beside it, to count the units that it takes for duplicates by mistake.

use bloomline_text::{Document, Rules};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The keys of the units that were decided.
pub struct ExactUnits {
    rules: Rules,
    keys: HashSet<u64, BuildHasherDefault<Same>>,
    /// How many went by mistake.
    pub wrong: u64,
}

impl ExactUnits {
    /// Of a filter without keys.
    pub fn new(rules: Rules) -> Self {
        Self { rules, keys: HashSet::default(), wrong: 0 }
    }

    /// Takes the units of a document after a filter has decided them. One that went by mistake counts once: its copies are right
    /// to go.
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

/// Keys are hashes already.
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
