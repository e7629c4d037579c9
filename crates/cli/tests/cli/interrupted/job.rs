//! A job that can be interrupted: its command, its inputs, and the files that it writes.

use super::rows::count_state_bits;
#[cfg(not(unix))]
use crate::common::elsewhere::{ExitStatusExt, MetadataExt};
use crate::common::{
    Bench, TEMP_VARIABLE, assert_contains_all, bloomline, expect_refusal, signal, text, with_default_signals,
    with_slashes,
};
use crate::corpus::decode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
#[cfg(unix)]
use std::os::unix::{fs::MetadataExt, process::ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::Duration;

pub const STATE: &str = "state";
pub const CHECKPOINTS: &str = "state.resume";

const SIGXFSZ: i32 = 25;

/// The exit code and the signal of a process that `Child::kill` ended.
const KILLED: (Option<i32>, Option<i32>) = if cfg!(unix) { (None, Some(9)) } else { (Some(1), None) };

/// The guarantee for a job that is run again after an interruption.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The job is resumed, and its files equal those of an uninterrupted run.
    Same,
    /// The job is resumed, and each line is in one of its outputs, once.
    Spread,
    /// The job starts again, and its files equal those of an uninterrupted run.
    Anew,
    /// The job replaces its inputs. Each input has either its old or its new contents.
    InPlace,
}

/// The parts of a file that are kept or dropped separately, and true if the file is complete.
pub type Units = (Vec<Vec<u8>>, bool);

/// A command, and the folder in which it runs.
pub struct Job {
    pub name: String,
    pub bench: Bench,
    pub arguments: Vec<String>,
    pub inputs: Vec<(String, Vec<u8>)>,
    pub kind: Kind,
    /// A state that exists before the run.
    pub before: Option<Vec<u8>>,
    /// The message of the error that ends the job, if there is one.
    pub failure: Option<&'static str>,
    /// Returns the key of a unit. One of the units with equal keys is kept.
    pub key: fn(&[u8]) -> Vec<u8>,
    /// True if units are paragraphs of texts, not lines.
    pub by_paragraph: bool,
    /// Additional options of runs that are interrupted, such as frequent checkpoints.
    pub checkpoint_options: &'static [&'static str],
}

/// A moment at which a job is interrupted. Fractions refer to the written bytes or to the longest file.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// The kernel kills the run at the write that exceeds this fraction of the longest file.
    Write(f64),
    /// The write that exceeds this fraction of the longest file fails, as on a full disk.
    Full(f64),
    /// A kill after this fraction of the bytes is written. At 0, the run is in its first pass or between two passes.
    Kill(f64),
    /// A kill after a file received its final name.
    Rename,
    /// A kill after this number of checkpoints was saved.
    Checkpoint(u32),
    /// A signal that requests the end of the run, its number, and the fraction of the bytes written before.
    Signal(&'static str, i32, f64),
}

impl Moment {
    /// True if the system can interrupt a process so.
    pub fn is_possible(&self) -> bool {
        cfg!(unix) || matches!(self, Self::Kill(_) | Self::Rename | Self::Checkpoint(_))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Write(_) => "killed at a write",
            Self::Full(_) => "full disk",
            Self::Kill(_) => "killed",
            Self::Rename => "killed at a rename",
            Self::Checkpoint(_) => "killed at a checkpoint",
            Self::Signal(name, ..) => name,
        }
    }
}

/// The files of an uninterrupted run.
pub struct Uninterrupted {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The total size of the files in bytes.
    written: u64,
    /// A length that at least one file reaches in every run.
    longest: u64,
}

