//! `bloomline check`: the lines that are in a filter, as grep would print them.

use crate::cli::CheckOptions;
use crate::error::{Error, FAILED, SUCCESS, Stop};
use crate::figures::readable_count;
use crate::files::{self, Origin};
use crate::lines::chunks::Chunks;
use crate::lines::input::{Input, Inputs};
use crate::lines::pipeline::{self, Event};
use crate::lines::{Hashing, Lines, What};
use crate::messages::{tell, warn};
use crate::output::Output;
use crate::progress::Progress;
use crate::set::KeySet;
use crate::set::inserter::warn_of_faults;
use crate::set::shared::{Address, Shared};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<u8, Error> {
    let own = options.filter.as_deref().map(files::of_filter);
    let Inputs { found: inputs, left_out, several, read, .. } =
        Inputs::check(&options.reading.named(), own.as_slice().as_flattened(), true)?;
    left_out.iter().for_each(|why| tell(why));
    let origin = options.filter.as_deref().map(Origin::of);
    let filter = filter(options)?;
    let excess = filter.made_for().filter(|_| !options.quiet).and_then(|(keys, _)| filter.excess(keys));
    if let Some(excess) = excess {
        warn(&format!("{excess}; build a larger one with -n"));
    }
    let incomplete = !left_out.is_empty();
    let progress = Progress::new(&inputs, read, options.quiet, !options.count || several);
    let filter = Arc::new(filter);
    let mut search =
        Search { options, filter, progress, lines: 0, selected: 0, faults: 0, first_fault: None, incomplete };
    if options.quiet {
        search.run(inputs, |_, selected| if selected > 0 { Err(Stop::Enough) } else { Ok(()) })?;
    } else {
        let mut output = Output::create(None, inputs.iter().map(|input| &input.origin).chain(&origin))?;
        if options.count {
            search.count(inputs, several, &mut output)?;
        } else {
            search.print(inputs, &mut output)?;
        }
        search.progress.end();
        output.finish()?;
        warn_of_faults("key", search.faults, search.first_fault.as_deref());
    }
    Ok(search.exit_code())
}

fn filter(options: &CheckOptions) -> Result<KeySet, Error> {
    if let Some(address) = Address::of(&options.shared)? {
        return Shared::open(&address).map(|shared| KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.filter.as_deref().expect("it is required"), options.key.name())
}

struct Search<'a> {
    options: &'a CheckOptions,
    filter: Arc<KeySet>,
    progress: Progress,
    /// Lines that are read.
    lines: u64,
    /// Lines that are selected.
    selected: u64,
    /// Lines without a key.
    faults: u64,
    /// The first of them, and why.
    first_fault: Option<String>,
    /// Whether an input or the rest of one is left out.
    incomplete: bool,
}

impl Search<'_> {
    /// Whether lines that are in the filter are selected, or those that are not.
    fn wanted(&self) -> bool {
        !self.options.invert_match
    }

    /// Calls `consume` with lines, in order, and the number of those that are selected.
    fn run(
        &mut self,
        inputs: Vec<Input>,
        mut consume: impl FnMut(&Lines, usize) -> Result<(), Stop>,
    ) -> Result<(), Error> {
        let reading = &self.options.reading;
        let (filter, on_error, wanted) = (self.filter.clone(), reading.on_error, self.wanted());
        let (end, hasher) = (reading.end(), filter.hasher().clone());
        let hashing = Hashing { end, hasher, what: What::Key(self.options.key.rule(), None) };
        let work = move |lines: &mut Lines| {
            lines.hash(&hashing);
            lines.mark(on_error, wanted, |hashes, _, found| filter.contains_hashes(hashes, found).map(|_| hashes.len()))
        };
        let chunks = Chunks::new(inputs, 0, reading.cut());
        let read = pipeline::run_alone(reading.threads(), chunks, work, |event| match event {
            Event::Lines(lines, position) => {
                let selected = lines.marked(wanted);
                self.lines += lines.passed() as u64;
                self.selected += selected as u64;
                self.faults += lines.faults() as u64;
                if self.first_fault.is_none() {
                    self.first_fault = position.first_fault(lines);
                }
                self.progress.show(self.lines, || vec![format!("{} selected", readable_count(self.selected as f64))]);
                consume(lines, selected)?;
                position.check(lines, "key")
            }
            Event::Broken(_, why) => {
                self.incomplete = true;
                tell(&why);
                Ok(())
            }
            _ => Ok(()),
        });
        read.or_else(|stop| stop.end().map(drop))
    }

    fn print(&mut self, inputs: Vec<Input>, output: &mut Output) -> Result<(), Error> {
        let wanted = self.wanted();
        self.run(inputs, |lines, _| Ok(lines.pieces(wanted).try_for_each(|piece| output.write(piece))?))
    }

    /// Inputs run one by one here, for chunks do not end where a file does.
    fn count(&mut self, inputs: Vec<Input>, several: bool, output: &mut Output) -> Result<(), Error> {
        for input in inputs {
            let (path, before) = (input.path.clone(), self.selected);
            self.run(vec![input], |_, _| Ok(()))?;
            if several {
                let stdin = files::is_standard(&path);
                output.write(if stdin { b"(standard input)" } else { path.as_os_str().as_bytes() })?;
                output.write(b":")?;
            }
            output.write(format!("{}\n", self.selected - before).as_bytes())?;
        }
        Ok(())
    }

    /// That of grep: 0 if a line is selected, and 1 if none is; 2 if inputs are left out, unless only one line was asked for.
    fn exit_code(&self) -> u8 {
        match self.selected {
            1.. if self.options.quiet || !self.incomplete => SUCCESS,
            0 if !self.incomplete => 1,
            _ => FAILED,
        }
    }
}
