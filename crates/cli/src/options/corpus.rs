//! The options of `bloomline corpus`, and their combinations.

use crate::key::json::Pointer;
use crate::options::dedup::RunOptions;
use crate::options::filter::{SizeOptions, WhenFull};
use crate::options::groups::GroupOptions;
use crate::options::reading::ReadOptions;
use crate::options::values::{rate, share};
use crate::read::table::COUNT;
use crate::read::table::MEMBER;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::choice::KeepPolicy;
use crate::system::files::is_standard;
use bloomline_text::near::Near;
use bloomline_text::{Form, Rules};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Options of `bloomline corpus`.
#[derive(Args)]
#[command(mut_arg("expected_keys", |arg| arg.help("Distinct grams to plan for, such as 5M [default: estimated]").long_help(
    "Distinct grams to plan for, such as 5M [default: estimated]\n\nThere is about one gram for each word. With --ngram 0 the number \
     is of units, and with --near of documents, such as 5000000, 5M or 5e6. By default it is estimated from samples. If that is too \
     low, the filter takes more memory and keeps its rate."
)))]
#[command(mut_arg("fpr", |arg| arg.help("False-positive rate of a gram [default: 0.01, with --ngram 0 1e-6]").long_help(
    "False-positive rate of a gram [default: 0.01, with --ngram 0 1e-6]\n\nIt holds once the expected grams are in. With --ngram 0 it \
     is the rate of a unit, and with --near of a document."
)))]
#[command(mut_arg("when_full", |arg| arg.value_parser(when_full()).help("Warn or grow when it is full").long_help(
    "Warn or grow when it is full.\n\nBy default it grows, and warns if --max-fpr is given."
)))]
#[command(mut_arg("on_error", |arg| arg.long_help(
    "Action on bad input.\n\nBad input is a line without a text, or an input that is broken or cannot be opened."
)))]
pub struct CorpusOptions {
    #[command(flatten)]
    pub reading: ReadOptions,

    /// Path of the text in a line of JSON (RFC 6901)
    #[arg(long, value_name = "POINTER", default_value = "/text", help_heading = "Duplicates")]
    json_pointer: Pointer,

    /// Column of Parquet, or member of lines of JSON, that has the text, such as text.
    #[arg(long, value_name = "NAME", conflicts_with = "json_pointer", help_heading = "Duplicates")]
    column: Option<String>,

    /// Unit that is kept or removed.
    ///
    /// A paragraph ends before the next newline, and is the default. A blank one is never a duplicate. If the first paragraph is
    /// cut, the blank ones before the next are cut with it.
    #[arg(long, value_name = "UNIT", help_heading = "Duplicates")]
    by: Option<Unit>,

    /// Compare units by n-grams of N words; 0 compares exact text [default: 13]
    ///
    /// Words are those of UAX #29.
    #[arg(long, value_name = "N", help_heading = "Duplicates")]
    ngram: Option<usize>,

    /// Keep units of fewer words than this [default: 13, at most --ngram]
    ///
    /// A unit of at least this many words, but fewer than --ngram, is one gram.
    #[arg(long, value_name = "WORDS", help_heading = "Duplicates")]
    min_ngram: Option<usize>,

    /// Share of a unit's grams above which it is a duplicate [default: 0.8]
    ///
    /// It is a number from 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Duplicates")]
    threshold: Option<f64>,

    /// A share equal to the threshold is enough
    #[arg(long, help_heading = "Duplicates")]
    at_least: bool,

    /// Drop a document if the share of all its grams passes the threshold
    #[arg(long, help_heading = "Duplicates", conflicts_with = "near")]
    drop_document: bool,

    /// With --ngram 0, compare without white space at both ends
    #[arg(long, help_heading = "Duplicates")]
    trim: bool,

    /// With --ngram 0, compare in lower case
    #[arg(short, long, help_heading = "Duplicates")]
    ignore_case: bool,

    /// Differences that are ignored when texts are compared, such as nfkc,case.
    ///
    /// Each unit is normalized by itself, and only for the comparison: the output keeps the original text. White space between
    /// words never counts for grams, so space and crlf are for exact texts. With --against the default is
    /// nfkc,case,ignorable,symbols,space, and text includes ignorable.
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', help_heading = "Duplicates")]
    normalize: Vec<Normal>,

    /// Find near duplicates: documents about this similar, such as 0.8.
    ///
    /// SIMILARITY is the Jaccard index of the documents' sets of 5-grams of words. Signatures find nearly half of them at this
    /// similarity, and most at 0.1 above it. -n counts documents, and -p is the chance that a unique document is dropped. Some
    /// less similar documents are dropped too, unless --exact is given.
    #[arg(long, value_name = "SIMILARITY", value_parser = rate, help_heading = "Duplicates")]
    #[arg(conflicts_with_all = ["by", "ngram", "min_ngram", "threshold", "at_least", "trim", "ignore_case", "like"])]
    pub near: Option<f64>,

