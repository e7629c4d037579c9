//! The state that a run starts with, and the checkpoints beside it.

use crate::commands::run::plan::{Plan, StateOptions};
use crate::read::inputs::{Input, Inputs};
use crate::read::skip::OnError;
use crate::run::checkpoint::{Checkpoint, Checkpoints, InputProgress, Job};
use crate::run::folder;
use crate::run::print::{LineEnd, Prefix};
use crate::run::work::Persistence;
use crate::seen::SeenKeys;
use crate::seen::run_stats::RunStats;
use crate::seen::set::KeySet;
use crate::system::error::{Error, INCOMPLETE, SUCCESS};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, FileVersion, NamedFile};
use crate::system::unpoisoned::locked;
use crate::terminal::messages::print_message;
use std::path::{Path, PathBuf};

/// The state of a run after its check.
pub struct CheckedState {
    pub checkpoints: Checkpoints,
    /// The checkpoint from which the run resumes.
    pub start: Option<Checkpoint>,
    /// Advice about an earlier run, for outputs that would be erased.
    pub advice: String,
    /// The files of the state when they were checked.
    versions: [Option<FileVersion>; 2],
}

/// The remedy if the outputs of an interrupted run would be lost.
const CONTINUE: &str = "continue that run with --resume, ";

/// Returns the reason why nothing is resumed, before a remedy.
fn nothing_left(checkpoints: &Checkpoints) -> String {
    let why = match checkpoints.changed_input() {
        Some(changed) => format!("a run of this command is complete, but {changed}"),
        None => "no run with this state was interrupted".to_owned(),
    };
    format!("{why}, so leave out --resume, and ")
}

impl CheckedState {
    /// True if another run saved the state since it was checked.
    pub fn has_changed(&self, state: &StateOptions) -> bool {
        self.versions != versions(state)
    }
}

/// Returns the versions of the state and of its checkpoints.
fn versions(state: &StateOptions) -> [Option<FileVersion>; 2] {
    [FileVersion::from_path(&state.path), FileVersion::from_path(&files::checkpoints_of(&state.path))]
}

impl Plan {
    /// Refuses a state whose files are inputs or other files of the run.
    pub(super) fn check_state_files(&self, state: &StateOptions, inputs: &[Input]) -> Result<(), Error> {
        let besides: Vec<NamedFile> = self.other_files().map(NamedFile::from_path).collect();
        for path in [&state.path, &files::checkpoints_of(&state.path)] {
            files::check_target(path, inputs.iter().map(|input| &input.origin).chain(&besides))?;
        }
        Ok(())
    }

    /// Locks the state and its checkpoints.
    pub(super) fn lock(state: &Path, wait: bool) -> Result<FileLock, Error> {
        let mut lock = FileLock::beside(state, wait)?;
        lock.guard(&files::checkpoints_of(state));
        Ok(lock)
    }

    /// Finds the checkpoint at which a run with this state and its `set` starts. Refuses to erase the output `full`, whose lines the run
    /// would not print again.
    pub(super) fn check_state(
        &self,
        state: &StateOptions,
        inputs: &Inputs,
        set: &KeySet,
        full: Option<&str>,
    ) -> Result<CheckedState, Error> {
        let versions = versions(state);
        let mut checkpoints = self.checkpoints(state, inputs)?;
        let exists = state.path.exists();
        let mut start = None;
        let mut advice = String::new();
        if exists && state.resume {
            start = checkpoints.find(set)?;
            if start.is_none() {
                advice = nothing_left(&checkpoints);
            }
        } else if exists && checkpoints.is_interrupted(set) {
            CONTINUE.clone_into(&mut advice);
        }
        if start.is_none()
            && !self.destination.force
            && let Some(output) = full
        {
            if state.resume && !exists {
                // Without a state, no checkpoint was reached and nothing was printed.
                return Err(Error::new(format!(
                    "cannot resume: there is no state {:?}, and {output} holds lines that a run from the beginning would \
                     erase; check the name of the state, or write to another file (--force would erase these lines)",
                    state.path
                )));
            }
            return Err(emptying_error(output, &format!("the state {:?}", state.path), &advice));
        }
        Ok(CheckedState { checkpoints, start, advice, versions })
    }

    /// Returns the job, which has to be the same when the run is resumed.
    fn job(&self, inputs: &[Input]) -> Job {
        let flags = [
            (self.keys.format.end == 0, ", NUL-terminated"),
            (self.keys.format.header, ", after a header"),
            (self.keys.format.skip_blank, ", not blank"),
            (!self.print.selected_mark, ", inverted"),
            (self.print.prefix == Prefix::Mark, ", annotated"),
            (self.destination.is_side_by_side(), ", side by side"),
            (self.print.eol == Some(LineEnd::Lf), ", ended by LF"),
            (self.print.eol == Some(LineEnd::Crlf), ", ended by CR LF"),
            (self.keys.nulls == OnError::Keep, ", nulls kept"),
            (self.keys.nulls == OnError::Skip, ", nulls left out"),
        ];
        let mut options = self.keys.description.clone();
        for (is_given, flag) in flags {
            if is_given {
                options += flag;
            }
        }
        if let Some(compression) = self.destination.output.compress {
            options += &format!(", compressed as {compression}");
        }
        if let Some(group_request) = &self.group_request {
            options += &group_request.description();
        }
        let outputs = self.outputs().chain(self.destination.folder());
        Job::new(inputs, outputs, options, self.reading.on_error)
    }

