//! `bloomline build`: a filter of lines, in a file.

use crate::cli::BuildOptions;
use crate::error::{Error, Stop};
use crate::files::{self, Origin};
use crate::lines::chunks::Chunks;
use crate::lines::input::{Input, Inputs};
use crate::lines::pipeline::{self, Event};
use crate::lines::{Hashing, What};
use crate::lock::Lock;
use crate::messages::print;
use crate::progress::Progress;
use crate::set::inserter::{Counts, Inserter};
use crate::set::{report, sizing};
use crate::values::OnError;
use std::io;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &BuildOptions) -> Result<u8, Error> {
    let started = Instant::now();
    let reading = &options.reading;
    // A filter that is replaced is refused as an input.
    let own = files::of_filter(&options.output);
    let own = if options.append { &own } else { &own[1..] };
    let Inputs { found: inputs, left_out, read: bytes, .. } =
        Inputs::check(&reading.named(), own, reading.on_error != OnError::Fail)?;
    let list = reading.files_from.as_deref().map(Origin::of);
    files::check_target(&options.output, inputs.iter().map(|input| &input.origin).chain(&list))?;
    let _lock = Lock::of(&options.output, options.wait)?;
    // A number of lines that is estimated too low has them read again, so that the file has one filter of the right size.
    let again: io::Result<Vec<Input>> = inputs.iter().map(Input::again).collect();
    let mut inserter = sizing::of_build(options, &inputs)?;
    inserter.begin();
    left_out.iter().for_each(|why| inserter.leave_out(why));
    let progress = Progress::new(&inputs, bytes.clone(), options.quiet, false);
    if let Err(stop) = read(options, &mut inserter, inputs, false, progress) {
        return stop.end();
    }
    inserter.end();
    let Counts { inserted: keys, left_out, .. } = inserter.counts;
    let mut inserter = match inserter.into_sized() {
        Some(inserter) => inserter,
        None => {
            let mut inserter = sizing::of_counted(options, keys)?;
            let inputs = again.map_err(|source| Error::Again { source })?;
            let progress = Progress::new(&inputs, bytes, options.quiet, false);
            if let Err(stop) = read(options, &mut inserter, inputs, true, progress) {
                return stop.end();
            }
            inserter.counts.left_out = left_out;
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
    Ok(inserter.exit_code())
}

/// Inserts the lines of the inputs. Those that are read `again` were told of.
fn read(
    options: &BuildOptions,
    inserter: &mut Inserter,
    inputs: Vec<Input>,
    again: bool,
    mut progress: Progress,
) -> Result<(), Stop> {
    let reading = &options.reading;
    let (end, hasher) = (reading.end(), inserter.set.hasher().clone());
    let hashing = Hashing { end, hasher, what: What::Key(options.key.rule(), None) };
    pipeline::run_alone(
        reading.threads(),
        Chunks::new(inputs, 0, reading.cut()),
        move |lines| {
            lines.hash(&hashing);
            Ok(())
        },
        |event| match event {
            Event::Lines(lines, position) => {
                let inserted = inserter.insert(lines, position, reading.on_error, true);
                progress.show_set(inserter, position.input);
                inserted
            }
            Event::Broken(_, why) if !again => {
                inserter.leave_out(&why);
                Ok(())
            }
            _ => Ok(()),
        },
    )
}