impl Job {
    /// Creates a job whose inputs are the last arguments of its command.
    pub fn new(name: &str, inputs: &[(&str, Vec<u8>)], line: &str, kind: Kind) -> Self {
        let bench = Bench::new(&[]);
        let inputs: Vec<(String, Vec<u8>)> =
            inputs.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        let names = inputs.iter().map(|(name, _)| name.clone());
        let arguments = line.split_whitespace().map(str::to_owned).chain(names).collect();
        let job = Self {
            name: name.to_owned(),
            bench,
            arguments,
            inputs,
            kind,
            before: None,
            failure: None,
            key: <[u8]>::to_vec,
            by_paragraph: false,
            checkpoint_options: &[],
        };
        job.write_inputs();
        job
    }

    fn write_inputs(&self) {
        for (name, bytes) in &self.inputs {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            self.bench.write(name, bytes);
        }
    }

    pub fn with_state(self, before: Vec<u8>) -> Self {
        Self { before: Some(before), ..self }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// Returns the command with additional arguments.
    pub fn command(&self, more: &[&str]) -> Command {
        self.command_with_warnings(&[&["--quiet"], more].concat())
    }

    /// Returns the command with additional arguments and without `--quiet`.
    pub fn command_with_warnings(&self, more: &[&str]) -> Command {
        let mut command = bloomline();
        command.current_dir(self.bench.0.path()).args(&self.arguments[..1]).args(more).args(&self.arguments[1..]);
        command
    }

    /// Returns the command that starts the job, or resumes it after an interruption.
    pub fn next(&self) -> Command {
        let resumes = matches!(self.kind, Kind::Same | Kind::Spread) && self.path(CHECKPOINTS).exists();
        let mut command =
            self.command(&[if resumes { &["--resume"][..] } else { &[] }, self.checkpoint_options].concat());
        command.env(TEMP_VARIABLE, self.bench.0.path());
        command
    }

    /// Removes all files except the inputs.
    pub fn clear(&self) {
        let is_input = |name: &String| self.inputs.iter().any(|(input, _)| input == name);
        let others = self.all().into_keys().filter(|name| !is_input(name));
        others.for_each(|name| fs::remove_file(self.path(&name)).unwrap());
        if self.kind == Kind::InPlace {
            self.write_inputs();
        }
        if let Some(state) = &self.before {
            self.bench.write(STATE, state);
        }
    }

    /// Returns all files by their names.
    fn all(&self) -> BTreeMap<String, Metadata> {
        self.all_but(|_| false)
    }

    /// Returns all files except those below entries of the folder for which `skipped` returns true.
    fn all_but(&self, skipped: fn(&OsStr) -> bool) -> BTreeMap<String, Metadata> {
        let entries = walkdir::WalkDir::new(self.bench.0.path()).into_iter();
        let entries = entries.filter_entry(move |entry| entry.depth() != 1 || !skipped(entry.file_name()));
        let entries = entries.filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file());
        let name =
            |path: &std::path::Path| with_slashes(path.strip_prefix(self.bench.0.path()).unwrap().to_str().unwrap());
        files.filter_map(|entry| Some((name(entry.path()), entry.metadata().ok()?))).collect()
    }

    /// Returns the files that the job writes, including its inputs if it replaces them.
    fn written_files(&self) -> BTreeMap<String, Metadata> {
        if self.kind == Kind::InPlace {
            return self.all();
        }
        // A folder of inputs is skipped, because this function is called frequently.
        let mut files = self.all_but(|name| name == "in");
        if self.inputs.iter().any(|(input, _)| !input.starts_with("in/")) {
            files.retain(|name, _| !self.inputs.iter().any(|(input, _)| input == name));
        }
        files
    }

    /// Runs the job without an interruption and returns its files.
    pub fn uninterrupted(&self) -> Uninterrupted {
        self.clear();
        self.complete(false);
        let own = self.written_files();
        let files: BTreeMap<String, Vec<u8>> = own.keys().map(|name| (name.clone(), self.bench.read(name))).collect();
        let lengths = || files.iter().filter(|(name, _)| *name != CHECKPOINTS);
        let written = lengths().map(|(_, bytes)| bytes.len() as u64).sum();
        let longest = lengths().map(|(name, bytes)| self.min_length(name, bytes)).max().unwrap();
        Uninterrupted { files, written, longest }
    }

