//! Advice for options and commands that are known by other names elsewhere.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::path::Path;

/// A spelling, and the advice for it.
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
    ("--without", "bloomline not-in prints the lines that other inputs lack, each once with its '--distinct'"),
    ("--exclude", "bloomline not-in prints the lines that other inputs lack, each once with its '--distinct'"),
];

/// A program, and the advice for the same task.
const PROGRAMS: &[(&str, &str)] = &[
    ("uniq", "to print each distinct line once, give 'bloomline dedup'"),
    ("sort", "to print each distinct line once, in the order of the inputs, give 'bloomline dedup'"),
    ("comm", "to compare the lines of two inputs, give 'bloomline in' or 'bloomline not-in'"),
];

/// Adds advice to an error if an option or a command has another name, an option belongs to another command, or a file
/// is named without a command.
pub fn explained(mut error: Error, cli: &Command, name: &str) -> Error {
    let has = |command: &Command, option: &str| {
        command.get_arguments().any(|arg| match option.strip_prefix("--") {
            Some(option) => arg.get_long() == Some(option),
            None => arg.get_short().is_some_and(|short| option == format!("-{short}")),
        })
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let advice = match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg);
            // Only commands with the named options get the advice.
            let applies = |advice: &str| {
                let mut options = advice.split(' ').filter(|word| word.starts_with("--"));
                cli.find_subcommand(name).is_none_or(|command| options.all(|option| has(command, option)))
            };
            let renamed = RENAMED.iter().find(|(old, advice)| *old == given && applies(advice));
            renamed.map(|(_, advice)| (*advice).to_owned()).or_else(|| {
                let others = cli.get_subcommands().filter(|command| has(command, &given));
                let others: Vec<&str> = others.map(Command::get_name).collect();
                let place = if cli.find_subcommand(name).is_none() { ", and stands behind the command" } else { "" };
                (!others.is_empty())
                    .then(|| format!("'{given}' is an option of bloomline {}{place}", others.join(", ")))
            })
        }
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand);
            let is_file = given.contains(['.', '/']) || Path::new(&given).exists();
            let of_file = is_file.then_some("to print each distinct line of a file, give 'bloomline dedup FILE'");
            let program = PROGRAMS.iter().find(|(program, _)| *program == given).map(|(_, advice)| *advice);
            of_file.or(program).map(str::to_owned)
        }
        _ => None,
    };
    // clap suggests that an unknown option may be a file name, which is seldom true.
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let tips = tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    if let Some(advice) = advice {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}