    /// Set the options to the rules of another tool.
    ///
    /// Options on the command line override them.
    #[arg(long, value_name = "TOOL", help_heading = "Duplicates")]
    like: Option<Like>,

    #[command(flatten)]
    pub size: SizeOptions,

    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    pub groups: GroupOptions,

    /// Write into each document how often it occurs, as a member "count" at its end.
    ///
    /// An existing member of this name is replaced. A table gets a column of this name, and is refused if it already has one.
    /// Only this run is counted.
    #[arg(short, long, alias = "counts", help_heading = "Output")]
    pub count: bool,

    /// Lose no document by mistake.
    ///
    /// Whole documents that look alike are compared by 128-bit hashes. The inputs are read twice; see --keep for the cost.
    /// --count, --pairs, --clusters and --keep include this option. With a state, a document may still be mistaken for one of an
    /// earlier run.
    ///
    /// With --near, documents that may be similar are compared by their sets of grams. For this, the inputs are read once more.
    /// Documents that similar pairs connect form one group.
    #[arg(long, help_heading = "Duplicates")]
    pub exact: bool,

    /// Keep documents that have only white space left.
    ///
    /// Without this option they are removed, and so are documents that were blank from the start, unless --frozen is given. With
    /// it, a duplicate of a whole document is kept too, without its text. Its --count is 0, because the copy with the text counts
    /// it.
    #[arg(long, help_heading = "Output")]
    keep_empty: bool,

    /// Cut nothing, and write into each line what would be cut.
    ///
    /// Each line gets the spans of the text in bytes, each with its share, and whether the document would be dropped. Blank text that
    /// would be cut with others has the share 0. A state remembers what would be kept.
    #[arg(long, help_heading = "Output")]
    pub annotate: bool,

    /// Remove only what also occurs in the texts of PATH.
    ///
    /// PATH is a file or a directory, such as a test set, and may be given several times. Its texts are at --json-pointer or
    /// --column, too. A unit is removed if one of its grams is in these texts, regardless of case, punctuation, symbols and
    /// spacing; --threshold asks for more grams, and --normalize for another form. Nothing is removed by mistake. --by document,
    /// --threshold 0 and --min-ngram 5 are the defaults here. --glob does not apply to these files.
    #[arg(long, value_name = "PATH", help_heading = "Duplicates")]
    #[arg(conflicts_with_all = ["near", "like", "state", "frozen", "resume"])]
    #[arg(conflicts_with_all = ["expected_keys", "fpr", "memory", "max_fpr", "when_full"])]
    pub against: Vec<PathBuf>,

    /// With --against, write to FILE which documents overlap with each text.
    ///
    /// It has a line of JSON for each text of PATH, in order.
    #[arg(long, value_name = "FILE", group = "reports", help_heading = "Output")]
    pub report: Option<PathBuf>,

    /// Insert nothing: only remove what the state holds.
    ///
    /// The state is not changed.
    #[arg(long, help_heading = "Remembering")]
    #[arg(conflicts_with_all = ["shrink", "checkpoint", "resume", "wait"])]
    #[arg(conflicts_with_all = ["expected_keys", "fpr", "seed", "memory", "max_fpr", "when_full"])]
    frozen: bool,

    /// The filter of --frozen.
    #[arg(skip)]
    filter: Option<PathBuf>,
}

/// The unit that is kept or removed as a whole.
#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    /// All of a text
    Document,
    /// A line of it
    Paragraph,
}

/// The differences that are ignored.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Normal {
    /// Composition of characters: é is one, or e and an accent
    Nfc,
    /// The same, and how they look: ligatures, width, superscripts
    Nfkc,
    /// Case, by full case folding: ß and SS are equal
    Case,
    /// Which digit a digit of any script is
    Digits,
    /// Punctuation, and the symbols of ASCII: it's is its, a-b is ab
    Punctuation,
    /// All but letters, marks and numbers: a-b is two words, it's is its
    Symbols,
    /// Invisible characters, such as a zero-width space or a soft hyphen
    Ignorable,
    /// White space
    Space,
    /// A carriage return before a newline or the end
    Crlf,
    /// nfkc,case,digits,punctuation,space
    Text,
    /// All counts, with --against too
    None,
}

