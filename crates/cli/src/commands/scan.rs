//! A pass over inputs with at most one output. `build`, `check`, `in` and `not-in` use it, and the first readings of `dedup` and
//! `corpus`.

use crate::options::{ReadOptions, SelectOptions};
use crate::read::inputs::Inputs;
use crate::read::keys::Hashing;
use crate::read::projection::Projection;
use crate::read::split::LineFormat;
use crate::run::events::Event;
use crate::run::input::run_inputs;
use crate::run::progress::Progress;
use crate::run::sink::{PrintOptions, Sink};
use crate::run::step::{RunConfig, Step};
use crate::run::work::{Persistence, Work};
use crate::seen::run_stats::RunStats;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::insert::Insert;
use crate::steps::look_up::{LookUp, LookUpOnce};
use crate::system::error::{Error, FAILED, SUCCESS, Stop};
use crate::system::files;
use crate::system::unpoisoned::locked;
use crate::write::output::Output;
use crossbeam_channel::Receiver;
use std::path::Path;
use std::sync::Arc;

/// The options of a pass over inputs.
pub struct ScanOptions<'a> {
    pub reading: &'a ReadOptions,
    pub format: LineFormat,
    pub projection: Projection,
    /// The selection and the format of the printed lines, if there is an output.
    pub print: PrintOptions,
    pub quiet: bool,
    /// Signals, which end the pass.
    pub events: Receiver<Event>,
}

impl<'a> ScanOptions<'a> {
    /// Creates the options of a pass that reads keys and no other values.
    pub fn for_keys(reading: &'a ReadOptions, hashing: &Hashing, quiet: bool, events: Receiver<Event>) -> Self {
        let projection = Projection::from_rule(hashing.rule.clone());
        let print = PrintOptions::for_mark(true);
        Self { reading, format: hashing.format, projection, print, quiet, events }
    }

    /// Inserts the lines of the inputs. If the pass ends before its inputs do, returns the reason, too.
    pub fn insert(
        &self,
        hashing: Hashing,
        inputs: Inputs,
        seen: SeenKeys,
        stats: RunStats,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let seen = SharedSeenKeys::new(seen);
        let step = Insert { hashing, seen: seen.clone(), in_order: true };
        self.read(inputs, Arc::new(step), seen, stats)
    }

    /// Reads the inputs and prints nothing. If the pass ends before its inputs do, returns the reason, too.
    pub fn read(
        &self,
        inputs: Inputs,
        step: Arc<dyn Step>,
        seen: SharedSeenKeys,
        stats: RunStats,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        if let Some(limit) = &stats.limit
            && limit.stop
        {
            seen.write().limit(limit.keys);
        }
        self.work(inputs, step, seen, stats, None, false)
    }

    /// Looks up the lines of the inputs, and prints those that `self.print` selects, or their number. With `inserting`, lines that
    /// are not in the set are inserted, counted in these statistics, and marked once. If the pass ends before its inputs do, returns
    /// the reason, too.
    pub fn select(
        &self,
        hashing: Hashing,
        inputs: Inputs,
        seen: SharedSeenKeys,
        inserting: Option<RunStats>,
        options: &SelectOptions,
        output: Option<Output>,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let &SelectOptions { total, any, quiet } = options;
        let step: Arc<dyn Step> = match inserting {
            Some(_) => Arc::new(LookUpOnce(Insert { hashing, seen: seen.clone(), in_order: true })),
            None => Arc::new(LookUp { hashing, seen: seen.clone(), any }),
        };
        let stats = inserting.unwrap_or_else(|| RunStats::for_search(&seen.read().set, quiet));
        let several = inputs.several;
        // One number at the end does not disturb a progress bar.
        let prints_lines = !total && !any || several;
        if !total {
            return self.work(inputs, step, seen, stats, output, prints_lines);
        }
        let (work, stop) = self.work(inputs, step, seen, stats, None, prints_lines)?;
        if let Some(output) = output {
            for (path, selected) in work.counted() {
                output.write_line(total_line(&path, selected, several))?;
            }
        }
        Ok((work, stop))
    }

    /// Counts the inputs that cannot be opened, and runs the step over the others. `prints_lines` is true if lines may be printed to
    /// standard output.
    fn work(
        &self,
        inputs: Inputs,
        step: Arc<dyn Step>,
        seen: SharedSeenKeys,
        mut stats: RunStats,
        output: Option<Output>,
        prints_lines: bool,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        for reason in &inputs.left_out {
            stats.leave_out_input(reason);
        }
        let Self { reading, format, projection, print, quiet, .. } = self;
        let remote = seen.read().set.shared().map(|set| set.remote(None));
        let progress = Progress::new(&inputs.found, inputs.read.clone(), *quiet, prints_lines).for_shared(remote, None);
        let config = RunConfig {
            threads: reading.threads(),
            format: *format,
            projection: projection.clone(),
            on_error: reading.on_error,
            print: *print,
            max_chunks_ahead: reading.max_chunks_ahead(),
        };
        let inputs = run_inputs(inputs, reading.chunk_config(*format), None);
        let sinks = vec![Sink::new(0, output, None)];
        let work = Work::new(config, step, inputs, sinks, seen, stats, Persistence::default());
        let stop = work.run(&self.events, progress)?;
        Ok((work, stop))
    }
}

/// Formats the number of selected lines of an input, after its name if there are several.
fn total_line(path: &Path, selected: u64, several: bool) -> Vec<u8> {
    let selected = selected.to_string().into_bytes();
    if !several {
        return selected;
    }
    let name = if files::is_standard(path) { b"(standard input)" } else { path.as_os_str().as_encoded_bytes() };
    [name, &selected].join(&b':')
}

/// Returns the exit code of grep: 0 if a line was selected, and 1 if none was; 2 if inputs were skipped, but 0 if `any` is true and a
/// line was selected. `skipped_before` is the number of inputs that an earlier pass skipped.
pub fn exit_code(work: &Work, stop: Option<Stop>, skipped_before: u64, any: bool) -> Result<u8, Error> {
    if let Some(stop) = stop {
        let code = stop.end()?;
        if code != SUCCESS {
            return Ok(code);
        }
    }
    let counts = &locked(&work.stats).counts;
    let has_skipped = counts.left_out + skipped_before > 0;
    let has_selected = counts.unique > 0;
    if has_skipped && !(any && has_selected) {
        return Ok(FAILED);
    }
    Ok(if has_selected { SUCCESS } else { 1 })
}
