//! The command line.

pub mod corpus;

use crate::cli::corpus::CorpusOptions;
use crate::encode::Compression;
use crate::files::is_standard;
use crate::key::fields::Split;
use crate::key::json::Pointer;
use crate::key::{KeyRule, Part};
use crate::lines::chunks::Cut;
use crate::lines::find::Named;
use crate::lines::glob::Glob;
use crate::values::{Delimiter, OnError, StatsFormat, count, delimiter, duration, fields, memory, rate, size};
use clap::error::ErrorKind;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, value_parser};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Large sets of keys in little memory, with Bloom filters.
#[derive(Parser)]
#[command(
    name = "bloomline",
    version,
    arg_required_else_help = true,
    after_help = "The --help of each command has examples and exit codes."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the command line. What clap cannot tell of options that do not fit together is told here.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut cli = Self::try_parse_from(args)?;
        let key = match &mut cli.command {
            Command::Corpus(options) => return options.resolve().map(|()| cli),
            Command::Dedup(options) => &options.key,
            Command::Build(options) => &options.key,
            Command::Check(options) => &options.key,
            _ => return Ok(cli),
        };
        match &key.delimiter {
            Some(Delimiter(bytes)) if key.csv && (bytes.len() > 1 || bytes[0] == b'"') => {
                let delimiter = String::from_utf8_lossy(bytes);
                let message =
                    format!("cannot use the --delimiter {delimiter:?} with --csv: give one byte that is no quote");
                Err(clap::Error::raw(ErrorKind::ArgumentConflict, message))
            }
            _ => Ok(cli),
        }
    }
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Print each distinct line once: its first occurrence, in input order.
    #[command(after_help = "Example: bloomline dedup urls.txt > distinct.txt")]
    #[command(after_long_help = format!("{DEDUP_EXAMPLES}\n\n{READING_CODES}"))]
    Dedup(Box<DedupOptions>),
    /// Cut duplicate paragraphs, or drop duplicate documents, of lines of JSON.
    ///
    /// It finds exact duplicates, those that share most of their n-grams, and near duplicates.
    #[command(after_help = "Example: bloomline corpus --stats crawl.jsonl.gz -o clean.jsonl.gz")]
    #[command(after_long_help = format!("{}\n\n{READING_CODES}", corpus::EXAMPLES))]
    Corpus(Box<CorpusOptions>),
    /// Build a filter from lines, or add lines to one.
    #[command(after_help = "Example: bloomline build -p 0.001 -o seen.bloom monday.txt")]
    #[command(after_long_help = format!("{BUILD_EXAMPLES}\n\n{READING_CODES}"))]
    Build(BuildOptions),
    /// Print the lines that are in a filter, in input order.
    #[command(after_help = "Example: bloomline check -f seen.bloom urls.txt > seen.txt")]
    #[command(after_long_help = format!("{CHECK_EXAMPLES}\n\n{CHECK_CODES}"))]
    Check(CheckOptions),
    /// Describe a filter: its size, how full it is, and whether its file is intact.
    #[command(after_help = format!("{INFO_EXAMPLES}\n\n{CODES}"))]
    Info(InfoOptions),
    /// Merge filters into one that holds the keys of all.
    #[command(after_help = format!("{MERGE_EXAMPLES}\n\n{CODES}"))]
    Merge(MergeOptions),
    /// Compute the memory, the number of probes and the rates of a filter before it is built.
    #[command(after_help = format!("{PLAN_EXAMPLES}\n\n{CODES}"))]
    Plan(PlanOptions),
    /// Print a script that completes the command line in a shell.
    #[command(after_help = CODES)]
    Completions(CompletionsOptions),
    /// Write the manual pages to a folder.
    #[command(after_help = CODES)]
    Manual(ManualOptions),
}

/// What is read ahead for each thread.
const AHEAD: usize = 8 << 20;

