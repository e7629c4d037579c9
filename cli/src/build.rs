//! `bloomline build`: a filter of lines, in a file.

use crate::cli::BuildOptions;
use crate::error::{Error, Stop};
use crate::files;
use crate::lines::chunks::Chunks;
use crate::lines::input::Input;
use crate::lines::pipeline;
use crate::lock::Lock;
use crate::messages::print;
use crate::set::inserter::Inserter;
use crate::set::{report, sizing};
use std::io;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &BuildOptions) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let reading = &options.reading;
    let inputs = Input::check_all(&reading.files)?;
    files::check_target(&options.output, inputs.iter().map(|input| &input.origin))?;
    let _lock = Lock::of(&options.output, options.wait)?;
    // A number of lines that is estimated too low has them read again, so that the file has one filter of the right size.
    let again: io::Result<Vec<Input>> = inputs.iter().map(Input::again).collect();
    let mut inserter = sizing::of_build(options, &inputs)?;
    inserter.begin();
    if let Err(stop) = read(options, &mut inserter, inputs) {
        return stop.end();
    }
    inserter.end();
    let keys = inserter.counts.inserted;
    let mut inserter = match inserter.into_sized() {
        Some(inserter) => inserter,
        None => {
            let mut inserter = sizing::of_counted(options, keys)?;
            let inputs = again.map_err(|source| Error::Again { source })?;
            if let Err(stop) = read(options, &mut inserter, inputs) {
                return stop.end();
            }
            inserter
        }
    };
    if !options.append && !options.no_shrink {
        inserter.set.shrink();
    }
    inserter.set.save(&options.output)?;
    if let Some(format) = options.stats {
        print(&report::of_build(&inserter, &options.output, started.elapsed())?.format(format));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(options: &BuildOptions, inserter: &mut Inserter, inputs: Vec<Input>) -> Result<(), Stop> {
    let reading = &options.reading;
    let hashing = reading.hashing(inserter.set.hasher());
    pipeline::run_alone(
        reading.threads,
        false,
        Chunks::new(inputs, 0, reading.cut()),
        move |lines| {
            lines.hash(&hashing);
            Ok(())
        },
        |lines, position| inserter.insert(lines, position, reading.on_error, true),
    )
}
