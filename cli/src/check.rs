//! `bloomline check`: the lines that are in a filter, as grep would print them.

use crate::cli::CheckOptions;
use crate::error::{Error, Stop};
use crate::files::Origin;
use crate::lines::Lines;
use crate::lines::chunks::Chunks;
use crate::lines::input::Input;
use crate::lines::pipeline;
use crate::messages::warn;
use crate::output::Output;
use crate::set::KeySet;
use crate::set::inserter::warn_of_faults;
use crate::set::shared::{Address, Shared};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<ExitCode, Error> {
    let files = &options.reading.files;
    let inputs = Input::check_all(files)?;
    let origin = options.filter.as_deref().map(Origin::of);
    let filter = filter(options)?;
    let excess = filter.made_for().filter(|_| !options.quiet).and_then(|(keys, _)| filter.excess(keys));
    if let Some(excess) = excess {
        warn(&format!("{excess}; build a larger one with -n"));
    }
    let search = Search { options, filter: Arc::new(filter) };
    let selected = if options.quiet {
        search.run(inputs, |_, selected| if selected > 0 { Err(Stop::Enough) } else { Ok(()) })?
    } else {
        let mut output = Output::create(None, inputs.iter().map(|input| &input.origin).chain(&origin))?;
        let selected = if options.count {
            search.count(inputs, files, &mut output)?
        } else {
            search.print(inputs, &mut output)?
        };
        output.finish()?;
        selected
    };
    // 1 is what grep says when it selects nothing.
    Ok(if selected > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn filter(options: &CheckOptions) -> Result<KeySet, Error> {
    if let Some(address) = Address::of(&options.shared)? {
        return Shared::open(&address).map(|shared| KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.filter.as_deref().expect("it is required"), options.reading.key_name())
}

struct Search<'a> {
    options: &'a CheckOptions,
    filter: Arc<KeySet>,
}

impl Search<'_> {
    /// Whether lines that are in the filter are selected, or those that are not.
    fn wanted(&self) -> bool {
        !self.options.invert_match
    }

    /// Calls `consume` with lines, in order, and the number of those that are selected. Returns the sum of these.
    fn run(
        &self,
        inputs: Vec<Input>,
        mut consume: impl FnMut(&Lines, usize) -> Result<(), Stop>,
    ) -> Result<u64, Error> {
        let reading = &self.options.reading;
        let (filter, on_error, wanted) = (self.filter.clone(), reading.on_error, self.wanted());
        let hashing = reading.hashing(filter.hasher());
        let work = move |lines: &mut Lines| {
            lines.hash(&hashing);
            lines.mark(on_error, wanted, |hashes, _, found| filter.contains_hashes(hashes, found).map(|_| hashes.len()))
        };
        let (mut sum, mut faults) = (0, 0);
        let chunks = Chunks::new(inputs, 0, reading.cut());
        let read = pipeline::run_alone(reading.threads, self.options.quiet, chunks, work, |lines, position| {
            let selected = lines.marked(wanted);
            sum += selected as u64;
            faults += lines.faults() as u64;
            consume(lines, selected)?;
            position.check(lines)
        });
        if let Err(stop) = read {
            stop.end()?;
        }
        if !self.options.quiet {
            warn_of_faults(faults);
        }
        Ok(sum)
    }

    fn print(&self, inputs: Vec<Input>, output: &mut Output) -> Result<u64, Error> {
        self.run(inputs, |lines, _| Ok(lines.pieces(self.wanted()).try_for_each(|piece| output.write(piece))?))
    }

    /// Inputs run one by one here, for chunks do not end where a file does.
    fn count(&self, inputs: Vec<Input>, files: &[PathBuf], output: &mut Output) -> Result<u64, Error> {
        let mut sum = 0;
        for (i, input) in inputs.into_iter().enumerate() {
            let selected = self.run(vec![input], |_, _| Ok(()))?;
            if files.len() > 1 {
                let stdin = files[i] == Path::new("-");
                output.write(if stdin { b"(standard input)" } else { files[i].as_os_str().as_bytes() })?;
                output.write(b":")?;
            }
            output.write(format!("{selected}\n").as_bytes())?;
            sum += selected;
        }
        Ok(sum)
    }
}
