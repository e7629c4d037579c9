//! A run: what the inputs have goes through a set, and what is new to it to the outputs.

mod checkpoint;
mod folder;
mod in_order;
mod manifest;
mod one_by_one;
mod ordered;
mod outputs;
mod shard;
mod side_by_side;
mod start;
mod wakes;

use crate::cli::corpus::CorpusOptions;
use crate::cli::{DedupOptions, ReadOptions, RunOptions, SizeOptions};
use crate::documents::DocumentRule;
use crate::documents::exact::ExactUnits;
use crate::error::{Error, Stop};
use crate::files::{self, is_standard};
use crate::leftovers;
use crate::lines::What;
use crate::lines::input::{Input, Inputs};
use crate::lock::Lock;
use crate::messages::print;
use crate::set::report;
use crate::signals;
use crate::values::OnError;
use std::path::Path;
use std::time::Instant;

/// What a run does.
pub struct Run<'a> {
    pub reading: &'a ReadOptions,
    pub size: &'a SizeOptions,
    pub options: &'a RunOptions,
    pub task: Task<'a>,
}

/// What it does with each line.
#[derive(Clone, Copy)]
pub enum Task<'a> {
    /// Its key is looked up.
    Lines(&'a DedupOptions),
    /// It is a document, and its units are looked up.
    Documents(&'a CorpusOptions),
}

impl<'a> Run<'a> {
    /// Of lines.
    pub fn of_dedup(options: &'a DedupOptions) -> Self {
        let DedupOptions { reading, size, run, .. } = options;
        Self { reading, size, options: run, task: Task::Lines(options) }
    }

    /// Of documents.
    pub fn of_corpus(options: &'a CorpusOptions) -> Self {
        let CorpusOptions { reading, size, run, .. } = options;
        Self { reading, size, options: run, task: Task::Documents(options) }
    }

    fn dedup(&self) -> Option<&'a DedupOptions> {
        match self.task {
            Task::Lines(options) => Some(options),
            Task::Documents(_) => None,
        }
    }

    /// The name of the keys.
    pub fn key_name(&self) -> String {
        match self.task {
            Task::Lines(options) => options.key.name(),
            Task::Documents(options) => options.rule().name(),
        }
    }

    /// What is looked up and what becomes of it, for comparison with another run.
    pub fn description(&self) -> String {
        match self.task {
            Task::Lines(_) => self.key_name(),
            Task::Documents(options) => options.rule().description(),
        }
    }

    /// What tells how many units go by mistake, if that is asked for.
    pub fn exact_units(&self) -> Option<ExactUnits> {
        match self.task {
            Task::Documents(options) if options.verify => Some(ExactUnits::new(options.rule().text)),
            _ => None,
        }
    }

    /// What becomes of documents, if lines are documents.
    pub fn document_rule(&self) -> Option<DocumentRule> {
        match self.task {
            Task::Lines(_) => None,
            Task::Documents(options) => Some(options.rule()),
        }
    }

    /// What they are called.
    pub fn keys(&self) -> &'static str {
        match self.task {
            Task::Lines(_) => "lines",
            Task::Documents(options) => options.rule().keys(),
        }
    }

    /// What a line has to have.
    pub fn wanted(&self) -> &'static str {
        match self.task {
            Task::Lines(_) => "key",
            Task::Documents(_) => "text",
        }
    }

    /// What of a line is hashed, but for a second hash.
    pub fn what(&self) -> What {
        match self.task {
            Task::Lines(options) => What::Key(options.key.rule(), None),
            Task::Documents(options) => What::Document(options.rule(), self.reading.on_error),
        }
    }

    /// Whether there is a second look at what the filter takes for seen.
    pub fn is_exact(&self) -> bool {
        self.dedup().is_some_and(|options| options.exact)
    }

    /// Whether the filter is on a server.
    pub fn is_shared(&self) -> bool {
        self.dedup().is_some_and(|options| options.shared.redis.is_some())
    }

    /// Whether repeats are printed in the place of what is new.
    pub fn inverts(&self) -> bool {
        self.dedup().is_some_and(|options| options.invert)
    }

    /// Whether all lines are printed, each with what it is.
    pub fn annotates(&self) -> bool {
        self.dedup().is_some_and(|options| options.annotate)
    }

    /// Whether a number is printed in the place of lines.
    pub fn counts_only(&self) -> bool {
        self.dedup().is_some_and(|options| options.count)
    }

    /// The file that dropped lines go to, if they go anywhere; "-" is standard output.
    pub fn dupes(&self) -> Option<&'a Path> {
        self.dedup().and_then(DedupOptions::dupes)
    }

    /// A filter that is asked, and stays as it is.
    pub fn frozen(&self) -> Option<&'a Path> {
        match self.task {
            Task::Lines(_) => None,
            Task::Documents(options) => options.frozen(),
        }
    }

    /// The files that are written, but for the state.
    pub fn outputs(&self) -> impl Iterator<Item = &'a Path> {
        [self.options.output(), self.dupes()].into_iter().flatten().filter(|path| !is_standard(path))
    }

    /// Runs it.
    pub fn run(&self) -> Result<u8, Error> {
        let started = Instant::now();
        let go_on = self.reading.on_error != OnError::Fail;
        let inputs = Inputs::check(&self.reading.named(), &start::no_inputs(self), go_on)?;
        let state = self.options.state.as_deref();
        let _lock = state.map(|state| lock(self, state, &inputs.found)).transpose()?;
        let (mut inserter, stop) = match self.options.is_side_by_side() {
            true => side_by_side::run(self, inputs)?,
            false => in_order::run(self, inputs)?,
        };
        signals::in_order();
        // A server that failed would be waited for once more.
        let mut alive = !matches!(stop, Some(Stop::After(_)));
        let stop = match (stop, signals::first()) {
            // A server that did not answer is not waited for then. What it left in doubt is told below.
            (Some(Stop::After(Error::Shared { .. })), Some(signal)) => Some(Stop::Signal(signal)),
            (None, _) => {
                let checked = inserter.set.check();
                alive = matches!(checked, Ok(true));
                checked.err().map(Stop::After)
            }
            (stop, _) => stop,
        };
        inserter.tell_shared(alive);
        if let Some(rule) = self.document_rule() {
            inserter.tell_wrong(rule.units());
        }
        if let Some(format) = self.options.stats {
            if alive {
                // All lines are done: a server that fails by now costs its own figures alone.
                _ = inserter.set.refresh();
            }
            let figures = match self.task {
                Task::Lines(options) => report::of_dedup(&inserter, options, started.elapsed())?,
                Task::Documents(options) => report::of_corpus(&inserter, options, started.elapsed())?,
            };
            print(&figures.format(format));
        }
        // A signal may have cut the statistics short.
        stop.or(signals::first().map(Stop::Signal)).map_or(Ok(inserter.exit_code()), Stop::end)
    }
}

/// Locks the state and its checkpoints, which must be none of the inputs.
fn lock(run: &Run<'_>, state: &Path, inputs: &[Input]) -> Result<Lock, Error> {
    let checkpoints = files::checkpoints_of(state);
    for path in [state, &checkpoints] {
        files::check_target(path, inputs.iter().map(|input| &input.origin))?;
    }
    let lock = Lock::of(state, run.options.wait)?;
    leftovers::own(&checkpoints);
    Ok(lock)
}