/// Tools with known rules.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Like {
    /// dedup/bff of mlfoundations/dclm, as its README runs it: the defaults. With --drop-document it is --remove-type old-both
    Dclm,
    /// allenai/bff: --min-ngram 5 --keep-empty
    Bff,
    /// allenai/dolma, without its n-grams: --ngram 0 --keep-empty
    Dolma,
    /// C4, whose paragraphs are lines: --ngram 0 --trim --ignore-case
    C4,
}

/// The values of options that are not given.
struct Preset {
    by: Unit,
    ngram: usize,
    min_ngram: usize,
    threshold: f64,
    trim: bool,
    ignore_case: bool,
    keep_empty: bool,
}

impl Preset {
    const DEFAULT: Self = Self {
        by: Unit::Paragraph,
        ngram: 13,
        min_ngram: 13,
        threshold: 0.8,
        trim: false,
        ignore_case: false,
        keep_empty: false,
    };

    /// The values with --against.
    const AGAINST: Self = Self { by: Unit::Document, min_ngram: 5, threshold: 0.0, ..Self::DEFAULT };

    /// Returns the values with --like.
    const fn from_like(like: Like) -> Self {
        match like {
            Like::Dclm => Self::DEFAULT,
            Like::Bff => Self { min_ngram: 5, keep_empty: true, ..Self::DEFAULT },
            Like::Dolma => Self { ngram: 0, keep_empty: true, ..Self::DEFAULT },
            Like::C4 => Self { ngram: 0, trim: true, ignore_case: true, ..Self::DEFAULT },
        }
    }
}

/// Parses the options for a full filter of grams.
fn when_full() -> impl TypedValueParser<Value = WhenFull> {
    let values = [WhenFull::Warn, WhenFull::Grow].map(|when| when.to_possible_value().expect("none is skipped"));
    PossibleValuesParser::new(values).map(|text| WhenFull::from_str(&text, false).expect("it is possible"))
}

impl CorpusOptions {
    /// Checks the combination of the options, and resolves their defaults.
    pub fn resolve(&mut self) -> Result<(), clap::Error> {
        self.run.in_order |= self.groups.keep.is_some();
        let rule = self.rule();
        let conflict = |message: &str| Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
        if (self.trim || self.ignore_case) && rule.text.ngram > 0 {
            return conflict("--trim and --ignore-case are for exact texts, so give --ngram 0 too");
        }
        let standard = |paths: &[PathBuf]| paths.iter().any(|path| is_standard(path));
        let reads_standard = self.reading.files.is_empty() && self.reading.list().is_none();
        if standard(&self.against) && (reads_standard || standard(&self.reading.files)) {
            return conflict("standard input is --against and an input: name a file for one of them");
        }
        if self.normalize.contains(&Normal::None) && self.normalize.len() > 1 {
            return conflict(
                "--normalize none compares texts unchanged, without other steps: leave it out, or give it alone",
            );
        }
        let spaces = self.normalize.iter().any(|switch| matches!(switch, Normal::Space | Normal::Crlf));
        if spaces && (rule.text.ngram > 0 || rule.near.is_some()) {
            return conflict(
                "--normalize space and crlf are for exact texts, because n-grams ignore white space between words: leave them \
                 out, or add --ngram 0",
            );
        }
        if self.annotate && rule.pointer.tokens().first().is_some_and(|name| name == MEMBER) {
            return conflict(&format!(
                "--annotate replaces the member {MEMBER:?}, which contains the text: name another --json-pointer, or rename the \
                 member"
            ));
        }
        if self.count && rule.pointer.tokens().first().is_some_and(|name| name == COUNT) {
            return conflict(&format!(
                "--count replaces the member {COUNT:?}, which contains the text: name another --json-pointer, or rename the \
                 member"
            ));
        }
        if matches!(self.like, Some(Like::Dolma | Like::C4)) && rule.text.ngram > 0 {
            return conflict("--like dolma and c4 compare exact texts: leave out --ngram, or leave out --like");
        }
        if self.min_ngram.is_some() && rule.text.ngram == 0 {
            return conflict("--min-ngram has no effect with --ngram 0: leave it out");
        }
        if rule.text.ngram == 0 && !self.drop_document && (self.threshold.is_some() || self.at_least) {
            return conflict(
                "--threshold and --at-least are for grams, and --ngram 0 compares exact texts: leave them out, or add \
                 --drop-document",
            );
        }
        if let Some(min_ngram) = self.min_ngram.filter(|min_ngram| *min_ngram > rule.text.ngram) {
            let ngram = rule.text.ngram;
            return conflict(&format!(
                "--min-ngram {min_ngram} is above --ngram {ngram}, so units with fewer words would always be kept: give at most \
                 {ngram}"
            ));
        }
        if let Some(option) = self.asks_for_groups() {
            self.check_groups(&rule, option)?;
        }
        if self.frozen {
            self.filter = self.run.state.take();
        }
        // The default rates for grams, and for the bands of near duplicates.
        if rule.text.ngram > 0 {
            self.size.default_fpr = Some(0.01);
        }
        if let Some(near) = rule.near {
            let SizeOptions { expected_keys, fpr, default_fpr, .. } = &mut self.size;
            *expected_keys = expected_keys.map(|documents| documents.saturating_mul(near.bands() as u64));
            *fpr = fpr.map(|fpr| near.band_fpr(fpr));
            self.run.growth.max_fpr = self.run.growth.max_fpr.map(|fpr| near.band_fpr(fpr));
            *default_fpr = default_fpr.map(|fpr| near.band_fpr(fpr));
        }
        Ok(())
    }

