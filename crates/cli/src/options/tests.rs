//! Pairs of options: each pair is accepted, or refused with a sentence, and no third option waives what an option needs.

use super::needs::NEEDS;
use super::{Cli, explanation};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// Commands with the arguments that they need, and those that need no other.
const COMMANDS: &[&str] = &[
    "dedup",
    "corpus",
    "build -o=1",
    "check -s=1",
    "check --redis=redis://h --name=1",
    "in 1",
    "not-in 1",
    "info 1",
    "merge 1 -o=1",
    "plan",
    "redis list --redis=redis://h",
    "redis info --redis=redis://h --name=1",
    "redis watch --redis=redis://h --name=1",
    "redis download --redis=redis://h --name=1 -o=1",
    "redis upload 1 --redis=redis://h --name=1",
    "redis import --redis=redis://h --name=1",
    "redis delete --redis=redis://h --name=1",
];

/// True if `COMMANDS` has this command.
fn is_covered(command: &Command, path: &str) -> bool {
    let path = format!("{path}{}", command.get_name());
    let mut below = command.get_subcommands().peekable();
    if below.peek().is_some() {
        return below.all(|command| command.get_name() == "help" || is_covered(command, &format!("{path} ")));
    }
    COMMANDS.iter().any(|line| **line == path || line.starts_with(&format!("{path} ")))
}

/// The options of a command line of `COMMANDS` that the line does not have.
fn options(cli: &Command, line: &str) -> Vec<Arg> {
    let names = line.split(' ').take(1 + usize::from(line.starts_with("redis ")));
    let command = names.fold(cli, |command, name| command.find_subcommand(name).unwrap());
    let is_option = |arg: &&Arg| {
        let is_help = matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
        let given = |spelling: String| line.split([' ', '=']).any(|word| word == spelling);
        !arg.is_positional()
            && !is_help
            && !arg.get_long().is_some_and(|long| given(format!("--{long}")))
            && !arg.get_short().is_some_and(|short| given(format!("-{short}")))
    };
    command.get_arguments().filter(is_option).cloned().collect()
}

/// Formats an option with a value that it accepts.
fn spell(arg: &Arg) -> String {
    let long = format!("--{}", arg.get_long().unwrap());
    if !arg.get_action().takes_values() || arg.get_num_args().is_some_and(|values| values.min_values() == 0) {
        return long;
    }
    let possible = arg.get_possible_values();
    let names = arg.get_value_names().unwrap_or_default();
    let value = match names.first().map_or("", |name| name.as_str()) {
        _ if !possible.is_empty() => possible[0].get_name(),
        "RATE" | "SHARE" | "SIMILARITY" => "0.5",
        "SIZE" => "1M",
        "DURATION" => "1m",
        "POINTER" => "/a",
        "WHICH" => "max:/a",
        "KIND[:LEVEL]" => "gzip",
        "AS" => "url",
        "URL" => "redis://h",
        "TEXT" => ",",
        _ => "1",
    };
    format!("{long}={value}")
}

/// The sentence that refuses a command line, if one does.
fn refusal(cli: &mut Command, line: &str) -> Option<String> {
    let error = Cli::read_by(cli, format!("bloomline {line}").split(' ').map(Into::into)).err()?;
    let sentence = explanation(&error);
    assert!(
        matches!(error.kind(), ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument),
        "{line}: {sentence}"
    );
    assert!(error.use_stderr() && sentence.contains('-') && !sentence.contains('\n'), "{line}: {sentence:?}");
    Some(sentence)
}

#[test]
fn each_pair_of_options_is_accepted_or_refused_with_a_sentence() {
    let cli = &mut Cli::described();
    cli.build();
    for command in
        cli.get_subcommands().filter(|command| !["help", "completions", "manual"].contains(&command.get_name()))
    {
        assert!(is_covered(command, ""), "{}", command.get_name());
    }
    for line in COMMANDS {
        let options: Vec<String> = options(cli, line).iter().map(spell).collect();
        for (i, first) in options.iter().enumerate() {
            for second in &options[i + 1..] {
                if let Some(sentence) = refusal(cli, &format!("{line} {first} {second}")) {
                    let names = |option: &str| sentence.contains(option.split('=').next().unwrap());
                    assert!(names(first) || names(second), "{line} {first} {second}: {sentence}");
                }
            }
        }
    }
}

#[test]
fn no_third_option_waives_what_an_option_needs() {
    let cli = &mut Cli::described();
    cli.build();
    for line in COMMANDS {
        let options = options(cli, line);
        let find = |id: &str| options.iter().find(|arg| arg.get_id() == id);
        for arg in &options {
            // The beginning of the help names the option that is needed.
            let help = arg.get_help().unwrap().to_string();
            if let Some((with, _)) = help.strip_prefix("With --").and_then(|help| help.split_once(',')) {
                let with = with.split(" or --").map(|name| name.split(' ').next().unwrap().replace('-', "_"));
                for needed in with.filter(|needed| needed != "ngram") {
                    let is_needed =
                        |&(option, any): &(&str, &[&str])| arg.get_id() == option && any.contains(&&*needed);
                    assert!(NEEDS.iter().any(is_needed), "{line} {arg} needs --{needed}");
                }
            }
            // clap would waive it.
            assert!(format!("{arg:?}").contains("requires: []"), "{line} {arg}: {arg:?}");
        }
        for (option, any) in NEEDS {
            let Some(option) = find(option).filter(|_| any.iter().any(|id| find(id).is_some())) else { continue };
            let one_option = format!("{line} {}", spell(option));
            assert!(refusal(cli, &one_option).is_some(), "{one_option}");
            for third in options.iter().filter(|third| !any.iter().any(|id| third.get_id() == id)) {
                if third.get_id() != option.get_id() {
                    let two_options = format!("{one_option} {}", spell(third));
                    assert!(refusal(cli, &two_options).is_some(), "{two_options}");
                }
            }
        }
    }
}
