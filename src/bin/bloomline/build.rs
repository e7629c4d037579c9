//! `bloomline build`: a filter of lines, in a file.

use crate::cli::Build;
use crate::error::Error;
use crate::input::Input;
use crate::inserter::Inserter;
use crate::output::say;
use crate::{filter_file, pipeline, report};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &Build) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let inputs = Input::check_all(&options.reading.files)?;
    filter_file::check_target(&options.output, inputs.iter().map(Input::origin))?;
    let mut inserter = if options.append {
        Inserter::extending(filter_file::load(&options.output)?)
    } else {
        Inserter::sized(&options.sizing, &inputs)?
    };
    let hasher = inserter.filter.hasher().clone();
    pipeline::run(
        &options.reading,
        inputs,
        move |batch| batch.hash(&hasher),
        |batch| {
            inserter.insert(batch);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    filter_file::save(&inserter.filter, &options.output)?;
    if let Some(format) = options.stats {
        say(&report::of_build(&inserter, started.elapsed()).format(format));
    }
    Ok(ExitCode::SUCCESS)
}
