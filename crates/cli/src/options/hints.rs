//! Hints for an unknown option, and for a file without a command.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::path::Path;

/// Options that these commands do not have, and what to give instead. Without commands, it is for all.
const REMEDIES: &[(&str, &str, &str)] = &[
    ("corpus", "--trim", "give --normalize trim"),
    ("corpus", "-i --ignore-case", "give --normalize lower, or --normalize case for all of Unicode's case folding"),
    ("corpus", "--like", "give the tool's rules as options: docs/CORPUS.md lists them, under \"From other tools\""),
    ("corpus", "--at-least", "give a --threshold slightly below the share that is enough"),
    ("dedup", "--verify", "give 'bloomline check --verify SAMPLE -s FILTER' for the state of a run"),
    ("dedup build check in not-in", "--crlf", "give --eol keep"),
    ("dedup corpus in not-in", "--max-fpr", "leave it out, because a filter is full at the rate of -p"),
    (
        "dedup corpus in not-in",
        "--column-filter",
        "leave it out, and let the program that reads the rows write Bloom filters",
    ),
    ("dedup", "-u", "give --unique"),
    ("dedup build check in not-in", "-t", "give -d for the delimiter of fields"),
    (
        "redis",
        "--redis --redis-ca --redis-cert --redis-key",
        "give it after the subcommand, as in 'bloomline redis list --redis URL'",
    ),
    ("", "--read-ahead", "leave it out, because the run chooses"),
    ("", "--files0-from", "give --files-from, whose names may each end with NUL"),
    ("", "-r -R --recursive", "leave it out, because all files below a directory are read"),
];

/// Options that delete or replace something. No tip leads to one of them, nor to a server.
const RISKY: &str = "in-place force shrink output output-dir dupes pairs clusters report manifest";

/// Adds a hint to an error of the command `name` if an option belongs to another command, or if `name` is a file.
pub fn with_hint(mut error: Error, cli: &Command, name: &str) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => option_hint(&text(ContextKind::InvalidArg), cli, name),
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand);
            let wants_dedup = given == "uniq" || given.contains(['.', '/']) || Path::new(&given).exists();
            wants_dedup.then(|| "to print each distinct line of a file, give 'bloomline dedup FILE'".to_owned())
        }
        _ => None,
    };
    let is_dropped = hint.is_some() || is_risky(&text(ContextKind::SuggestedArg));
    // clap suggests that an unknown option may be a file name, which is seldom true.
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let is_kept = |tip: &str| !tip.starts_with("to pass ") && !is_risky(tip);
        let tips = tips.into_iter().filter(|tip| is_kept(&tip.to_string())).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    if is_dropped {
        error.remove(ContextKind::SuggestedArg);
    }
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}

/// Returns a hint for an option that the command `name` does not have.
fn option_hint(given: &str, cli: &Command, name: &str) -> Option<String> {
    let lists = |names: &str, name: &str| names.split(' ').any(|listed| listed == name);
    let mut remedies = REMEDIES.iter().filter(|(commands, ..)| commands.is_empty() || lists(commands, name));
    if let Some((.., remedy)) = remedies.find(|(_, options, _)| lists(options, given)) {
        return Some((*remedy).to_owned());
    }
    let has = |command: &&Command| {
        command.get_arguments().any(|arg| match given.strip_prefix("--") {
            Some(option) => arg.get_long() == Some(option),
            None => arg.get_short().is_some_and(|short| given == format!("-{short}")),
        })
    };
    let others: Vec<&str> = cli.get_subcommands().filter(has).map(Command::get_name).collect();
    let place = if cli.find_subcommand(name).is_none() { ", and comes after the command" } else { "" };
    (!others.is_empty()).then(|| format!("'{given}' is an option of bloomline {}{place}", others.join(", ")))
}

/// True if a tip names an option that deletes or replaces something.
fn is_risky(tip: &str) -> bool {
    let mut options = tip.split([' ', '\'']).filter_map(|word| word.strip_prefix("--"));
    options.any(|option| option.starts_with("redis") || RISKY.split(' ').any(|risky| risky == option))
}
