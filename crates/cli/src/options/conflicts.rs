//! Options that need others, or exclude them, with the sentences that say so.
//!
//! clap declares both too. But it waives a requirement if another given option conflicts with the required one, and its sentences give
//! no reason. An option that a run would ignore is refused here.

use crate::key::fields::{FieldSelector, FieldSplit};
use crate::key::{KeyPart, PartNumbers};
use crate::options::corpus::{Normal, Unit};
use crate::options::filter::WhenFull;
use crate::options::groups::GroupOptions;
use crate::options::reading::KeyOptions;
use crate::options::sets::SetOptions;
use crate::options::values::Delimiter;
use crate::options::{Command, CorpusOptions, DedupOptions};
use crate::read::table::COUNT;
use crate::read::table::MEMBER;
use crate::steps::groups::choice::KeepPolicy;
use crate::system::files::is_standard;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Error};
use std::path::PathBuf;

/// Options that need another: at least one of those listed, as far as the command has them.
pub const NEEDS: &[(&str, &str)] = &[
    ("delimiter", "field csv"),
    ("escape", "csv"),
    ("in_order", "output_dir"),
    ("manifest", "output_dir"),
    ("force", "output output_dir dupes pairs clusters report"),
    ("shrink", "state"),
    ("checkpoint", "state"),
    ("wait", "state"),
    ("frozen", "state"),
    ("resume", "state"),
    ("resume", "output output_dir"),
    ("report", "against"),
    ("id", "pairs clusters report"),
    ("stats_every", "stats"),
    ("stats_every", "redis"),
    ("name", "redis"),
    ("redis", "name"),
    ("redis_ca", "redis"),
    ("redis_cert", "redis"),
    ("redis_cert", "redis_key"),
    ("redis_key", "redis"),
    ("redis_key", "redis_cert"),
    ("redis_wait", "redis"),
    ("no_mirror", "redis"),
    ("forget_after", "redis"),
    ("forget_after", "expected_keys"),
];

/// Options that exclude others: the commands, the option, the others, and the reason.
pub const CONFLICTS: &[(&str, &str, &str, &str)] = &[
    // The key.
    (LINES, "field", "json_pointer column", "it names fields of text, and the other one values of JSON or Parquet"),
    (LINES, "csv", "json_pointer column", "it reads fields of text, and the other one values of JSON or Parquet"),
    (LINES, "delimiter", "json_pointer column", "it splits text, and the other one names values of JSON or Parquet"),
    (READING, "column", "json_pointer", "both name the value"),
    (LINES, "eol", "zero_terminated", "lines end with NUL"),
    // The filter.
    ("dedup corpus in not-in", "memory", "expected_keys", "both set the size"),
    ("build", "append", "expected_keys fpr seed when_full no_shrink", "the filter keeps its size, rate and seed"),
    ("dedup", "exact", "state redis", "a filter of earlier runs has no lines to compare with"),
    ("dedup", "redis", "memory when_full", "a shared filter has the size of -n, or grows"),
    ("dedup check", "redis", "state", "the filter is in one of them"),
    ("corpus", "frozen", "shrink checkpoint resume wait", "the state is not changed"),
    ("corpus", "frozen", "expected_keys fpr seed memory when_full", "the state has its size, rate and seed"),
    // The destination, and the lines that it gets.
    ("dedup corpus", "output_dir", "output dupes", "each input has an output of its own"),
    ("dedup corpus", "in_place", "output output_dir dupes", "each input is replaced by what is kept of it"),
    ("dedup corpus", "in_place", "state redis", "the next run would find that all lines of the files are repeats"),
    ("dedup corpus", "in_place", "force", "no other output is overwritten"),
    ("dedup", "in_place", "invert annotate total count repeated unique", "a file keeps one copy of each line"),
    ("dedup", "in_place", "keep pairs clusters", "a file keeps the first copy, and is read once"),
    ("corpus", "in_place", "count exact pairs clusters", ONE_READING),
    ("dedup", "annotate", "dupes invert total", "it prints every line"),
    ("dedup", "annotate", "count repeated unique", "it prints every line, and the other one distinct lines"),
    ("dedup", "count", "invert", "it counts the lines that are kept"),
    ("dedup", "count", "total", "no lines are printed"),
    ("dedup", "unique", "repeated", "no line is both"),
    ("dedup", "invert", "dupes", "both are for the repeats"),
    ("dedup", "total", "output_dir", "it is one number for all inputs"),
    ("dedup", "total", "resume", "a number cannot be continued"),
    ("dedup", "redis", "total invert output_dir", "lines that the server records might never be printed"),
    ("dedup", "count", "state redis", ONE_RUN),
    ("dedup", "repeated", "state redis", ONE_RUN),
    ("dedup", "unique", "state redis", ONE_RUN),
    ("dedup", "pairs", "redis", NO_LINE),
    ("dedup", "clusters", "redis", NO_LINE),
    ("dedup", "checkpoint", "pairs clusters", READ_TWICE),
    ("corpus", "checkpoint", "count exact pairs clusters", READ_TWICE),
    ("check in not-in", "any", "total output compress", "it prints nothing"),
    ("not-in", "any", "distinct", "it ends at the first line"),
    // Texts.
    ("corpus", "near", "by ngram min_ngram threshold drop_document", "it compares whole documents by 5-grams"),
    ("corpus", "against", "near", "tests are found by n-grams"),
    ("corpus", "against", "state frozen resume", "it removes what is in the tests, and remembers nothing"),
    ("corpus", "against", "expected_keys fpr memory when_full", "its filter is for the tests, and makes no mistake"),
    ("corpus", "against", "count exact keep pairs clusters", "documents are compared with the tests alone"),
    ("corpus", "frozen", "count exact keep pairs clusters", "documents are compared with the state alone"),
    ("corpus", "annotate", "count exact pairs clusters", ONE_READING),
    ("corpus", "drop_document", "count exact pairs clusters", ONE_READING),
    ("import", "set", "files", "keys are read from one of them"),
];

