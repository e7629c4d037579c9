//! The options of the commands that read lines: the inputs, and the key of a line.

use crate::key::fields::{Csv, FieldSelector, FieldSplit};
use crate::key::json::Pointer;
use crate::key::{KeyPart, KeyRule, PartNumbers};
use crate::options::values::{
    ALL_PARTS, ColumnList, Delimiter, Eol, FieldList, Normal, NormalForm, Nulls, columns, delimiter, escape, fields,
    normal, parts,
};
use crate::read::chunks::ChunkConfig;
use crate::read::ends::LineEnds;
use crate::read::find::NamedPaths;
use crate::read::glob::Glob;
use crate::read::keys::Hashing;
use crate::read::skip::OnError;
use crate::read::split::LineFormat;
use bloomline::KeyHasher;
use clap::{Args, value_parser};
use std::path::PathBuf;
use std::thread;

/// The bytes of compressed inputs that each thread may read before their turn, so that all cores decompress small inputs.
const READ_AHEAD_BYTES: usize = 8 << 20;

/// Options of the commands that read lines.
///
/// Commands flatten groups of options with a heading last, because clap puts all later options under the same heading.
#[derive(Args)]
pub struct ReadOptions {
    /// Files and directories to read; without any, or for "-", standard input.
    ///
    /// Files are read one after another, plain or compressed by gzip, zstd, xz, bzip2 or lz4, as their first bytes say. zstd takes
    /// memory for the window of a file, up to 2 GiB, and xz up to 4 GiB.
    ///
    /// The files in a directory and below it are read in the order of the bytes of their paths, as `LC_ALL=C sort` puts them, each
    /// once. Hidden files are left out, links are not followed, and a .gitignore does not count.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read the files and directories that LIST names, one on each line.
    ///
    /// They come after those of the command line. If LIST contains a NUL, each name ends with one, as `find -print0` writes them. A
    /// LIST of "-" is standard input.
    #[arg(long, value_name = "LIST")]
    pub files_from: Option<PathBuf>,

    /// In directories, read only the files that match GLOB.
    ///
    /// GLOB is a pattern such as '*.gz'. A pattern with a /, such as 'en/**', is matched with the whole path below the
    /// directory. If it begins with !, files that match are left out. If several are given, the last one that matches decides.
    #[arg(short, long, value_name = "GLOB")]
    pub glob: Vec<Glob>,

    /// In directories, read hidden files and folders too.
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

    /// Read any bytes as lines.
    ///
    /// Without this option, files of formats without lines are refused, which their first bytes show: Parquet, Arrow, Avro,
    /// ORC, SQLite, zip, 7z, tar, PDF, UTF-16 and some others. So are files that are compressed by other compressors, or twice.
    #[arg(long)]
    pub binary: bool,

    /// Action on bad input.
    ///
    /// Bad input is a line without a key, or an input that is broken or cannot be opened.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Fail)]
    pub on_error: OnError,

    /// Threads that do all the work [default: the available cores]
    #[arg(short = 'j', long, value_name = "THREADS", allow_negative_numbers = true, value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Bytes read at once
    #[arg(long, value_name = "BYTES", hide = true, default_value_t = 1 << 19, value_parser = value_parser!(u32).range(1..=1 << 30))]
    pub chunk_size: u32,
}

impl ReadOptions {
    /// Returns the number of threads that read and hash.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// Returns the paths of the inputs, and the filters for directories.
    pub fn named_paths(&self) -> NamedPaths<'_> {
        NamedPaths {
            paths: &self.files,
            list: self.files_from.as_deref(),
            globs: &self.glob,
            hidden: self.hidden,
            follow: self.follow,
            line_end: if self.binary { None } else { Some(self.line_end()) },
        }
    }

    /// Returns the parameters for reading lines of this format in chunks.
    pub fn chunk_config(&self, format: LineFormat) -> ChunkConfig {
        ChunkConfig { size: self.chunk_size as usize, format, keep: self.on_error == OnError::Keep }
    }

    /// Returns the number of chunks of compressed inputs that may wait for earlier inputs.
    pub fn max_chunks_ahead(&self) -> usize {
        self.threads() * READ_AHEAD_BYTES / self.chunk_size as usize
    }

    /// Returns the byte that ends a line.
    pub fn line_end(&self) -> u8 {
        if self.zero_terminated { 0 } else { b'\n' }
    }
}

