//! The readings of inputs in which repeated runs of words are found.

use crate::commands::run::decided::Decided;
use crate::commands::run::first_pass::{SecondPass, check_stop, not_copied};
use crate::commands::run::plan::Plan;
use crate::commands::scan::ScanOptions;
use crate::read::inputs::{Input, Inputs};
use crate::run::events::Event;
use crate::run::sink::PrintOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::RunStats;
use crate::seen::set::KeySet;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::documents::column::DocumentReader;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::substrings::{Candidates, CollectCandidates, FindRepeats, PartProgress};
use crate::steps::values::ValueProjection;
use crate::system::error::{Error, Stop};
use crate::system::file_lock::FileLock;
use crate::system::unpoisoned::{locked, reading};
use crate::terminal::phase::{add_passes, begin_passes};
use bloomline::{BloomFilter, ScalableBloomFilter};
use bloomline_text::substrings::{Repeats, Rules};
use crossbeam_channel::Receiver;
use std::cell::Cell;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

/// The percentages of the memory for all windows in the first reading, and for the candidates in all readings.
const SEEN_PERCENT: usize = 60;
const CANDIDATE_PERCENT: usize = 25;

/// The keys of the first filter of candidates if no memory is given, and the rate of the filters.
const CANDIDATES: u64 = 1 << 16;
const CANDIDATE_RATE: f64 = 0.01;

/// The maximum number of readings that decide.
const MAX_PARTS: u64 = 64;

/// The search for repeated runs of words.
pub struct SubstringRequest {
    pub rules: Rules,
    /// The bytes of memory for filters and candidates, if they are limited.
    pub memory: Option<usize>,
    /// For a run in place, the file of its decisions, and those of an interrupted run, with the number of windows before each input.
    pub decided_path: Option<PathBuf>,
    decided: Cell<Option<(Decided, Vec<u64>)>>,
    /// The lock on the folder of the decisions.
    _lock: Option<FileLock>,
}

impl SubstringRequest {
    pub fn new(rules: Rules, memory: Option<usize>) -> Self {
        Self { rules, memory, decided_path: None, decided: Cell::default(), _lock: None }
    }

    /// Returns the part of the memory for the filter of all windows.
    pub fn seen_memory(memory: usize) -> usize {
        memory / 100 * SEEN_PERCENT
    }

    /// Returns an empty filter of candidates.
    fn candidates(&self) -> Result<KeySet, Error> {
        let set = match self.memory {
            Some(memory) => {
                let memory = memory / 100 * CANDIDATE_PERCENT;
                LocalSet::from(BloomFilter::builder().memory(memory).false_positive_rate(CANDIDATE_RATE).build()?)
            }
            None => {
                let builder = ScalableBloomFilter::builder().expected_keys(CANDIDATES);
                builder.false_positive_rate(CANDIDATE_RATE).build()?.into()
            }
        };
        Ok(KeySet::Local(set))
    }

    /// Returns the number of parts in which the candidates fit into memory, beside a bit for each window if there are several parts or
    /// the run `keeps_decisions`, and the number of candidates in each. Refuses a memory for which the inputs would be read too often.
    fn parts(
        &self,
        windows: u64,
        distinct: f64,
        candidates: &KeySet,
        keeps_decisions: bool,
    ) -> Result<(u64, usize), Error> {
        // Besides the candidates, some of the windows that occur once are looked up.
        let known = candidates.keys();
        let expected = known + candidates.current_fpr() * (distinct - known).max(0.0);
        // The estimates are within a few thousandths, unless a filter is so full that it has none.
        let all = if expected.is_finite() { (1.02 * expected) as u64 + 1000 } else { windows }.min(windows);
        let Some(memory) = self.memory else { return Ok((1, all as usize)) };
        let share = memory / 100 * (100 - CANDIDATE_PERCENT);
        let bits = (windows / 8) as usize;
        let fits = |bytes: usize| Repeats::candidates_for(bytes).max(1) as u64;
        let is_one = !keeps_decisions && all <= fits(share);
        let parts = if is_one { 1 } else { all.div_ceil(fits(share.saturating_sub(bits))).max(1) };
        if parts > MAX_PARTS {
            let table = Repeats::memory_bytes_for((all / MAX_PARTS) as usize);
            return Err(Error::new(format!(
                "-m is too small for {all} runs of words that may be repeats, of {windows} in all: the inputs would be read {} times; \
                 give at least -m {}K",
                parts + 1,
                ((table + bits) / (100 - CANDIDATE_PERCENT) * 100).div_ceil(1000),
            )));
        }
        Ok((parts, all.div_ceil(parts) as usize))
    }
}