const CODES: &str = "\
Exit codes:
  0      done
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const READING_CODES: &str = "\
Exit codes:
  0      done
  1      done, but an input or a part of one was left out by --on-error skip or keep
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const CHECK_CODES: &str = "\
Exit codes:
  0      lines were selected
  1      no line was selected
  2      an error, or an input could not be read
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const DEDUP_EXAMPLES: &str = "\
A new line is dropped by mistake at the false-positive rate. A key that was seen is never taken for new. Each distinct line takes about 1.3 bytes of \
memory at -p 0.01 and 5.1 at -p 1e-6, and up to 4.6 times as much if the filter grows.

Examples:
  bloomline dedup urls.txt > distinct.txt
  bloomline dedup --normalize url --stats crawl-*.gz -o distinct.zst
  bloomline dedup --json-pointer /text --dupes repeats.jsonl corpus.jsonl.zst > distinct.jsonl
  bloomline dedup --output-dir clean --glob '*.gz' --compress zstd crawl/
  bloomline dedup --state seen.bloom --checkpoint 1m today.txt -o new.txt    # after a crash, add --resume";

const BUILD_EXAMPLES: &str = "\
The file is replaced once all lines are in. At every moment it is the old file or the new one. It records the key options, the \
planned size and the rate.

Examples:
  bloomline build -p 0.001 -o seen.bloom monday.txt
  bloomline build -n 50000000 --no-shrink -o week.bloom monday.txt
  bloomline build --append -o week.bloom tuesday.txt
  zcat logs.gz | bloomline build -n 50000000 --stats -o logs.bloom";

const CHECK_EXAMPLES: &str = "\
All lines that are in the filter are found. Other lines are found by mistake, at the filter's false-positive rate. Give the key \
options that the filter was built with; others are refused. If a file cannot be opened, the others are still read.

Examples:
  bloomline check -f seen.bloom urls.txt > seen.txt
  bloomline check -v -f seen.bloom urls.txt > new.txt
  if bloomline check -q -f seen.bloom urls.txt; then echo 'some were seen'; fi";

const INFO_EXAMPLES: &str = "\
The whole file is read, and its checksums are verified.

Examples:
  bloomline info seen.bloom
  bloomline info --json seen.bloom | jq .fpr";

const MERGE_EXAMPLES: &str = "\
The filters must have the same key options, probes and seed. One size may be 2, 4, 8 or another power of 2 times the other, and the \
result has the smallest size. So build each filter with the same -p and --seed, with -n for the keys of all filters, and with --no-shrink.

Examples:
  bloomline merge monday.bloom tuesday.bloom -o both.bloom";

const PLAN_EXAMPLES: &str = "\
Give two of -n, -p and --memory. words4 is the layout of bloomline's filters, and its rates are those of its exact model. The \
classic filter, whose bits lie all over the memory, stands beside it.

Examples:
  bloomline plan -n 1000000000 -p 0.001
  bloomline plan -n 1000000000 --memory 4G
  bloomline plan -p 0.001 --memory 4G --json
  bloomline plan --table";

/// Options of the commands that read lines. Here and below, groups with a heading come last: all that follows stands under it.
#[derive(Args)]
pub struct ReadOptions {
    /// Files and directories to read; without any, or for "-", standard input.
    ///
    /// Files are read one after another, plain or compressed by gzip, zstd, xz or bzip2, as their first bytes say. zstd takes
    /// memory for the window of a file, up to 2 GiB, and xz up to 4 GiB.
    ///
    /// The files in a directory and below it are read in the order of the bytes of their paths, as `LC_ALL=C sort` puts them, each
    /// once. Hidden files are left out, links are not followed, and a .gitignore does not count.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read the files and directories that LIST names, one on each line.
    ///
    /// They come after those of the command line. A LIST of "-" is standard input. With -z the names end with NUL.
    #[arg(long, value_name = "LIST")]
    pub files_from: Option<PathBuf>,