    /// Returns the checkpoints beside the state of a run with these inputs.
    pub(super) fn checkpoints(&self, state: &StateOptions, inputs: &Inputs) -> Result<Checkpoints, Error> {
        let mut written: Vec<PathBuf> = self.outputs().map(Path::to_owned).collect();
        let folder = self.destination.folder();
        if let Some(folder) = folder {
            let compress = self.destination.output.compress;
            let outputs = folder::outputs(folder, &inputs.found, &inputs.folders, compress)?;
            written.extend(outputs.into_iter().map(|output| output.whole));
        }
        let manifest = self.destination.manifest();
        let resumable = self.can_resume(&inputs.found);
        Checkpoints::new(&state.path, self.job(&inputs.found), written, folder.is_some(), manifest, resumable)
    }

    /// Returns the exit code of this run if an earlier process completed it, and nothing is left to resume.
    pub(super) fn exit_code_if_complete(&self, state: &StateOptions, inputs: &Inputs) -> Result<Option<u8>, Error> {
        if !state.resume || !state.path.exists() {
            return Ok(None);
        }
        let checkpoints = self.checkpoints(state, inputs)?;
        let Some((left_out, gone)) = checkpoints.ended(self.destination.force)? else { return Ok(None) };
        if !self.reporting.quiet || gone.is_some() {
            let gone = gone.map_or_else(String::new, |output| {
                format!("; {} no longer exists, and is not written again", files::name(&output))
            });
            print_message(&format!(
                "nothing is left to do: this run with the state {:?} is already complete{gone}",
                state.path
            ));
        }
        Ok(Some(if left_out > 0 { INCOMPLETE } else { SUCCESS }))
    }

    /// Returns the parts of the state that the engine keeps.
    pub(super) fn persistence(&self) -> Persistence {
        let Some(state) = self.state() else { return Persistence::default() };
        let at_end = self.group_request.is_some();
        // A requested interval is kept as long as lines get half of the time.
        let rest = if state.checkpoint.is_some() { 1 } else { 50 };
        Persistence { state: Some(state.path.clone()), shrink: state.shrink, at_end, rest, ..Persistence::default() }
    }
}

/// Saves the state before the first line, and a checkpoint at the start.
pub(super) fn save_start(
    persistence: &Persistence,
    seen: &SeenKeys,
    stats: &RunStats,
    inputs: usize,
) -> Result<(), Error> {
    let (Some(state), Some(checkpoints)) = (&persistence.state, &persistence.checkpoints) else { return Ok(()) };
    let progress = if persistence.folder.is_some() { vec![InputProgress::default(); inputs] } else { Vec::new() };
    let ones = seen.set.ones();
    let memory = seen.set.memory_bytes();
    let room = stats.remaining_keys();
    locked(checkpoints).add(Checkpoint { ones, memory, room, inputs: progress, ..Checkpoint::default() }, false)?;
    seen.set.save(state)
}

/// Returns the error for an output that would be emptied although a run with `known` would not print its lines again. `resume` is
/// advice about an earlier run.
pub(super) fn emptying_error(output: &str, known: &str, resume: &str) -> Error {
    Error::new(format!(
        "refusing to overwrite {output}: it holds lines, and a run with {known} may not print them again; {resume}write to \
         another file, or append with >> (--force would erase these lines)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::{options, spellings};
    use crate::options::{Cli, Command};
    use std::collections::BTreeSet;

    /// Runs with a state, and with the options that others need.
    const RUNS: &[&str] = &[
        "dedup --state=s --output=o",
        "dedup --state=s --output=o --field=1",
        "corpus --state=s --output=o",
        "corpus --state=s --output=o --by=document",
    ];

    /// The options that are not part of a job.
    const OTHERS: &[&[&str]] = &[
        // They decide about the inputs, which are compared.
        &["binary", "files-from", "follow", "glob", "hidden"],
        // The state has them, or the checkpoint.
        &["expected-keys", "fpr", "memory", "seed", "when-full"],
        // A run that prints a number cannot be resumed.
        &["total"],
        // They change no line of an output.
        &["checkpoint", "chunk-size", "force", "quiet", "resume", "shrink", "stats", "threads", "wait"],
    ];

    /// The job of a command line, if it is accepted.
    fn job(line: &str) -> Option<Job> {
        let line = format!("bloomline {line}");
        let mut plan = match Cli::read(line.split(' ').map(Into::into)).ok()?.command {
            Command::Dedup(options) => Plan::from_dedup(*options),
            Command::Corpus(options) => Plan::from_corpus(*options),
            _ => unreachable!(),
        };
        if let Some(rule) = plan.keys.what.rule() {
            plan.keys.description = rule.name();
        }
        Some(plan.job(&[]))
    }

    #[test]
    fn each_option_is_part_of_the_job_or_listed() {
        let mut cli = Cli::described();
        cli.build();
        let mut accepted = BTreeSet::new();
        let mut compared = BTreeSet::new();
        for run in RUNS {
            let base = job(run).expect(run);
            for option in options(&cli, run) {
                let jobs = spellings(&option).into_iter().filter_map(|spelling| job(&format!("{run} {spelling}")));
                for job in jobs {
                    let name = option.get_long().unwrap().to_owned();
                    if job != base {
                        compared.insert(name.clone());
                    }
                    accepted.insert(name);
                }
            }
        }
        let others: BTreeSet<&str> = accepted.difference(&compared).map(String::as_str).collect();
        assert_eq!(others, OTHERS.concat().into_iter().collect());
    }
}