    /// Returns the first option for which all documents must be known.
    pub fn asks_for_groups(&self) -> Option<&'static str> {
        let last = (self.groups.keep == Some(KeepPolicy::Last)).then_some("--keep last");
        let options = [(self.count, "--count"), (self.exact, "--exact")];
        let option = options.iter().find(|(given, _)| *given).map(|(_, option)| *option);
        self.groups.given().or(last).or(option)
    }

    /// Refuses options that do not work with groups.
    fn check_groups(&self, rule: &DocumentRule, option: &str) -> Result<(), clap::Error> {
        let conflict = |message: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
        let others = [
            (self.frozen, "--frozen"),
            (!self.against.is_empty(), "--against"),
            (self.annotate, "--annotate"),
            (self.drop_document, "--drop-document"),
            (self.run.in_place, "--in-place"),
        ];
        match others.iter().find(|(given, _)| *given) {
            Some((_, other)) => {
                conflict(format!("the argument '{option}' cannot be used with '{other}'; leave one of them out"))
            }
            None if rule.near.is_none()
                && (rule.text.unit != bloomline_text::Unit::Document || rule.text.ngram > 0) =>
            {
                conflict(format!("{option} is for whole documents: give --by document --ngram 0 too, or --near"))
            }
            None => self.run.check_checkpoint(option),
        }
    }

    /// The filter of --frozen, which is only read.
    pub fn frozen(&self) -> Option<&Path> {
        self.filter.as_deref()
    }

    /// Returns the rule for documents that the options ask for.
    pub fn rule(&self) -> DocumentRule {
        let against = !self.against.is_empty();
        let preset = if against { Preset::AGAINST } else { self.like.map_or(Preset::DEFAULT, Preset::from_like) };
        let mut text = Rules::default();
        text.unit = match self.by.unwrap_or(preset.by) {
            Unit::Document => bloomline_text::Unit::Document,
            Unit::Paragraph => bloomline_text::Unit::Paragraph,
        };
        text.ngram = self.ngram.unwrap_or(preset.ngram);
        text.min_ngram = self.min_ngram.unwrap_or(preset.min_ngram.min(text.ngram));
        text.threshold = self.threshold.unwrap_or(preset.threshold);
        text.at_least = self.at_least;
        text.drop_document = self.drop_document;
        text.trim = self.trim || preset.trim;
        text.ignore_case = self.ignore_case || preset.ignore_case;
        text.frozen = self.frozen || against;
        text.form = self.form();
        let near = |similarity| Near::new(similarity).expect("it is between 0 and 1").with_form(text.form);
        let near = self.near.map(near);
        let keep_empty = self.keep_empty || preset.keep_empty;
        let column = self.column.as_ref().map(|column| Pointer::from_names(column.split('.')));
        let pointer = column.unwrap_or_else(|| self.json_pointer.clone());
        let object = self.annotate || self.count;
        DocumentRule { pointer, text, near, keep_empty, annotate: self.annotate, object, second: None }
    }

    /// Returns the normal form of texts.
    fn form(&self) -> Form {
        let against = !self.against.is_empty();
        let given = |switch| self.normalize.contains(&switch);
        let is_text = given(Normal::Text);
        // Copies of a test seldom keep its case, quotes and line breaks.
        let is_default = against && self.normalize.is_empty();
        let mut form = Form::default();
        form.nfkc = is_text || is_default || given(Normal::Nfkc);
        form.nfc = given(Normal::Nfc);
        form.case = is_text || is_default || given(Normal::Case);
        form.digits = is_text || given(Normal::Digits);
        form.punctuation = is_text || given(Normal::Punctuation);
        form.symbols = is_default || given(Normal::Symbols);
        // States record what `text` means, and --against has no state.
        form.ignorable = is_text && against || is_default || given(Normal::Ignorable);
        form.space = is_text || is_default || given(Normal::Space);
        form.crlf = given(Normal::Crlf);
        form
    }
}
