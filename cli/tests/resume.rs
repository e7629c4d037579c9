//! `bloomline dedup --state` that is killed at any moment: no line is lost, and a resumed run ends as if nothing had
//! happened.
#![cfg(unix)]

use bloomline::{BloomFilter, FileErrorKind, ScalableBloomFilter};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIGKILL: i32 = 9;

/// Numbers that are the same in every run of the tests: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A moment in a run that takes so long, or shortly after it.
    fn moment(&mut self, duration: Duration) -> Duration {
        duration.mul_f64(1.1 * self.below(1 << 32) as f64 / (1u64 << 32) as f64)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// So many lines without their ends, of which about half repeat one before.
fn lines(seed: u64, count: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut line = |i| {
        let number = if random.below(2) == 0 { i } else { random.below(i + 1) };
        text(seed << 32 | number)
    };
    (0..count).map(&mut line).collect()
}

fn text(number: u64) -> String {
    format!("{number}\thttps://example.org/{:x}/{}", mix(number), "path/".repeat((number % 17) as usize))
}

fn ended(lines: &[String], end: u8) -> Vec<u8> {
    lines.iter().flat_map(|line| line.bytes().chain([end])).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// In several members or frames, the first of which is not long.
fn in_parts(bytes: &[u8], compress: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (first, rest) = bytes.split_at(bytes.len() / 5);
    [compress(first), compress(b""), compress(rest)].concat()
}

/// The contents of a file, decompressed as its name tells, up to where that fails.
fn contents(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut contents = Vec::new();
    let _ = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut contents),
        Some("zst") => zstd::Decoder::new(&bytes[..]).unwrap().read_to_end(&mut contents),
        _ => return bytes,
    };
    contents
}

/// A command, and the folder in which it runs.
struct Job {
    name: &'static str,
    folder: TempDir,
    arguments: Vec<&'static str>,
    /// The files that it writes but the state.
    outputs: Vec<&'static str>,
    /// A state that is there before.
    before: Option<Vec<u8>>,
    /// What it ends with.
    code: i32,
}

const STATE: &str = "state";
const CHECKPOINTS: &str = "state.resume";

