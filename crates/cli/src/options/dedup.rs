//! The options of `bloomline dedup`, and the options that it shares with `corpus`.

use crate::options::filter::{GrowthOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::options::groups::GroupOptions;
use crate::options::output::OutputOptions;
use crate::options::reading::{KeyOptions, ReadOptions};
use crate::options::values::duration;
use crate::steps::groups::choice::KeepPolicy;
use crate::terminal::figures::StatsFormat;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the commands that print what a set does not have yet.
#[derive(Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub growth: GrowthOptions,

    #[command(flatten)]
    pub output: OutputOptions,

    /// Write the lines of each input to a file of its own in FOLDER.
    ///
    /// An output has the path of its input below the folder that all inputs share, and is compressed as its name says. Its name
    /// ends in .part until it is complete.
    ///
    /// Files are processed in parallel, so any of equal lines may be the one that is kept. With --in-order it is the first.
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,

    /// Replace each input by what is kept of it.
    ///
    /// The first of equal lines is kept, in the order of the files. A file is replaced once its new contents are complete, and
    /// left unchanged if nothing is removed from it. It keeps its mode, its compression, and its owner if the process may set
    /// that. A link is followed to its file. A hard link becomes a file of its own. Extended attributes and access control lists
    /// are lost. A WARC is refused, and so is, without --csv, a .csv or .tsv file with records over several lines.
    #[arg(long, help_heading = "Output")]
    pub in_place: bool,

    /// With --output-dir, keep the first of equal lines in input order.
    ///
    /// Each run without a state then writes the same bytes.
    #[arg(long, help_heading = "Output")]
    pub in_order: bool,

    /// With --output-dir, write a line of JSON for each output to FILE.
    ///
    /// A line is written once the output is complete. It has the number of lines, what was dropped, and sizes, and for tables
    /// the row groups that were copied and written. "fault" says why the rest of an input was left out. For a name that is not
    /// UTF-8, input_hex or output_hex has the bytes.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub manifest: Option<PathBuf>,

    /// Truncate outputs even if their lines would be lost.
    ///
    /// A run with a state or a shared filter does not print lines of earlier runs again. Without this option it refuses to
    /// overwrite an output that holds lines. With --output-dir, this option replaces existing outputs, unfinished ones too.
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Remember what was seen in FILTER for the next run.
    ///
    /// Keys that FILTER holds at the start count as repeats. FILTER is saved at the end, and on SIGINT, SIGTERM and SIGHUP. It
    /// records the key options and the planned size.
    #[arg(short, long, value_name = "FILTER", help_heading = "Remembering")]
    pub state: Option<PathBuf>,

    /// At the end, save the state in the smallest size that keeps its rate.
    ///
    /// It then has little room for more. A state that grows continues from a small filter, and a query visits one filter more.
    #[arg(long, help_heading = "Remembering")]
    pub shrink: bool,

    /// Save the output and then the state at this interval, such as 5m.
    ///
    /// By default it is a minute, or longer if saving would take more than a fiftieth of the time. It is a duration such as
    /// 50ms, 10s or 5m. The units are ms, s, m (minutes), h and d.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Remembering")]
    pub checkpoint: Option<Duration>,

    /// Wait while another run writes to the filter
    #[arg(long, help_heading = "Remembering")]
    pub wait: bool,

    /// Continue the same command from its last checkpoint.
    ///
    /// Only a run from files to files can be continued. Its statistics count from the checkpoint on. If no run was interrupted,
    /// it starts from the beginning, and if this run is complete, nothing is done. A run that reads its inputs twice has no
    /// checkpoints: it starts again, and its outputs are replaced.
    ///
    /// An output that was moved away is not written again, and an output whose length has changed is an error. So is a state
    /// that was not saved by this run or a later one, such as an older copy: --resume --force runs again with it.
    #[arg(long, help_heading = "Remembering")]
    pub resume: bool,

    /// Print counts and the speed at the end.
    ///
    /// Counts, how full the filter is and the speed go to standard error, as text if no FORMAT is given.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", help_heading = "Reporting")]
    pub stats: Option<StatsFormat>,

    /// Print no progress bar and no warnings.
    ///
    /// Losses to a full filter are reported all the same.
    #[arg(short, long, help_heading = "Reporting")]
    pub quiet: bool,
}

/// Options of `bloomline dedup`.
#[derive(Args)]
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
    /// Lines that the filter takes for repeats are looked up among the hashes, which are kept in temporary files, with 16 bytes
    /// for each distinct line.
    #[arg(long, help_heading = "Filter")]
    pub exact: bool,

    /// Write the dropped lines to FILE.
    ///
    /// "-" is standard output, if the other lines go to a file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub dupes: Option<PathBuf>,

    /// Print each distinct line after the number of times it occurs.
    ///
    /// The number is printed as by `uniq -c`, and is exact: --exact is included. The inputs are read twice. Input from a pipe
    /// is kept in a temporary file, and so is a record of 16 bytes for each line. All this holds for --repeated, --unique and
    /// --keep last, too.
    #[arg(short, long, help_heading = "Output")]
    pub count: bool,

    /// Print only lines that occur more than once, each of them once.
    ///
    /// It works like `uniq -d`, and the lines need not be sorted. With -v it prints all others. The inputs are read twice:
    /// --count describes the cost.
    #[arg(long, help_heading = "Output")]
    pub repeated: bool,

    /// Print only lines that occur once.
    ///
    /// It works like `uniq -u`, and the lines need not be sorted. With -v it prints all copies of the others. The inputs are read
    /// twice: --count describes the cost.
    #[arg(long, help_heading = "Output")]
    pub unique: bool,

    #[command(flatten)]
    pub groups: GroupOptions,

    /// Print the repeats instead of the first occurrences
    #[arg(short = 'v', long, help_heading = "Output")]
    pub invert: bool,

    /// Print every line, with "new" or "dup" and a tab before it
    #[arg(long, help_heading = "Output")]
    pub annotate: bool,

    /// Print the number of lines instead of the lines
    #[arg(long, help_heading = "Output")]
    pub total: bool,

    /// With --redis, print statistics at this interval too, such as 1m.
    ///
    /// They have the counts so far, how full the filter is, and how the servers perform: uncertain answers, commands that were
    /// sent again, and the time of a batch since the last print. In JSON they have "running": true, and mean_batch_seconds,
    /// slowest_batch_seconds and fill are of this interval.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Reporting")]
    pub stats_every: Option<Duration>,
}

impl DedupOptions {
    /// Returns the option for which the inputs are read twice.
    pub fn reads_twice(&self) -> Option<&'static str> {
        let last = self.groups.keep == Some(KeepPolicy::Last);
        let options =
            [(self.count, "--count"), (self.repeated, "--repeated"), (self.unique, "--unique"), (last, "--keep last")];
        options.iter().find(|(given, _)| *given).map(|(_, option)| *option)
    }
}