    /// Returns the minimum length of a file. If several inputs contain a unit, the output that keeps it depends on the threads,
    /// so only units of a single input are certain to be in its output.
    fn min_length(&self, name: &str, bytes: &[u8]) -> u64 {
        if self.kind != Kind::Spread || !name.contains('/') {
            return bytes.len() as u64;
        }
        let keys = |name: &str, bytes: &[u8]| -> HashSet<Vec<u8>> {
            self.units(name, bytes).0.iter().map(|unit| (self.key)(unit)).collect()
        };
        let input = self.input_of(name);
        let others = self.inputs.iter().filter(|(other, _)| other != input);
        let others: HashSet<Vec<u8>> = others.flat_map(|(other, bytes)| keys(other, bytes)).collect();
        let kept = keys(name, bytes);
        let length = |keys: &mut dyn Iterator<Item = &Vec<u8>>| keys.map(|key| key.len() as u64).sum::<u64>();
        let (own, all) = (length(&mut kept.difference(&others)), length(&mut kept.iter()));
        bytes.len() as u64 * own / all.max(1)
    }

    /// Returns the name of the input of an output in a folder.
    pub fn input_of(&self, output: &str) -> &str {
        let stem = |name: &str| name.rsplit('/').next().unwrap().split('.').next().unwrap().to_owned();
        &self.inputs.iter().find(|(input, _)| stem(input) == stem(output)).unwrap().0
    }

