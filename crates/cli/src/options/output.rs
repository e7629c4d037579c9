//! Options of the commands that print lines: the destination and the selection of the lines.

use crate::read::compression::Compression;
use crate::read::inputs::Inputs;
use crate::read::table::TableOptions;
use crate::system::files::is_standard;
use clap::Args;
use std::path::{Path, PathBuf};

/// The file that lines go to.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Write to FILE; lines are compressed if it ends in .gz, .zst, .xz, .bz2 or .lz4.
    ///
    /// Without this option, or for "-", lines go to standard output. FILE may be one of the named inputs: then it is replaced
    /// once all lines are written. In a directory that is read, FILE is left out only if --resume or --force is given.
    ///
    /// Parquet is not written to a name that ends in .txt, .csv, .tsv, .json, .jsonl, .ndjson or as a compressed file, nor lines to one
    /// in .parquet, .parq or .pq, compressed or not, and neither to .arrow, .avro, .feather or .orc. Other names may have both.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Compress outputs: gzip, zstd, xz, bzip2, lz4 or none, such as gzip:9.
    ///
    /// Standard output is compressed too. The number after the colon is the level. By default the file name decides. The file name
    /// must not end in another format's suffix.
    ///
    /// All threads compress at once, each up to 16 MiB of an output. A thread takes about 5 MiB of memory for gzip, 7 for zstd:3,
    /// 10 for bzip2, 16 for zstd:8 and 128 for xz:6. zstd:19:long=27 makes matches reach back 2^27 bytes, as zstd:19:long does;
    /// zstd decompresses longer windows only if it is asked to. An output with a long window, of zstd:20 to 22 or of xz:7 to 9
    /// is compressed by one thread. After a signal, the rest of an output is compressed at a low level, and stored as it is for xz.
    #[arg(long, value_name = "KIND[:LEVEL]")]
    pub compress: Option<Compression>,
}

impl OutputOptions {
    /// Returns the options for the rows of tables.
    pub fn row_options(&self) -> TableOptions {
        TableOptions { compression: self.compress, cuts: false }
    }

    /// Returns the requested compression of an output of lines. `None` for tables, which are compressed column by column.
    pub fn line_compression(&self, inputs: &Inputs) -> Option<Compression> {
        if inputs.first_table().is_some() { None } else { self.compress }
    }

    /// Returns the file of lines; `None` is standard output.
    pub fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_standard(path))
    }
}

/// The selection of printed lines, for the commands that look lines up.
#[derive(Clone, Copy, Args)]
pub struct SelectOptions {
    /// Print the number of selected lines instead of the lines.
    ///
    /// Several files, a directory or a list give a line NAME:COUNT for each file.
    #[arg(long)]
    pub total: bool,

    /// Print nothing, and end at the first selected line.
    ///
    /// The exit code says whether there is one.
    #[arg(long)]
    pub any: bool,

    /// Print no progress bar and no warnings
    #[arg(short, long)]
    pub quiet: bool,
}
