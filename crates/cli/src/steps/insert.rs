//! A step that inserts keys into a set and marks new ones.

use crate::read::keys::Hashing;
use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::{Claimed, SharedSeenKeys};
use crate::system::error::Error;

/// Inserts keys, and marks the lines whose keys are new.
pub struct Insert {
    pub hashing: Hashing,
    pub seen: SharedSeenKeys,
    /// True if the first of equal lines is the new one; otherwise any of them may be.
    pub in_order: bool,
}

impl Step for Insert {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn hash(&self, _config: &RunConfig, lines: &mut Lines) {
        lines.batch.hash(&self.hashing, &mut lines.keys);
    }

    fn claim(&self, config: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        insert(&self.seen, config, lines)
    }
}

/// Inserts the keys of lines, and marks the lines whose keys are new.
pub fn insert(seen: &SharedSeenKeys, config: &RunConfig, lines: &mut Lines) -> Result<Claimed, Error> {
    seen.admit(&lines.keys.kinds, &lines.keys.found_kinds)?;
    let mut claimed = Claimed::default();
    lines.mark(config.on_error, config.print.kept, |hashes, fingerprints, new| {
        let (done, came) = seen.write().insert(hashes, fingerprints, new)?;
        claimed = came;
        Ok(done)
    })?;
    Ok(claimed)
}
