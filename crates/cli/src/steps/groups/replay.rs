//! A pass that marks lines with the decisions of an earlier pass.

use crate::key::json::Pointer;
use crate::read::inputs::FileStamp;
use crate::read::lines::Lines;
use crate::read::lines::keys::HashOptions;
use crate::run::step::{Pass, RunConfig};
use crate::seen::Claimed;
use crate::steps::groups::decisions::Decisions;
use crate::steps::groups::ordinals;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use std::sync::Mutex;

/// Marks recorded lines by their ordinals alone.
pub struct Replay {
    pub decisions: Mutex<Decisions>,
    /// The pointer to texts, if duplicate documents are kept with their texts emptied.
    pub emptied: Option<Pointer>,
    /// The number of groups of two or more.
    pub groups: u64,
    /// The state of the recorded inputs.
    pub stamps: Vec<FileStamp>,
}

impl Pass for Replay {
    fn hash(&self, lines: &mut Lines, hashing: &HashOptions) {
        lines.split(hashing);
    }

    fn claim(&self, task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let (emptied, mut decisions) = (self.emptied.as_ref(), locked(&self.decisions));
        let unique = lines.recall(input, task.print.kept, emptied, &mut decisions).map_err(Error::groups)?;
        Ok(Claimed { unique, ..Claimed::default() })
    }

    /// Compares the number of lines and the times of the last changes.
    fn finish(&self) -> Result<(), Error> {
        let is_same = locked(&self.decisions).is_done() && !self.stamps.iter().any(FileStamp::has_changed);
        if is_same { Ok(()) } else { Err(ordinals::changed()) }
    }

    fn repeated(&self) -> Option<u64> {
        Some(self.groups)
    }
}
