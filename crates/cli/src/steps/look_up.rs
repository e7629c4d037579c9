//! Steps that look keys up in a set.

use crate::read::keys::Hashing;
use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::{Claimed, Halt, SharedSeenKeys};
use crate::steps::insert::Insert;
use crate::system::error::Error;
use bloomline_keys::KeyKinds;

/// Looks keys up, and marks the lines whose keys are found.
pub struct LookUp {
    pub hashing: Hashing,
    pub seen: SharedSeenKeys,
    /// True if one selected line is enough.
    pub any: bool,
}

impl Step for LookUp {
    fn is_in_order(&self) -> bool {
        false
    }

    fn hash(&self, _config: &RunConfig, lines: &mut Lines) {
        lines.batch.hash(&self.hashing, &mut lines.keys);
    }

    fn claim(&self, config: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        // Keys that are looked up add no kinds.
        self.seen.admit(&KeyKinds::default(), &lines.keys.found_kinds)?;
        lines.mark(config.on_error, config.print.kept, |hashes, fingerprints, found| {
            self.seen.find(hashes, fingerprints, found).map(|()| hashes.len())
        })?;
        let unique = lines.marks.count(config.print.selected_mark) as u64;
        let halt = (self.any && unique > 0).then_some(Halt::Enough);
        Ok(Claimed { unique, halt, ..Claimed::default() })
    }
}

/// Looks keys up, and inserts absent ones, so that each line is selected once.
pub struct LookUpOnce(pub Insert);

impl Step for LookUpOnce {
    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.0.hash(config, lines);
    }

    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let claimed = self.0.claim(config, input, lines)?;
        Ok(Claimed { unique: lines.marks.count(config.print.selected_mark) as u64, ..claimed })
    }
}
