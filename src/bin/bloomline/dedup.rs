//! `bloomline dedup`: each distinct line once, in input order.

use crate::cli::Dedup;
use crate::error::Error;
use crate::input::Input;
use crate::inserter::Inserter;
use crate::output::{Output, say};
use crate::{pipeline, report};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &Dedup) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let inputs = Input::check_all(&options.reading.files)?;
    let mut inserter = Inserter::sized(&options.sizing, &inputs)?;
    let mut output = Output::create(options.output.as_deref(), inputs.iter().map(Input::origin))?;
    let hasher = inserter.filter.hasher().clone();
    pipeline::run(
        &options.reading,
        inputs,
        move |batch| batch.hash(&hasher),
        |batch| {
            inserter.insert(batch);
            batch.pieces(true).try_for_each(|lines| output.write(lines))?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    output.finish()?;
    if let Some(format) = options.stats {
        say(&report::of_dedup(&inserter, started.elapsed()).format(format));
    }
    Ok(ExitCode::SUCCESS)
}
