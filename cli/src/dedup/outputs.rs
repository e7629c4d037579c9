//! Where the lines of `dedup` go to.

use crate::cli::DedupOptions;
use crate::dedup::checkpoint::Checkpoint;
use crate::dedup::own_files;
use crate::error::Error;
use crate::files::{self, Origin};
use crate::lines::Lines;
use crate::lines::input::Input;
use crate::output::{Output, Target};
use crate::pieces::Crew;
use std::fs::File;

/// The outputs before anything is written to them.
pub struct Targets {
    kept: Target,
    dropped: Option<Target>,
}

impl Targets {
    /// Opens them. None of them may be an input, the state or the other one.
    pub fn open(options: &DedupOptions, inputs: &[Input]) -> Result<Self, Error> {
        let states = own_files(options);
        let taken: Vec<Origin> =
            states.iter().chain(&options.reading.files_from).map(|path| Origin::of(path)).collect();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&taken);
        let kept = Target::open(options.output(), options.compress, taken(), [])?;
        let dropped = options
            .dupes()
            .map(|path| Target::open(Some(path), options.compress, taken(), [&kept.origin]))
            .transpose()?;
        let targets = Self { kept, dropped };
        if options.state.is_some() {
            // A crash must not leave a state that knows of an output which the folder does not.
            for path in options.outputs() {
                let synced = File::open(files::folder(path)).and_then(|folder| folder.sync_all());
                synced.map_err(|source| Error::Create { output: files::name(path), source })?;
            }
        }
        // A state that is not there yet is told from the outputs by where they are.
        let outputs: Vec<Origin> = options.outputs().map(Origin::of).collect();
        states.iter().try_for_each(|state| files::check_target(state, &outputs))?;
        Ok(targets)
    }

    /// A file with lines in it.
    pub fn full(&self) -> Option<&str> {
        [Some(&self.kept), self.dropped.as_ref()]
            .into_iter()
            .flatten()
            .find(|target| target.is_full())
            .map(|target| target.origin.name())
    }

    /// The outputs, to go on at a checkpoint if there is one. So many threads compress them.
    pub fn begin(self, threads: usize, start: Option<&Checkpoint>) -> Result<Outputs, Error> {
        let (kept, dropped) = start.map_or((0, 0), |start| (start.output, start.dupes));
        if let Some(target) = &self.dropped {
            // Before anything is cut off the first.
            target.check_length(dropped)?;
        }
        let crew = match self.kept.is_in_pieces() || self.dropped.as_ref().is_some_and(Target::is_in_pieces) {
            true => Crew::new(threads)?,
            false => Crew::default(),
        };
        let kept = self.kept.begin(kept, crew.clone())?;
        Ok(Outputs { kept, dropped: self.dropped.map(|target| target.begin(dropped, crew)).transpose()? })
    }
}

/// The output, and the file for what is dropped.
pub struct Outputs {
    kept: Output,
    dropped: Option<Output>,
}

impl Outputs {
    /// Prints lines by their marks: `true` if they are new.
    pub fn print(&mut self, options: &DedupOptions, lines: &Lines) -> Result<(), Error> {
        let Self { kept, dropped } = self;
        if let Some(dropped) = dropped {
            lines.pieces(false).try_for_each(|piece| dropped.write(piece))?;
        }
        if options.count {
            return Ok(());
        }
        lines.print(options.annotate, !options.invert, |bytes| kept.write(bytes))
    }

    /// Prints a number.
    pub fn print_count(&mut self, count: u64) -> Result<(), Error> {
        self.kept.write_line(&count.to_string())
    }

    /// Lets readers see what was printed so far.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.each(Output::flush).map(drop)
    }

    /// Makes what was printed so far safe from a crash. Returns the lengths of both.
    pub fn settle(&mut self) -> Result<(u64, u64), Error> {
        self.each(Output::settle)
    }

    /// Writes what is left.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.each(Output::finish).map(drop)
    }

    fn each<T: Default>(&mut self, act: impl Fn(&mut Output) -> Result<T, Error>) -> Result<(T, T), Error> {
        Ok((act(&mut self.kept)?, self.dropped.as_mut().map_or(Ok(T::default()), act)?))
    }
}
