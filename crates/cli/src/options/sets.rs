//! The options of `bloomline in` and `bloomline not-in`.

use crate::options::filter::{GrowthOptions, SizeOptions};
use crate::options::output::{OutputOptions, SelectOptions};
use crate::options::reading::{KeyOptions, ReadOptions};
use crate::system::files::is_standard;
use crate::terminal::figures::StatsFormat;
use clap::Args;
use std::path::{Path, PathBuf};

/// Options of the commands that compare the lines of files.
#[derive(Args)]
#[command(mut_arg("files", |arg| {
    arg.index(1).value_name("OLD").required_unless_present("files_from").help(OLD).long_help(OLD_LONG)
}))]
#[command(mut_arg("files_from", |arg| arg.help(LIST).long_help(LIST_LONG)))]
// A changed argument is moved behind the others, and clap takes the last positional one for the argument of `--`.
#[command(mut_arg("new", |arg| arg))]
#[command(mut_arg("output", |arg| arg.long_help(OUTPUT_LONG)))]
pub struct SetOptions {
    #[command(flatten)]
    pub reading: ReadOptions,

    /// Files and directories with the lines to print; without any, or for "-", standard input.
    ///
    /// Options stand before the `--`.
    #[arg(value_name = "NEW", index = 2, last = true)]
    pub new: Vec<PathBuf>,

    #[command(flatten)]
    pub select: SelectOptions,

    /// Print counts and the speed at the end.
    ///
    /// Counts, how full the filter is and the speed go to standard error, as text if no FORMAT is given.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub size: SizeOptions,

    #[command(flatten)]
    pub growth: GrowthOptions,

    /// Make no mistake: check by 128-bit hashes of OLD.
    ///
    /// Lines that the filter reports are looked up among them. The hashes are kept in temporary files, with 16 bytes for each
    /// distinct line of OLD, and the command takes about six times as long.
    #[arg(long)]
    pub exact: bool,

    #[command(flatten)]
    pub output: OutputOptions,
}

/// Options of `bloomline not-in`.
#[derive(Args)]
pub struct NotInOptions {
    #[command(flatten)]
    pub sets: SetOptions,

    /// Print each distinct line of NEW once: its first occurrence.
    ///
    /// The lines of NEW go into the filter as they are printed, so -n is for the distinct lines of OLD and NEW together.
    #[arg(long)]
    pub distinct: bool,
}

const OLD: &str = "Files and directories to compare with; \"-\" is standard input";

const OLD_LONG: &str = "\
Files and directories to compare with; \"-\" is standard input.

All are read before the first line of NEW. Both are plain or compressed, as their first bytes say. The files in a directory and \
below it are read. Those that are also in NEW are left out of it. Hidden files are left out, links are not followed, and a .gitignore \
does not count.";

const LIST: &str = "Read OLD from the files and directories that LIST names, too, one on each line";

const LIST_LONG: &str = "\
Read OLD from the files and directories that LIST names, too, one on each line.

They come after those of the command line. If LIST contains a NUL, each name ends with one, as `find -print0` writes them. A LIST of \"-\" \
is standard input.";

const OUTPUT_LONG: &str = "\
Write to FILE; lines are compressed if its ending says so, as .gz does.

Without this option, or for \"-\", lines go to standard output. FILE must not be an input.

Parquet is not written to a name that ends in .txt, .csv, .tsv, .json, .jsonl, .ndjson or as a compressed file, nor lines to one in \
.parquet, .parq or .pq, compressed or not, and neither to .arrow, .avro, .feather or .orc. Other names may have both.";

impl SetOptions {
    /// Returns an option that stands behind the `--`, where only files of NEW are expected.
    pub fn misplaced_option(&self) -> Option<&Path> {
        let is_option = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"-") && !is_standard(path);
        self.new.iter().find(is_option).filter(|path| !path.exists()).map(PathBuf::as_path)
    }

    /// True if NEW is standard input, although several files are given: the last ones may be meant for NEW.
    pub fn may_lack_dashes(&self) -> bool {
        self.new.is_empty() && self.reading.files.len() > 1
    }

    /// Adds the hint that `--` must come before the files of NEW to a message.
    pub fn with_hint_of_dashes(&self, message: &str) -> String {
        let [old, .., new] = &self.reading.files[..] else { return message.to_owned() };
        format!("{message}; to look up the lines of {new:?}, give `--` before it: {old:?} -- {new:?}")
    }

    /// True if standard input would be read for OLD and also for NEW.
    pub fn reads_standard_input_twice(&self) -> bool {
        let ReadOptions { files, files_from, .. } = &self.reading;
        let reads_for_old = files.iter().chain(files_from).any(|path| is_standard(path));
        let reads_for_new = self.new.is_empty() || self.new.iter().any(|path| is_standard(path));
        reads_for_old && reads_for_new
    }
}
