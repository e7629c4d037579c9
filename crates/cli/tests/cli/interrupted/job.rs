//! A job that can be interrupted: its command, its inputs, and the files that it leaves.

use super::rows::count_state_bits;
use crate::common::{Bench, assert_contains_all, bloomline, expect_refusal, signal, text};
use crate::corpus::decode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::Duration;

pub const STATE: &str = "state";
pub const CHECKPOINTS: &str = "state.resume";

const SIGXFSZ: i32 = 25;

/// The guarantee for a job that was interrupted and ran again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It is resumed, and its files are those of a run that was not interrupted.
    Same,
    /// It is resumed, and each line is in one of its outputs, once.
    Spread,
    /// It begins anew, and its files are those of a run that was not interrupted.
    Anew,
    /// It replaces its inputs, each of which has its old contents or its new ones.
    InPlace,
}

/// The parts of a file that are kept or dropped one by one, and true if the file is whole.
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
    /// Returns the key of a unit: one of the units with equal keys is kept.
    pub key: fn(&[u8]) -> Vec<u8>,
    /// True if paragraphs of texts are kept and dropped, and not lines.
    pub by_paragraph: bool,
    /// Further options of a run that will be interrupted, such as frequent checkpoints.
    pub checkpoint_options: &'static [&'static str],
}

/// A moment at which a job is interrupted. A fraction is one of the bytes that it writes, or of the longest file.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// The kernel kills the run at the write with which a file becomes longer.
    Write(f64),
    /// That write fails, as on a full disk.
    Full(f64),
    /// A kill, once so much is written: at 0 while the first input is read, or between two readings.
    Kill(f64),
    /// A kill right after a file got its name.
    Rename,
    /// A kill right after so many checkpoints were saved.
    Checkpoint(u32),
    /// A signal that asks to end, with its number.
    Signal(&'static str, i32, f64),
}

impl Moment {
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
    /// The bytes of all files.
    written: u64,
    /// The length that at least one file has in each run.
    longest: u64,
}

impl Job {
    /// A job whose inputs are the last arguments of its command.
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

    /// The command with additional arguments.
    pub fn command(&self, more: &[&str]) -> Command {
        self.command_with_warnings(&[&["--quiet"], more].concat())
    }

    /// The command with additional arguments, and without `--quiet`.
    pub fn command_with_warnings(&self, more: &[&str]) -> Command {
        let mut command = bloomline();
        command.current_dir(self.bench.0.path()).args(&self.arguments[..1]).args(more).args(&self.arguments[1..]);
        command
    }

    /// The command that starts the job, or resumes it after an interruption.
    pub fn next(&self) -> Command {
        let resumes = matches!(self.kind, Kind::Same | Kind::Spread) && self.path(CHECKPOINTS).exists();
        let mut command =
            self.command(&[if resumes { &["--resume"][..] } else { &[] }, self.checkpoint_options].concat());
        command.env("TMPDIR", self.bench.0.path());
        command
    }

    /// Removes all files but the inputs.
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

    /// All files, by their names.
    fn all(&self) -> BTreeMap<String, Metadata> {
        self.all_but(|_| false)
    }

