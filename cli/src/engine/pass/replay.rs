//! Lines are marked with what was decided of them.

use crate::engine::pass::{Outcome, Pass, Task};
use crate::error::Error;
use crate::groups::decisions::Decided;
use crate::input::inputs::Stamp;
use crate::input::lines::{Hashing, Lines};
use crate::key::json::Pointer;
use crate::locked::locked;
use crate::seen::Claimed;
use std::sync::Mutex;

/// Marks lines that were recorded, by their places alone.
pub struct Replay {
    pub decided: Mutex<Decided>,
    /// The place of texts, if documents that repeat stay without theirs.
    pub emptied: Option<Pointer>,
    /// Groups of two or more.
    pub groups: u64,
    /// The inputs that were recorded.
    pub stamps: Vec<Stamp>,
}

impl Pass for Replay {
    fn hash(&self, lines: &mut Lines, hashing: &Hashing) {
        lines.split(hashing);
    }

    fn claim(&self, task: &Task, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let (emptied, mut decided) = (self.emptied.as_ref(), locked(&self.decided));
        let unique = lines.recall(input, task.print.kept, emptied, &mut decided).map_err(Error::groups)?;
        Ok(Claimed { unique, ..Claimed::default() })
    }

    /// The number of lines and the times of the last changes tell.
    fn finish(&self) -> Result<(), Error> {
        let is_same = locked(&self.decided).is_done() && !self.stamps.iter().any(Stamp::is_old);
        if is_same { Ok(()) } else { Err(Error::Changed) }
    }

    fn outcome(&self) -> Outcome {
        Outcome { repeated: Some(self.groups), ..Outcome::default() }
    }
}
