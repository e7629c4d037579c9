//! A pass that inserts keys into a set and marks new ones.

use crate::engine::pass::{Pass, RunConfig};
use crate::error::Error;
use crate::input::lines::Lines;
use crate::seen::{Claimed, SharedSeenKeys};

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