/// Options that go only with those listed: the commands, the option, the others, and the reason.
pub const ALONE: &[(&str, &str, &str, &str)] = &[
    ("check", "verify", "state redis redis_ca redis_cert redis_key name", "it has keys of its own and reads no lines"),
    ("plan", "table", "json", "it is for all sizes and rates"),
];

/// The commands with keys of lines, and those that read inputs.
const LINES: &str = "dedup build check in not-in";
const READING: &str = "dedup corpus build check in not-in";

const ONE_RUN: &str = "a filter does not record how often its lines occur; count the lines of one run";
const NO_LINE: &str = "a filter on a server does not record which line has a key";
const READ_TWICE: &str = "the inputs are read twice, and the state is saved at the end";
const ONE_READING: &str = "it decides about each document as it reads it, and the first copy is kept";

/// Refuses options that exclude one another, and an option without an option that it needs.
pub fn check(command: &clap::Command, matches: &ArgMatches) -> Result<(), Error> {
    if let Some((name, matches)) = matches.subcommand() {
        return command.find_subcommand(name).map_or(Ok(()), |command| check(command, matches));
    }
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given: Vec<&Arg> = command.get_arguments().filter(is_given).collect();
    for option in &given {
        if let Some((other, why)) = given.iter().find_map(|other| Some((other, excludes(command, option, other)?))) {
            return refuse(format!("the argument '{option}' cannot be used with '{other}': {why}"));
        }
    }
    let find = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
    for (option, needed) in NEEDS {
        let Some(option) = find(option).filter(is_given) else { continue };
        let needed: Vec<&Arg> = needed.split(' ').filter_map(find).collect();
        if needed.is_empty() || needed.iter().any(is_given) {
            continue;
        }
        let names = needed.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" or ");
        let is_excluded =
            |one: &Arg, other: &Arg| excludes(command, one, other).or(excludes(command, other, one)).is_some();
        let excluded = |other: &&&Arg| needed.iter().all(|arg| is_excluded(arg, other));
        return refuse(match given.iter().find(excluded) {
            Some(other) => format!("the argument '{option}' cannot be used with '{other}': it needs {names}"),
            None => format!("the argument '{option}' cannot be used without {names}"),
        });
    }
    Ok(())
}

/// Returns the reason why an option excludes another.
fn excludes(command: &clap::Command, option: &Arg, other: &Arg) -> Option<&'static str> {
    let lists = |names: &str, name: &str| names.split(' ').any(|listed| listed == name);
    let is_of = |commands, id: &str| lists(commands, command.get_name()) && option.get_id() == id;
    let is_other = |others| lists(others, other.get_id().as_str());
    let conflict = CONFLICTS.iter().find(|&&(commands, id, others, _)| is_of(commands, id) && is_other(others));
    let alone = ALONE.iter().filter(|_| option != other);
    let alone = alone.into_iter().find(|&&(commands, id, others, _)| is_of(commands, id) && !is_other(others));
    conflict.or(alone).map(|(.., why)| *why)
}

