//! `bloomline build`: a filter of lines, in a file.

use crate::cli::Build;
use crate::error::Error;
use crate::files;
use crate::lines::chunks::Chunks;
use crate::lines::input::Input;
use crate::lines::pipeline;
use crate::output::say;
use crate::set::Seen;
use crate::set::inserter::Inserter;
use crate::set::{report, sizing};
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &Build) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let inputs = Input::check_all(&options.reading.files)?;
    files::check_target(&options.output, inputs.iter().map(Input::origin))?;
    let reading = &options.reading;
    let mut inserter = if options.append {
        Inserter::new(Seen::load(&options.output)?, None)
    } else {
        sizing::known(&options.sizing, &inputs, reading.end())?
    };
    let hashing = reading.hashing(inserter.seen.hasher());
    pipeline::batches(
        reading.threads,
        false,
        Chunks::new(inputs, 0, reading.cut()),
        move |batch| batch.hash(&hashing),
        |batch, place| {
            let full = inserter.insert(batch, reading.on_error, true)?;
            place.check(batch)?;
            Ok(full)
        },
    )?;
    inserter.end();
    inserter.seen.save(&options.output)?;
    if let Some(format) = options.stats {
        say(&report::of_build(&inserter, started.elapsed())?.format(format));
    }
    Ok(ExitCode::SUCCESS)
}
