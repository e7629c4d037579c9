//! The set and the state that a run starts with, and the checkpoints that it leaves.

use crate::commands::groups::GroupRequest;
use crate::commands::run::plan::{Keys, Memory, Plan, ReportOptions, StateOptions};
use crate::commands::sizing::{self, NewSet};
use crate::options::values::{LineEnd, OnError};
use crate::read::estimate::SampleUnit;
use crate::read::inputs::{Input, Inputs};
use crate::read::lines::Prefix;
use crate::run::checkpoint::{Checkpoint, Checkpoints, InputProgress, Job};
use crate::run::folder;
use crate::run::work::Persistence;
use crate::seen::SeenKeys;
use crate::seen::remote_set::Address;
use crate::seen::run_stats::{FullLimit, RunStats};
use crate::seen::set::KeySet;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::records::RecordFile;
use crate::system::error::{Error, INCOMPLETE, SUCCESS};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::system::unpoisoned::locked;
use crate::terminal::messages::print_message;
use std::path::Path;

impl Plan {
    /// Locks the state and its checkpoints, which must not be inputs or other files of the run.
    pub(super) fn lock(&self, state: &StateOptions, inputs: &[Input]) -> Result<FileLock, Error> {
        let besides: Vec<NamedFile> = self.other_files().map(NamedFile::from_path).collect();
        let checkpoints = files::checkpoints_of(&state.path);
        for path in [&state.path, &checkpoints] {
            files::check_target(path, inputs.iter().map(|input| &input.origin).chain(&besides))?;
        }
        let mut lock = FileLock::beside(&state.path, state.wait)?;
        lock.guard(&checkpoints);
        Ok(lock)
    }

    /// Returns the set at the first line, its statistics, and empty records if groups are to be found. `set` is used if it is
    /// given.
    pub(super) fn seen(
        &self,
        inputs: &[Input],
        set: Option<KeySet>,
    ) -> Result<(SeenKeys, RunStats, Option<RecordFile>), Error> {
        let (set, limit) = set.map_or_else(|| self.set(inputs), |set| Ok((set, None)))?;
        if self.destination.is_side_by_side() && limit.as_ref().is_some_and(|limit| limit.stop) {
            return Err(Error::new(
                "the rate of -p is so low that the filter cannot grow, and stopping when it is full needs lines in order; add \
                 --in-order, or give a higher -p",
            ));
        }
        let Keys { called, wanted, .. } = self.keys;
        let stats = RunStats::new(&set, limit, called, wanted, self.reporting.quiet);
        stats.warn(set.shared().and_then(|set| set.danger()));
        let mut seen = SeenKeys::new(set);
        seen.expect_kinds(&self.keys.kinds);
        let records = |group_request: &GroupRequest| group_request.records(inputs, stats.keys_before > 0.0);
        let records = self.group_request.as_ref().map(records).transpose()?;
        Ok((
            if matches!(self.memory, Memory::Fresh { exact: true }) { seen.with_exact()? } else { seen },
            stats,
            records,
        ))
    }

    /// Returns the set, and its limit: the set on a server, the set of the state, or a new one.
    fn set(&self, inputs: &[Input]) -> Result<(KeySet, Option<FullLimit>), Error> {
        let Self { keys, memory, size, growth, reporting: ReportOptions { stats, quiet, .. }, .. } = self;
        match memory {
            Memory::Server(shared, writing) => {
                if let Some(address) = Address::from_options(shared)? {
                    return Ok((sizing::set_on_server(size, writing, stats.is_some(), &address, &keys.kinds)?, None));
                }
            }
            Memory::Frozen(filter) => return Ok((KeySet::load_for(filter, &keys.name, &keys.kinds)?, None)),
            Memory::State(StateOptions { path, resume, .. }) if path.exists() => {
                let set = KeySet::load_for(path, &keys.name, &keys.kinds)?;
                let limit = sizing::limit_of_state(size, growth, *resume, path, &set)?;
                return Ok((set, limit));
            }
            Memory::Fresh { .. } | Memory::State(_) | Memory::Tests(_) => {}
        }
        let of_documents = |rule: &DocumentRule| SampleUnit::Documents(rule.clone());
        let sampled = keys.what.document().map_or(SampleUnit::Lines, of_documents);
        let (keep, key_name, keys) = (self.state().is_some(), &*keys.name, keys.called);
        NewSet { size, growth, keep, key_name, keys, quiet: *quiet }.for_inputs(inputs, &self.reading, &sampled)
    }

