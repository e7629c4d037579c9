//! What a run begins with, however it reads its inputs.

use crate::cli::RunOptions;
use crate::encode::Compression;
use crate::error::Error;
use crate::figures::{readable, readable_size};
use crate::files;
use crate::leftovers;
use crate::lines::estimate::{self, Sampled};
use crate::lines::input::{Input, Inputs};
use crate::lines::{Hashing, What};
use crate::messages::tell;
use crate::pieces::Crew;
use crate::run::checkpoint::{self, Checkpoint, Checkpoints, Job};
use crate::run::folder::Folder;
use crate::run::wakes::{self, Wake};
use crate::run::{Run, Task};
use crate::set::exact::Exact;
use crate::set::inserter::Inserter;
use crate::set::shared::Address;
use crate::set::{KeySet, sizing};
use bloomline::KeyHasher;
use crossbeam_channel::Receiver;
use std::env;
use std::path::{Path, PathBuf};

/// What makes the second hash of a fingerprint another one than the first.
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// What to do instead of losing the outputs of an interrupted run.
pub const CONTINUE: &str = "continue that run with --resume, ";

/// The set of a run: the one on a server, that of the state, or a new one.
fn set(run: &Run<'_>, inputs: &[Input]) -> Result<Inserter, Error> {
    let Run { size, options, .. } = run;
    let RunOptions { memory, quiet, .. } = options;
    if let Task::Lines(lines) = run.task
        && let Some(address) = Address::of(&lines.shared)?
    {
        let inserter = Inserter::new(sizing::of_server(lines, &address)?, None, *quiet);
        inserter.warn_of_eviction();
        return Ok(inserter);
    }
    if let Some(filter) = run.frozen() {
        return Ok(Inserter::new(KeySet::load_for(filter, run.key_name())?, None, *quiet));
    }
    if let Some(state) = options.state.as_deref().filter(|state| state.exists()) {
        let set = KeySet::load_for(state, run.key_name())?;
        let limit = sizing::limit_of_state(size, options, state, &set)?;
        return Ok(Inserter::new(set, limit, *quiet));
    }
    // Where the choice does not depend on the inputs, nobody looks into them.
    let asked = size.expected_keys.is_none() && (memory.is_none() || options.state.is_none());
    let sampled = match run.what() {
        What::Key(..) => Sampled::Lines,
        What::Document(rule, _) => Sampled::Documents(rule),
    };
    let keys = if asked { estimate::of_inputs(inputs, run.reading.end(), &sampled)? } else { Err(String::new()) };
    let (set, limit) = sizing::choose(size, options, keys)?.build(size.seed(), &run.key_name())?;
    if let (Some(_), Some(limit), false) = (memory, &limit, quiet) {
        tell(&format!(
            "a filter of {}: up to {} distinct {} at a false-positive rate of {}",
            readable_size(set.memory_bytes()),
            limit.keys,
            run.keys(),
            readable(limit.fpr)
        ));
    }
    Ok(Inserter::new(set, limit, *quiet))
}

/// The set, and the second look at it.
pub fn inserter(run: &Run<'_>, inputs: &[Input]) -> Result<Inserter, Error> {
    let mut inserter = set(run, inputs)?;
    inserter.keys = run.keys();
    inserter.wanted = run.wanted();
    inserter.exact_units = run.exact_units();
    if run.is_exact() {
        inserter.exact = Some(Exact::new(&env::temp_dir()).map_err(|source| Error::Exact { source })?);
    }
    Ok(inserter)
}

/// Tells the user of what is known before the first line.
pub fn begin_counting(inserter: &mut Inserter, inputs: &Inputs, start: Option<&Checkpoint>) {
    inserter.begin();
    inputs.left_out.iter().for_each(|why| inserter.leave_out(why));
    let counts = &mut inserter.counts;
    counts.left_out = start.map_or(0, |start| start.left_out).max(counts.left_out);
}

/// Receives signals and the times of checkpoints from now on.
pub fn receive_wakes(run: &Run<'_>, set: &KeySet) -> Result<Receiver<Wake>, Error> {
    let unsaved = run.options.state.clone().map(|state| Error::Unsaved { state });
    wakes::receive(run.options.checkpoint, unsaved.or(set.is_shared().then_some(Error::UnprintedAtEnd)))
}

