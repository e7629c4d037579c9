//! The options of `bloomline corpus`.

use crate::key::json::Pointer;
use crate::options::dedup::RunOptions;
use crate::options::filter::{SizeOptions, WhenFull};
use crate::options::groups::GroupOptions;
use crate::options::reading::ReadOptions;
use crate::options::values::{only, rate, share, whole_share, window_length};
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::choice::{KeepPolicy, parse_value_pointer};
use crate::steps::groups::near::survivors::Thresholds;
use bloomline_text::near::Near;
use bloomline_text::substrings::{self, Ends};
use bloomline_text::{Form, Rules};
use clap::{Args, ValueEnum};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// The largest N of `--sample N`.
pub const MAX_SAMPLE: u32 = 1 << 16;

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
#[command(mut_arg("memory", |arg| arg.long_help(
    "Memory for the filter, such as 16M or 1.5GiB, instead of -n.\n\nIt is a number of bytes, or a number with K, M, G or T (or KB, \
     KiB and so on) for powers of 1024. The rate is that of -p. If the grams of the files do not fit, one of 2, 4, 8 and so on is \
     compared, as with --sample, until they do; with --sample or --ngram 0 such a size is refused, unless -p is given. With \
     --when-full grow, a full filter takes more memory instead."
)))]
#[command(mut_arg("when_full", |arg| arg.value_parser(only(&[WhenFull::Warn, WhenFull::Grow]))))]
#[command(mut_arg("on_error", |arg| arg.long_help(
    "Action on bad input.\n\nBad input is a line without a text, or an input that is broken or cannot be opened."
)))]
pub struct CorpusOptions {
    #[command(flatten)]
    pub reading: ReadOptions,

    /// Path of the text in a line of JSON (RFC 6901)
    #[arg(long, value_name = "POINTER", default_value = "/text", help_heading = "Duplicates")]
    pub json_pointer: Pointer,

    /// Column of Parquet, or member of JSON, with the text, such as text.
    #[arg(long, value_name = "NAME", help_heading = "Duplicates")]
    pub column: Option<String>,

    /// Unit that is kept or removed.
    ///
    /// A paragraph ends before the next newline, and is the default. A blank one is never a duplicate. If the first paragraph is
    /// cut, the blank ones before the next are cut with it.
    #[arg(long, value_name = "UNIT", help_heading = "Duplicates")]
    pub by: Option<Unit>,

    /// Compare units by n-grams of N words; 0 compares exact text [default: 13]
    ///
    /// Words are those of UAX #29.
    #[arg(long, value_name = "N", help_heading = "Duplicates")]
    pub ngram: Option<usize>,

    /// Keep units of fewer words than this [default: 13, at most --ngram]
    ///
    /// A unit of at least this many words, but fewer than --ngram, is one gram.
    #[arg(long, value_name = "WORDS", help_heading = "Duplicates")]
    pub min_ngram: Option<usize>,

    /// Share of a unit's grams above which it is a duplicate [default: 0.8]
    ///
    /// It is a number from 0 to below 1.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Duplicates")]
    pub threshold: Option<f64>,

    /// Compare one of N grams, and at least two of each unit [default: 1, or that of the state]
    ///
    /// The filter takes a fraction of the memory, and some units are decided otherwise. A state records N, and continues with the
    /// same or a larger one. With -m, the smallest N is the default for which the grams fit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_SAMPLE.into()), help_heading = "Duplicates")]
    pub sample: Option<u32>,

    /// Drop a document if the share of all its grams passes the threshold
    #[arg(long, help_heading = "Duplicates")]
    pub drop_document: bool,

    /// Differences that are ignored when texts are compared, such as nfkc,case.
    ///
    /// Each unit is normalized by itself, and only for the comparison: the output keeps the original text. White space between
    /// words never counts for grams, so trim, space and crlf are for exact texts, and so is lower. With --against the default is
    /// nfkc,case,ignorable,symbols,katakana,space, and text includes ignorable.
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', help_heading = "Duplicates")]
    pub normalize: Vec<Normal>,

    /// Find near duplicates: documents at least this similar, such as 0.8.
    ///
    /// SIMILARITY is the Jaccard index of the documents' sets of 5-grams of words. Signatures find nearly half of them at this
    /// similarity, and most at 0.1 above it. A document is compared with documents that are kept, and removed because of one of
    /// these. The inputs are read three times; see --keep for the cost. -n counts documents.
    ///
    /// With --annotate, --in-place, --frozen or --checkpoint, the inputs are read once and nothing is compared: some less similar
    /// documents are removed too, and --stats estimates their number. -p then is the chance that a unique document is removed.
    /// Documents of a state are never compared.
    #[arg(long, value_name = "SIMILARITY", value_parser = rate, help_heading = "Duplicates")]
    pub near: Option<f64>,

