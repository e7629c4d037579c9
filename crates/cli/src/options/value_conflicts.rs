//! Conflicts that depend on the values of options, or on several options.

use crate::key::fields::{FieldSelector, FieldSplit};
use crate::key::{KeyPart, PartNumbers};
use crate::options::conflicts::{NO_LINE, ONE_READING, ONE_RUN, READ_TWICE, refuse};
use crate::options::corpus::{Normal, Unit};
use crate::options::filter::WhenFull;
use crate::options::groups::GroupOptions;
use crate::options::reading::{KeyOptions, ReadOptions};
use crate::options::sets::SetOptions;
use crate::options::values::Delimiter;
use crate::options::{Command, CorpusOptions, DedupOptions};
use crate::read::table::{COUNT, MEMBER};
use crate::steps::groups::choice::KeepPolicy;
use crate::system::files::is_standard;
use clap::Error;
use std::path::PathBuf;

/// Refuses conflicts that depend on the values of options, or on several options.
pub fn check(command: &Command) -> Result<(), Error> {
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
    if stats && let Some(path) = files.iter().find(is_format) {
        let format = path.display();
        return refuse(format!(
            "there is no input \"{format}\"; to choose the format of --stats, give --stats={format}"
        ));
    }
    Ok(())
}

/// Refuses `--eol` with one of the options that print no lines, each with true if it is given.
fn check_ends<const N: usize>(key: &KeyOptions, silent: [(bool, &str); N]) -> Result<(), Error> {
    let is_written = key.eol.is_some_and(|eol| eol.written().is_some());
    if is_written && let Some((_, option)) = silent.into_iter().find(|(is_given, _)| *is_given) {
        return refuse(format!(
            "the arguments '--eol lf' and '--eol crlf' cannot be used with '{option}': no lines are printed; give --eol keep"
        ));
    }
    Ok(())
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
    if key.csv
        && let Some(Delimiter(bytes)) = &key.delimiter
        && (bytes.len() > 1 || bytes[0] == b'"')
    {
        let delimiter = String::from_utf8_lossy(bytes);
        return refuse(format!(
            "cannot use the --delimiter {delimiter:?} with --csv: give one byte that is not a quote"
        ));
    }
    if let FieldSplit::Csv(csv) = key.field_split()
        && csv.escape == Some(csv.delimiter)
    {
        return refuse("--escape and --delimiter cannot be the same character");
    }
    Ok(())
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
    let of_options = [
        (&rule.trim, "--trim="),
        (&rule.ignore_case, "--ignore-case="),
        (&rule.url, "--normalize url:"),
        (&rule.number, "--normalize number:"),
        (&rule.time, "--normalize time:"),
        (&rule.text, "--normalize text:"),
    ];
    for (numbers, option) in of_options {
        let Some(last) = numbers.last() else { continue };
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
    let url = ("url", &rule.url);
    let number = ("number", &rule.number);
    let time = ("time", &rule.time);
    for [(one, parts), (other, other_parts)] in [[url, number], [url, time], [number, time]] {
        let common = parts.and(other_parts);
        if common != PartNumbers::None {
            let part = common.last().map_or_else(|| String::from("the key"), |part| format!("part {part} of the key"));
            return refuse(format!(
                "--normalize {one} and --normalize {other} both apply to {part}: give one of them, or the numbers of the parts of \
                 each, such as {one}:1"
            ));
        }
    }
    let parsed = rule.number.clone().or(rule.time.clone());
    for (parts, option) in [(&rule.trim, "--trim"), (&rule.ignore_case, "--ignore-case")] {
        if *parts != PartNumbers::None && parts.and(&parsed) == *parts {
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
    if key.header {
        return None;
    }
    key.field.iter().flat_map(|list| &list.0).find_map(|selector| match selector {
        FieldSelector::Name(name) => Some(&**name),
        FieldSelector::Numbers(..) => None,
    })
}

fn check_dedup(options: &DedupOptions) -> Result<(), Error> {
    let DedupOptions { groups, key, run, shared, .. } = options;
    let GroupOptions { keep, pairs, clusters, .. } = groups;
    let is_shared = shared.server.redis.is_some();
    if is_shared && let Some(option) = groups.first_given() {
        return refuse(format!("the argument '{option}' cannot be used with '--redis': {NO_LINE}"));
    }
    if *keep == Some(KeepPolicy::Last) && (is_shared || run.state.is_some()) {
        let filter = if is_shared { "--redis" } else { "--state" };
        return refuse(format!("the argument '--keep last' cannot be used with '{filter}': {ONE_RUN}"));
    }
    if *keep == Some(KeepPolicy::Longest) {
        return refuse(
            "--keep longest is for the texts of `bloomline corpus`: give max:POINTER for the greatest value",
        );
    }
    check_checkpoint(run.checkpoint.is_some(), groups.first_given())?;
    let has_names = key.header || matches!(key.rule().part, KeyPart::Json(_) | KeyPart::Line);
    if !has_names && let Some(option) = groups.first_with_pointer() {
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
    let is_in_order = run.in_order || keep.is_some() || groups.first_given().or(options.reads_twice()).is_some();
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
    if is_given && let Some(option) = option {
        return refuse(format!("the argument '--checkpoint <DURATION>' cannot be used with '{option}': {READ_TWICE}"));
    }
    Ok(())
}

fn check_corpus(options: &CorpusOptions) -> Result<(), Error> {
    let rule = options.rule();
    let text = &rule.text;
    let is_near = rule.near.is_some();
    let is_exact_text = text.ngram == 0 && !is_near;
    let ReadOptions { files, files_from, .. } = &options.reading;
    let has_standard = |paths: &[PathBuf]| paths.iter().any(|path| is_standard(path));
    if has_standard(&options.earlier) {
        return refuse("--earlier is read again and again: name files, or directories, instead of standard input");
    }
    let reads_standard = has_standard(files) || files.is_empty() && files_from.is_none();
    if reads_standard && has_standard(&options.against) {
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
    for (is_given, option, member) in [(options.annotate, "--annotate", MEMBER), (options.count, "--count", COUNT)] {
        if is_given && is_replaced(member) {
            return refuse(format!(
                "{option} replaces the member {member:?}, which contains the text: name another --json-pointer, or rename the member"
            ));
        }
    }
    let chooses_copy = options.groups.keep.as_ref().is_some_and(|keep| *keep != KeepPolicy::First);
    let in_one_reading = [
        (options.annotate, "--annotate"),
        (options.drop_document, "--drop-document"),
        (options.run.in_place, "--in-place"),
    ];
    let in_two_readings = [(chooses_copy, "--keep"), (is_near && !options.earlier.is_empty(), "--earlier <PATH>")];
    let first =
        |options: &[(bool, &'static str)]| options.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name);
    if let (Some(option), Some(other)) = (first(&in_two_readings), first(&in_one_reading)) {
        return refuse(format!("the argument '{option}' cannot be used with '{other}': {ONE_READING}"));
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
    if options.sample.is_some() && text.ngram == 0 {
        return refuse("--sample is for grams, and --ngram 0 compares exact texts: leave it out");
    }
    if options.threshold.is_some() && text.ngram == 0 && !options.drop_document {
        return refuse(
            "--threshold is for grams, and --ngram 0 compares exact texts: leave it out, or add --drop-document",
        );
    }
    let ngram = text.ngram;
    if let Some(min_ngram) = options.min_ngram
        && min_ngram > ngram
    {
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
