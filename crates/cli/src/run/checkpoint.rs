//! Checkpoints from which an interrupted run can resume: a file beside the state, `STATE.resume`. After a complete run,
//! the file has the last job and hashes of the completed ones, so that a job that is resumed again has nothing to do or
//! names the input that has changed, and fingerprints of the states that they left, so that an older copy of the state
//! is recognized as such.
//!
//! A checkpoint fits only the state that was saved with it, and two files cannot be replaced atomically. So the file
//! holds two checkpoints: one for the state that is about to be saved, and one for the state that exists. Each has the
//! size of its state and the number of set bits; bits are never cleared, so states of equal size and number are the
//! same state.
//!
//! The file consists of a line of JSON and a line with its checksum.

use crate::read::inputs::Input;
use crate::read::skip::OnError;
use crate::read::table::Saved;
use crate::seen::counts::LineCounts;
use crate::seen::local_set::LocalSet;
use crate::seen::set::KeySet;
use crate::system::error::Error;
use crate::system::files::{self, name, whole};
use bloomline::KeyHasher;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The point at which an interrupted run resumes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Bits set in the state.
    pub ones: u64,
    /// The size of its bits in bytes, which changes when the state is shrunk.
    pub memory: usize,
    /// Inputs that are read to their ends.
    pub input: usize,
    /// Bytes read of the next input's contents.
    pub offset: u64,
    /// Lines of these bytes, as an editor counts them.
    pub lines: u64,
    /// The length of the output.
    pub output: u64,
    /// The length of the file of duplicates.
    pub dupes: u64,
    /// True if the output and the file of duplicates have a header or a line. Older files lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_begun: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dupes_begun: Option<bool>,
    /// The output and the file of duplicates, if they are tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_table: Option<Saved>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dupes_table: Option<Saved>,
    /// New keys that still fit, if the filter is limited.
    pub room: Option<u64>,
    /// Inputs that are skipped so far in whole or in part. Older files lack it.
    #[serde(default)]
    pub left_out: u64,
    /// The progress of each input, if each has an output of its own.
    #[serde(rename = "shards", default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputProgress>,
}

impl Checkpoint {
    /// True if any input was read.
    pub fn has_begun(&self) -> bool {
        let begun = |reached: &InputProgress| reached.offset > 0 || reached.whole;
        self.input > 0 || self.offset > 0 || self.inputs.iter().any(begun)
    }

    /// True for the output, and for the file of duplicates, if a header or a line was printed.
    pub fn begun(&self) -> (bool, bool) {
        let begun = |recorded: Option<bool>, length| recorded.unwrap_or(length > 0 && self.has_begun());
        (begun(self.output_begun, self.output), begun(self.dupes_begun, self.dupes))
    }

    /// True if all `inputs` are read, and their outputs whole.
    pub fn is_end(&self, inputs: usize) -> bool {
        if self.inputs.is_empty() { self.input == inputs } else { self.inputs.iter().all(|reached| reached.whole) }
    }
}

/// The progress of an input that has an output of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputProgress {
    /// Bytes read of the input's contents.
    pub offset: u64,
    /// Lines of these bytes, as an editor counts them.
    #[serde(default)]
    pub lines: u64,
    /// The length of the output.
    pub output: u64,
    /// True if the output has a header or a line. Older files lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<bool>,
    /// The output, if it is a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Saved>,
    /// True if the output is complete.
    pub whole: bool,
    pub counts: LineCounts,
    /// The failure of the input, if the rest of it is skipped.
    pub broken: Option<String>,
}

impl InputProgress {
    /// True if a header or a line was printed.
    pub fn has_begun_output(&self) -> bool {
        self.begun.unwrap_or(self.output > 0 && self.offset > 0)
    }
}

/// The properties of a run that must be the same when it is resumed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The inputs, in order.
    inputs: Vec<JobInput>,
    /// The names of the outputs.
    outputs: Vec<String>,
    /// The options that select lines and format them.
    options: String,
    /// The treatment of bad input. `None` if that ends the run: none was found so far, so the next run may choose.
    on_error: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JobInput {
    name: String,
    size: Option<u64>,
    /// The size of its contents, unless it is compressed.
    plain_size: Option<u64>,
    modified: Option<Duration>,
}