    /// Of the files in directories, take only those that match GLOB.
    ///
    /// GLOB is a pattern such as '*.gz'. One with a / in it, such as 'en/**', is for the whole path below the directory. With !
    /// before it, files that match are left out. If several are given, the last one that matches decides.
    #[arg(short, long, value_name = "GLOB")]
    pub glob: Vec<Glob>,

    /// Take hidden files and folders in directories too.
    ///
    /// Their names begin with a dot.
    #[arg(long)]
    pub hidden: bool,

    /// Follow the symbolic links in directories.
    ///
    /// A link that is named itself is always followed.
    #[arg(short = 'L', long)]
    pub follow: bool,

    /// Lines end with NUL instead of a newline
    #[arg(short, long)]
    pub zero_terminated: bool,

    /// Action on bad input.
    ///
    /// Bad input is a line without a key, or an input that is broken or cannot be opened.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Fail)]
    pub on_error: OnError,

    /// Threads that do all the work [default: the available cores]
    #[arg(short = 'j', long, value_name = "THREADS", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Memory for decompressing inputs early [default: 8 MiB a thread]
    ///
    /// It is a size such as 1GiB. Inputs of about this size are decompressed on all cores. 0 decompresses nothing early. Files that
    /// are worked on side by side need none of it.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub read_ahead: Option<usize>,

    /// Bytes read at once
    #[arg(long, value_name = "BYTES", hide = true, default_value_t = 1 << 19, value_parser = value_parser!(u32).range(1..=1 << 30))]
    pub chunk_size: u32,
}

/// What the key of a line is.
#[derive(Args)]
#[command(next_help_heading = "Keys (default: the whole line)")]
pub struct KeyOptions {
    /// Use field N as the key; several are 1,3 or 2-4.
    ///
    /// The first field is 1. Several fields make one key in this order.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = fields, conflicts_with = "json_pointer")]
    pub field: Vec<RangeInclusive<usize>>,

    /// Text between fields [default: \t, with --csv a comma]
    ///
    /// \t is a tab, \0 is NUL, and \\ is a backslash.
    #[arg(long, value_name = "TEXT", value_parser = delimiter, requires = "field", conflicts_with = "json_pointer")]
    pub delimiter: Option<Delimiter>,

    /// Read lines as CSV, in which fields may have quotes around them.
    ///
    /// The quotes are no part of a field, nor is a carriage return at the end of the line. A line in which a quoted field does not
    /// end has no key.
    #[arg(long, requires = "field", conflicts_with = "json_pointer")]
    pub csv: bool,

    /// Use the value at this place in a line of JSON, such as /text.
    ///
    /// POINTER is a JSON pointer (RFC 6901). The key is the content of a string, or the JSON of another value, so 1 and "1" are two
    /// keys. Given several times, the values make one key in this order.
    #[arg(long, value_name = "POINTER")]
    pub json_pointer: Vec<Pointer>,

    /// Use the normal form of a URL.
    ///
    /// It has the host in lower case without a dot at its end, no default port, no fragment, and %xx in upper case.
    #[arg(long, value_name = "AS")]
    pub normalize: Option<Normalize>,

    /// Remove ASCII white space at both ends of the key
    #[arg(long)]
    pub trim: bool,

    /// Put the key in lower case.
    ///
    /// This is by Unicode, or by ASCII if the key is not UTF-8.
    #[arg(long)]
    pub ignore_case: bool,
}

impl KeyOptions {
    /// How lines are split into fields.
    fn split(&self) -> Split {
        let delimiter = self.delimiter.as_ref().map(|delimiter| &delimiter.0[..]);
        match (self.csv, delimiter) {
            (true, delimiter) => Split::Csv(delimiter.map_or(b',', |delimiter| delimiter[0])),
            (false, delimiter) => Split::At(delimiter.unwrap_or(b"\t").to_vec()),
        }
    }