    /// Splits the contents of a file into units.
    pub fn units(&self, name: &str, bytes: &[u8]) -> Units {
        #[cfg(feature = "parquet")]
        if name.trim_end_matches(".part").ends_with(".parquet") {
            return crate::parquet::units(bytes);
        }
        if name == STATE {
            return (vec![bytes.to_vec()], true);
        }
        let (contents, end) = decode(name, bytes);
        let lines = contents.split_inclusive(|&byte| byte == b'\n');
        let units = if name == "manifest" {
            lines.map(|line| self.stable_members(line)).collect()
        } else if self.by_paragraph {
            let texts = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
            let paragraphs = |line: Value| {
                let text = line["text"].as_str().unwrap().to_owned();
                text.split('\n')
                    .filter(|text| !text.is_empty())
                    .map(|text| text.as_bytes().to_vec())
                    .collect::<Vec<_>>()
            };
            texts.flat_map(paragraphs).collect()
        } else {
            lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line).to_vec()).collect()
        };
        (units, end.is_ok())
    }

    /// Returns those members of a manifest line that do not depend on interruptions.
    fn stable_members(&self, line: &[u8]) -> Vec<u8> {
        const SAME: [&str; 11] = [
            "input",
            "lines",
            "units",
            "text_bytes",
            "unique",
            "shortened",
            "duplicate_units",
            "removed_bytes",
            "groups",
            "groups_copied",
            "groups_written",
        ];
        let file: Value = serde_json::from_slice(line).unwrap();
        let names = if self.kind == Kind::Spread { &SAME[..4] } else { &SAME };
        names.iter().map(|name| format!("{name} {} ", file[name])).collect::<String>().into_bytes()
    }

    /// Runs the job to its end. With `resume`, an earlier run may already be complete.
    #[track_caller]
    pub fn complete(&self, resume: bool) {
        self.check_end(&self.command(if resume { &["--resume"] } else { &[] }).output().unwrap());
    }

    /// True if a run reached its end, which may be an error.
    fn has_ended(&self, output: &Output) -> bool {
        self.failure.map_or(output.status.success(), |failure| text(&output.stderr).contains(failure))
    }

    #[track_caller]
    pub fn check_end(&self, output: &Output) {
        // The warning that the filter loses lines is printed despite `--quiet`.
        let full = |line: &&str| line.contains("warning: the filter has ");
        let stderr = text(&output.stderr).split_inclusive('\n').filter(|line| !full(line)).collect::<String>();
        assert_eq!(output.status.code(), Some(if self.failure.is_some() { 2 } else { 0 }), "{}: {stderr}", self.name);
        match self.failure {
            Some(failure) => assert_contains_all(&stderr, &[failure]),
            None => assert_eq!(stderr, "", "{}", self.name),
        }
    }

    /// Runs the job and interrupts it at a moment. Returns false if it ended before that.
    #[track_caller]
    pub fn interrupt(&self, moment: Moment, uninterrupted: &Uninterrupted) -> bool {
        let (output, expected) = match moment {
            Moment::Write(fraction) => {
                (self.run_with_file_limit(&self.next(), fraction, "", uninterrupted), (None, Some(SIGXFSZ)))
            }
            Moment::Full(fraction) => {
                (self.run_with_file_limit(&self.next(), fraction, "trap '' XFSZ;", uninterrupted), (Some(2), None))
            }
            Moment::Signal(name, number, fraction) => {
                (self.run_and_signal(name, self.progress(fraction, uninterrupted)), (Some(128 + number), None))
            }
            Moment::Kill(fraction) => (self.run_and_signal("KILL", self.progress(fraction, uninterrupted)), KILLED),
            Moment::Rename => {
                let before = self.renamed_files();
                (self.run_and_signal("KILL", || self.renamed_files() != before), KILLED)
            }
            Moment::Checkpoint(count) => {
                let file = || fs::metadata(self.path(CHECKPOINTS)).map(|file| (file.ino(), file.mtime_nsec())).ok();
                let (mut last, mut seen) = (file(), 0);
                let happened = move || {
                    let next = file();
                    seen += u32::from(next != last);
                    last = next;
                    seen > count
                };
                (self.run_and_signal("KILL", happened), KILLED)
            }
        };
        let stderr = text(&output.stderr);
        if self.has_ended(&output) {
            return false;
        }
        // A signal may arrive before the command handles it.
        let early = matches!(moment, Moment::Signal(_, number, _) if output.status.signal() == Some(number));
        let ended = (output.status.code(), output.status.signal());
        assert!(ended == expected || early, "{}, {moment:?}: {} {stderr}", self.name, output.status);
        if matches!(moment, Moment::Full(_)) {
            assert!(stderr.contains("File too large") && stderr.lines().count() == 1, "{}: {stderr}", self.name);
        }
        true
    }

    /// Runs a command with file sizes limited to a fraction of the longest file.
    fn run_with_file_limit(
        &self,
        command: &Command,
        fraction: f64,
        script: &str,
        uninterrupted: &Uninterrupted,
    ) -> Output {
        let blocks = 1.max((fraction * uninterrupted.longest as f64) as u64 / 512);
        let script = format!("ulimit -c 0; ulimit -f {blocks}; {script} exec \"$0\" \"$@\"");
        let mut shell = with_default_signals("XFSZ");
        shell.args(["sh", "-c", &script]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(self.bench.0.path()).env(TEMP_VARIABLE, self.bench.0.path());
        shell.output().unwrap()
    }

    /// Runs a command that is killed at the write that exceeds half of the longest file, or where there is no such limit, at half of
    /// all bytes.
    #[track_caller]
    pub fn kill_half_way(&self, mut command: Command, uninterrupted: &Uninterrupted) {
        if cfg!(unix) {
            let output = self.run_with_file_limit(&command, 0.5, "", uninterrupted);
            assert_eq!(output.status.signal(), Some(SIGXFSZ), "{}", text(&output.stderr));
            return;
        }
        let output = signal_when(command.spawn().unwrap(), "KILL", self.progress(0.5, uninterrupted));
        assert_eq!((output.status.code(), output.status.signal()), KILLED, "{}", text(&output.stderr));
    }

    /// Starts the command, and sends it a signal as soon as `happened` returns true.
    fn run_and_signal(&self, signal_name: &str, happened: impl FnMut() -> bool) -> Output {
        signal_when(self.next().spawn().unwrap(), signal_name, happened)
    }

    /// Returns the total size of the files that the job wrote.
    fn bytes_written(&self) -> u64 {
        let old = |name: &String, file: &Metadata| {
            self.kind == Kind::InPlace
                && self.inputs.iter().any(|(input, bytes)| input == name && bytes.len() as u64 == file.len())
        };
        self.written_files().iter().filter(|(name, file)| !old(name, file)).map(|(_, file)| file.len()).sum()
    }

    /// Returns a condition that becomes true when a run has written this fraction of the remaining bytes, or at 0 any byte.
    fn progress(&self, fraction: f64, uninterrupted: &Uninterrupted) -> impl FnMut() -> bool {
        let start = self.bytes_written();
        let target = start + (fraction * uninterrupted.written.saturating_sub(start) as f64) as u64;
        move || if fraction == 0.0 { self.bytes_written() != start } else { self.bytes_written() >= target }
    }

    /// Returns the inodes of the files that have their final names.
    fn renamed_files(&self) -> BTreeMap<String, u64> {
        let files = self.written_files().into_iter().map(|(name, file)| (name, file.ino()));
        files.filter(|(name, _)| !is_temporary(name)).collect()
    }

    /// Returns the checkpoints, the newest first.
    pub fn checkpoints(&self) -> Vec<Value> {
        let Ok(text) = fs::read(self.path(CHECKPOINTS)) else { return Vec::new() };
        // The second line is the checksum.
        let line = text.split(|&byte| byte == b'\n').next().unwrap();
        let mut text: Value = serde_json::from_slice(line).unwrap();
        serde_json::from_value(text["checkpoints"].take()).unwrap_or_default()
    }

    /// Returns the checkpoint that belongs to the state.
    pub fn checkpoint(&self) -> Value {
        let ones = count_state_bits(&self.path(STATE));
        self.checkpoints().into_iter().find(|checkpoint| checkpoint["ones"] == ones).expect("one of the state")
    }

    /// Returns the files of an interrupted run, except those that the next run removes.
    pub fn remaining_files(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.written_files().into_keys().filter(|name| !is_temporary(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// Returns the temporary files, the locks, and the partial outputs that no state can resume.
    pub fn temporary_files(&self) -> BTreeSet<String> {
        let is_resumable = self.path(STATE).exists();
        // A run in place continues with its decisions.
        let is_decided = |name: &String| name.contains(".bloomline-.");
        let stays = |name: &String| {
            is_decided(name) || is_resumable && name.ends_with(".part") && !name.contains(".bloomline-")
        };
        self.written_files().into_keys().filter(|name| is_temporary(name) && !stays(name)).collect()
    }

    /// Returns all files except temporary ones.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let temporary = |name: &String| [".tmp", ".lock"].iter().any(|end| name.ends_with(end));
        let names = self.all().into_keys().filter(|name| !temporary(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// Returns the error message of a command that must be refused without changing a file.
    #[track_caller]
    pub fn expect_refusal(&self, command: &mut Command) -> String {
        let files = self.files();
        let message = expect_refusal(command.output().unwrap());
        assert!(self.files() == files, "{command:?} is refused, and changed a file");
        message
    }
}

/// True for the name of a partial file or a lock.
fn is_temporary(name: &str) -> bool {
    [".tmp", ".lock", ".part"].iter().any(|end| name.ends_with(end))
}

/// Sends a signal to a process as soon as `happened` returns true, unless the process ends before.
pub fn signal_when(mut child: Child, name: &str, mut happened: impl FnMut() -> bool) -> Output {
    while child.try_wait().unwrap().is_none() && !happened() {
        thread::sleep(Duration::from_micros(200));
    }
    match name {
        // The process may have ended.
        "KILL" => child.kill().unwrap(),
        name if child.try_wait().unwrap().is_none() => signal(&child, name),
        _ => {}
    }
    child.wait_with_output().unwrap()
}