    /// Returns the job, which has to be the same when the run is resumed.
    fn job(&self, inputs: &[Input]) -> Job {
        let flags = [
            (self.keys.format.end == 0, ", NUL-terminated"),
            (self.keys.format.header, ", after a header"),
            (self.keys.format.skip_blank, ", not blank"),
            (!self.print.selected_mark, ", inverted"),
            (self.print.before == Prefix::Mark, ", annotated"),
            (self.destination.is_side_by_side(), ", side by side"),
            (self.print.eol == Some(LineEnd::Lf), ", ended by LF"),
            (self.print.eol == Some(LineEnd::Crlf), ", ended by CR LF"),
            (self.keys.nulls == OnError::Keep, ", nulls kept"),
            (self.keys.nulls == OnError::Skip, ", nulls left out"),
        ];
        let flags = flags.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned());
        let flags =
            flags.chain(self.destination.output.compress.map(|compression| format!(", compressed as {compression}")));
        let group_request = self.group_request.as_ref().map(GroupRequest::description);
        let flags = flags.chain(group_request);
        let options = flags.fold(self.keys.description.clone(), |options, flag| options + &flag);
        let outputs = self.outputs().chain(self.destination.folder());
        Job::new(inputs, outputs, options, self.reading.on_error)
    }

    /// Returns the checkpoints beside the state of a run with these inputs.
    pub(super) fn checkpoints(&self, state: &StateOptions, inputs: &Inputs) -> Result<Checkpoints, Error> {
        let (compress, folder) = (self.destination.output.compress, self.destination.folder());
        let own = folder.map(|folder| folder::outputs(folder, &inputs.found, &inputs.folders, compress));
        let own = own.transpose()?.into_iter().flatten().map(|output| output.whole);
        let written = self.outputs().map(Path::to_owned).chain(own).collect();
        let (manifest, resumable) = (self.destination.manifest(), self.can_resume(&inputs.found));
        Checkpoints::new(&state.path, self.job(&inputs.found), written, folder.is_some(), manifest, resumable)
    }

    /// Returns the exit code of this run if it was completed before, so that nothing is left to resume.
    pub(super) fn ended(&self, inputs: &Inputs) -> Result<Option<u8>, Error> {
        let state = self.state().filter(|state| state.resume && state.path.exists());
        let Some(state) = state else { return Ok(None) };
        let checkpoints = self.checkpoints(state, inputs)?;
        let Some((left_out, gone)) = checkpoints.ended(self.destination.force)? else { return Ok(None) };
        if !self.reporting.quiet || gone.is_some() {
            let gone = gone.map_or_else(String::new, |output| {
                format!("; {} no longer exists, and is not written again", files::name(&output))
            });
            print_message(&format!(
                "nothing is left to do: this run with the state {:?} is already complete{gone}",
                state.path
            ));
        }
        Ok(Some(if left_out > 0 { INCOMPLETE } else { SUCCESS }))
    }

    /// Returns the parts of the state that the engine keeps.
    pub(super) fn keep(&self) -> Persistence {
        let Some(state) = self.state() else { return Persistence::default() };
        let at_end = self.group_request.is_some();
        // An interval that was asked for is kept, as long as lines get half of the time.
        let rest = if state.checkpoint.is_some() { 1 } else { 50 };
        Persistence { state: Some(state.path.clone()), shrink: state.shrink, at_end, rest, ..Persistence::default() }
    }
}

/// Saves the state before the first line, and a checkpoint at the start.
pub(super) fn save_start(keep: &Persistence, seen: &SeenKeys, stats: &RunStats, inputs: usize) -> Result<(), Error> {
    let (Some(state), Some(checkpoints)) = (&keep.state, &keep.checkpoints) else { return Ok(()) };
    let shards = if keep.folder.is_some() { vec![InputProgress::default(); inputs] } else { Vec::new() };
    let (ones, memory, room) = (seen.set.ones(), seen.set.memory_bytes(), stats.remaining_keys());
    locked(checkpoints).add(Checkpoint { ones, memory, room, shards, ..Checkpoint::default() }, false)?;
    seen.set.save(state)
}