    /// What the key of a line is.
    pub fn rule(&self) -> KeyRule {
        let Self { field, json_pointer, normalize, trim, ignore_case, .. } = self;
        let part = match (&field[..], &json_pointer[..]) {
            ([], []) => Part::Line,
            ([], pointers) => Part::Json(pointers.to_vec()),
            (numbers, _) => Part::Fields { numbers: numbers.to_vec(), split: self.split() },
        };
        KeyRule { part, trim: *trim, url: normalize.is_some(), ignore_case: *ignore_case }
    }

    /// A name for the keys. The byte that ends a line is no part of them.
    pub fn name(&self) -> String {
        self.rule().name()
    }
}

/// What a key may be normalized as.
#[derive(Clone, Copy, ValueEnum)]
pub enum Normalize {
    /// An absolute URL.
    Url,
}

impl ReadOptions {
    /// How many threads read and hash.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The inputs that are named.
    pub fn named(&self) -> Named<'_> {
        let Self { files, files_from, glob, hidden, follow, .. } = self;
        let (hidden, follow) = (*hidden, *follow);
        Named { paths: files, list: files_from.as_deref(), end: self.end(), globs: glob, hidden, follow }
    }

    /// How to cut the inputs.
    pub fn cut(&self) -> Cut {
        Cut { size: self.chunk_size as usize, end: self.end(), keep: self.on_error == OnError::Keep }
    }

    /// Chunks of compressed inputs that may wait for those before them.
    pub fn ahead(&self) -> usize {
        self.read_ahead.unwrap_or(self.threads() * AHEAD) / self.chunk_size as usize
    }

    /// What ends a line.
    pub fn end(&self) -> u8 {
        if self.zero_terminated { 0 } else { b'\n' }
    }
}

/// Options of the commands that make a new filter.
#[derive(Args)]
#[command(next_help_heading = "Filter")]
pub struct SizeOptions {
    /// Distinct lines to plan for, such as 5M [default: estimated]
    ///
    /// It is a number such as 5000000, 5M or 5e6, where k, M, G and T are powers of 1000. By default it is the number of lines in
    /// the files, estimated from samples. If that is too low, the filter takes more memory and keeps its rate.
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = count)]
    pub expected_keys: Option<u64>,

    /// False-positive rate once the expected lines are in [default: 1e-6]
    ///
    /// It is the chance that a new line is taken for one seen before.
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate)]
    pub fpr: Option<f64>,

    /// Seed of the hash [default: 0, or that of the existing filter]
    ///
    /// Another seed gives other false positives.
    #[arg(long)]
    pub seed: Option<u64>,

    /// The rate where the user gives none, if it is another than that of lines.
    #[arg(skip)]
    default_fpr: Option<f64>,
}

impl SizeOptions {
    /// The false-positive rate.
    pub fn fpr(&self) -> f64 {
        self.fpr.or(self.default_fpr).unwrap_or(1e-6)
    }

    /// The seed of a new filter.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// Which filter on a server it is.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct SharedOptions {
    /// Share the filter through this Redis or Valkey server or cluster.
    ///
    /// All processes that name the filter there share it. URL is redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT for TLS,
    /// several of them separated by commas for the nodes of a cluster, or @FILE to read it from a file.
    #[arg(long, value_name = "URL", requires = "name")]
    pub redis: Option<String>,

    /// Name of the filter on the server
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub name: Option<String>,

    /// Trust only servers that an authority in this file certifies.
    ///
    /// It is for servers of rediss://. FILE has PEM certificates of authorities. By default those count that the system trusts.
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub redis_ca: Option<PathBuf>,
}