/// The key of a line.
#[derive(Args)]
#[command(next_help_heading = "Keys (default: the whole line)")]
pub struct KeyOptions {
    /// Use these fields as the key: 2 or 1,3 or 2-4 or 2-, as in cut.
    ///
    /// The first field is 1; 2- goes to the last one, and -3 begins with the first. Several fields make one key in this order.
    /// With --header they may be named: -f url,title. A name with a comma, or that is a number, is in quotes: -f '"last, first"'.
    #[arg(
        short,
        long,
        short_alias = 'k',
        value_name = "LIST",
        allow_hyphen_values = true,
        value_parser = fields
    )]
    pub field: Vec<FieldList>,

    /// Text between fields [default: \t, with --csv a comma]
    ///
    /// \t is a tab, \0 is NUL, and \\ is a backslash.
    #[arg(short, long, value_name = "TEXT", value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,

    /// Read records of CSV, whose fields may have quotes around them.
    ///
    /// Inside quotes, a record continues across ends of lines (RFC 4180). The quotes are not part of a field, and neither is a
    /// carriage return at the end of the record. A backslash is text unless --escape is given. Without --field the key is the whole
    /// record as written. These have no key: a record with text after the closing quote of a field, with a carriage return alone
    /// outside of quotes, or with --header, with another number of fields than the header. If a quoted field is not closed, the input is broken there, and the message
    /// names the line where the record begins: --on-error keep keeps it, as a record without a key.
    #[arg(long)]
    pub csv: bool,

    /// Inside quotes, CHAR makes a quote text, as in "say \"hi\"".
    ///
    /// Spark and MySQL write a backslash there: --escape '\'. Doubled quotes are text as well, and CHAR before another character than
    /// a quote or itself is text.
    #[arg(long, value_name = "CHAR", value_parser = escape)]
    pub escape: Option<u8>,

    /// The first line of each input is a header.
    ///
    /// It is not a key, and is printed once: the header of the first input is the first line, and --dupes begins with it too. An
    /// input with another header counts as broken; quotes of CSV, a CR and a byte order mark make no difference. With
    /// --output-dir and --in-place each output has the header of its input. There, with --total, in `build`, and between OLD and
    /// NEW, headers may differ if all fields of the key are given by name. --annotate adds "mark" and a tab to it, and --count
    /// adds "count". Statistics do not count it.
    #[arg(long)]
    pub header: bool,

    /// Lines end with LF or CR LF: the CR is no part of the key.
    ///
    /// keep prints lines unchanged; lf and crlf give all of them this end. Inside the quotes of CSV nothing changes.
    #[arg(long, value_name = "END", value_enum)]
    pub eol: Option<Eol>,

    /// Leave out lines that are empty or have only ASCII white space
    #[arg(long)]
    pub skip_blank: bool,

    /// Use the value at this place in a line of JSON, such as /text.
    ///
    /// POINTER is a JSON pointer (RFC 6901). Numbers are compared by value, so 1 and 1.0 are one key, and 1 and "1" are two. Given
    /// several times, the values make one key.
    #[arg(long, value_name = "POINTER")]
    pub json_pointer: Vec<Pointer>,

    /// Use these columns of Parquet, or members of lines of JSON, as the key: url or url,day.
    ///
    /// Several make one key, in whatever order. page.url is a member of a struct, and in lines of JSON it is --json-pointer /page/url. A
    /// folder such as day=2026-11-01 gives its files a column, too. Without a key option the key of a row is all of it.
    #[arg(long, value_name = "LIST", value_parser = columns)]
    pub column: Vec<ColumnList>,

    /// Treatment of rows whose key has a null.
    ///
    /// It is for columns of Parquet, values of JSON, and texts that are read as numbers or times.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Nulls::Equal)]
    pub nulls: Nulls,

    /// Use the normal form of a URL, or read texts as numbers or times.
    ///
    /// AS is url, number, time or text, or for some parts of the key url:PARTS and so on. The normal form of a URL has the host in lower
    /// case without a dot at its end, no default port, no fragment, and %xx in upper case. Numbers are equal to those of JSON and
    /// Parquet: 007, 7.0 and 7e0. Times are dates, times of day and timestamps in ISO 8601, equal to those of Parquet. An empty text is
    /// then a null, and another text is bad input. text is for byte strings of Parquet: old files do not mark texts as such.
    #[arg(long, value_name = "AS", value_parser = normal)]
    pub normalize: Vec<Normal>,

    /// Remove ASCII white space at both ends of the key.
    ///
    /// In a key of several parts it applies to each, or to those whose numbers are given: --trim=1,3.
    #[arg(
        long,
        value_name = "PARTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_PARTS,
        value_parser = parts
    )]
    pub trim: Option<PartNumbers>,

    /// Put the key in lower case.
    ///
    /// This follows Unicode, or ASCII if the key is not UTF-8. In a key of several parts it applies to each, or to those whose
    /// numbers are given: with -f 1,2- --ignore-case=1 only the case of field 1 is ignored.
    #[arg(
        short,
        long,
        value_name = "PARTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_PARTS,
        value_parser = parts
    )]
    pub ignore_case: Option<PartNumbers>,
}

