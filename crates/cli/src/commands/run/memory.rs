//! The set that a run starts with.

use crate::commands::groups::GroupRequest;
use crate::commands::run::plan::{Keys, Memory, Plan, ReportOptions, StateOptions};
use crate::commands::run::sampling;
use crate::commands::server;
use crate::commands::sizing::{self, NewSet};
use crate::read::estimate::{LineUnit, SampleUnit};
use crate::read::inputs::Input;
use crate::seen::SeenKeys;
use crate::seen::run_stats::{FullLimit, RunStats};
use crate::seen::set::KeySet;
use crate::steps::groups::records::RecordFile;
use crate::system::error::Error;

/// A set, and its limit.
pub type LimitedSet = (KeySet, Option<FullLimit>);

impl Plan {
    /// Returns the set in memory at the first line: the set of the state, or a new one. `None` for a set on a server.
    pub(super) fn check_set(&mut self, inputs: &[Input]) -> Result<Option<LimitedSet>, Error> {
        let keep = self.state().is_some();
        let Self { keys, memory, size, growth, .. } = self;
        let (set, limit) = match memory {
            Memory::Server(..) => return Ok(None),
            Memory::Frozen(filter) => (sampling::load(filter, keys)?, None),
            Memory::State(StateOptions { path, .. }) if path.exists() => {
                let set = sampling::load(path, keys)?;
                let limit = sizing::limit_of_state(size, growth, path, &set)?;
                (set, limit)
            }
            Memory::Fresh { .. } | Memory::State(_) | Memory::Tests(_) => {
                self.fit_sample(inputs)?;
                let Self { keys, memory, size, growth, reporting, .. } = &*self;
                let sampled: &dyn SampleUnit = match keys.what.document() {
                    Some(rule) => rule,
                    None => &LineUnit,
                };
                let new_set = NewSet {
                    size,
                    growth,
                    keep,
                    exact: self.group_request.is_some()
                        || self.substring_request.is_some()
                        || matches!(memory, Memory::Fresh { exact: true }),
                    key_name: &keys.name,
                    keys: keys.called,
                    quiet: reporting.quiet,
                };
                let (set, limit) = new_set.for_inputs(&self.with_earlier(inputs), &self.reading, sampled)?;
                (set, limit.filter(|_| self.substring_request.is_none()))
            }
        };
        if self.destination.is_side_by_side() && limit.as_ref().is_some_and(|limit| limit.stop) {
            return Err(Error::new(
                "the rate of -p is so low that the filter cannot grow, and stopping when it is full needs lines in order; add \
                 --in-order, or give a higher -p",
            ));
        }
        Ok(Some((set, limit)))
    }

    /// Opens or creates the set on a server.
    pub(super) fn open_server(&self) -> Result<LimitedSet, Error> {
        let Self { keys, memory, size, reporting: ReportOptions { stats, .. }, .. } = self;
        let Memory::Server(shared, writing) = memory else { unreachable!("other sets are checked") };
        Ok((server::open_set(size, writing, stats.is_some(), shared, &keys.kinds)?, None))
    }

    /// Returns the keys at the first line, the statistics, and empty records if groups are to be found.
    pub(super) fn open_seen(
        &self,
        inputs: &[Input],
        (set, limit): LimitedSet,
    ) -> Result<(SeenKeys, RunStats, Option<RecordFile>), Error> {
        let Keys { called, wanted, .. } = self.keys;
        let mut stats = RunStats::new(&set, limit, called, wanted, self.reporting.quiet);
        stats.remedy = self.remedy();
        stats.warn(set.shared().into_iter().flat_map(|set| set.dangers()));
        let mut seen = SeenKeys::new(set);
        seen.expect_kinds(&self.keys.kinds);
        let all = self.with_earlier(inputs);
        let earlier = all.len() - inputs.len();
        let records = |group_request: &GroupRequest| group_request.records(&all, earlier, stats.keys_before > 0.0);
        let records = self.group_request.as_ref().map(records).transpose()?;
        if matches!(self.memory, Memory::Fresh { exact: true }) {
            seen = seen.with_exact()?;
        }
        Ok((seen, stats, records))
    }

    /// Returns these inputs after the inputs that are only read.
    fn with_earlier(&self, inputs: &[Input]) -> Vec<Input> {
        [&self.earlier.inputs.found[..], inputs].concat()
    }

    /// Returns the remedy for a full filter that the options do not size, or not the next time.
    fn remedy(&self) -> Option<String> {
        let prints_others = if self.keys.what.document().is_some() { "corpus --frozen" } else { "check -v" };
        match &self.memory {
            Memory::State(StateOptions { path, .. }) => Some(format!(
                "a state keeps the plan that it was made with, so leave it as it is, and pass the output of `bloomline {prints_others} -s {path:?}` to \
                 a run with another state"
            )),
            Memory::Frozen(filter) => Some(format!("choose another filter than {filter:?}")),
            Memory::Fresh { .. } | Memory::Server(..) | Memory::Tests(_) => None,
        }
    }
}