/// More about it, for those who write to it.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct SharedWriteOptions {
    /// Remove the filter from the server first, after a question.
    ///
    /// The question is asked on the terminal. All processes lose the keys of the filter, so end the others before. They end by
    /// themselves within a second; lines that they take until then may be lost to the new filter.
    #[arg(long, requires = "expected_keys")]
    pub reset: bool,

    /// Do not ask before --reset
    #[arg(long, requires = "reset")]
    pub yes: bool,

    /// Ask the server about every line.
    ///
    /// Without this option the process remembers which bits the server has, unless the filter has more than 1 GiB, and does not ask
    /// again about lines that it has seen.
    #[arg(long, requires = "redis")]
    pub no_mirror: bool,

    /// Print a line once this many replicas of its server have it.
    ///
    /// After a second the line is printed anyway. A replica that takes over then knows the line, if there are no more replicas than
    /// these. The user needs the right to WAIT.
    #[arg(long, value_name = "REPLICAS", requires = "redis", default_value_t = 0, hide_default_value = true)]
    pub redis_wait: u32,
}

/// Options of the commands that print what a set does not have yet.
#[derive(Args)]
#[command(group = ArgGroup::new("destination").args(["output", "output_dir"]))]
pub struct RunOptions {
    /// Memory for the filter, such as 16M or 1.5GiB, instead of -n.
    ///
    /// It is a number of bytes, or a number with K, M, G or T (or KB, KiB and so on) for powers of 1024. The rate is that of -p.
    /// Without -p it is the best for the keys of the inputs, if their number can be estimated.
    #[arg(short, long, value_name = "SIZE", value_parser = size, conflicts_with = "expected_keys", help_heading = "Filter")]
    pub memory: Option<usize>,

    /// Rate at which a filter that does not grow is full [default: -p]
    ///
    /// It is a false-positive rate, and at least that of -p.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Filter")]
    pub max_fpr: Option<f64>,

    /// What to do when it is full.
    ///
    /// By default it warns if -n, --memory or --max-fpr is given, and else it grows.
    #[arg(long, value_name = "WHAT", help_heading = "Filter")]
    pub when_full: Option<WhenFull>,

    /// Write to FILE, compressed if it ends in .gz, .zst, .xz or .bz2.
    ///
    /// Without this option, or for "-", lines go to standard output. FILE must not be an input. In a directory that is read, it is
    /// left out with --resume and --force alone.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Write the lines of each input to a file of its own in FOLDER.
    ///
    /// An output has the path that its input has below the folder which all inputs share. It is compressed as its name says. It
    /// gets its name once it is whole; until then it ends in .part.
    ///
    /// Files are worked on side by side, and chance decides which of equal ones stays. With --in-order it is the first.
    #[arg(long, value_name = "FOLDER", help_heading = "Output", conflicts_with = "output")]
    pub output_dir: Option<PathBuf>,

    /// With --output-dir, keep the first of equal ones in input order.
    ///
    /// Each run without --checkpoint then writes the same bytes.
    #[arg(long, requires = "output_dir", help_heading = "Output")]
    pub in_order: bool,

    /// With --output-dir, write a line of JSON for each output to FILE.
    ///
    /// A line is written once the output is whole. It has the number of lines, what was dropped, and sizes.
    #[arg(long, value_name = "FILE", requires = "output_dir", help_heading = "Output")]
    pub manifest: Option<PathBuf>,

    /// Compress outputs: gzip, zstd, xz, bzip2 or none, such as gzip:9.
    ///
    /// Standard output is compressed too. The number after the colon is the level. By default the file name decides. The file name
    /// must not end in another format's suffix.
    ///
    /// All threads compress at once, each up to 16 MiB of an output. xz:6 takes 94 MiB of memory a thread. zstd:19:long=27 makes
    /// matches reach back 2^27 bytes, as zstd:19:long does; zstd reads longer ones only if it is told to. An output with a long
    /// window, of zstd:20 to 22 or of xz:7 to 9 is compressed by one thread.
    #[arg(long, value_name = "KIND[:LEVEL]", help_heading = "Output")]
    pub compress: Option<Compression>,