fn refuse(message: impl Into<String>) -> Result<(), Error> {
    Err(Error::raw(ErrorKind::ArgumentConflict, message.into()))
}

/// Refuses conflicts that depend on the values of options, or on several options.
pub fn check_values(command: &Command) -> Result<(), Error> {
    match command {
        Command::Dedup(options) => {
            check_stats(options.run.stats.is_some(), &options.reading.files)?;
            check_key(&options.key)?;
            check_ends(&options.key, [(options.total, "--total")])?;
            check_dedup(options)
        }
        Command::Corpus(options) => {
            check_stats(options.run.stats.is_some(), &options.reading.files)?;
            check_corpus(options)
        }
        Command::Build(options) => {
            check_stats(options.stats.is_some(), &options.reading.files)?;
            check_key(&options.key)
        }
        Command::Check(options) => {
            check_key(&options.key)?;
            check_ends(&options.key, [(options.select.total, "--total"), (options.select.any, "--any")])
        }
        Command::In(options) => check_sets(options),
        Command::NotIn(options) => check_sets(&options.sets),
        _ => Ok(()),
    }
}

/// Refuses the format of statistics in place of an input.
fn check_stats(stats: bool, files: &[PathBuf]) -> Result<(), Error> {
    let is_format =
        |path: &&PathBuf| ["json", "text"].iter().any(|format| path.as_os_str() == *format) && !path.exists();
    match files.iter().find(is_format).filter(|_| stats) {
        Some(path) => {
            let format = path.display();
            refuse(format!("there is no input \"{format}\"; to choose the format of --stats, give --stats={format}"))
        }
        None => Ok(()),
    }
}

/// Refuses an end of lines that are not printed.
fn check_ends<const N: usize>(key: &KeyOptions, silent: [(bool, &str); N]) -> Result<(), Error> {
    let is_written = key.eol.is_some_and(|eol| eol.written().is_some());
    match silent.into_iter().find(|(given, _)| *given && is_written) {
        Some((_, option)) => refuse(format!(
            "the arguments '--eol lf' and '--eol crlf' cannot be used with '{option}': no lines are printed; give --eol keep"
        )),
        None => Ok(()),
    }
}

fn check_sets(options: &SetOptions) -> Result<(), Error> {
    if options.reads_standard_input_twice() {
        return refuse(
            "standard input cannot be read for both OLD and NEW; name a file for one of them, such as `OLD -- NEW`",
        );
    }
    check_stats(options.stats.is_some(), &options.reading.files)?;
    check_key(&options.key)?;
    check_ends(&options.key, [(options.select.total, "--total"), (options.select.any, "--any")])
}

/// Refuses key options that contradict one another.
fn check_key(key: &KeyOptions) -> Result<(), Error> {
    check_parts(key)?;
    if let Some(name) = unknown_name(key) {
        return refuse(format!(
            "-f {name:?} is not a number, and fields have names only with --header: give the number of a field, starting at 1, or \
             several such as 1,3 and 2-4, or give --header if the first line of each input has the names; a filter's file is given \
             with -s, --state"
        ));
    }
    match &key.delimiter {
        Some(Delimiter(bytes)) if key.csv && (bytes.len() > 1 || bytes[0] == b'"') => {
            let delimiter = String::from_utf8_lossy(bytes);
            refuse(format!("cannot use the --delimiter {delimiter:?} with --csv: give one byte that is not a quote"))
        }
        _ if matches!(key.split(), FieldSplit::Csv(csv) if csv.escape == Some(csv.delimiter)) => {
            refuse("--escape and --delimiter cannot be the same character")
        }
        _ => Ok(()),
    }
}

