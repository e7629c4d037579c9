//! Options that people may look for under another name.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::path::Path;

/// A spelling, and what to give in its place.
const RENAMED: &[(&str, &str)] = &[
    ("--filter", "the option is called -s, --state"),
    ("--invert-match", "the option is called -v, --invert"),
    ("-c", "to print the number of lines alone, give --total"),
    ("--count", "to print the number of lines alone, give --total"),
    ("--key", "the option is called -f, --field"),
    ("--fields", "the option is called -f, --field"),
    ("-t", "the option is called -d, --delimiter"),
    ("--separator", "the option is called -d, --delimiter"),
    ("-u", "bloomline dedup prints each distinct line once; to print those that never repeat, give --unique"),
    ("-D", "to print the repeats, give -v, --invert"),
    ("--null", "the option is called -z, --zero-terminated"),
    ("-0", "the option is called -z, --zero-terminated"),
    ("-r", "a directory is read with all that is below it"),
    ("--reset", "to remove a filter from its server, give bloomline redis delete"),
    ("--yes", "bloomline redis delete removes a filter without a question"),
    ("--redis", "a filter on a server is for dedup and check, and bloomline redis tells about it"),
    ("--recursive", "a directory is read with all that is below it"),
];

/// An error that names what to give, where an option has another name or is one of another command, and where a file is named without a
/// command.
pub fn explained(mut error: Error, cli: &Command, name: &str) -> Error {
    let has = |command: &Command, option: &str| {
        command.get_arguments().any(|arg| arg.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long)))
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let advice = match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg);
            // The advice is for commands that have what it names.
            let applies = |advice: &str| {
                let mut options = advice.split(' ').filter(|word| word.starts_with("--"));
                cli.find_subcommand(name).is_none_or(|command| options.all(|option| has(command, option)))
            };
            let renamed = RENAMED.iter().find(|(old, advice)| *old == given && applies(advice));
            renamed.map(|(_, advice)| (*advice).to_owned()).or_else(|| {
                let others = cli.get_subcommands().filter(|command| has(command, &given));
                let others: Vec<&str> = others.map(Command::get_name).collect();
                (!others.is_empty()).then(|| format!("'{given}' is an option of bloomline {}", others.join(", ")))
            })
        }
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand);
            let is_file = given.contains(['.', '/']) || Path::new(&given).exists();
            is_file.then(|| "to print each distinct line of a file, give 'bloomline dedup FILE'".to_owned())
        }
        _ => None,
    };
    if let Some(advice) = advice {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::TrailingArg);
    }
    error
}
