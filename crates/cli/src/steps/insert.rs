//! A pass that inserts keys into a set and marks new ones.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::{Claimed, SharedSeenKeys};
use crate::system::error::Error;

/// Inserts keys, and marks the lines whose keys are new.
pub struct Insert {
    pub seen: SharedSeenKeys,
    /// True if the first of equal lines is the new one; otherwise any of them may be.
    pub in_order: bool,
}

impl Pass for Insert {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn claim(&self, task: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        self.seen.admit(lines.kinds(), lines.found_kinds())?;
        let mut claimed = Claimed::default();
        lines.mark(task.on_error, task.print.kept, |hashes, fingerprints, new| {
            let (done, came) = self.seen.write().insert(hashes, fingerprints, new)?;
            claimed = came;
            Ok(done)
        })?;
        Ok(claimed)
    }
}