    /// All files but those below the entries of the folder for which `skipped` is true.
    fn all_but(&self, skipped: fn(&OsStr) -> bool) -> BTreeMap<String, Metadata> {
        let entries = walkdir::WalkDir::new(self.bench.0.path()).into_iter();
        let entries = entries.filter_entry(move |entry| entry.depth() != 1 || !skipped(entry.file_name()));
        let entries = entries.filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file());
        let name =
            |path: &std::path::Path| path.strip_prefix(self.bench.0.path()).unwrap().to_str().unwrap().to_owned();
        files.filter_map(|entry| Some((name(entry.path()), entry.metadata().ok()?))).collect()
    }

    /// The files that the job writes, including its inputs if it replaces them.
    fn written_files(&self) -> BTreeMap<String, Metadata> {
        if self.kind == Kind::InPlace {
            return self.all();
        }
        // A folder of inputs is left out, for this is called again and again.
        let mut files = self.all_but(|name| name == "in");
        if self.inputs.iter().any(|(input, _)| !input.starts_with("in/")) {
            files.retain(|name, _| !self.inputs.iter().any(|(input, _)| input == name));
        }
        files
    }

    /// The files of an uninterrupted run.
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

    /// The minimum length of a file. If several inputs have a unit, the threads decide which output keeps it,
    /// so only the units that no other input has are certain to be in an output.
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

    /// The name of the input that an output of a folder belongs to.
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

    /// Returns the members of a manifest line that do not depend on interruptions.
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

    /// Runs the job to its end. With `resume`, an earlier run may already have reached it.
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
            Moment::Kill(fraction) => {
                (self.run_and_signal("KILL", self.progress(fraction, uninterrupted)), (None, Some(9)))
            }
            Moment::Rename => {
                let before = self.renamed_files();
                (self.run_and_signal("KILL", || self.renamed_files() != before), (None, Some(9)))
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
                (self.run_and_signal("KILL", happened), (None, Some(9)))
            }
        };
        let stderr = text(&output.stderr);
        if self.has_ended(&output) {
            return false;
        }
        // A signal may come before the command listens to it.
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
        let mut shell = Command::new("env");
        shell.args(["--default-signal=XFSZ", "sh", "-c", &script]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(self.bench.0.path()).env("TMPDIR", self.bench.0.path());
        shell.output().unwrap()
    }

    /// Runs a command that is killed at the write with which a file becomes longer than half of the longest one.
    #[track_caller]
    pub fn kill_half_way(&self, command: &Command, uninterrupted: &Uninterrupted) {
        let output = self.run_with_file_limit(command, 0.5, "", uninterrupted);
        assert_eq!(output.status.signal(), Some(SIGXFSZ), "{}", text(&output.stderr));
    }

    /// Starts the command, and sends it a signal as soon as `happened` returns true.
    fn run_and_signal(&self, signal_name: &str, happened: impl FnMut() -> bool) -> Output {
        signal_when(self.next().spawn().unwrap(), signal_name, happened)
    }

    /// The total size of the files that the job wrote.
    fn bytes_written(&self) -> u64 {
        let old = |name: &String, file: &Metadata| {
            self.kind == Kind::InPlace
                && self.inputs.iter().any(|(input, bytes)| input == name && bytes.len() as u64 == file.len())
        };
        self.written_files().iter().filter(|(name, file)| !old(name, file)).map(|(_, file)| file.len()).sum()
    }

    /// Returns a condition that is true once a run has written this fraction of the remaining bytes, or, at 0, anything.
    fn progress(&self, fraction: f64, uninterrupted: &Uninterrupted) -> impl FnMut() -> bool {
        let start = self.bytes_written();
        let target = start + (fraction * uninterrupted.written.saturating_sub(start) as f64) as u64;
        move || if fraction == 0.0 { self.bytes_written() != start } else { self.bytes_written() >= target }
    }

    /// The files that have their final names, with their inodes.
    fn renamed_files(&self) -> BTreeMap<String, u64> {
        let files = self.written_files().into_iter().map(|(name, file)| (name, file.ino()));
        files.filter(|(name, _)| !is_temporary(name)).collect()
    }

    /// The checkpoints, the newest first.
    pub fn checkpoints(&self) -> Vec<Value> {
        let Ok(text) = fs::read(self.path(CHECKPOINTS)) else { return Vec::new() };
        // The checksum follows.
        let line = text.split(|&byte| byte == b'\n').next().unwrap();
        let mut text: Value = serde_json::from_slice(line).unwrap();
        serde_json::from_value(text["checkpoints"].take()).unwrap_or_default()
    }

    /// The checkpoint of the state.
    pub fn checkpoint(&self) -> Value {
        let ones = count_state_bits(&self.path(STATE));
        self.checkpoints().into_iter().find(|checkpoint| checkpoint["ones"] == ones).expect("one of the state")
    }

    /// The files of an interrupted run, apart from those that the next run removes.
    pub fn remaining_files(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.written_files().into_keys().filter(|name| !is_temporary(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// The temporary files, the locks, and the partial outputs that no state can resume.
    pub fn temporary_files(&self) -> BTreeSet<String> {
        let is_resumable = self.path(STATE).exists();
        let stays = |name: &String| is_resumable && name.ends_with(".part") && !name.contains(".bloomline-");
        self.written_files().into_keys().filter(|name| is_temporary(name) && !stays(name)).collect()
    }

    /// All files but temporary ones.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let temporary = |name: &String| [".tmp", ".lock"].iter().any(|end| name.ends_with(end));
        let names = self.all().into_keys().filter(|name| !temporary(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// Returns the error message of a command that must be refused and change no file.
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

/// Sends a signal to a process as soon as `happened` returns true, unless it ends before.
pub fn signal_when(mut child: Child, name: &str, mut happened: impl FnMut() -> bool) -> Output {
    while child.try_wait().unwrap().is_none() && !happened() {
        thread::sleep(Duration::from_micros(200));
    }
    match name {
        // It may have ended.
        "KILL" => child.kill().unwrap(),
        name if child.try_wait().unwrap().is_none() => signal(&child, name),
        _ => {}
    }
    child.wait_with_output().unwrap()
}