impl Job {
    /// Describes a run with these inputs and outputs. `options` has all else that must not differ.
    pub fn new<'a>(
        inputs: &[Input],
        outputs: impl Iterator<Item = &'a Path>,
        options: String,
        on_error: OnError,
    ) -> Self {
        let describe_input = |input: &Input| JobInput {
            name: name(&whole(&input.path)),
            size: input.size,
            plain_size: input.size.filter(|_| !input.is_compressed() && !input.is_table),
            modified: input.modified,
        };
        Self {
            inputs: inputs.iter().map(describe_input).collect(),
            outputs: outputs.map(|path| name(&whole(path))).collect(),
            options,
            on_error: match on_error {
                OnError::Fail => None,
                OnError::Skip => Some("skip".into()),
                OnError::Keep => Some("keep".into()),
            },
        }
    }

    /// Returns the parts that do not depend on the contents of the inputs.
    fn named_parts(&self) -> (Vec<&str>, &[String], &str, Option<&str>) {
        let inputs = self.inputs.iter().map(|input| &*input.name).collect();
        (inputs, &self.outputs, &self.options, self.on_error.as_deref())
    }

    /// Returns the reason why no run of this job can have reached a checkpoint, if there is one.
    fn unreachable_reason(&self, checkpoint: &Checkpoint) -> Option<String> {
        let Checkpoint { input, offset, lines, inputs: progress, .. } = checkpoint;
        let count = self.inputs.len();
        let beyond =
            |subject: &str, actual: u64, max: u64| Some(format!("{subject} is {actual}, but can be {max} at most"));
        if *input > count {
            return beyond("the number of inputs that are read", *input as u64, count as u64);
        }
        if ![0, count].contains(&progress.len()) {
            return beyond("the number of outputs", progress.len() as u64, count as u64);
        }
        let reached =
            progress.iter().map(|reached| (reached.offset, reached.lines.max(reached.counts.lines))).enumerate();
        for (i, (offset, lines)) in reached.chain([(*input, (*offset, *lines))]) {
            if lines > offset {
                return beyond("the number of lines that are read", lines, offset);
            }
            // One byte more: the line end that is added to the last line. The length of a compressed input is unknown.
            let max = self.inputs.get(i).map_or(Some(0), |input| input.plain_size.map(|size| size.saturating_add(1)));
            if let Some(max) = max.filter(|max| offset > *max) {
                return beyond("the number of bytes that are read of an input", offset, max);
            }
        }
        None
    }

    /// Returns the reason why the job `now` must not resume from a checkpoint of this one, if there is one.
    fn difference(&self, now: &Self) -> Option<String> {
        let names = |job: &Self| job.inputs.iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        let listed = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(" and ") };
        let on_error = |job: &Self| job.on_error.clone().unwrap_or_else(|| "fail".to_owned());
        let other = |subject: &str, earlier: &str, now: &str| {
            Some(format!("it belongs to a run with {subject} {earlier}, not {now}"))
        };
        if let Some((then, now)) = names(self).iter().zip(&names(now)).find(|(then, now)| then != now) {
            return other("the input", then, now);
        }
        if self.inputs.len() != now.inputs.len() {
            let number = |job: &Self| job.inputs.len().to_string();
            return other("a number of inputs of", &number(self), &number(now));
        }
        if let Some((then, now)) = self.inputs.iter().zip(&now.inputs).find(|(then, now)| then != now) {
            let sizes = then.size.zip(now.size).filter(|(then, now)| then != now);
            let sizes = sizes.map_or(String::new(), |(then, now)| format!(", from {then} to {now} bytes"));
            return Some(format!("the input {} has changed since that run{sizes}", now.name));
        }
        if self.outputs != now.outputs {
            return other("the outputs", &listed(&self.outputs), &listed(&now.outputs));
        }
        if self.options != now.options {
            return other("the options", &format!("{:?}", self.options), &format!("{:?}", now.options));
        }
        // No bad input was found so far, so the next run may choose.
        if self.on_error.is_some() && self.on_error != now.on_error {
            return other("--on-error", &on_error(self), &on_error(now));
        }
        None
    }
}

#[derive(Serialize, Deserialize)]
struct CheckpointContents {
    job: Job,
    /// The newest first.
    checkpoints: Vec<Checkpoint>,
    /// True if the newest is of the end.
    finished: bool,
    /// True if the job is complete. Then one checkpoint of it is kept.
    #[serde(default, skip_serializing_if = "Not::not")]
    whole: bool,
    /// The last jobs that were completed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<CompletedJob>,
}

