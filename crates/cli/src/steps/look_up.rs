//! Passes that look keys up in a set.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::{Claimed, Halt, SharedSeenKeys};
use crate::steps::insert::Insert;
use crate::system::error::Error;
use bloomline_keys::KeyKinds;

/// Looks keys up, and marks the lines whose keys are found.
pub struct LookUp {
    pub seen: SharedSeenKeys,
    /// True if one selected line is enough.
    pub any: bool,
}

impl Pass for LookUp {
    fn is_in_order(&self) -> bool {
        false
    }

    fn claim(&self, task: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        // Keys that are looked up add no kinds.
        self.seen.admit(&KeyKinds::default(), lines.found_kinds())?;
        let find = |hashes: &[u64], fingerprints: &[u128], found: &mut [bool]| {
            self.seen.find(hashes, fingerprints, found).map(|()| hashes.len())
        };
        lines.mark(task.on_error, task.print.kept, find)?;
        let unique = lines.marked(task.print.selected_mark) as u64;
        let halt = (self.any && unique > 0).then_some(Halt::Enough);
        Ok(Claimed { unique, halt, ..Claimed::default() })
    }
}

/// Looks keys up, and inserts absent ones, so that each line is selected once.
pub struct LookUpOnce(pub Insert);

impl Pass for LookUpOnce {
    fn claim(&self, task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let claimed = self.0.claim(task, input, lines)?;
        Ok(Claimed { unique: lines.marked(task.print.selected_mark) as u64, ..claimed })
    }
}
