//! A job that can be interrupted: its command, its inputs, and the files that it leaves.

use super::rows::ones;
use crate::common::{Bench, bloomline, refused, signal, tells, text};
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
    /// A state that is there before.
    pub before: Option<Vec<u8>>,
    /// The message of the error with which the job ends, if it does.
    pub failure: Option<&'static str>,
    /// The part of a unit that equal units share: one of these units is kept.
    pub key: fn(&[u8]) -> Vec<u8>,
    /// True if paragraphs of texts are kept and dropped, and not lines.
    pub by_paragraph: bool,
    /// Further options of a run that is to be interrupted.
    pub often: &'static [&'static str],
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

/// The files of a run that was not interrupted.
pub struct Whole {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The bytes of all files.
    written: u64,
    /// The length that one file at least has in each run.
    longest: u64,
}

impl Job {
    /// A job whose inputs stand at the end of its command.
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
            often: &[],
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

    /// The command with more arguments.
    pub fn command(&self, more: &[&str]) -> Command {
        self.loud(&[&["--quiet"], more].concat())
    }

    /// The command with its warnings.
    pub fn loud(&self, more: &[&str]) -> Command {
        let mut command = bloomline();
        command.current_dir(self.bench.0.path()).args(&self.arguments[..1]).args(more).args(&self.arguments[1..]);
        command
    }

    /// The command that begins the job, or continues one that was interrupted.
    pub fn next(&self) -> Command {
        let resumes = matches!(self.kind, Kind::Same | Kind::Spread) && self.path(CHECKPOINTS).exists();
        let mut command = self.command(&[if resumes { &["--resume"][..] } else { &[] }, self.often].concat());
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

    /// All files but those that such a name of the folder leads to.
    fn all_but(&self, skipped: fn(&OsStr) -> bool) -> BTreeMap<String, Metadata> {
        let entries = walkdir::WalkDir::new(self.bench.0.path()).into_iter();
        let entries = entries.filter_entry(move |entry| entry.depth() != 1 || !skipped(entry.file_name()));
        let entries = entries.filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file());
        let name =
            |path: &std::path::Path| path.strip_prefix(self.bench.0.path()).unwrap().to_str().unwrap().to_owned();
        files.filter_map(|entry| Some((name(entry.path()), entry.metadata().ok()?))).collect()
    }