impl Job {
    fn new(name: &'static str, inputs: &[(&'static str, Vec<u8>)], options: &str, output: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        inputs.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        let options: &'static str = options.to_owned().leak();
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.extend(["-o", output]);
        arguments.extend(inputs.iter().map(|(name, _)| name));
        Self { name, folder, arguments, outputs: vec![output], before: None, code: 0 }
    }

    fn dupes(mut self, name: &'static str) -> Self {
        self.arguments.extend(["--dupes", name]);
        self.outputs.push(name);
        self
    }

    /// After another job has left a state with these lines.
    fn after(mut self, options: &str, lines: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("input"), lines).unwrap();
        let mut command = bloomline(folder.path());
        command.args(["dedup", "--state", STATE, "-o", "output", "input"]).args(options.split(' '));
        succeed(&mut command);
        self.before = Some(fs::read(folder.path().join(STATE)).unwrap());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command with more arguments.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = bloomline(self.folder.path());
        command.args(["dedup", "--quiet", "--state", STATE]).args(&self.arguments).args(more);
        command
    }

    /// The command as one that meets many checkpoints, each after other lines than those of another run.
    fn busy(&self, random: &mut Random, resume: bool) -> Command {
        let mut command = self.command(if resume { &["--resume"] } else { &[] });
        command.args(["--checkpoint", random.one_of(&["5ms", "8ms", "12ms", "20ms", "50ms"])]);
        command.args(["--chunk-size", &random.one_of(&[400, 700, 1100]).to_string()]);
        command.args(["-j", random.one_of(&["1", "2", "3"])]);
        command
    }

    /// As before the first run.
    fn clear(&self) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !self.arguments.contains(&name) || self.outputs.contains(&name) {
                fs::remove_file(path).unwrap();
            }
        }
        if let Some(state) = &self.before {
            fs::write(self.path(STATE), state).unwrap();
        }
    }

    /// What a run leaves: the outputs, decompressed, and the state.
    fn results(&self) -> Vec<Vec<u8>> {
        let outputs = self.outputs.iter().map(|name| contents(&self.path(name)));
        outputs.chain([fs::read(self.path(STATE)).unwrap()]).collect()
    }

    #[track_caller]
    fn check_results(&self, expected: &[Vec<u8>]) {
        for ((name, bytes), expected) in self.outputs.iter().chain([&STATE]).zip(self.results()).zip(expected) {
            let same = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let lengths = (bytes.len(), expected.len());
            assert!(bytes == *expected, "{}: {name} differs at {same}, lengths {lengths:?}", self.name);
        }
    }

    /// Runs to the end.
    #[track_caller]
    fn complete(&self, resume: bool) {
        let output = self.command(if resume { &["--resume"] } else { &[] }).output().unwrap();
        self.check_end(&output);
    }

    #[track_caller]
    fn check_end(&self, output: &Output) {
        assert_eq!(output.status.code(), Some(self.code), "{}: {}", self.name, text_of(&output.stderr));
    }

    /// The results of a run that is not interrupted.
    fn expected(&self) -> Vec<Vec<u8>> {
        self.clear();
        self.complete(false);
        let results = self.results();
        assert!(results.iter().all(|bytes| !bytes.is_empty()), "{}: too easy", self.name);
        results
    }

    /// About the time that a busy run takes.
    fn duration(&self) -> Duration {
        median_time(|| {
            self.clear();
            self.check_end(&self.command(&["--chunk-size", "700"]).output().unwrap());
        })
    }

    /// Asserts that the state can be loaded and that one of the checkpoints is that of the state.
    #[track_caller]
    fn check_state(&self) -> Kill {
        let (checkpoints, state) = (self.checkpoints(), self.path(STATE));
        if checkpoints.is_empty() || self.before.is_none() && !state.exists() {
            return Kill { place: None, torn: false };
        }
        let fitting = self.checkpoint();
        let place = (fitting["input"].as_u64().unwrap(), fitting["offset"].as_u64().unwrap());
        Kill { place: Some(place), torn: checkpoints[0]["ones"] != fitting["ones"] }
    }

    /// The checkpoints, the newest first.
    fn checkpoints(&self) -> Vec<Value> {
        let Ok(text) = fs::read(self.path(CHECKPOINTS)) else { return Vec::new() };
        let mut text: Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(text["checkpoints"].take()).unwrap()
    }

    /// The checkpoint of the state.
    fn checkpoint(&self) -> Value {
        let ones = ones(&self.path(STATE));
        self.checkpoints().into_iter().find(|checkpoint| checkpoint["ones"] == ones).expect("one of the state")
    }

    /// Starts it and kills it in the middle, after a checkpoint.
    fn crash(&self) {
        for _ in 0..50 {
            self.clear();
            let mut child = self.command(&["--checkpoint", "8ms", "--chunk-size", "300"]).spawn().unwrap();
            // The state of the second checkpoint is saved before the third one is added.
            let early = |checkpoints: Vec<Value>| checkpoints.last().is_none_or(|last| last["output"] == 0);
            while child.try_wait().unwrap().is_none() && early(self.checkpoints()) {
                thread::sleep(Duration::from_millis(1));
            }
            if kill(child, Duration::ZERO).status.signal() == Some(SIGKILL) {
                assert!(self.check_state().place > Some((0, 0)), "{}", self.name);
                return;
            }
        }
        panic!("{}: always too late", self.name);
    }

    /// All files but temporary ones.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let lasting = |path: &PathBuf| !path.file_name().unwrap().to_str().unwrap().ends_with(".tmp");
        paths.filter(lasting).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// The message of a command that must be refused and touch no file.
    #[track_caller]
    fn refused(&self, command: &mut Command) -> String {
        let files = self.files();
        let output = command.output().unwrap();
        let message = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {message}");
        assert_eq!(message.matches('\n').count(), 1, "{message:?}");
        assert!(message.starts_with("bloomline: "), "{message:?}");
        assert_eq!(text_of(&output.stdout), "");
        assert!(self.files() == files, "{command:?} is refused, and changed a file");
        message
    }
}

