//! `bloomline dedup`: each distinct line once.

mod checkpoint;
mod folder;
mod in_order;
mod manifest;
mod one_by_one;
mod ordered;
mod outputs;
mod shard;
mod side_by_side;
mod start;
mod wakes;

use crate::cli::DedupOptions;
use crate::error::{Error, Stop};
use crate::files;
use crate::leftovers;
use crate::lines::input::{Input, Inputs};
use crate::lock::Lock;
use crate::messages::print;
use crate::set::report;
use crate::signals;
use crate::values::OnError;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &DedupOptions) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let inputs =
        Inputs::check(&options.reading.named(), &start::no_inputs(options), options.reading.on_error != OnError::Fail)?;
    let _lock = options.state.as_deref().map(|state| lock(options, state, &inputs.found)).transpose()?;
    let (mut inserter, stop) =
        if options.is_side_by_side() { side_by_side::run(options, inputs)? } else { in_order::run(options, inputs)? };
    signals::in_order();
    // A server that failed would be waited for once more.
    let alive = !matches!(stop, Some(Stop::After(_)));
    inserter.tell_shared(alive);
    if let Some(format) = options.stats {
        if alive {
            inserter.set.refresh()?;
        }
        print(&report::of_dedup(&inserter, options, started.elapsed())?.format(format));
    }
    // A signal may have cut the statistics short.
    stop.or(signals::first().map(Stop::Signal)).map_or(Ok(inserter.exit_code()), Stop::end)
}

/// Locks the state and its checkpoints, which must be none of the inputs.
fn lock(options: &DedupOptions, state: &Path, inputs: &[Input]) -> Result<Lock, Error> {
    let checkpoints = files::checkpoints_of(state);
    for path in [state, &checkpoints] {
        files::check_target(path, inputs.iter().map(|input| &input.origin))?;
    }
    let lock = Lock::of(state, options.wait)?;
    leftovers::own(&checkpoints);
    Ok(lock)
}
