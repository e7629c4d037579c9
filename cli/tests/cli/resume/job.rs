//! A job that is killed at any moment, and what it leaves.

use crate::common::{Bench, bloomline, failed, refused, tells, text};
use crate::corpus::{bzip2, decode, gzip, xz, zstd};
use bloomline::{BloomFilter, FileErrorKind, ScalableBloomFilter};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

pub const SIGKILL: i32 = 9;

pub const STATE: &str = "state";
pub const CHECKPOINTS: &str = "state.resume";

/// Numbers that are the same in every run of the tests: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A moment in a run that takes so long, or shortly after it.
    pub fn moment(&mut self, duration: Duration) -> Duration {
        duration.mul_f64(1.1 * self.below(1 << 32) as f64 / (1u64 << 32) as f64)
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

pub fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// So many lines without their ends, of which about half repeat one before.
pub fn lines(seed: u64, count: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut next = |i| {
        let number = if random.below(2) == 0 { i } else { random.below(i + 1) };
        line(seed << 32 | number)
    };
    (0..count).map(&mut next).collect()
}

pub fn line(number: u64) -> String {
    format!("{number}\thttps://example.org/{:x}/{}", mix(number), "path/".repeat((number % 17) as usize))
}

pub fn ended(lines: &[String], end: u8) -> Vec<u8> {
    lines.iter().flat_map(|line| line.bytes().chain([end])).collect()
}

/// In several members or frames, the first of which is not long.
pub fn in_parts(bytes: &[u8], compress: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (first, rest) = bytes.split_at(bytes.len() / 5);
    [compress(first), compress(b""), compress(rest)].concat()
}

/// The contents of a file, decompressed as its name tells, up to where that fails.
pub fn contents(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    decode(path.to_str().unwrap(), &bytes).0
}

/// A command, and the folder in which it runs.
pub struct Job {
    pub name: &'static str,
    pub bench: Bench,
    pub arguments: Vec<&'static str>,
    /// The files that it writes but the state.
    pub outputs: Vec<&'static str>,
    /// A state that is there before.
    pub before: Option<Vec<u8>>,
    /// What it fails for, if it does.
    pub failure: Option<&'static str>,
}

impl Job {
    pub fn new(name: &'static str, inputs: &[(&'static str, Vec<u8>)], options: &str, output: &'static str) -> Self {
        let bench = Bench::new(&[]);
        inputs.iter().for_each(|(name, bytes)| bench.write(name, bytes));
        let options: &'static str = options.to_owned().leak();
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.extend(["-o", output]);
        arguments.extend(inputs.iter().map(|(name, _)| name));
        Self { name, bench, arguments, outputs: vec![output], before: None, failure: None }
    }

    pub fn dupes(mut self, name: &'static str) -> Self {
        self.arguments.extend(["--dupes", name]);
        self.outputs.push(name);
        self
    }

    /// After another job has left a state with these lines.
    pub fn after(mut self, options: &str, lines: &[u8]) -> Self {
        let bench = Bench::new(&[("input", lines)]);
        succeed(bench.command("dedup -o output --state").arg(STATE).args(options.split(' ')).arg("input"));
        self.before = Some(bench.read(STATE));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// The command with more arguments.
    pub fn command(&self, more: &[&str]) -> Command {
        let mut command = self.loud(more);
        command.arg("--quiet");
        command
    }

    /// The command with its warnings.
    pub fn loud(&self, more: &[&str]) -> Command {
        let mut command = self.bench.command("dedup --state");
        command.arg(STATE).args(&self.arguments).args(more);
        command
    }

    /// The command as one that meets many checkpoints, each after other lines than those of another run.
    pub fn busy(&self, random: &mut Random, resume: bool) -> Command {
        let mut command = self.command(if resume { &["--resume"] } else { &[] });
        command.args(["--checkpoint", random.one_of(&["5ms", "8ms", "12ms", "20ms", "50ms"])]);
        command.args(["--chunk-size", &random.one_of(&[400, 700, 1100]).to_string()]);
        command.args(["-j", random.one_of(&["1", "2", "3"])]);
        command
    }

    /// As before the first run.
    pub fn clear(&self) {
        for entry in fs::read_dir(self.bench.0.path()).unwrap() {
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
    pub fn results(&self) -> Vec<Vec<u8>> {
        let outputs = self.outputs.iter().map(|name| contents(&self.path(name)));
        outputs.chain([fs::read(self.path(STATE)).unwrap()]).collect()
    }

    #[track_caller]
    pub fn check_results(&self, expected: &[Vec<u8>]) {
        for ((name, bytes), expected) in self.outputs.iter().chain([&STATE]).zip(self.results()).zip(expected) {
            let same = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let lengths = (bytes.len(), expected.len());
            assert!(bytes == *expected, "{}: {name} differs at {same}, lengths {lengths:?}", self.name);
        }
    }

    /// Whether a run came to its end: it leaves nothing to go on with.
    pub fn is_whole(&self) -> bool {
        let printed = fs::metadata(self.path(self.outputs[0])).is_ok_and(|output| output.len() > 0);
        printed && self.path(STATE).exists() && !self.bench.goes_on(STATE)
    }

    /// Puts the file of checkpoints in the place of one that is there, as a run leaves it that is cut off at its very end. The newest
    /// checkpoint is that of the end, as this run has it, and the other that of `earlier`.
    pub fn cut_off_at_the_end(&self, left: &[u8], earlier: &Value, ones: u64) {
        let line: Value = serde_json::from_slice(left.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
        let memory: usize = stages(&self.path(STATE)).iter().map(BloomFilter::memory_bytes).sum();
        let lengths: Vec<u64> = self.outputs.iter().map(|name| fs::metadata(self.path(name)).unwrap().len()).collect();
        let mut end = earlier.clone();
        end["ones"] = ones.into();
        end["memory"] = memory.into();
        end["input"] = line["job"]["inputs"].as_array().unwrap().len().into();
        (end["offset"], end["lines"]) = (0.into(), 0.into());
        (end["output"], end["dupes"]) = (lengths[0].into(), lengths.get(1).copied().unwrap_or(0).into());
        let text = format!("{{\"job\":{},\"checkpoints\":[{end},{earlier}],\"finished\":true}}", line["job"]);
        fs::write(self.path(CHECKPOINTS), sealed(&text)).unwrap();
    }

    /// Runs to the end, also where a run that is to be resumed came there.
    #[track_caller]
    pub fn complete(&self, resume: bool) {
        let output = self.command(if resume { &["--resume"] } else { &[] }).output().unwrap();
        self.check_end(&output);
    }

    #[track_caller]
    pub fn check_end(&self, output: &Output) {
        // That a filter loses lines is said, however quiet the run is.
        let full = |line: &&str| line.contains("warning: the filter has ");
        let said = text(&output.stderr).split_inclusive('\n').filter(|line| !full(line)).collect::<String>();
        assert_eq!(output.status.code(), Some(if self.failure.is_some() { 2 } else { 0 }), "{}: {said}", self.name);
        match self.failure {
            Some(reason) => tells(&failed(output), &[reason]),
            None => assert_eq!(said, "", "{}", self.name),
        }
    }

    /// The results of a run that is not interrupted.
    pub fn expected(&self) -> Vec<Vec<u8>> {
        self.clear();
        self.complete(false);
        let results = self.results();
        assert!(results.iter().all(|bytes| !bytes.is_empty()), "{}: too easy", self.name);
        results
    }

    /// About the time that a busy run takes.
    pub fn duration(&self) -> Duration {
        time_of(|| {
            self.clear();
            self.check_end(&self.command(&["--chunk-size", "700"]).output().unwrap());
        })
    }

    /// Asserts that the state can be loaded and that one of the checkpoints is that of the state.
    #[track_caller]
    pub fn check_state(&self) -> Kill {
        let (checkpoints, state) = (self.checkpoints(), self.path(STATE));
        if checkpoints.is_empty() || self.before.is_none() && !state.exists() {
            return Kill { place: None, torn: false };
        }
        let fitting = self.checkpoint();
        let place = (fitting["input"].as_u64().unwrap(), fitting["offset"].as_u64().unwrap());
        Kill { place: Some(place), torn: checkpoints[0]["ones"] != fitting["ones"] }
    }

    /// The checkpoints, the newest first.
    pub fn checkpoints(&self) -> Vec<Value> {
        let Ok(text) = fs::read(self.path(CHECKPOINTS)) else { return Vec::new() };
        // The checksum follows.
        let line = text.split(|&byte| byte == b'\n').next().unwrap();
        let mut text: Value = serde_json::from_slice(line).unwrap();
        serde_json::from_value(text["checkpoints"].take()).unwrap()
    }

    /// The checkpoint of the state.
    pub fn checkpoint(&self) -> Value {
        let ones = ones(&self.path(STATE));
        self.checkpoints().into_iter().find(|checkpoint| checkpoint["ones"] == ones).expect("one of the state")
    }

    /// Starts it and kills it in the middle, after a checkpoint.
    pub fn crash(&self) {
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
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(self.bench.0.path()).unwrap().map(|entry| entry.unwrap().path());
        // The lock that a killed run left is nobody's.
        let passing = |path: &PathBuf| ["tmp", "lock"].map(OsStr::new).contains(&path.extension().unwrap_or_default());
        let lasting = |path: &PathBuf| !passing(path);
        paths.filter(lasting).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
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

/// A text with its checksum, as the file of checkpoints has it.
pub fn sealed(text: &str) -> String {
    format!("{text}\n{:016x}\n", bloomline::KeyHasher::new(0).bytes(text.as_bytes()))
}

/// Kills a process as soon as it has saved a few more checkpoints, before it has saved the state of the last one.
pub fn kill_at_checkpoint(job: &Job, mut child: Child, checkpoints: u64) -> Output {
    let file = || fs::metadata(job.path(CHECKPOINTS)).map(|file| (file.ino(), file.mtime_nsec())).ok();
    for _ in 0..checkpoints {
        let last = file();
        while file() == last && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
    }
    kill(child, Duration::ZERO)
}

/// What a killed run left: the place in the inputs that belongs to the state, and whether a newer one waits for its
/// state.
pub struct Kill {
    pub place: Option<(u64, u64)>,
    pub torn: bool,
}

#[track_caller]
pub fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The time of the faster of two runs, with something added for checkpoints.
pub fn time_of(run: impl Fn()) -> Duration {
    let times = [0, 1].map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times[0].min(times[1]).mul_f64(1.3)
}

/// Kills a process after a while, if it is still there.
pub fn kill(mut child: Child, after: Duration) -> Output {
    thread::sleep(after);
    child.kill().unwrap();
    child.wait_with_output().unwrap()
}

/// The filters of a state, which must be sound.
#[track_caller]
pub fn stages(state: &Path) -> Vec<BloomFilter> {
    match BloomFilter::load(state) {
        Ok(filter) => vec![filter],
        Err(error) if matches!(error.kind(), FileErrorKind::Scalable) => {
            ScalableBloomFilter::load(state).unwrap().stages().to_vec()
        }
        Err(error) => panic!("the state cannot be loaded: {error}"),
    }
}

/// The number of bits that are set.
#[track_caller]
pub fn ones(state: &Path) -> u64 {
    let ones = |filter: &BloomFilter| (filter.fill_ratio() * filter.memory_bytes() as f64 * 8.0).round() as u64;
    stages(state).iter().map(ones).sum()
}

/// A filter that is saved in no time; what is estimated of compressed inputs is more than they have.
pub const SMALL: &str = "-p 1e-9 -n 5000 --when-full grow";

pub fn plain() -> Job {
    Job::new("plain", &[("in.txt", ended(&lines(1, 60_000), b'\n'))], "-n 60000 -p 1e-9 --when-full warn", "out.txt")
}

pub fn several() -> Job {
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

pub fn gzipped() -> Job {
    let input = in_parts(&ended(&lines(4, 50_000), b'\n'), gzip);
    Job::new("gzip", &[("in", input)], SMALL, "out.gz")
}

pub fn zstandards() -> Job {
    let inputs = [
        ("a", in_parts(&ended(&lines(5, 30_000), b'\n'), zstd)),
        ("b", ended(&lines(5, 10_000), b'\n')),
        ("c", in_parts(&ended(&lines(6, 30_000), b'\n'), zstd)),
    ];
    Job::new("zstd", &inputs, SMALL, "out.zst").dupes("dupes.gz")
}

pub fn xz_and_bzip2() -> Job {
    let inputs = [
        ("a", in_parts(&ended(&lines(15, 20_000), b'\n'), xz)),
        ("b", in_parts(&ended(&lines(16, 20_000), b'\n'), bzip2)),
    ];
    Job::new("xz and bzip2", &inputs, SMALL, "out.xz").dupes("dupes.bz2")
}

pub fn json() -> Job {
    let record = |(i, line): (usize, String)| format!("{{\"id\": {i},\n \"text\": \"{}\"}}", line.replace('\t', "\\t"));
    let records: Vec<String> = lines(7, 40_000).into_iter().enumerate().map(record).collect();
    Job::new("JSON, -z", &[("in.json", ended(&records, 0))], "-z --json-pointer /text -p 1e-9 --annotate", "out.json")
}

/// Records of several lines, in files whose headers are quoted in other ways.
pub fn tables() -> Job {
    let rows = |seed, count, row: fn(usize, &str) -> String| {
        let lines = lines(seed, count);
        let rows = lines.iter().enumerate().map(|(i, line)| row(i, line.split('\t').nth(1).unwrap()));
        rows.collect::<String>()
    };
    let a = format!("\"no\n.\",url\n{}", rows(17, 20_000, |i, url| format!("{i},\"{url}\n\"\r\n")));
    let b = format!("\"no\n.\",\"url\"\n{}", rows(17, 30_000, |i, url| format!("\"in {i}\n\n\",\"{url}\n\"\n")));
    let inputs = [("a.csv", a.into_bytes()), ("b.csv.gz", in_parts(b.as_bytes(), gzip))];
    let job = Job::new("tables", &inputs, &format!("--csv --header -f url {SMALL}"), "out.csv");
    job.dupes("dupes.csv.zst")
}

/// So high a rate that each line that is taken for another one counts on all that were before.
pub fn lossy_growing() -> Job {
    let inputs =
        [("a.txt", ended(&lines(8, 30_000), b'\n')), ("b.gz", in_parts(&ended(&lines(9, 30_000), b'\n'), gzip))];
    Job::new("lossy, growing", &inputs, "-n 500 --when-full grow -p 0.2", "out.txt").dupes("dupes.txt")
}

pub fn lossy_sized() -> Job {
    Job::new("lossy, overfull", &[("in.txt", ended(&lines(10, 60_000), b'\n'))], "-m 16K --invert", "out.txt")
}

pub fn faulty() -> Job {
    let faulty = |(i, line): (usize, String)| if i % 7 == 0 { line.replace('\t', " ") } else { line };
    let lines: Vec<String> = lines(11, 50_000).into_iter().enumerate().map(faulty).collect();
    let options = "--field 2 --trim --ignore-case --on-error keep -p 1e-9";
    Job::new("lines without a key", &[("in.txt", ended(&lines, b'\n'))], options, "out.txt").dupes("dupes.txt")
}

/// Checkpoints at which neither the state nor the output differs from the one before.
pub fn repeats() -> Job {
    let mut random = Random(12);
    let lines: Vec<String> = (0..60_000).map(|i| line(if i < 3000 { i } else { random.below(3000) })).collect();
    Job::new("repeats only", &[("in.txt", ended(&lines, b'\n'))], "-p 1e-9", "out.txt").dupes("dupes.txt")
}

/// A state that is planned for more than twice the lines, and shrunk at the end.
pub fn shrunk() -> Job {
    let input = ended(&lines(14, 60_000), b'\n');
    Job::new("shrunk", &[("in.txt", input)], "-n 250000 --when-full warn --shrink", "out.txt")
}

pub fn fails() -> Job {
    let mut lines = lines(13, 60_000);
    lines[50_000] = "no tab".to_owned();
    let job = Job::new("an error near the end", &[("in.txt", ended(&lines, b'\n'))], "--field 2 -p 1e-9", "out.txt");
    Job { failure: Some("no key in \"in.txt\", line 50001:"), ..job.dupes("dupes.txt") }
}

/// A job that was killed in the middle, and the results that it would have had.
pub fn crashed(job: Job) -> (Job, Vec<Vec<u8>>) {
    let expected = job.expected();
    job.crash();
    (job, expected)
}

/// The same command with other arguments.
pub fn bloomline_like<'a>(command: &'a Command, change: impl Fn(&'a str) -> &'a str) -> Command {
    let mut other = bloomline();
    other.current_dir(command.get_current_dir().unwrap());
    other.args(command.get_args().map(|argument| change(argument.to_str().unwrap())));
    other
}