    /// With --near, remove a document only if the one that is kept has this share of its grams.
    ///
    /// SHARE is a number from 0 to 1, such as 0.9, and grams are sequences of five words. At 1, nothing is removed that the
    /// document that is kept does not say. A state has no texts to compare with: give --earlier for the documents of earlier runs.
    #[arg(long, value_name = "SHARE", value_parser = whole_share, help_heading = "Duplicates")]
    pub contained: Option<f64>,

    /// With --near or --substrings, compare with the documents of PATH too, and keep these.
    ///
    /// PATH is a file or a directory, such as the output of earlier runs or, for --substrings, their inputs. It may be given several
    /// times. Its texts are at --json-pointer or --column, too. It is only read. Inputs and outputs of this run below a directory
    /// are left out, and the directory may be empty.
    #[arg(long, value_name = "PATH", help_heading = "Duplicates")]
    pub earlier: Vec<PathBuf>,

    /// Cut every run of N words that occurred before, anywhere in a text; 50 is usual.
    ///
    /// The first copy is kept, in the order of the inputs. The result is that of the set of all runs of N words, without false
    /// positives. Words are those of n-grams, so in Chinese, Japanese and Thai each character is one. The inputs are read twice, or
    /// more often if -m leaves no room for all runs that may be repeats; -m is for all of this. -n is the number of words, and -p
    /// affects the time alone.
    #[arg(long, value_name = "N", value_parser = window_length, help_heading = "Duplicates")]
    pub substrings: Option<NonZero<usize>>,

    /// Ends of the cuts of --substrings [default: words]
    ///
    /// lines and sentences are cut only as a whole, if all their words are in such runs.
    #[arg(long, value_name = "ENDS", value_enum, help_heading = "Duplicates")]
    pub cut: Option<CutEnds>,

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
    /// --near without an option for one reading includes this option.
    #[arg(long, help_heading = "Duplicates")]
    pub exact: bool,

    /// Keep documents that have only white space left.
    ///
    /// Without this option they are removed, and so are documents that were blank from the start, unless --frozen or --against is
    /// given. With it, a document that is cut as a whole, also by --against, is kept without its text, unless --drop-document
    /// drops it. The --count of such a duplicate is 0, because the copy with the text counts it.
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
    /// --column, too. A unit is removed if one of its grams is in these texts, or if it contains a whole text that is shorter than
    /// a gram, regardless of case, punctuation, symbols and spacing; --threshold asks for more grams, and --normalize for another
    /// form. No unit is removed by a false positive. In a short text, one run of words may differ, up to an eighth, if the other
    /// words are rare in a sample of the inputs; a short text that more than 1 in 1000 sampled documents contain removes nothing. --by
    /// document, --threshold 0 and --min-ngram 5 are the defaults here. --glob does not apply to these files.
    #[arg(long, value_name = "PATH", help_heading = "Duplicates")]
    pub against: Vec<PathBuf>,

    /// Find a short text of --against only with its answer, such as /answer.
    ///
    /// The answer is a string or a number at POINTER, a JSON pointer or the name of a column. It must occur within 32 words before or
    /// after a text that is shorter than a gram. A text without an answer is found by itself.
    #[arg(long, value_name = "POINTER", value_parser = parse_value_pointer, help_heading = "Duplicates")]
    pub answer: Option<Pointer>,

    /// With --against, write to FILE which documents overlap with each text.
    ///
    /// It has a line of JSON for each text of PATH, in order, with the place in each document and the words around it.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,

    /// Insert nothing: only remove what the state holds.
    ///
    /// The state is not changed.
    #[arg(long, help_heading = "Remembering")]
    pub frozen: bool,

    /// The filter of --frozen.
    #[arg(skip)]
    filter: Option<PathBuf>,
}

/// The unit that is kept or removed as a whole.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// All of a text
    Document,
    /// A line of it
    Paragraph,
}

/// The places where cuts begin and end.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CutEnds {
    /// Any word
    Words,
    /// Lines of the text
    Lines,
    /// Sentences by UAX #29
    Sentences,
}