impl Plan {
    /// Reads the inputs, after the documents of earlier runs, until all windows are decided, or all but the last part, which is decided
    /// while the inputs are printed.
    pub(super) fn find_substrings(
        &self,
        (request, rule): (&SubstringRequest, &DocumentRule),
        mut inputs: Inputs,
        earlier: Inputs,
        (seen, stats): (SeenKeys, RunStats),
        events: &Receiver<Event>,
    ) -> Result<SecondPass, Stop> {
        let hasher = seen.set.hasher().clone();
        let reader =
            || DocumentReader { rule: rule.clone(), hasher: hasher.clone(), values: ValueProjection::default() };
        let seen = SharedSeenKeys::new(seen);
        if let Some((decided, starts)) = request.decided.take() {
            begin_passes(1);
            let windows = decided.windows();
            let progress = PartProgress::for_decided(starts, decided.found);
            let step = FindRepeats::new(reader(), &request.rules, None, progress, windows);
            return Ok((inputs, Arc::new(FindRepeats { is_last: true, ..step }), seen, stats));
        }
        let earlier_count = inputs.prepend(earlier);
        let versions = inputs.versions();
        let scan = ScanOptions {
            reading: &self.reading,
            format: self.keys.format,
            projection: self.keys.projection(&ValueProjection::default()),
            print: PrintOptions::for_mark(true),
            quiet: self.reporting.quiet,
            events: events.clone(),
        };
        let (inputs, mut next_inputs) = inputs.with_second_reading().map_err(not_copied)?;
        let candidates = Candidates(Arc::new(RwLock::new(request.candidates()?)));
        let collect = Arc::new(CollectCandidates {
            reader: reader(),
            seen: seen.clone(),
            candidates: candidates.clone(),
            windows: Mutex::new(0),
        });
        let (work, stop) = scan.read(inputs, collect.clone(), seen.clone(), stats)?;
        check_stop(stop)?;
        next_inputs.measure().map_err(not_copied)?;
        let windows = *locked(&collect.windows);
        let distinct = seen.read().set.keys();
        // The memory of the filter is for the candidates.
        drop(seen.write().take_set()?);
        // The last reading is of the inputs that are printed or replaced, and these alone do not show what repeats.
        let keeps_decisions = request.decided_path.is_some() || earlier_count > 0;
        let (parts, size) = request.parts(windows, distinct, &reading(&candidates.0), keeps_decisions)?;
        let decides_first = if keeps_decisions { parts } else { parts - 1 };
        add_passes(u32::try_from(decides_first).unwrap_or(u32::MAX));
        let mut found = if decides_first > 0 { vec![0; windows.div_ceil(64) as usize] } else { Vec::new() };
        let mut starts = vec![0; next_inputs.found.len()];
        let part_reading = |part, starts, found| {
            let progress = PartProgress::for_part(Repeats::new(size, part, parts), starts, found);
            let step = FindRepeats::new(reader(), &request.rules, Some(candidates.clone()), progress, windows);
            FindRepeats { versions: versions.clone(), ..step }
        };
        for part in 0..decides_first {
            let (inputs, later_inputs) = next_inputs.with_second_reading().map_err(not_copied)?;
            next_inputs = later_inputs;
            let step = Arc::new(part_reading(part, starts, found));
            let stats = locked(&work.stats).for_second_reading(0);
            let (_, stop) = scan.read(inputs, step.clone(), seen.clone(), stats)?;
            check_stop(stop)?;
            let mut progress = locked(&step.progress);
            (starts, found) = (mem::take(&mut progress.starts), mem::take(&mut progress.found));
        }
        let step = if keeps_decisions {
            next_inputs.found.drain(..earlier_count);
            starts.drain(..earlier_count);
            if let Some(path) = &request.decided_path {
                let options = self.keys.description.clone();
                let decided = Decided::new(options, &next_inputs.found, &starts, windows, found);
                decided.save(path)?;
                found = decided.found;
            }
            let progress = PartProgress::for_decided(starts, found);
            let step = FindRepeats::new(reader(), &request.rules, None, progress, windows);
            // A run in place changes its inputs itself.
            let versions = if request.decided_path.is_some() { Vec::new() } else { versions.clone() };
            FindRepeats { versions, ..step }
        } else {
            part_reading(parts - 1, starts, found)
        };
        let stats = locked(&work.stats).for_second_reading(0);
        Ok((next_inputs, Arc::new(FindRepeats { is_last: true, ..step }), seen, stats))
    }

    /// Leaves in `inputs` those that an interrupted run in place did not replace. Fails if another run has its decisions in the folder.
    pub(super) fn continue_in_place(&mut self, inputs: &mut Vec<Input>) -> Result<(), Error> {
        if let Some(request) = &mut self.substring_request
            && let Some(path) = Decided::path(inputs)
        {
            request._lock = Some(Decided::lock(&path)?);
            request.decided = Cell::new(Decided::load(&path, &self.keys.description, inputs)?);
            request.decided_path = Some(path);
        }
        Ok(())
    }
}
