//! Options that need others, or exclude them, with the sentences that say so.
//!
//! clap declares both too. But it waives a requirement if another given option conflicts with the required one, and its sentences give
//! no reason. An option that a run would ignore is refused here.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Error};

/// The commands with keys of lines.
const LINES: &str = "dedup build check in not-in";

/// The commands that read inputs.
const READING: &str = "dedup corpus build check in not-in";

pub(super) const ONE_RUN: &str = "a filter does not record how often its lines occur; count the lines of one run";
pub(super) const NO_LINE: &str = "a filter on a server does not record which line has a key";
const NO_TEXT: &str = "a state has no texts to compare with; give the output of earlier runs as --earlier instead";
pub(super) const READ_TWICE: &str = "the inputs are read twice, and the state is saved at the end";
pub(super) const ONE_READING: &str = "it decides about each document as it reads it, and the first copy is kept";
const SUBSTRINGS_OF_ONE_RUN: &str =
    "a filter may mistake a run of words for a repeat; give the output of earlier runs as --earlier";

/// Options that need one of several others. A command may lack some of these.
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
    ("contained", "near"),
    ("earlier", "near substrings"),
    ("cut", "substrings"),
    ("answer", "against"),
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
    ("corpus", "in_place", "count exact pairs clusters contained", ONE_READING),
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
    ("corpus", "checkpoint", "count exact pairs clusters contained earlier", READ_TWICE),
    ("check in not-in", "any", "total output compress", "it prints nothing"),
    ("not-in", "any", "distinct", "it ends at the first line"),
    // Texts.
    ("corpus", "near", "by ngram min_ngram threshold drop_document sample", "it compares whole documents by 5-grams"),
    ("corpus", "against", "near", "tests are found by n-grams"),
    ("corpus", "against", "sample", "each gram of the tests is looked for"),
    ("corpus", "against", "state frozen resume", "it removes what is in the tests, and remembers nothing"),
    ("corpus", "against", "expected_keys fpr memory when_full", "its filter is for the tests, and makes no mistake"),
    ("corpus", "against", "count exact keep pairs clusters", "documents are compared with the tests alone"),
    (
        "corpus",
        "frozen",
        "count exact keep pairs clusters contained earlier",
        "documents are compared with the state alone",
    ),
    (
        "corpus",
        "substrings",
        "by ngram min_ngram threshold drop_document sample near against",
        "it cuts runs of words wherever they are",
    ),
    ("corpus", "substrings", "count exact keep pairs clusters", "it compares runs of words, not documents"),
    ("corpus", "substrings", "state frozen resume", SUBSTRINGS_OF_ONE_RUN),
    ("corpus", "substrings", "when_full", "a full filter costs time, and no words"),
    ("corpus", "annotate", "count exact pairs clusters contained", ONE_READING),
    ("corpus", "state", "contained earlier", NO_TEXT),
    ("corpus", "drop_document", "count exact pairs clusters", ONE_READING),
    ("plan", "text", "expected_keys", "both give the number of keys"),
    ("import", "set", "files", "keys are read from one of them"),
];

/// Options that exclude all but the listed ones: the commands, the option, the others, and the reason.
pub const ALONE: &[(&str, &str, &str, &str)] = &[
    ("check", "verify", "state redis redis_ca redis_cert redis_key name", "it has keys of its own and reads no lines"),
    ("plan", "table", "json", "it is for all sizes and rates"),
];

/// Refuses options that exclude one another, and an option without an option that it needs.
pub fn check(command: &clap::Command, matches: &ArgMatches) -> Result<(), Error> {
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return check(command, matches);
    }
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given: Vec<&Arg> = command.get_arguments().filter(is_given).collect();
    for option in &given {
        for other in &given {
            if let Some(why) = excludes(command, option, other) {
                return refuse(format!("the argument '{option}' cannot be used with '{other}': {why}"));
            }
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
    let is_for = |commands, id: &str| lists(commands, command.get_name()) && option.get_id() == id;
    let has_other = |others| lists(others, other.get_id().as_str());
    for &(commands, id, others, why) in CONFLICTS {
        if is_for(commands, id) && has_other(others) {
            return Some(why);
        }
    }
    for &(commands, id, others, why) in ALONE {
        if is_for(commands, id) && !has_other(others) && option != other {
            return Some(why);
        }
    }
    None
}

/// Returns the usage error with this message.
pub(super) fn refuse(message: impl Into<String>) -> Result<(), Error> {
    Err(Error::raw(ErrorKind::ArgumentConflict, message.into()))
}