impl KeyOptions {
    /// Returns the rule for splitting lines into fields.
    pub fn field_split(&self) -> FieldSplit {
        let delimiter = self.delimiter.as_ref().map(|delimiter| &delimiter.0[..]);
        if self.csv {
            let csv = Csv::from(delimiter.map_or(b',', |delimiter| delimiter[0]));
            FieldSplit::Csv(Csv { escape: self.escape, ..csv })
        } else {
            FieldSplit::At(delimiter.unwrap_or(b"\t").to_vec())
        }
    }

    /// Returns the rule for the key of a line.
    pub fn rule(&self) -> KeyRule {
        let columns = self.column.iter().flat_map(|list| &list.0);
        let pointers: Vec<Pointer> = self.json_pointer.iter().chain(columns).cloned().collect();
        let selectors: Vec<FieldSelector> = self.field.iter().flat_map(|list| &list.0).cloned().collect();
        let part = match (&selectors[..], &pointers[..]) {
            ([], []) => match self.field_split() {
                FieldSplit::Csv(csv) => KeyPart::Record(csv),
                FieldSplit::At(_) => KeyPart::Line,
            },
            ([], _) => KeyPart::from_pointers(pointers),
            _ => KeyPart::Fields { selectors, split: self.field_split() },
        };
        // The carriage return of a CR LF is never part of the key of a CSV record or of a JSON value.
        let crlf = self.eol.is_some() && !self.csv && !matches!(part, KeyPart::Json(_));
        KeyRule {
            part,
            crlf,
            trim: self.trim.clone().unwrap_or_default(),
            ignore_case: self.ignore_case.clone().unwrap_or_default(),
            url: self.normalized_parts(NormalForm::Url),
            number: self.normalized_parts(NormalForm::Number),
            time: self.normalized_parts(NormalForm::Time),
            text: self.normalized_parts(NormalForm::Text),
            nulls: self.nulls == Nulls::Equal,
        }
    }

    /// Returns the parts of the key that `--normalize` reads in this form.
    fn normalized_parts(&self, form: NormalForm) -> PartNumbers {
        let of_form = self.normalize.iter().filter(|normal| normal.form == form);
        of_form.map(|normal| normal.parts.clone()).fold(PartNumbers::None, PartNumbers::or)
    }

    /// Returns the rule for hashing keys by `rule`, from lines with this end.
    pub fn hashing(&self, end: u8, rule: KeyRule, hasher: &KeyHasher, quiet: bool) -> Hashing {
        Hashing {
            format: self.line_format(end),
            rule,
            hasher: hasher.clone(),
            second_hasher: None,
            nulls: self.nulls.policy(),
            ends: LineEnds::new(quiet).into(),
        }
    }

    /// Returns the format of lines with this end.
    pub fn line_format(&self, end: u8) -> LineFormat {
        let csv = match self.field_split() {
            FieldSplit::Csv(csv) => Some(csv),
            FieldSplit::At(_) => None,
        };
        LineFormat { end, csv, header: self.header, skip_blank: self.skip_blank }
    }
}
