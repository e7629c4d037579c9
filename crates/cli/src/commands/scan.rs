//! A pass over inputs that prints at most to one output: for `build`, `check` and the set operations, and for a first
//! reading.

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
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The options of a pass over inputs.
pub struct ScanOptions<'a> {
    pub reading: &'a ReadOptions,
    pub format: LineFormat,
    pub projection: Projection,
    pub quiet: bool,
    /// Signals.
    pub events: Receiver<Event>,
}

impl<'a> ScanOptions<'a> {
    /// Returns the options of a pass that reads keys and no other values.
    pub fn for_keys(reading: &'a ReadOptions, hashing: &Hashing, quiet: bool, events: Receiver<Event>) -> Self {
        let projection = Projection::from_rule(hashing.rule.clone());
        Self { reading, format: hashing.format, projection, quiet, events }
    }

    /// Inserts the lines of the inputs. Returns the reason if it ended before they did.
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

    /// Reads the inputs and prints nothing. Returns the reason if it ended before they did.
    pub fn read(
        &self,
        inputs: Inputs,
        step: Arc<dyn Step>,
        seen: SharedSeenKeys,
        mut stats: RunStats,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        inputs.left_out.iter().for_each(|why| stats.leave_out_input(why));
        stats.limit.iter().filter(|limit| limit.stop).for_each(|limit| seen.write().limit(limit.keys));
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.quiet, false);
        self.work(
            inputs,
            step,
            seen,
            stats,
            (PrintOptions { selected_mark: true, kept: true, ..PrintOptions::default() }, None),
            progress,
        )
    }

    /// Looks the lines of the inputs up, and prints the ones in the set, or the others, as `wanted`. Returns the reason
    /// if it ended before the inputs did. Without an output nothing is printed. With statistics, lines that are not in the
    /// set are inserted, counted there, and printed once.
    pub fn select(
        &self,
        hashing: Hashing,
        inputs: Inputs,
        seen: SharedSeenKeys,
        (wanted, inserting): (bool, Option<RunStats>),
        options: &SelectOptions,
        output: Option<Output>,
        print: PrintOptions,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let &SelectOptions { total, any, quiet } = options;
        let (step, wanted): (Arc<dyn Step>, bool) = match inserting {
            Some(_) => (Arc::new(LookUpOnce(Insert { hashing, seen: seen.clone(), in_order: true })), true),
            None => (Arc::new(LookUp { hashing, seen: seen.clone(), any }), wanted),
        };
        let mut stats = inserting.unwrap_or_else(|| RunStats::for_search(&seen.read().set, quiet));
        inputs.left_out.iter().for_each(|why| stats.leave_out_input(why));
        let several = inputs.several;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), quiet, !total && !any || several);
        let progress = progress.for_shared(seen.read().set.shared().map(|set| set.remote(None)), None);
        let (counts, printed) = if total { (output, None) } else { (None, output) };
        let print = PrintOptions { selected_mark: wanted, kept: wanted, ..print };
        let (work, stop) = self.work(inputs, step, seen, stats, (print, printed), progress)?;
        if let Some(output) = counts {
            for (path, selected) in work.counted() {
                let name =
                    if files::is_standard(&path) { "(standard input)".as_bytes() } else { path.as_os_str().as_bytes() };
                let selected = selected.to_string();
                output.write_line(&if several {
                    [name, selected.as_bytes()].join(&b':')
                } else {
                    selected.into_bytes()
                })?;
            }
        }
        Ok((work, stop))
    }

    fn work(
        &self,
        inputs: Inputs,
        step: Arc<dyn Step>,
        seen: SharedSeenKeys,
        stats: RunStats,
        (print, output): (PrintOptions, Option<Output>),
        progress: Progress,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let Self { reading, format, projection, .. } = self;
        let config = RunConfig {
            threads: reading.threads(),
            format: *format,
            projection: projection.clone(),
            on_error: reading.on_error,
            print,
            max_chunks_ahead: reading.max_chunks_ahead(),
        };
        let inputs = run_inputs(inputs, reading.chunk_config(*format), None);
        let work =
            Work::new(config, step, inputs, vec![Sink::new(0, output, None)], seen, stats, Persistence::default());
        let stop = work.run(&self.events, progress)?;
        Ok((work, stop))
    }
}

/// Returns grep's exit code: 0 if a line is selected, and 1 if none is; 2 if inputs are skipped, unless `any` line was found.
pub fn exit_code(work: &Work, stop: Option<Stop>, left_out_before: u64, any: bool) -> Result<u8, Error> {
    match stop.map_or(Ok(SUCCESS), Stop::end)? {
        SUCCESS => {}
        code => return Ok(code),
    }
    let counts = &locked(&work.stats).counts;
    let left_out = counts.left_out + left_out_before;
    Ok(match counts.unique {
        1.. if any || left_out == 0 => SUCCESS,
        0 if left_out == 0 => 1,
        _ => FAILED,
    })
}