/// Refuses numbers of parts that the key does not have, two forms of one part, and forms that have no effect.
fn check_parts(key: &KeyOptions) -> Result<(), Error> {
    let rule = key.rule();
    let parts = match &rule.part {
        KeyPart::Line | KeyPart::Record(_) | KeyPart::Row(_) => Some(0),
        KeyPart::NamedFields { fields, .. } => Some(fields.len()),
        KeyPart::Json(values) => Some(values.len()),
        KeyPart::Fields { selectors, .. } => selectors.iter().try_fold(0_usize, |parts, selector| match selector {
            FieldSelector::Name(_) => Some(parts + 1),
            FieldSelector::Numbers(first, last) => last.map(|last| parts.saturating_add(last - first + 1)),
        }),
    };
    let given = [
        (&rule.trim, "--trim="),
        (&rule.ignore_case, "--ignore-case="),
        (&rule.url, "--normalize url:"),
        (&rule.number, "--normalize number:"),
        (&rule.time, "--normalize time:"),
        (&rule.text, "--normalize text:"),
    ];
    for (option, last) in given.iter().filter_map(|(given, option)| Some((option, given.last()?))) {
        match parts {
            Some(0) => {
                return refuse(format!(
                    "{option}{last} is for a part of the key, but the key is the whole line: choose the parts with --field, --column \
                     or --json-pointer"
                ));
            }
            Some(parts) if last > parts => {
                return refuse(format!("{option}{last} is for part {last} of the key, but the last part is {parts}"));
            }
            _ => {}
        }
    }
    let forms = [("url", &rule.url), ("number", &rule.number), ("time", &rule.time)];
    for [(one, parts), (other, others)] in [[forms[0], forms[1]], [forms[0], forms[2]], [forms[1], forms[2]]] {
        let common = parts.and(others);
        if common != PartNumbers::None {
            let part = common.last().map_or_else(|| String::from("the key"), |part| format!("part {part} of the key"));
            return refuse(format!(
                "--normalize {one} and --normalize {other} both apply to {part}: give one of them, or the numbers of the parts of \
                 each, such as {one}:1"
            ));
        }
    }
    let read = rule.number.clone().or(rule.time.clone());
    for (parts, option) in [(&rule.trim, "--trim"), (&rule.ignore_case, "--ignore-case")] {
        if *parts != PartNumbers::None && parts.and(&read) == *parts {
            return refuse(format!(
                "{option} has no effect on what --normalize reads as numbers or times: leave it out, or give the numbers of other \
                 parts, such as {option}=2"
            ));
        }
    }
    Ok(())
}

/// Returns a field that is given by name, if there is no header to find it in.
fn unknown_name(key: &KeyOptions) -> Option<&str> {
    key.field.iter().filter(|_| !key.header).flat_map(|list| &list.0).find_map(|selector| match selector {
        FieldSelector::Name(name) => Some(&**name),
        FieldSelector::Numbers(..) => None,
    })
}

fn check_dedup(options: &DedupOptions) -> Result<(), Error> {
    let DedupOptions { groups, key, run, shared, .. } = options;
    let GroupOptions { keep, pairs, clusters, .. } = groups;
    let is_shared = shared.server.redis.is_some();
    if let (Some(option), true) = (groups.given(), is_shared) {
        return refuse(format!("the argument '{option}' cannot be used with '--redis': {NO_LINE}"));
    }
    if *keep == Some(KeepPolicy::Last) && (is_shared || run.state.is_some()) {
        let filter = if is_shared { "--redis" } else { "--state" };
        return refuse(format!("the argument '--keep last' cannot be used with '{filter}': {ONE_RUN}"));
    }
    check_checkpoint(run.checkpoint.is_some(), groups.given())?;
    let has_names = key.header || matches!(key.rule().part, KeyPart::Json(_) | KeyPart::Line);
    if let Some(option) = groups.value().filter(|_| !has_names) {
        let other = if key.csv { "--csv" } else { "--field" };
        return refuse(format!(
            "the argument '{option}' cannot be used with '{other}': it names a column, and without --header columns have no names; \
             give --header if the first line has them"
        ));
    }
    let has_report = pairs.is_some() || clusters.is_some();
    if keep.is_some() && options.total && !has_report && options.dupes.is_none() {
        return refuse(
            "the argument '--keep' cannot be used with '--total': the number is the same whichever line is kept; leave it out, or \
             give --exact if no line may be lost",
        );
    }
    if keep.is_some() && options.unique && !has_report {
        return refuse(
            "the argument '--keep' cannot be used with '--unique': a line that occurs once is the only one of its group",
        );
    }
    let is_in_order = run.in_order || keep.is_some() || groups.given().or(options.reads_twice()).is_some();
    if run.growth.when_full == Some(WhenFull::Stop) && run.output_dir.is_some() && !is_in_order {
        return refuse(
            "--when-full stop needs lines in order, and --output-dir reads many files at once; add --in-order, or let the filter \
             grow with --when-full grow",
        );
    }
    Ok(())
}