/// How lines are hashed.
pub fn hashing(run: &Run<'_>, inserter: &Inserter) -> Hashing {
    let hasher = inserter.set.hasher().clone();
    let what = match run.what() {
        What::Key(rule, _) if run.is_exact() => What::Key(rule, Some(KeyHasher::new(run.size.seed() ^ SECOND))),
        what => what,
    };
    Hashing { end: run.reading.end(), hasher, what }
}

/// The threads that compress outputs, if any of these is compressed in pieces.
pub fn crew(run: &Run<'_>, outputs: impl IntoIterator<Item = Compression>) -> Result<Crew, Error> {
    match outputs.into_iter().any(Compression::is_in_pieces) {
        true => Crew::new(run.reading.threads()),
        false => Ok(Crew::default()),
    }
}

/// The files of its filter.
fn filters(run: &Run<'_>) -> Vec<PathBuf> {
    let state = run.options.state.iter().flat_map(|state| files::of_filter(state));
    state.chain(run.frozen().map(Path::to_owned)).collect()
}

/// The files that the run itself keeps.
pub fn own_files(run: &Run<'_>) -> Vec<PathBuf> {
    filters(run).into_iter().chain(run.options.manifest.clone()).collect()
}

/// What is no input where a directory has it: the state, the folder of outputs, and files that this run continues, or empties
/// only if that is asked for. Other files that it would empty may be somebody's inputs, and are refused.
pub fn no_inputs(run: &Run<'_>) -> Vec<PathBuf> {
    let safe = run.options.resume || run.options.force || run.options.state.as_deref().is_some_and(Path::exists);
    let outputs = run.outputs().map(Path::to_owned).chain(run.options.manifest.clone()).filter(|_| safe);
    filters(run).into_iter().chain(outputs).chain(run.options.output_dir.clone()).collect()
}

/// A run whose outputs are in a folder.
pub struct InFolder {
    pub folder: Folder,
    pub inserter: Inserter,
    /// The checkpoints to come, and the one to go on at.
    pub checkpoints: Option<Checkpoints>,
    pub start: Option<Checkpoint>,
}

impl InFolder {
    /// Opens the folder and the set. All that can fail comes before an output is lost, but for one that is shorter than it was.
    pub fn new(run: &Run<'_>, inputs: &Inputs) -> Result<Self, Error> {
        if run.options.resume && !checkpoint::can_resume(run, &inputs.found) {
            return Err(Error::ResumeStream);
        }
        let path = run.options.output_dir.as_deref().expect("the lines go to a folder");
        let mut own: Vec<PathBuf> = filters(run).into_iter().chain(run.reading.files_from.clone()).collect();
        if let Some(manifest) = &run.options.manifest {
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin))?;
            if files::is_standard(manifest) {
                return Err(Error::NotRegular { output: files::name(manifest) });
            }
            let real = files::real(manifest);
            if let Some(same) = own.iter().find(|own| files::real(own) == real) {
                return Err(Error::Overwrite { input: files::name(same), output: files::name(manifest) });
            }
            own.push(manifest.clone());
        }
        let folder = Folder::open(path, inputs, run.options.compress, &own)?;
        // What a killed run left of it.
        run.options.manifest.iter().for_each(|manifest| leftovers::own(manifest));
        let mut inserter = inserter(run, &inputs.found)?;
        let (mut checkpoints, mut start, mut resume) = (None, None, "");
        if let Some(state) = &run.options.state {
            let mut earlier = Checkpoints::new(state, Job::new(run, &inputs.found))?;
            match (state.exists(), run.options.resume) {
                (true, true) => start = Some(earlier.find(&inserter.set)?),
                (true, false) if earlier.is_interrupted(&inserter.set) => resume = CONTINUE,
                _ => {}
            }
            checkpoints = Some(earlier);
        }
        match &start {
            Some(start) => inserter.resume(start.room),
            None if run.options.force => {}
            None => folder.check_new(run.options.state.as_deref(), resume)?,
        }
        Ok(Self { folder, inserter, checkpoints, start })
    }
}