    /// Truncate outputs even if their lines would be lost.
    ///
    /// A run with a state or a shared filter does not print lines of earlier runs again. Without this option it refuses to empty an
    /// output that holds lines.
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Remember what was seen in FILTER for the next run.
    ///
    /// What FILTER holds at the start is a repeat. It is saved at the end, and on SIGINT, SIGTERM and SIGHUP. It records the key
    /// options and the planned size.
    #[arg(long, value_name = "FILTER", help_heading = "Remembering")]
    pub state: Option<PathBuf>,

    /// At the end, save the state in the smallest size that keeps its rate.
    ///
    /// It then has little room for more. A state that grows stays as it is.
    #[arg(long, requires = "state", help_heading = "Remembering")]
    pub shrink: bool,

    /// Save the output and then the state at this interval, such as 5m.
    ///
    /// It is a duration such as 50ms, 10s or 5m. The units are ms, s, m (minutes), h and d.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "state", help_heading = "Remembering")]
    pub checkpoint: Option<Duration>,

    /// Wait while another run writes to the filter
    #[arg(long, requires = "state", help_heading = "Remembering")]
    pub wait: bool,

    /// Continue the same command from its last checkpoint.
    ///
    /// Only a run from files to files can be continued.
    #[arg(long, requires_all = ["state", "destination"], help_heading = "Remembering")]
    pub resume: bool,

    /// Print counts and the speed at the end.
    ///
    /// Counts, how full the filter is and the speed go to standard error, as text if no FORMAT is given.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", help_heading = "Reporting")]
    pub stats: Option<StatsFormat>,

    /// Print no progress bar and no warnings
    #[arg(short, long, help_heading = "Reporting")]
    pub quiet: bool,
}

impl RunOptions {
    /// The file that lines go to; `None` is standard output.
    pub fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_standard(path))
    }

    /// Whether inputs are read side by side.
    pub fn is_side_by_side(&self) -> bool {
        self.output_dir.is_some() && !self.in_order
    }
}

/// Options of `bloomline dedup`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| {
    arg.conflicts_with_all(["memory", "max_fpr", "when_full", "exact", "state", "verify", "count", "invert", "output_dir"])
}))]
pub struct DedupOptions {
    #[command(flatten)]
    pub reading: ReadOptions,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub size: SizeOptions,

    #[command(flatten)]
    pub shared: SharedOptions,

    #[command(flatten)]
    pub writing: SharedWriteOptions,

    #[command(flatten)]
    pub run: RunOptions,

    /// Lose no line: check repeats against 128-bit hashes of all lines.
    ///
    /// What the filter takes for a repeat is looked up among the hashes. They are kept in temporary files, with 16 bytes for each
    /// distinct line.
    #[arg(long, help_heading = "Filter", conflicts_with = "state")]
    pub exact: bool,

    /// Write the dropped lines to FILE.
    ///
    /// "-" is standard output, if the others go to a file.
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with = "output_dir")]
    pub dupes: Option<PathBuf>,

    /// Print the repeats instead of the first occurrences
    #[arg(long, help_heading = "Output", conflicts_with = "dupes")]
    pub invert: bool,

    /// Print every line, with "new" or "dup" and a tab before it
    #[arg(long, help_heading = "Output", conflicts_with_all = ["dupes", "invert"])]
    pub annotate: bool,

    /// Print the number of lines instead of the lines
    #[arg(short, long, help_heading = "Output", conflicts_with_all = ["annotate", "output_dir", "resume"])]
    pub count: bool,

    /// With --stats, measure the false-positive rate with SAMPLE keys.
    ///
    /// The keys are not in the filter. The rate is printed with the statistics.
    #[arg(long, value_name = "SAMPLE", requires = "stats", value_parser = count, help_heading = "Reporting")]
    pub verify: Option<u64>,
}

/// What to do once the filter is full.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// Warn once and go on. The false-positive rate rises
    Warn,
    /// End with an error before the next line
    Stop,
    /// Add a larger filter. The rate stays, and the memory grows
    Grow,
}