/// A completed job.
#[derive(Clone, Serialize, Deserialize)]
struct CompletedJob {
    /// A hash of the job and the name of its manifest.
    job: u64,
    /// A hash of the job apart from the contents of its inputs. Older files lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    named: Option<u64>,
    /// The names of its outputs. The entry is removed if another run writes to one of them.
    outputs: Vec<String>,
    /// The number of inputs that it skipped in whole or in part.
    left_out: u64,
    /// A hash of the lengths of all files that it wrote.
    lengths: u64,
    /// The fingerprint of the state after it, or after a later run that has no entry.
    #[serde(default)]
    state: Option<u64>,
}

/// The maximum number of jobs, which keeps the file short even if a state is used daily.
const MAX_COMPLETED_JOBS: usize = 1000;

/// Bytes at either end of a state's file, which contain its header and its trailer.
const ENDS: u64 = 64;

/// The start of the file.
const START: &[u8] = b"{\"job\":{";

impl CheckpointContents {
    /// Parses the bytes of a file.
    fn parse(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        if !bytes.starts_with(START) {
            return Err(Error::new(format!(
                "cannot keep checkpoints in {path:?}: it holds something else; move it, or choose another state"
            )));
        }
        let damaged = |reason: &str| damaged(path, reason);
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at(end);
        if rest != checksum_line(text).as_bytes() {
            return Err(damaged("its checksum is wrong"));
        }
        let contents: Self = serde_json::from_slice(text).map_err(|error| damaged(&error.to_string()))?;
        if contents.checkpoints.is_empty() { Err(damaged("it has no checkpoint")) } else { Ok(contents) }
    }

    /// Returns the bytes of the file.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("all keys are strings");
        let checksum_line = checksum_line(&bytes);
        bytes.extend_from_slice(checksum_line.as_bytes());
        bytes
    }

    /// Returns how many of the completed jobs, from the first on, have their lines in the state at this path; `load`
    /// loads its set. A state that is not as a run left it may be a copy from before some of them, or another state.
    fn count_in_state<S: Borrow<KeySet>>(
        &self,
        state: &Path,
        load: impl FnOnce() -> Result<S, Error>,
    ) -> Result<usize, Error> {
        let Some(found) = fingerprint(state) else { return Ok(0) };
        if let Some(last) = self.ended.iter().rposition(|ended| ended.state == Some(found)) {
            return Ok(last + 1);
        }
        // An interrupted run recognizes its states by their bits.
        let is_known = !self.whole && !self.ended.is_empty() && self.newest_of(load()?.borrow()).is_some();
        Ok(if is_known { self.ended.len() } else { 0 })
    }

    /// Returns the newest checkpoint that fits a state.
    fn newest_of(&self, state: &KeySet) -> Option<usize> {
        let (ones, memory) = (state.ones(), state.memory_bytes());
        self.checkpoints.iter().position(|checkpoint| (checkpoint.ones, checkpoint.memory) == (ones, memory))
    }
}

/// Returns the error for a damaged file.
fn damaged(path: &Path, reason: &str) -> Error {
    Error::new(format!(
        "cannot use the checkpoints in {path:?}: {reason}, so the file is damaged; move it away to start another run with this state, \
         and write to another file"
    ))
}

/// Returns the end of the file after the text: its checksum.
fn checksum_line(text: &[u8]) -> String {
    format!("\n{:016x}\n", KeyHasher::new(0).bytes(text))
}

/// The checkpoints of a job.
pub struct Checkpoints {
    path: PathBuf,
    /// The contents of the file at the start.
    earlier: Option<CheckpointContents>,
    state: PathBuf,
    contents: CheckpointContents,
    /// The entry of this job for its completion, if it can be resumed.
    end: Option<CompletedJob>,
    /// The files that the job writes.
    written: Vec<PathBuf>,
}

