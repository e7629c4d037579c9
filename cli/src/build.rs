//! `bloomline build`: a filter of lines, in a file.

use crate::cli::BuildOptions;
use crate::error::Error;
use crate::files;
use crate::lines::chunks::Chunks;
use crate::lines::input::Input;
use crate::lines::pipeline;
use crate::messages::print;
use crate::set::{report, sizing};
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &BuildOptions) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let reading = &options.reading;
    let inputs = Input::check_all(&reading.files)?;
    files::check_target(&options.output, inputs.iter().map(|input| &input.origin))?;
    let mut inserter = sizing::of_build(options, &inputs)?;
    inserter.begin();
    let hashing = reading.hashing(inserter.set.hasher());
    let read = pipeline::run_alone(
        reading.threads,
        false,
        Chunks::new(inputs, 0, reading.cut()),
        move |lines| {
            lines.hash(&hashing);
            Ok(())
        },
        |lines, position| inserter.insert(lines, position, reading.on_error, true),
    );
    if let Err(stop) = read {
        return stop.end();
    }
    inserter.end();
    if !options.append && !options.no_shrink {
        inserter.set.shrink();
    }
    inserter.set.save(&options.output)?;
    if let Some(format) = options.stats {
        print(&report::of_build(&inserter, &options.output, started.elapsed())?.format(format));
    }
    Ok(ExitCode::SUCCESS)
}
