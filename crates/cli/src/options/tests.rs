//! Pairs of options are accepted, or refused with a sentence that names both. No third option waives a requirement.

use super::conflicts::{ALONE, CONFLICTS, NEEDS};
use super::{Cli, explanation};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// Commands with their required arguments.
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

/// Returns the command of a line of `COMMANDS`.
fn find_command<'a>(cli: &'a Command, line: &str) -> &'a Command {
    let names = line.split(' ').take(1 + usize::from(line.starts_with("redis ")));
    names.fold(cli, |command, name| command.find_subcommand(name).unwrap())
}

/// Returns the options of a command that its line in `COMMANDS` does not contain.
pub fn options(cli: &Command, line: &str) -> Vec<Arg> {
    let is_option = |arg: &&Arg| {
        let is_help = matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
        let given = |spelling: String| line.split([' ', '=']).any(|word| word == spelling);
        !arg.is_positional()
            && !is_help
            && !arg.get_long().is_some_and(|long| given(format!("--{long}")))
            && !arg.get_short().is_some_and(|short| given(format!("-{short}")))
    };
    find_command(cli, line).get_arguments().filter(is_option).cloned().collect()
}

/// Formats an option with each of its possible values, or with one accepted value.
pub fn spellings(arg: &Arg) -> Vec<String> {
    let long = format!("--{}", arg.get_long().unwrap());
    if !arg.get_action().takes_values() || arg.get_num_args().is_some_and(|values| values.min_values() == 0) {
        return vec![long];
    }
    let possible = arg.get_possible_values();
    let names = arg.get_value_names().unwrap_or_default();
    let value = match names.first().map_or("", |name| name.as_str()) {
        _ if !possible.is_empty() => {
            return possible.iter().map(|value| format!("{long}={}", value.get_name())).collect();
        }
        "WHICH" => return ["first", "last", "max:/a"].map(|value| format!("{long}={value}")).into(),
        "AS" => return ["url", "number", "text"].map(|value| format!("{long}={value}")).into(),
        "RATE" | "SHARE" | "SIMILARITY" => "0.5",
        "SIZE" => "1M",
        "DURATION" => "1m",
        "POINTER" => "/a",
        "KIND[:LEVEL]" => "gzip",
        "URL" => "redis://h",
        "TEXT" => ",",
        _ => "1",
    };
    vec![format!("{long}={value}")]
}

/// Formats an option with an accepted value.
fn spell(arg: &Arg) -> String {
    spellings(arg).remove(0)
}

/// Returns the error message for a command line, or `None` if it is accepted.
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
        let options = options(cli, line);
        let mut spelled: Vec<(usize, String, bool)> = Vec::new();
        for (number, option) in options.iter().enumerate() {
            for option in spellings(option) {
                let is_accepted = refusal(cli, &format!("{line} {option}")).is_none();
                spelled.push((number, option, is_accepted));
            }
        }
        for (i, (number, first, is_first_accepted)) in spelled.iter().enumerate() {
            for (_, second, is_second_accepted) in spelled[i + 1..].iter().filter(|(other, ..)| other != number) {
                let Some(sentence) = refusal(cli, &format!("{line} {first} {second}")) else { continue };
                let names = |option: &str| sentence.contains(option.split('=').next().unwrap());
                // If each option is accepted by itself, the message must name both.
                let is_named = match is_first_accepted & is_second_accepted {
                    true => names(first) && names(second),
                    false => names(first) || names(second),
                };
                assert!(is_named, "{line} {first} {second}: {sentence}");
            }
        }
    }
}

/// A table entry with an unknown option or command would have no effect.
#[test]
fn each_conflict_is_refused_with_its_reason() {
    let cli = &mut Cli::described();
    cli.build();
    for (commands, option, others, why) in CONFLICTS {
        for other in others.split(' ') {
            let mut refused = 0;
            for name in commands.split(' ') {
                for line in COMMANDS.iter().filter(|line| line.split(' ').any(|word| word == name)) {
                    let command = find_command(cli, line);
                    let find = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id).cloned();
                    let (Some(option), Some(other)) = (find(option), find(other)) else { continue };
                    let absent = options(cli, line);
                    let is_absent = |arg: &&Arg| arg.is_positional() || absent.contains(arg);
                    let spell =
                        |arg: &Arg| if arg.is_positional() { " 1".to_owned() } else { format!(" {}", spell(arg)) };
                    let added: String = [&option, &other].into_iter().filter(is_absent).map(spell).collect();
                    let line = format!("{line}{added}");
                    let sentence = refusal(cli, &line).unwrap_or_default();
                    assert!(sentence.contains(why), "{line}: {sentence}");
                    refused += 1;
                }
            }
            assert!(refused > 0, "{option} {other}");
        }
    }
    for (commands, option, others, why) in ALONE {
        for name in commands.split(' ') {
            for line in COMMANDS.iter().filter(|line| line.split(' ').any(|word| word == name)) {
                let options = options(cli, line);
                let alone = options.iter().find(|arg| arg.get_id() == *option).unwrap();
                let line = format!("{line} {}", spell(alone));
                for other in options.iter().filter(|other| other.get_id() != alone.get_id()) {
                    let with_other = format!("{line} {}", spell(other));
                    let is_refused = refusal(cli, &with_other).is_some_and(|sentence| sentence.contains(why));
                    assert!(is_refused || others.split(' ').any(|id| other.get_id() == id), "{with_other}");
                }
            }
        }
    }
}

#[test]
fn no_third_option_waives_a_requirement() {
    let cli = &mut Cli::described();
    cli.build();
    for line in COMMANDS {
        let options = options(cli, line);
        let find = |id: &str| options.iter().find(|arg| arg.get_id() == id);
        for arg in &options {
            // The beginning of the help names the required option.
            let help = arg.get_help().unwrap().to_string();
            if let Some((with, _)) = help.strip_prefix("With --").and_then(|help| help.split_once(',')) {
                let with = with.split(" or --").map(|name| name.split(' ').next().unwrap().replace('-', "_"));
                for needed in with.filter(|needed| needed != "ngram") {
                    let is_needed =
                        |&(option, any): &(&str, &str)| arg.get_id() == option && any.split(' ').any(|id| id == needed);
                    assert!(NEEDS.iter().any(is_needed), "{line} {arg} needs --{needed}");
                }
            }
            // clap waives its own requirements for conflicting options, and its messages give no reason for a conflict.
            let declared = format!("{arg:?}");
            assert!(
                declared.contains("requires: []") && declared.contains(" conflicts: []"),
                "{line} {arg}: {declared}"
            );
        }
        for (option, any) in NEEDS {
            let Some(option) = find(option).filter(|_| any.split(' ').any(|id| find(id).is_some())) else { continue };
            let one_option = format!("{line} {}", spell(option));
            assert!(refusal(cli, &one_option).is_some(), "{one_option}");
            for third in options.iter().filter(|third| !any.split(' ').any(|id| third.get_id() == id)) {
                if third.get_id() != option.get_id() {
                    let two_options = format!("{one_option} {}", spell(third));
                    assert!(refusal(cli, &two_options).is_some(), "{two_options}");
                }
            }
        }
    }
}