impl Checkpoints {
    /// Reads the checkpoints beside the state, and starts with none of this job, which writes the files `written`. A file of that
    /// name with other contents is refused. If `has_folder`, the last output of the job is a folder, perhaps with a manifest.
    pub fn new(
        state: &Path,
        job: Job,
        written: Vec<PathBuf>,
        has_folder: bool,
        manifest: Option<&Path>,
        resumable: bool,
    ) -> Result<Self, Error> {
        let path = files::checkpoints_of(state);
        let earlier = match fs::read(&path) {
            Ok(bytes) => Some(CheckpointContents::parse(&bytes, &path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(files::cannot_open(&name(&path))(source)),
        };
        let hash = hash_of(&(&job, manifest.map(|manifest| name(&whole(manifest)))));
        let named = Some(hash_of(&job.named_parts()));
        // Runs with a common folder write different files in it.
        let outputs = job.outputs[..job.outputs.len() - usize::from(has_folder)].to_vec();
        let is_same =
            |ended: &&CompletedJob| ended.job == hash || ended.outputs.iter().any(|output| outputs.contains(output));
        let ended =
            earlier.iter().flat_map(|earlier| &earlier.ended).filter(|ended| !is_same(ended)).cloned().collect();
        let contents = CheckpointContents { job, checkpoints: Vec::new(), finished: false, whole: false, ended };
        let end = resumable.then_some(CompletedJob { job: hash, named, outputs, left_out: 0, lengths: 0, state: None });
        Ok(Self { path, earlier, state: state.into(), contents, end, written })
    }

    /// If a run of this job was completed, returns the number of inputs that it skipped in whole or in part, and an
    /// output that no longer exists. If outputs have other lengths than that run left, that is an error, because the
    /// state has their lines; so is a state that lacks them. `None` if `force` starts the run again with such a state.
    pub fn ended(&self, force: bool) -> Result<Option<(u64, Option<PathBuf>)>, Error> {
        let Self { end: Some(end), earlier: Some(earlier), state, .. } = self else { return Ok(None) };
        let mut jobs = earlier.ended.iter().enumerate();
        let Some((number, ended)) = jobs.find(|(_, ended)| ended.job == end.job) else { return Ok(None) };
        let known = earlier.count_in_state(state, || LocalSet::load(state).map(KeySet::Local))?;
        match (number < known, force) {
            (false, true) => return Ok(None),
            (false, false) => {
                return Err(Error::new(format!(
                    "cannot resume: this run is complete, but the state {state:?} was not saved by it or by a later run, so it \
                     may lack lines; restore the state that was, or write to other files (--force would erase these, and run \
                     again with this state)"
                )));
            }
            (true, true) => {
                return Err(Error::new(format!(
                    "nothing is left to do: this run with the state {state:?} is already complete, and --force would erase its \
                     lines, which this state keeps from being printed again; leave out --force, or start over with another \
                     state, and write to other files"
                )));
            }
            (true, false) => {}
        }
        if lengths(&self.written) == ended.lengths {
            return Ok(Some((ended.left_out, None)));
        }
        // A file that no longer exists may have been moved to its destination.
        let gone = self.written.iter().find(|path| !path.exists()).cloned();
        let differs = || {
            Error::new(format!(
                "cannot resume: this run is complete, but {} was changed since; restore it from a copy, or start over with \
                 another state, because {state:?} has its lines",
                self.contents.job.outputs.join(" and ")
            ))
        };
        gone.map(|gone| Some((ended.left_out, Some(gone)))).ok_or_else(differs)
    }

    /// Removes, before outputs are emptied, the entries of jobs that wrote them, and of jobs whose lines the state
    /// lacks. `set` is the set of the state.
    pub fn forget(&mut self, set: &KeySet) -> Result<(), Error> {
        let Some(earlier) = &mut self.earlier else { return Ok(()) };
        let lost = &earlier.ended[earlier.count_in_state(&self.state, || Ok(set))?..];
        self.contents.ended.retain(|ended| lost.iter().all(|lost| lost.job != ended.job));
        if earlier.ended.len() == self.contents.ended.len() {
            return Ok(());
        }
        earlier.ended.clone_from(&self.contents.ended);
        save(&self.path, earlier)
    }

    /// Returns the checkpoint of an earlier run of the job that fits the state; `None` if nothing is left to resume.
    pub fn find(&mut self, state: &KeySet) -> Result<Option<Checkpoint>, Error> {
        let refused = |reason: &str| {
            Error::new(format!(
                "cannot resume from {:?}: {reason}; to start another run with this state, leave out --resume and write to another file",
                self.path
            ))
        };
        let Some(earlier) = self.earlier.as_ref().filter(|earlier| !earlier.whole) else { return Ok(None) };
        let newest = earlier.newest_of(state);
        if let Some(difference) = earlier.job.difference(&self.contents.job) {
            // If a complete run was killed before it ended, outputs may still need renaming.
            let done = earlier.finished && newest == Some(0) && earlier.checkpoints[0].inputs.is_empty();
            return if done { Ok(None) } else { Err(refused(&difference)) };
        }
        let fitting = newest.ok_or_else(|| refused("the state was changed by another run"))?;
        let checkpoint = earlier.checkpoints[fitting].clone();
        if let Some(reason) = earlier.job.unreachable_reason(&checkpoint) {
            return Err(damaged(&self.path, &reason));
        }
        self.contents.checkpoints = vec![checkpoint.clone()];
        Ok(Some(checkpoint))
    }

    /// Returns the change if a run of this job was completed with other contents of its inputs.
    pub fn changed_input(&self) -> Option<String> {
        let (earlier, job) = (self.earlier.as_ref()?, &self.contents.job);
        if earlier.job.named_parts() == job.named_parts() {
            return earlier.job.difference(job);
        }
        let named = self.end.as_ref()?.named;
        earlier.ended.iter().find(|ended| named.is_some() && ended.named == named)?;
        let input = match &*job.inputs {
            [input] => format!("the input {}", input.name),
            _ => "an input".to_owned(),
        };
        Some(format!("{input} has changed since that run"))
    }

    /// True if an earlier run of the job was interrupted, before its end or before its last state was saved.
    pub fn is_interrupted(&self, state: &KeySet) -> bool {
        let is_cut_off = |earlier: &CheckpointContents| !earlier.finished || earlier.newest_of(state) == Some(1);
        let is_same = |earlier: &CheckpointContents| earlier.job.difference(&self.contents.job).is_none();
        self.earlier.as_ref().is_some_and(|earlier| is_cut_off(earlier) && is_same(earlier))
    }

    /// Adds a checkpoint, whose state must be saved next. Keeps it and the one before.
    pub fn add(&mut self, checkpoint: Checkpoint, finished: bool) -> Result<(), Error> {
        self.contents.finished = finished;
        let checkpoints = &mut self.contents.checkpoints;
        checkpoints.insert(0, checkpoint);
        checkpoints.truncate(2);
        save(&self.path, &self.contents)
    }

    /// Records that the run is complete, so nothing is left to resume. A file without any job is removed.
    pub fn end(&mut self, left_out: u64) -> Result<(), Error> {
        let CheckpointContents { checkpoints, whole, ended, .. } = &mut self.contents;
        ended.extend(self.end.take().map(|end| CompletedJob { left_out, lengths: lengths(&self.written), ..end }));
        if let Some(last) = ended.last_mut() {
            last.state = fingerprint(&self.state);
        }
        ended.drain(..ended.len().saturating_sub(MAX_COMPLETED_JOBS));
        if ended.is_empty() {
            return self.remove();
        }
        checkpoints.truncate(1);
        for Checkpoint { output_table, dupes_table, inputs, .. } in checkpoints {
            (*output_table, *dupes_table, *inputs) = (None, None, Vec::new());
        }
        *whole = true;
        save(&self.path, &self.contents)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove(&self.path).map_err(files::failed(&self.path))
    }
}

/// Returns a hash of a job.
fn hash_of(job: &impl Serialize) -> u64 {
    KeyHasher::new(0).bytes(&serde_json::to_vec(job).expect("all keys are strings"))
}

/// Returns a hash of the lengths of these files. A file that does not exist counts as a length of its own.
fn lengths(written: &[PathBuf]) -> u64 {
    let lengths = written.iter().map(|path| path.metadata().map_or(u64::MAX, |metadata| metadata.len()));
    KeyHasher::new(0).bytes(&lengths.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}

/// Returns the fingerprint of a state's file: a hash of its length, its header and the trailer of its last filter, with
/// the number of keys or bits and a checksum. `None` if it cannot be read.
fn fingerprint(state: &Path) -> Option<u64> {
    let mut file = File::open(state).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = length.to_le_bytes().to_vec();
    for start in [0, length.checked_sub(ENDS)?] {
        file.seek(SeekFrom::Start(start)).ok()?;
        let read = (&mut file).take(ENDS).read_to_end(&mut bytes).ok()?;
        (read as u64 == ENDS).then_some(())?;
    }
    Some(KeyHasher::new(0).bytes(&bytes))
}

fn save(path: &Path, contents: &CheckpointContents) -> Result<(), Error> {
    let contents = contents.to_bytes();
    let saved = bloomline::save_file(path, |mut file| file.write_all(&contents));
    saved.map_err(files::failed(path))
}