    /// The files that the job writes: its inputs are among them if it replaces them.
    fn own(&self) -> BTreeMap<String, Metadata> {
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

    /// The files of a run that was not interrupted.
    pub fn whole(&self) -> Whole {
        self.clear();
        self.complete(false);
        let own = self.own();
        let files: BTreeMap<String, Vec<u8>> = own.keys().map(|name| (name.clone(), self.bench.read(name))).collect();
        let lengths = || files.iter().filter(|(name, _)| *name != CHECKPOINTS);
        let written = lengths().map(|(_, bytes)| bytes.len() as u64).sum();
        let longest = lengths().map(|(name, bytes)| self.least_length(name, bytes)).max().unwrap();
        Whole { files, written, longest }
    }

    /// The length that a file has at least. Threads that share the inputs decide which output keeps a unit that several inputs have,
    /// so an output is only sure to have the units that its input has alone.
    fn least_length(&self, name: &str, bytes: &[u8]) -> u64 {
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

    /// The contents of a file.
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
            lines.map(|line| self.figures(line)).collect()
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

    /// The members of a line of the manifest that do not depend on interruptions.
    fn figures(&self, line: &[u8]) -> Vec<u8> {
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

    /// Runs to the end, also where a run that is to be resumed came there.
    #[track_caller]
    pub fn complete(&self, resume: bool) {
        self.check_end(&self.command(if resume { &["--resume"] } else { &[] }).output().unwrap());
    }

    /// True if a run came to its end, which may be an error.
    fn has_ended(&self, output: &Output) -> bool {
        self.failure.map_or(output.status.success(), |failure| text(&output.stderr).contains(failure))
    }

    #[track_caller]
    pub fn check_end(&self, output: &Output) {
        // That a filter loses lines is said, however quiet the run is.
        let full = |line: &&str| line.contains("warning: the filter has ");
        let said = text(&output.stderr).split_inclusive('\n').filter(|line| !full(line)).collect::<String>();
        assert_eq!(output.status.code(), Some(if self.failure.is_some() { 2 } else { 0 }), "{}: {said}", self.name);
        match self.failure {
            Some(failure) => tells(&said, &[failure]),
            None => assert_eq!(said, "", "{}", self.name),
        }
    }

    /// Runs the job and interrupts it at a moment. Returns false if it came to its end before.
    #[track_caller]
    pub fn interrupt(&self, moment: Moment, whole: &Whole) -> bool {
        let (output, expected) = match moment {
            Moment::Write(fraction) => (self.limited(&self.next(), fraction, "", whole), (None, Some(SIGXFSZ))),
            Moment::Full(fraction) => (self.limited(&self.next(), fraction, "trap '' XFSZ;", whole), (Some(2), None)),
            Moment::Signal(name, number, fraction) => {
                (self.ended(name, self.progress(fraction, whole)), (Some(128 + number), None))
            }
            Moment::Kill(fraction) => (self.ended("KILL", self.progress(fraction, whole)), (None, Some(9))),
            Moment::Rename => {
                let before = self.named();
                (self.ended("KILL", || self.named() != before), (None, Some(9)))
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
                (self.ended("KILL", happened), (None, Some(9)))
            }
        };
        let said = text(&output.stderr);
        if self.has_ended(&output) {
            return false;
        }
        // A signal may come before the command listens to it.
        let early = matches!(moment, Moment::Signal(_, number, _) if output.status.signal() == Some(number));
        let ended = (output.status.code(), output.status.signal());
        assert!(ended == expected || early, "{}, {moment:?}: {} {said}", self.name, output.status);
        if matches!(moment, Moment::Full(_)) {
            assert!(said.contains("File too large") && said.lines().count() == 1, "{}: {said}", self.name);
        }
        true
    }

    /// Runs a command whose files may not become longer than so much of the longest one.
    fn limited(&self, command: &Command, fraction: f64, script: &str, whole: &Whole) -> Output {
        let blocks = 1.max((fraction * whole.longest as f64) as u64 / 512);
        let script = format!("ulimit -c 0; ulimit -f {blocks}; {script} exec \"$0\" \"$@\"");
        let mut shell = Command::new("env");
        shell.args(["--default-signal=XFSZ", "sh", "-c", &script]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(self.bench.0.path()).env("TMPDIR", self.bench.0.path());
        shell.output().unwrap()
    }

    /// Runs a command that is killed at the write with which a file becomes longer than half of the longest one.
    #[track_caller]
    pub fn kill_half_way(&self, command: &Command, whole: &Whole) {
        let output = self.limited(command, 0.5, "", whole);
        assert_eq!(output.status.signal(), Some(SIGXFSZ), "{}", text(&output.stderr));
    }

    /// Starts the command, and sends it a signal as soon as something happened.
    fn ended(&self, signal_name: &str, happened: impl FnMut() -> bool) -> Output {
        signalled_when(self.next().spawn().unwrap(), signal_name, happened)
    }

    /// The bytes of all files that the job wrote.
    fn written(&self) -> u64 {
        let old = |name: &String, file: &Metadata| {
            self.kind == Kind::InPlace
                && self.inputs.iter().any(|(input, bytes)| input == name && bytes.len() as u64 == file.len())
        };
        self.own().iter().filter(|(name, file)| !old(name, file)).map(|(_, file)| file.len()).sum()
    }

    /// True, once a run has written so much of what is left to write, or, at 0, anything.
    fn progress(&self, fraction: f64, whole: &Whole) -> impl FnMut() -> bool {
        let start = self.written();
        let target = start + (fraction * whole.written.saturating_sub(start) as f64) as u64;
        move || if fraction == 0.0 { self.written() != start } else { self.written() >= target }
    }

    /// The files that have their names.
    fn named(&self) -> BTreeMap<String, u64> {
        let files = self.own().into_iter().map(|(name, file)| (name, file.ino()));
        files.filter(|(name, _)| !is_passing(name)).collect()
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
        let ones = ones(&self.path(STATE));
        self.checkpoints().into_iter().find(|checkpoint| checkpoint["ones"] == ones).expect("one of the state")
    }

    /// The files of an interrupted run, apart from those that the next run removes.
    pub fn left(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.own().into_keys().filter(|name| !is_passing(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// The temporary files, the locks, and the begun outputs with which no state goes on.
    pub fn passing(&self) -> BTreeSet<String> {
        let goes_on = self.path(STATE).exists();
        let stays = |name: &String| goes_on && name.ends_with(".part") && !name.contains(".bloomline-");
        self.own().into_keys().filter(|name| is_passing(name) && !stays(name)).collect()
    }

    /// All files but temporary ones.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let temporary = |name: &String| [".tmp", ".lock"].iter().any(|end| name.ends_with(end));
        let names = self.all().into_keys().filter(|name| !temporary(name));
        names.map(|name| (name.clone(), self.bench.read(&name))).collect()
    }

    /// The message of a command that must be refused and touch no file.
    #[track_caller]
    pub fn refused(&self, command: &mut Command) -> String {
        let files = self.files();
        let message = refused(command.output().unwrap());
        assert!(self.files() == files, "{command:?} is refused, and changed a file");
        message
    }
}

/// True for the name of a file that is not yet whole, or locks another.
fn is_passing(name: &str) -> bool {
    [".tmp", ".lock", ".part"].iter().any(|end| name.ends_with(end))
}

/// Sends a signal to a process as soon as something happened, unless it ends before.
pub fn signalled_when(mut child: Child, name: &str, mut happened: impl FnMut() -> bool) -> Output {
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
