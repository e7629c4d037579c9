//! Hints for an option of another command, and for a file without a command.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::path::Path;

/// Adds a hint to an error of the command `name` if an option belongs to another command, or if `name` is a file.
pub fn with_hint(mut error: Error, cli: &Command, name: &str) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg);
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
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand);
            let is_file = given.contains(['.', '/']) || Path::new(&given).exists();
            is_file.then(|| "to print each distinct line of a file, give 'bloomline dedup FILE'".to_owned())
        }
        _ => None,
    };
    // clap suggests that an unknown option may be a file name, which is seldom true.
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let tips = tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}
