//! A pass that marks lines with the decisions of an earlier pass.

use crate::engine::pass::{Pass, Task};
use crate::error::Error;
use crate::groups::decisions::Decided;
use crate::groups::places;
use crate::input::inputs::Stamp;
use crate::input::lines::{Hashing, Lines};
use crate::key::json::Pointer;
use crate::locked::locked;
use crate::seen::Claimed;
use std::sync::Mutex;

/// Marks recorded lines by their ordinals alone.
pub struct Replay {
    pub decided: Mutex<Decided>,
    /// The pointer to texts, if duplicate documents are kept with their texts emptied.
    pub emptied: Option<Pointer>,
    /// The number of groups of two or more.
    pub groups: u64,
    /// The state of the recorded inputs.
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

    /// Compares the number of lines and the times of the last changes.
    fn finish(&self) -> Result<(), Error> {
        let is_same = locked(&self.decided).is_done() && !self.stamps.iter().any(Stamp::is_old);
        if is_same { Ok(()) } else { Err(places::changed()) }
    }

    fn repeated(&self) -> Option<u64> {
        Some(self.groups)
    }
}