/// The differences that are ignored.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Normal {
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
    /// Runs of Katakana: each character is a word
    Katakana,
    /// Invisible characters, such as a zero-width space or a soft hyphen
    Ignorable,
    /// White space
    Space,
    /// White space at both ends
    Trim,
    /// Case, by lower case alone: ß and SS differ
    Lower,
    /// A carriage return before a newline or the end
    Crlf,
    /// nfkc,case,digits,punctuation,space
    Text,
    /// All counts, with --against too
    None,
}

impl CorpusOptions {
    /// Resolves defaults that depend on other options.
    pub fn resolve(&mut self) {
        self.run.in_order |= self.groups.keep.is_some() || self.substrings.is_some();
        let rule = self.rule();
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
            *default_fpr = default_fpr.map(|fpr| near.band_fpr(fpr));
        }
    }

    /// Returns the first option for which all documents must be known.
    pub fn asks_for_groups(&self) -> Option<&'static str> {
        let last = (self.groups.keep == Some(KeepPolicy::Last)).then_some("--keep last");
        let options = [(self.count, "--count"), (self.exact, "--exact")];
        let option = options.iter().find(|(given, _)| *given).map(|(_, option)| *option);
        self.groups.first_given().or(last).or(option).or(self.compares().then_some("--near"))
    }

    /// Returns the thresholds of near duplicates.
    pub fn thresholds(&self) -> Option<Thresholds> {
        Some(Thresholds { similarity: self.near?, contained: self.contained.unwrap_or(0.0) })
    }

    /// True if near duplicates are compared. Some options leave a single reading.
    fn compares(&self) -> bool {
        let reads_once =
            self.annotate || self.frozen || self.filter.is_some() || self.run.in_place || self.run.checkpoint.is_some();
        self.near.is_some() && !reads_once
    }

    /// Returns the filter of --frozen, which is only read.
    pub fn frozen(&self) -> Option<&Path> {
        self.filter.as_deref()
    }

    /// Returns the unit that is kept or removed.
    pub fn unit(&self) -> Unit {
        self.by.unwrap_or(if self.against.is_empty() { Unit::Paragraph } else { Unit::Document })
    }

    /// Returns the rule for documents that the options ask for.
    pub fn rule(&self) -> DocumentRule {
        let against = !self.against.is_empty();
        let mut text = Rules::default();
        text.unit = match self.unit() {
            Unit::Document => bloomline_text::Unit::Document,
            Unit::Paragraph => bloomline_text::Unit::Paragraph,
        };
        if self.substrings.is_some() {
            text.unit = bloomline_text::Unit::Document;
        }
        text.ngram = self.ngram.or(self.substrings.map(NonZero::get)).unwrap_or(text.ngram);
        let (min_ngram, threshold) = if against { (5, 0.0) } else { (text.min_ngram, text.threshold) };
        text.min_ngram = self.min_ngram.unwrap_or(min_ngram.min(text.ngram));
        text.threshold = self.threshold.unwrap_or(threshold);
        text.drop_document = self.drop_document;
        text.sample = self.sample.unwrap_or(1);
        text.trim = self.normalize.contains(&Normal::Trim);
        text.ignore_case = self.normalize.contains(&Normal::Lower);
        text.frozen = self.frozen || against;
        text.form = self.form();
        let near =
            |similarity| Near::new(similarity).expect("the parser accepts only similarities").with_form(text.form);
        let near = self.near.map(near);
        let substrings = self.substrings.map(|length| {
            let mut rules = substrings::Rules::new(length.get());
            rules.form = text.form;
            rules.ends = match self.cut {
                None | Some(CutEnds::Words) => Ends::Words,
                Some(CutEnds::Lines) => Ends::Lines,
                Some(CutEnds::Sentences) => Ends::Sentences,
            };
            rules
        });
        let column = self.column.as_ref().map(|column| Pointer::from_names(column.split('.')));
        let pointer = column.unwrap_or_else(|| self.json_pointer.clone());
        let object = self.annotate || self.count;
        DocumentRule {
            pointer,
            text,
            near,
            similarity: self.near,
            substrings,
            asked_sample: self.sample,
            keep_empty: self.keep_empty,
            annotate: self.annotate,
            object,
            phrases: None,
            second_hasher: None,
        }
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
        form.katakana = is_default || given(Normal::Katakana);
        // States record what `text` means, and --against has no state.
        form.ignorable = is_text && against || is_default || given(Normal::Ignorable);
        form.space = is_text || is_default || given(Normal::Space);
        form.crlf = given(Normal::Crlf);
        form
    }
}