/// Options of `bloomline build`.
#[derive(Args)]
pub struct BuildOptions {
    /// The filter's file. An existing file is replaced
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,

    /// Add to the filter in the file.
    ///
    /// Its size, rate and seed stay the same.
    #[arg(long, conflicts_with_all = ["expected_keys", "fpr", "seed"])]
    pub append: bool,

    /// Wait while another run writes to the filter
    #[arg(long)]
    pub wait: bool,

    /// Save the filter in the size that it was planned with.
    ///
    /// Without this option a filter with far fewer lines than expected is saved in the smallest size that keeps its rate, and has
    /// little room for --append and merge.
    #[arg(long)]
    pub no_shrink: bool,

    /// Print counts and the speed at the end.
    ///
    /// Counts, how full the filter is and the speed go to standard error, as text if no FORMAT is given.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,

    /// Print no progress bar and no warnings
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub reading: ReadOptions,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub size: SizeOptions,
}

/// Options of `bloomline check`.
#[derive(Args)]
pub struct CheckOptions {
    /// The filter's file
    #[arg(short, long, value_name = "FILTER")]
    #[arg(required_unless_present = "redis", conflicts_with = "redis")]
    pub filter: Option<PathBuf>,

    /// Select the lines that are not in the filter
    #[arg(short = 'v', long)]
    pub invert_match: bool,

    /// Print the number of selected lines instead of the lines.
    ///
    /// Several files, a directory or a list give a line NAME:COUNT for each file.
    #[arg(short, long)]
    pub count: bool,

    /// Print nothing, and end at the first selected line.
    ///
    /// The exit code says whether there is one.
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub reading: ReadOptions,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub shared: SharedOptions,
}

/// Options of `bloomline completions`.
#[derive(Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `bloomline manual`.
#[derive(Args)]
pub struct ManualOptions {
    /// The folder. It is created if it does not exist
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Options of `bloomline info`.
#[derive(Args)]
pub struct InfoOptions {
    /// The filter's file
    #[arg(value_name = "FILTER")]
    #[arg(required_unless_present = "redis", conflicts_with = "redis")]
    pub filter: Option<PathBuf>,

    /// Print one JSON object on one line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub shared: SharedOptions,
}

/// Options of `bloomline merge`.
#[derive(Args)]
pub struct MergeOptions {
    /// The files of the filters to merge
    #[arg(value_name = "FILTER", required = true)]
    pub filters: Vec<PathBuf>,

    /// The file for the merged filter. It must not be an input
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,

    /// Wait while another run writes to the filter
    #[arg(long)]
    pub wait: bool,
}

/// Options of `bloomline plan`.
#[derive(Args)]
pub struct PlanOptions {
    /// Number of distinct keys to plan for, such as 5000000, 5M or 5e6.
    ///
    /// k, M, G and T are powers of 1000.
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = count)]
    pub expected_keys: Option<u64>,

    /// False-positive rate once the expected keys are in
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate)]
    pub fpr: Option<f64>,

    /// Memory for the filter, such as 16M or 1.5GiB.
    ///
    /// It is a number of bytes, or a number with K, M, G or T (or KB, KiB and so on) for powers of 1024.
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,

    /// Print a table of rates by bits per key and probes
    #[arg(long, conflicts_with_all = ["expected_keys", "fpr", "memory"])]
    pub table: bool,

    /// Print one JSON value on one line
    #[arg(long)]
    pub json: bool,
}

/// A usage error on one line: clap's explanation and tips, without the usage that follows them.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let explanation = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let parts: Vec<&str> = explanation.filter(|line| !line.is_empty()).collect();
    parts
        .join(" ")
        .trim_start_matches("error: ")
        .trim_end_matches("For more information, try '--help'.")
        .trim()
        .to_owned()
}
