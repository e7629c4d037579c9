//! Where the lines of a run go to.

use crate::error::Error;
use crate::files::{self, Origin};
use crate::lines::Lines;
use crate::lines::input::Input;
use crate::lines::position::Position;
use crate::output::{Output, Target};
use crate::run::Run;
use crate::run::checkpoint::{Checkpoint, Mark};
use crate::run::one_by_one::OneByOne;
use crate::run::start::{self, own_files};
use crate::set::inserter::Counts;
use std::fs::File;

/// The outputs before anything is written to them.
pub struct Targets {
    kept: Target,
    dropped: Option<Target>,
}

impl Targets {
    /// Opens them. None of them may be an input, the state or the other one.
    pub fn open(run: &Run<'_>, inputs: &[Input]) -> Result<Self, Error> {
        let states = own_files(run);
        let taken: Vec<Origin> = states.iter().chain(&run.reading.files_from).map(|path| Origin::of(path)).collect();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&taken);
        let kept = Target::open(run.options.output(), run.options.compress, taken(), [])?;
        let dropped = run
            .dupes()
            .map(|path| Target::open(Some(path), run.options.compress, taken(), [&kept.origin]))
            .transpose()?;
        let targets = Self { kept, dropped };
        if run.options.state.is_some() {
            // A crash must not leave a state that knows of an output which the folder does not.
            for path in run.outputs() {
                let synced = File::open(files::folder(path)).and_then(|folder| folder.sync_all());
                synced.map_err(|source| Error::Create { output: files::name(path), source })?;
            }
        }
        // A state that is not there yet is told from the outputs by where they are.
        let outputs: Vec<Origin> = run.outputs().map(Origin::of).collect();
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

    /// The outputs, to go on at a checkpoint if there is one.
    pub fn begin(self, run: &Run<'_>, start: Option<&Checkpoint>) -> Result<Outputs, Error> {
        let (kept, dropped) = start.map_or((0, 0), |start| (start.output, start.dupes));
        if let Some(target) = &self.dropped {
            // Before anything is cut off the first.
            target.check_length(dropped)?;
        }
        let targets = [Some(&self.kept), self.dropped.as_ref()].into_iter().flatten();
        let crew = start::crew(run, targets.map(Target::compression))?;
        let kept = self.kept.begin(kept, crew.clone())?;
        let dropped = self.dropped.map(|target| target.begin(dropped, crew)).transpose()?;
        Ok(Outputs::Files { kept, dropped })
    }
}

/// The outputs.
// There is one of it.
#[expect(clippy::large_enum_variant)]
pub enum Outputs {
    /// One for the lines, and one for what is dropped.
    Files { kept: Output, dropped: Option<Output> },
    /// One for each input.
    Folder(OneByOne),
}

/// Where the outputs are once they are settled.
#[derive(Default)]
pub struct Settled {
    /// The length of the one for the lines.
    pub output: u64,
    /// The length of the one for what is dropped.
    pub dupes: u64,
    /// Those in a folder.
    pub shards: Vec<Mark>,
}

impl Outputs {
    /// Prints lines by their marks: `true` if they are new. `after` is the position after them, and `counts` is what was counted up
    /// to there.
    pub fn print(&mut self, run: &Run<'_>, lines: &Lines, after: &Position, counts: &Counts) -> Result<(), Error> {
        let (kept, dropped) = match self {
            Self::Files { kept, dropped } => (kept, dropped),
            Self::Folder(outputs) => return outputs.print(run, lines, after, counts),
        };
        if let Some(dropped) = dropped {
            lines.pieces(false).try_for_each(|piece| dropped.write(piece))?;
        }
        if run.counts_only() {
            return Ok(());
        }
        lines.print(run.annotates(), !run.inverts(), |bytes| kept.write(bytes))
    }

    /// What failed of the input of this number.
    pub fn broken(&mut self, input: usize, why: String) {
        if let Self::Folder(outputs) = self {
            outputs.broken(input, why);
        }
    }

    /// Prints a number.
    pub fn print_count(&mut self, count: u64) -> Result<(), Error> {
        match self {
            Self::Files { kept, .. } => kept.write_line(&count.to_string()),
            Self::Folder(_) => unreachable!("the options contradict each other"),
        }
    }

    /// Lets readers see what was printed so far. Nobody reads an output in a folder before it is whole.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.files().try_for_each(Output::flush)
    }

    /// Makes what was printed so far safe from a crash.
    pub fn settle(&mut self) -> Result<Settled, Error> {
        match self {
            Self::Files { kept, dropped } => {
                let (output, dupes) = (kept.settle()?, dropped.as_mut().map_or(Ok(0), Output::settle)?);
                Ok(Settled { output, dupes, ..Settled::default() })
            }
            Self::Folder(outputs) => Ok(Settled { shards: outputs.settle()?, ..Settled::default() }),
        }
    }

    /// The state is saved, or there is none.
    pub fn publish(&mut self) -> Result<(), Error> {
        match self {
            Self::Files { .. } => Ok(()),
            Self::Folder(outputs) => outputs.publish(),
        }
    }

    /// Writes what is left, at the end of the inputs or before it. A run with a state may be resumed.
    pub fn finish(&mut self, finished: bool, state: bool) -> Result<(), Error> {
        match self {
            Self::Folder(outputs) if finished => outputs.end()?,
            Self::Folder(outputs) if !state => outputs.abandon(),
            _ => {}
        }
        self.files().try_for_each(Output::finish)
    }

    /// Removes outputs in a folder that are not whole, and that no run goes on with.
    pub fn abandon(&mut self) {
        if let Self::Folder(outputs) = self {
            outputs.abandon();
        }
    }

    fn files(&mut self) -> impl Iterator<Item = &mut Output> {
        match self {
            Self::Files { kept, dropped } => [Some(kept), dropped.as_mut()],
            Self::Folder(_) => [None, None],
        }
        .into_iter()
        .flatten()
    }
}