/// Refuses an interval of checkpoints beside an option for which the inputs are read twice.
fn check_checkpoint(is_given: bool, option: Option<&str>) -> Result<(), Error> {
    match option.filter(|_| is_given) {
        Some(option) => {
            refuse(format!("the argument '--checkpoint <DURATION>' cannot be used with '{option}': {READ_TWICE}"))
        }
        None => Ok(()),
    }
}

fn check_corpus(options: &CorpusOptions) -> Result<(), Error> {
    let rule = options.rule();
    let (text, is_near) = (&rule.text, rule.near.is_some());
    let is_exact_text = text.ngram == 0 && !is_near;
    let standard = |paths: &[PathBuf]| paths.iter().any(|path| is_standard(path));
    let reads_standard = options.reading.files.is_empty() && options.reading.list().is_none();
    if standard(&options.against) && (reads_standard || standard(&options.reading.files)) {
        return refuse("standard input is --against and an input: name a file for one of them");
    }
    if options.normalize.contains(&Normal::None) && options.normalize.len() > 1 {
        return refuse(
            "--normalize none compares texts unchanged, without other steps: leave it out, or give it alone",
        );
    }
    let is_lower = |form: &Normal| *form == Normal::Lower;
    if options.normalize.iter().any(is_lower) && !is_exact_text {
        return refuse(
            "--normalize lower is for exact texts: give case, or add --by document --ngram 0 for whole documents, or --ngram 0",
        );
    }
    let is_space = |form: &Normal| matches!(form, Normal::Space | Normal::Trim | Normal::Crlf);
    if options.normalize.iter().any(is_space) && !is_exact_text {
        return refuse(
            "--normalize space, trim and crlf are for exact texts, because n-grams ignore white space between words: leave them out, \
             or add --ngram 0",
        );
    }
    let is_replaced = |member| rule.pointer.tokens().first().is_some_and(|name| name == member);
    for (given, option, member) in [(options.annotate, "--annotate", MEMBER), (options.count, "--count", COUNT)] {
        if given && is_replaced(member) {
            return refuse(format!(
                "{option} replaces the member {member:?}, which contains the text: name another --json-pointer, or rename the member"
            ));
        }
    }
    let chooses = options.groups.keep.as_ref().is_some_and(|keep| *keep != KeepPolicy::First);
    let of_one_reading = [
        (options.annotate, "--annotate"),
        (options.drop_document, "--drop-document"),
        (options.run.in_place, "--in-place"),
    ];
    if let Some((_, other)) = of_one_reading.iter().find(|(given, _)| *given && chooses) {
        return refuse(format!("the argument '--keep' cannot be used with '{other}': {ONE_READING}"));
    }
    if options.drop_document && options.unit() == Unit::Document {
        let other = if options.by.is_some() { "--by document" } else { "--against" };
        return refuse(format!(
            "the argument '--drop-document' cannot be used with '{other}': a unit is the whole document, and is dropped as such; \
             leave it out, or give --by paragraph"
        ));
    }
    if options.min_ngram.is_some() && text.ngram == 0 {
        return refuse("--min-ngram has no effect with --ngram 0: leave it out");
    }
    if options.threshold.is_some() && text.ngram == 0 && !options.drop_document {
        return refuse(
            "--threshold is for grams, and --ngram 0 compares exact texts: leave it out, or add --drop-document",
        );
    }
    if let Some(min_ngram) = options.min_ngram.filter(|min_ngram| *min_ngram > text.ngram) {
        let ngram = text.ngram;
        return refuse(format!(
            "--min-ngram {min_ngram} is above --ngram {ngram}, so units with fewer words would always be kept: give at most {ngram}"
        ));
    }
    if let Some(option) = options.asks_for_groups() {
        if !is_near && (text.unit != bloomline_text::Unit::Document || text.ngram > 0) {
            return refuse(format!("{option} is for whole documents: give --by document --ngram 0 too, or --near"));
        }
        return check_checkpoint(options.run.checkpoint.is_some(), Some(option));
    }
    Ok(())
}