/// What a killed run left: the place in the inputs that belongs to the state, and whether a newer one waits for its
/// state.
struct Kill {
    place: Option<(u64, u64)>,
    torn: bool,
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn bloomline(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bloomline"));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output.stderr));
}

/// The median time of three runs, with something added for checkpoints.
fn median_time(run: impl Fn()) -> Duration {
    let mut times = [0, 1, 2].map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.sort();
    times[1].mul_f64(1.3)
}

/// Kills a process after a while, if it is still there.
fn kill(mut child: Child, after: Duration) -> Output {
    thread::sleep(after);
    child.kill().unwrap();
    child.wait_with_output().unwrap()
}

/// The filters of a state, which must be sound.
#[track_caller]
fn stages(state: &Path) -> Vec<BloomFilter> {
    match BloomFilter::load(state) {
        Ok(filter) => vec![filter],
        Err(error) if matches!(error.kind(), FileErrorKind::Series) => {
            ScalableBloomFilter::load(state).unwrap().stages().to_vec()
        }
        Err(error) => panic!("the state cannot be loaded: {error}"),
    }
}

/// The number of bits that are set.
#[track_caller]
fn ones(state: &Path) -> u64 {
    let ones = |filter: &BloomFilter| (filter.fill_ratio() * filter.memory_bytes() as f64 * 8.0).round() as u64;
    stages(state).iter().map(ones).sum()
}

/// How kills went.
#[derive(Debug, Default)]
struct Kills {
    tries: u32,
    all: u32,
    /// In a run that had made a checkpoint after its first line and was not yet at its end.
    after_checkpoint: u32,
    /// Between the saving of a checkpoint and that of its state.
    torn: u32,
}

impl Kills {
    /// Else the kills missed what they are to hit, and show nothing.
    fn check(&self, name: &str) {
        eprintln!("{name}: {self:?}");
        assert!(2 * self.all >= self.tries, "{self:?}");
        assert!(5 * self.after_checkpoint >= self.all, "{self:?}");
    }
}

/// A filter that is saved in no time; what is estimated of compressed inputs is more than they have.
const SMALL: &str = "-p 1e-9 -n 5000 --when-full grow";

fn plain() -> Job {
    Job::new("plain", &[("in.txt", ended(&lines(1, 60_000), b'\n'))], "-n 60000 -p 1e-9", "out.txt")
}

fn several() -> Job {
    let contents = |seed, lines_of| ended(&lines(seed, lines_of), b'\n');
    let mut unended = contents(2, 20_000);
    unended.pop();
    let inputs =
        [("a.txt", unended), ("empty.txt", vec![]), ("b.txt", contents(3, 10_000)), ("c.txt", contents(2, 30_000))];
    // Many stages, for the first is small.
    Job::new("several files, growing, an older state", &inputs, "-p 1e-9", "out.txt")
        .dupes("dupes.txt")
        .after("-n 500 --when-full grow -p 1e-9", &contents(3, 1000))
}

fn gzipped() -> Job {
    let input = in_parts(&ended(&lines(4, 50_000), b'\n'), gzip);
    Job::new("gzip", &[("in", input)], SMALL, "out.gz")
}

fn zstandards() -> Job {
    let inputs = [
        ("a", in_parts(&ended(&lines(5, 30_000), b'\n'), zstandard)),
        ("b", ended(&lines(5, 10_000), b'\n')),
        ("c", in_parts(&ended(&lines(6, 30_000), b'\n'), zstandard)),
    ];
    Job::new("zstd", &inputs, SMALL, "out.zst").dupes("dupes.gz")
}

fn json() -> Job {
    let record = |(i, line): (usize, String)| format!("{{\"id\": {i},\n \"text\": \"{}\"}}", line.replace('\t', "\\t"));
    let records: Vec<String> = lines(7, 40_000).into_iter().enumerate().map(record).collect();
    Job::new("JSON, -z", &[("in.json", ended(&records, 0))], "-z --json-pointer /text -p 1e-9 --annotate", "out.json")
}

/// So high a rate that each line that is taken for another one counts on all that were before.
fn lossy_growing() -> Job {
    let inputs =
        [("a.txt", ended(&lines(8, 30_000), b'\n')), ("b.gz", in_parts(&ended(&lines(9, 30_000), b'\n'), gzip))];
    Job::new("lossy, growing", &inputs, "-n 500 --when-full grow -p 0.2", "out.txt").dupes("dupes.txt")
}

fn lossy_sized() -> Job {
    Job::new("lossy, overfull", &[("in.txt", ended(&lines(10, 60_000), b'\n'))], "-m 16K --invert", "out.txt")
}

fn faulty() -> Job {
    let faulty = |(i, line): (usize, String)| if i % 7 == 0 { line.replace('\t', " ") } else { line };
    let lines: Vec<String> = lines(11, 50_000).into_iter().enumerate().map(faulty).collect();
    let options = "--field 2 --trim --ignore-case --on-error keep -p 1e-9";
    Job::new("lines without a key", &[("in.txt", ended(&lines, b'\n'))], options, "out.txt").dupes("dupes.txt")
}

/// Checkpoints at which neither the state nor the output differs from the one before.
fn repeats() -> Job {
    let mut random = Random(12);
    let lines: Vec<String> = (0..60_000).map(|i| text(if i < 3000 { i } else { random.below(3000) })).collect();
    Job::new("repeats only", &[("in.txt", ended(&lines, b'\n'))], "-p 1e-9", "out.txt").dupes("dupes.txt")
}

fn fails() -> Job {
    let mut lines = lines(13, 60_000);
    lines[50_000] = "no tab".to_owned();
    let job = Job::new("an error near the end", &[("in.txt", ended(&lines, b'\n'))], "--field 2 -p 1e-9", "out.txt");
    Job { code: 2, ..job.dupes("dupes.txt") }
}

const JOBS: [fn() -> Job; 10] =
    [plain, several, gzipped, zstandards, json, lossy_growing, lossy_sized, faulty, repeats, fails];

/// Kills and resumes each job again and again.
fn resume_after_kills(tries: u32) {
    let mut random = Random(0x000B_1004);
    let mut kills = Kills { tries, ..Kills::default() };
    for job in JOBS {
        let job = job();
        let (expected, duration) = (job.expected(), job.duration());
        for this in 0..tries / JOBS.len() as u32 {
            job.clear();
            // Where nothing is there, it makes no difference.
            let mut resume = this % 2 == 1 && job.before.is_none();
            let mut place = None;
            for _ in 0..6 {
                let child = job.busy(&mut random, resume).spawn().unwrap();
                let output = kill(child, random.moment(duration));
                if output.status.signal() != Some(SIGKILL) {
                    job.check_end(&output);
                    // Without, another run would begin.
                    resume = true;
                    break;
                }
                kills.all += 1;
                let left = job.check_state();
                assert!(left.place >= place, "{}: from {place:?} back to {:?}", job.name, left.place);
                kills.after_checkpoint += u32::from(left.place > place.max(Some((0, 0))));
                kills.torn += u32::from(left.torn);
                place = left.place;
                // One that was killed before its first checkpoint left the older state and nothing of its own.
                resume = left.place.is_some() || job.before.is_none();
            }
            job.complete(resume);
            job.check_results(&expected);
            let files = job.files();
            job.complete(true);
            for (path, bytes) in files {
                let same = path.ends_with(CHECKPOINTS) || fs::read(&path).unwrap() == bytes;
                assert!(same, "{}: resumed after the end, it changed {path:?}", job.name);
            }
        }
    }
    kills.check("resumed after kills");
    assert!(kills.torn >= tries / 100, "{kills:?}");
}

/// Sends a signal at any moment, lets the command end, and resumes.
fn resume_after_signals(tries: u32) {
    let mut random = Random(0x000B_1005);
    let (mut ended_by_signal, mut early) = (0, 0);
    let jobs = [plain as fn() -> Job, several, zstandards, repeats];
    for job in jobs {
        let job = job();
        let (expected, duration) = (job.expected(), job.duration());
        for this in 0..tries / jobs.len() as u32 {
            let (signal, number) = if this % 2 == 0 { ("-TERM", 15) } else { ("-INT", 2) };
            job.clear();
            let mut resume = false;
            for _ in 0..3 {
                let child = job.busy(&mut random, resume).spawn().unwrap();
                let pid = child.id().to_string();
                thread::sleep(random.moment(duration));
                // It fails if the command has ended.
                Command::new("kill").args([signal, &pid]).stderr(Stdio::null()).status().unwrap();
                let output = child.wait_with_output().unwrap();
                if output.status.success() {
                    resume = true;
                    break;
                }
                if output.status.signal() == Some(number) {
                    // Before it listened, and so before it wrote.
                    early += 1;
                    resume &= job.path(CHECKPOINTS).exists();
                    continue;
                }
                assert_eq!(output.status.code(), Some(128 + number), "{}: {}", job.name, text_of(&output.stderr));
                ended_by_signal += 1;
                resume = true;
                assert!(!job.check_state().torn, "{}: the state is not that of the last checkpoint", job.name);
                for (so_far, whole) in job.outputs.iter().map(|name| contents(&job.path(name))).zip(&expected) {
                    assert!(whole.starts_with(&so_far), "{}: {} bytes", job.name, so_far.len());
                }
            }
            job.complete(resume);
            job.check_results(&expected);
        }
    }
    eprintln!(
        "resumed after signals: {tries} tries, {ended_by_signal} ended by a signal, {early} before they listened"
    );
    assert!(2 * ended_by_signal >= tries, "{ended_by_signal}");
}

/// Where the lines go that must not be lost.
#[derive(Clone, Copy, Debug)]
enum To {
    Pipe,
    /// A new file for each run.
    File,
    /// The same, compressed.
    Gzip,
}

/// Kills a command and runs it again, without `--resume`, and puts together what comes out.
fn run_again_after_kills(tries: u32) {
    let mut random = Random(0x000B_1006);
    let mut kills = Kills { tries, ..Kills::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let input = ended(&lines(20, 60_000), b'\n');
    let distinct: HashSet<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    fs::write(path("in.txt"), &input).unwrap();

    // All that a run puts out, and whether it was killed.
    let run = |to: To, from_stdin: bool, file: &str, more: &[&str], after: Option<Duration>| {
        let mut command = bloomline(folder.path());
        command.args(["dedup", "-q", "-p", "1e-9", "--state", STATE]).args(more);
        if from_stdin {
            command.stdin(File::open(path("in.txt")).unwrap());
        } else {
            command.arg("in.txt");
        }
        if !matches!(to, To::Pipe) {
            command.args(["-o", file]);
        }
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let mut put_out = Vec::new();
        let output = thread::scope(|scope| {
            scope.spawn(|| pipe.read_to_end(&mut put_out).unwrap());
            match after {
                Some(after) => kill(child, after),
                None => child.wait_with_output().unwrap(),
            }
        });
        let killed = output.status.signal() == Some(SIGKILL);
        assert!(killed || output.status.success(), "{}", text_of(&output.stderr));
        if !matches!(to, To::Pipe) && path(file).exists() {
            put_out = contents(&path(file));
        }
        (put_out, killed)
    };

    for to in [To::Pipe, To::File, To::Gzip] {
        let duration = median_time(|| {
            let _ = fs::remove_file(path(STATE));
            run(to, false, "timed.gz", &["--chunk-size", "700"], None);
        });
        for this in 0..tries / 3 {
            let _ = fs::remove_file(path(STATE));
            let from_stdin = this % 2 == 1;
            let mut all = Vec::new();
            for part in 0..5 {
                let file = format!("part{part}{}", if matches!(to, To::Gzip) { ".gz" } else { "" });
                let _ = fs::remove_file(path(&file));
                let before = path(STATE).exists().then(|| ones(&path(STATE)));
                let checkpoint = random.one_of(&["5ms", "8ms", "12ms", "20ms"]);
                let more = ["--chunk-size", "700", "-j", random.one_of(&["1", "2"]), "--checkpoint", checkpoint];
                let (put_out, killed) = run(to, from_stdin, &file, &more, Some(random.moment(duration)));
                all.extend(put_out);
                if !killed {
                    break;
                }
                kills.all += 1;
                let after = path(STATE).exists().then(|| ones(&path(STATE)));
                assert!(after >= before, "the state went back from {before:?} to {after:?}");
                kills.after_checkpoint += u32::from(after.unwrap_or(0) > before.unwrap_or(0));
            }
            let last = if matches!(to, To::Gzip) { "last.gz" } else { "last" };
            all.extend(run(to, from_stdin, last, &[], None).0);
            let put_out: HashSet<&[u8]> = all.split_inclusive(|&byte| byte == b'\n').collect();
            let lost = distinct.difference(&put_out).count();
            assert_eq!(lost, 0, "{to:?}, try {this}, of {} lines", distinct.len());
        }
    }
    kills.check("run again after kills");
}

#[test]
fn a_resumed_run_ends_as_if_it_had_not_been_killed() {
    resume_after_kills(20);
}

#[test]
#[ignore = "takes a minute"]
fn a_resumed_run_ends_as_if_it_had_not_been_killed_200_times() {
    resume_after_kills(200);
}

#[test]
fn a_resumed_run_ends_as_if_no_signal_had_come() {
    resume_after_signals(20);
}

#[test]
#[ignore = "takes a minute"]
fn a_resumed_run_ends_as_if_no_signal_had_come_200_times() {
    resume_after_signals(200);
}

#[test]
fn a_run_after_a_killed_one_loses_no_line() {
    run_again_after_kills(21);
}

#[test]
#[ignore = "takes a minute"]
fn a_run_after_a_killed_one_loses_no_line_201_times() {
    run_again_after_kills(201);
}

/// A job that was killed in the middle, and the results that it would have had.
fn crashed(job: Job) -> (Job, Vec<Vec<u8>>) {
    let expected = job.expected();
    job.crash();
    (job, expected)
}

#[test]
fn with_nothing_there_resuming_is_starting() {
    let job = several();
    let job = Job { before: None, ..job };
    let expected = job.expected();
    job.clear();
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn other_inputs_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let input = fs::read(job.path("in.txt")).unwrap();
    let time = fs::metadata(job.path("in.txt")).unwrap().modified().unwrap();
    for changed in [&input[..input.len() - 1], &[&input[..], b"more\n"].concat()] {
        fs::write(job.path("in.txt"), changed).unwrap();
        let message = job.refused(&mut job.command(&["--resume"]));
        assert!(message.contains("cannot resume") && message.contains("in.txt"), "{message}");
    }
    fs::write(job.path("in.txt"), &input).unwrap();
    File::options().write(true).open(job.path("in.txt")).unwrap().set_modified(time).unwrap();
    fs::write(job.path("more"), "more\n").unwrap();
    fs::write(job.path("renamed"), &input).unwrap();
    let rename = |argument| if argument == "in.txt" { "renamed" } else { argument };
    let mut renamed = bloomline_like(&job.command(&["--resume"]), rename);
    for command in [&mut job.command(&["--resume", "more"]), &mut renamed] {
        let message = job.refused(command);
        assert!(message.contains("cannot resume"), "{message}");
    }
    // None of that spoiled anything.
    job.complete(true);
    job.check_results(&expected);
}

/// The same command with other arguments.
fn bloomline_like<'a>(command: &'a Command, change: impl Fn(&'a str) -> &'a str) -> Command {
    let mut other = bloomline(command.get_current_dir().unwrap());
    other.args(command.get_args().map(|argument| change(argument.to_str().unwrap())));
    other
}

#[test]
fn the_order_of_the_inputs_counts() {
    let (job, expected) = crashed(several());
    let mut swapped = bloomline_like(&job.command(&["--resume"]), |argument| match argument {
        "a.txt" => "c.txt",
        "c.txt" => "a.txt",
        other => other,
    });
    assert!(job.refused(&mut swapped).contains("cannot resume"));
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn other_options_are_not_resumed() {
    let (job, expected) = crashed(plain());
    for more in [
        &["--invert"][..],
        &["--annotate"],
        &["--trim"],
        &["--ignore-case"],
        &["--field", "1"],
        &["--field", "1", "--delimiter", "/"],
        &["--json-pointer", "/a"],
        &["--normalize", "url"],
        &["-z"],
        &["--dupes", "dupes.txt"],
    ] {
        let message = job.refused(&mut job.command(&[&["--resume"], more].concat()));
        assert!(message.contains("cannot resume from \"state.resume\""), "{more:?}: {message}");
    }
    let seed = job.refused(&mut job.command(&["--resume", "--seed", "1"]));
    assert!(seed.contains("seed is 0, and not 1"), "{seed}");
    let swap = |from: &'static str, to: &'static str| {
        let command = job.command(&["--resume"]);
        job.refused(&mut bloomline_like(&command, |argument| if argument == from { to } else { argument }))
    };
    assert!(swap("1e-9", "1e-3").contains("bytes"));
    assert!(swap("60000", "70000").contains("bytes"));
    assert!(swap("out.txt", "other.txt").contains("out.txt"));
    assert!(!job.path("other.txt").exists());
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn a_state_that_another_run_changed_is_not_resumed() {
    let changes = [
        ("changed by another run", &["build", "--append", "-o", STATE, "other"][..]),
        // One that could be resumed itself, and one that could not.
        ("another job", &["dedup", "--state", STATE, "-o", "out2", "other"]),
        ("another job", &["dedup", "--state", STATE, "other"]),
    ];
    for (reason, arguments) in changes {
        let (job, _) = crashed(plain());
        fs::write(job.path("other"), "not in the input\n").unwrap();
        succeed(bloomline(job.folder.path()).args(arguments));
        let message = job.refused(&mut job.command(&["--resume"]));
        assert!(message.contains("cannot resume") && message.contains(reason), "{message}");
    }
}

/// Keys that the state has already set no bit: it is the same state.
#[test]
fn a_state_to_which_nothing_new_was_added_is_resumed() {
    let (job, expected) = crashed(plain());
    let known = contents(&job.path("out.txt"))[..job.checkpoint()["output"].as_u64().unwrap() as usize].to_vec();
    fs::write(job.path("known"), known).unwrap();
    succeed(bloomline(job.folder.path()).args(["build", "--append", "-o", STATE, "known"]));
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn an_older_state_than_the_last_two_is_not_resumed() {
    let (job, expected) = crashed(plain());
    let old = fs::read(job.path(STATE)).unwrap();
    job.complete(true);
    job.complete(true);
    let newest = fs::read(job.path(STATE)).unwrap();
    fs::write(job.path(STATE), old).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    assert!(message.contains("the state was changed"), "{message}");
    fs::write(job.path(STATE), newest).unwrap();
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn an_output_shorter_than_at_the_checkpoint_is_not_gone_on_with() {
    let (job, expected) = crashed(several());
    for (name, key) in [("out.txt", "output"), ("dupes.txt", "dupes")] {
        let whole = fs::read(job.path(name)).unwrap();
        let length = job.checkpoint()[key].as_u64().unwrap() as usize;
        assert!(length > 0);
        for shorter in [0, length - 1] {
            fs::write(job.path(name), &whole[..shorter]).unwrap();
            let output = job.command(&["--resume"]).output().unwrap();
            let message = text_of(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{message}");
            let says = |text: &dyn ToString| message.contains(&text.to_string());
            assert!(says(&name) && says(&length) && says(&shorter) && says(&"cannot resume"), "{message}");
        }
        // What came after the checkpoint is not needed.
        fs::write(job.path(name), &whole[..length]).unwrap();
    }
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn checkpoints_that_are_missing_or_damaged_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let text = fs::read(job.path(CHECKPOINTS)).unwrap();
    for damaged in [&b""[..], b"{}", b"null", &text[..text.len() - 1]] {
        fs::write(job.path(CHECKPOINTS), damaged).unwrap();
        let message = job.refused(&mut job.command(&["--resume"]));
        assert!(message.contains("cannot keep checkpoints in \"state.resume\": something else is there"), "{message}");
    }
    fs::remove_file(job.path(CHECKPOINTS)).unwrap();
    assert!(job.refused(&mut job.command(&["--resume"])).contains("cannot resume from \"state.resume\""));
    fs::write(job.path(CHECKPOINTS), text).unwrap();
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn without_the_state_its_checkpoints_count_for_nothing() {
    let (job, expected) = crashed(plain());
    fs::remove_file(job.path(STATE)).unwrap();
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn only_a_run_from_files_to_files_is_resumed() {
    let (job, expected) = crashed(plain());
    let dedup = |arguments: &[&str]| {
        let mut command = bloomline(job.folder.path());
        command.args(["dedup", "-n", "60000", "-p", "1e-9", "--state", STATE, "--resume"]).args(arguments);
        command
    };
    let from_file = |mut command: Command| {
        command.stdin(File::open(job.path("in.txt")).unwrap());
        command
    };
    for mut command in [
        dedup(&["-o", "out.txt"]),
        dedup(&["-o", "out.txt", "-"]),
        dedup(&["-o", "out.txt", "in.txt", "-"]),
        from_file(dedup(&["-o", "out.txt"])),
        from_file(dedup(&["-o", "out.txt", "-"])),
        dedup(&["-o", "/dev/null", "in.txt"]),
        dedup(&["-o", "out.txt", "--dupes", "/dev/null", "in.txt"]),
    ] {
        let message = job.refused(&mut command);
        assert!(message.contains("resume") && message.contains("files"), "{message}");
    }
    assert!(job.refused(&mut dedup(&["in.txt"])).contains("--output"));
    assert!(job.refused(&mut dedup(&["-o", "out.txt", "--count", "in.txt"])).contains("--count"));
    job.complete(true);
    job.check_results(&expected);
}

/// A run that cannot be resumed leaves nothing behind from which an older one could be.
#[test]
fn a_stream_ends_what_could_be_resumed() {
    for arguments in [&["in.txt"][..], &["-o", "/dev/null", "in.txt"], &["--count", "in.txt"]] {
        let (job, _) = crashed(plain());
        let mut command = bloomline(job.folder.path());
        succeed(command.args(["dedup", "--state", STATE]).args(arguments));
        assert!(job.refused(&mut job.command(&["--resume"])).contains("cannot resume"));
    }
}

/// Without `--resume`, a run begins anew with the state that is there, but not over lines that this state has seen; it is
/// then the one to be resumed.
#[test]
fn of_two_killed_runs_the_second_is_resumed() {
    let (mut job, _) = crashed(several());
    let state = fs::read(job.path(STATE)).unwrap();
    let left = job.files();
    job.before = Some(state);
    let expected = job.expected();
    let mut random = Random(0x000B_1007);
    let mut before_first_line = 0;
    for _ in 0..20 {
        job.clear();
        left.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let old = job.checkpoints();
        let message = job.refused(&mut job.command(&[]));
        assert!(message.contains("--resume"), "{message}");
        fs::rename(job.path("out.txt"), job.path("kept.txt")).unwrap();
        let mut child = job.command(&["--checkpoint", "1h"]).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && job.checkpoints() == old {
            thread::yield_now();
        }
        let output = kill(child, Duration::from_micros(random.below(3000)));
        if output.status.signal() == Some(SIGKILL) {
            before_first_line += u32::from(job.check_state().place == Some((0, 0)));
        }
        job.complete(true);
        job.check_results(&expected);
    }
    assert!(before_first_line >= 10, "{before_first_line}");
}

/// A new run empties the output before it saves its first checkpoint. Killed in between, it leaves the first run's.
#[test]
fn an_output_that_a_new_run_emptied_is_not_gone_on_with() {
    let (job, _) = crashed(plain());
    File::create(job.path("out.txt")).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    assert!(message.contains("out.txt") && message.contains("0 bytes"), "{message}");
}

#[test]
fn beginning_anew_as_a_refusal_advises_loses_no_line() {
    let (job, expected) = crashed(plain());
    File::create(job.path("out.txt")).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    assert!(message.contains("to begin anew, remove the state"), "{message}");
    fs::remove_file(job.path(STATE)).unwrap();
    job.complete(false);
    job.check_results(&expected);
}

#[test]
fn checkpoints_that_are_always_due_do_not_stop_the_run() {
    let job = plain();
    let expected = job.expected();
    job.clear();
    let mut child = job.command(&["--checkpoint", "1us", "--chunk-size", "20000"]).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(10));
    }
    let output = kill(child, Duration::ZERO);
    assert_ne!(output.status.signal(), Some(SIGKILL), "20 s, and at {:?}", job.check_state().place);
    job.check_end(&output);
    job.check_results(&expected);
}

#[test]
fn an_output_that_is_the_state_is_refused() {
    let job = plain();
    for arguments in [
        &["-o", STATE][..],
        &["-o", CHECKPOINTS],
        &["-o", "out.txt", "--dupes", STATE],
        &["-o", "out.txt", "--dupes", CHECKPOINTS],
    ] {
        job.clear();
        let mut command = bloomline(job.folder.path());
        command.args(["dedup", "--state", STATE, "in.txt"]).args(arguments);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_limit_is_the_same_when_resumed() {
    for when in ["warn", "stop"] {
        let input = ended(&lines(1, 60_000), b'\n');
        let options = format!("-n 25000 --when-full {when}");
        let mut job = Job::new("limited", &[("in.txt", input)], &options, "out.txt");
        job.code = if when == "stop" { 2 } else { 0 };
        let (job, expected) = crashed(job);
        job.complete(true);
        job.check_results(&expected);
    }
}

#[test]
fn a_run_that_stops_when_full_stops_at_the_same_line_when_resumed() {
    let input = ended(&lines(1, 60_000), b'\n');
    let mut job = Job::new("stopped", &[("in.txt", input)], "-n 25000 -p 1e-3 --when-full stop", "out.txt");
    job.code = 2;
    let (job, expected) = crashed(job);
    job.complete(true);
    job.check_results(&expected);
}

#[test]
fn another_way_with_errors_is_not_resumed() {
    let (job, _) = crashed(faulty());
    let skip = |argument| if argument == "keep" { "skip" } else { argument };
    let message = job.refused(&mut bloomline_like(&job.command(&["--resume"]), skip));
    assert!(message.contains("cannot resume"), "{message}");
}

#[test]
fn inputs_that_changed_but_for_their_sizes_are_not_resumed() {
    let job = plain();
    job.clear();
    job.complete(false);
    let mut input = fs::read(job.path("in.txt")).unwrap();
    input.rotate_left(1);
    fs::write(job.path("in.txt"), input).unwrap();
    job.refused(&mut job.command(&["--resume"]));
}

/// The last checkpoint says that it is of the end, and is written before the state.
#[test]
fn an_output_whose_last_state_was_not_saved_is_not_begun_anew() {
    let (job, expected) = crashed(plain());
    let state = fs::read(job.path(STATE)).unwrap();
    // Goes on at this state, so that it is the last but one.
    job.complete(true);
    fs::write(job.path(STATE), state).unwrap();
    assert!(job.refused(&mut job.command(&[])).contains("--resume"));
    job.complete(true);
    job.check_results(&expected);
    // At the end of the last state nothing is lost.
    succeed(&mut job.command(&[]));
}
