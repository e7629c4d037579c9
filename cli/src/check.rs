//! `bloomline check`: the lines that are in a filter, as grep would print them.

use crate::cli::Check;
use crate::error::Error;
use crate::lines::Batch;
use crate::lines::chunks::Chunks;
use crate::lines::input::{Input, Origin};
use crate::lines::pipeline::{self, GO_ON};
use crate::output::Output;
use crate::set::Seen;
use crate::set::inserter::tell_faults;
use crate::set::shared::Shared;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Runs the command.
pub fn run(options: &Check) -> Result<ExitCode, Error> {
    let files = &options.reading.files;
    let inputs = Input::check_all(files)?;
    let origin = options.filter.as_deref().map(Origin::of);
    let search = Search { options, filter: Arc::new(filter(options)?) };
    let selected = if options.quiet {
        search.run(inputs, |_, selected| Ok(if selected > 0 { ControlFlow::Break(()) } else { GO_ON }))?
    } else {
        let mut output = Output::create(None, inputs.iter().map(Input::origin).chain(&origin))?;
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

fn filter(options: &Check) -> Result<Seen, Error> {
    if let Some((server, name)) = options.sharing.filter()? {
        return Shared::open(&server, name).map(|shared| Seen::Shared(shared.into()));
    }
    Seen::load(options.filter.as_deref().expect("it is required"))
}

struct Search<'a> {
    options: &'a Check,
    filter: Arc<Seen>,
}

impl Search<'_> {
    /// Whether lines that are in the filter are selected, or those that are not.
    fn wanted(&self) -> bool {
        !self.options.invert_match
    }

    /// Calls `consume` with batches, in order, and the number of lines selected in each. Returns the sum of these.
    fn run(
        &self,
        inputs: Vec<Input>,
        mut consume: impl FnMut(&Batch, usize) -> Result<ControlFlow<()>, Error>,
    ) -> Result<u64, Error> {
        let reading = &self.options.reading;
        let (filter, on_error, wanted) = (self.filter.clone(), reading.on_error, self.wanted());
        let hashing = reading.hashing(filter.hasher());
        // Of a server.
        let failure = Arc::new(Mutex::new(None));
        let failed = failure.clone();
        let work = move |batch: &mut Batch| {
            batch.hash(&hashing);
            let find = |hashes: &[u64], _: &[u128], found: &mut [bool]| {
                filter.contains_hashes(hashes, found).map(|_| hashes.len())
            };
            if let Err(error) = batch.mark(on_error, wanted, find) {
                *failed.lock().expect("no worker panics while it holds the lock") = Some(error);
            }
        };
        let (mut sum, mut faults) = (0, 0);
        let chunks = Chunks::new(inputs, 0, reading.cut());
        pipeline::batches(reading.threads, self.options.quiet, chunks, work, |batch, place| {
            if let Some(error) = failure.lock().expect("no worker panics while it holds the lock").take() {
                return Err(error);
            }
            let selected = batch.count(wanted);
            sum += selected as u64;
            faults += batch.faults() as u64;
            let ended = consume(batch, selected)?;
            if ended.is_continue() {
                place.check(batch)?;
            }
            Ok(ended)
        })?;
        if !self.options.quiet {
            tell_faults(faults);
        }
        Ok(sum)
    }

    fn print(&self, inputs: Vec<Input>, output: &mut Output) -> Result<u64, Error> {
        self.run(inputs, |batch, _| {
            batch.pieces(self.wanted()).try_for_each(|lines| output.write(lines))?;
            Ok(GO_ON)
        })
    }

    /// Inputs run one by one here, for batches do not end where a file does.
    fn count(&self, inputs: Vec<Input>, files: &[PathBuf], output: &mut Output) -> Result<u64, Error> {
        let mut sum = 0;
        for (i, input) in inputs.into_iter().enumerate() {
            let selected = self.run(vec![input], |_, _| Ok(GO_ON))?;
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
