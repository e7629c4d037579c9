//! Options that need others.
//!
//! clap declares requirements too, but waives one if another given option conflicts with the required option. The option that needs it
//! would then be accepted and have no effect.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

/// Options that need another: at least one of those listed, as far as the command has them.
pub const NEEDS: &[(&str, &[&str])] = &[
    ("delimiter", &["field", "csv"]),
    ("escape", &["csv"]),
    ("in_order", &["output_dir"]),
    ("manifest", &["output_dir"]),
    ("shrink", &["state"]),
    ("checkpoint", &["state"]),
    ("wait", &["state"]),
    ("frozen", &["state"]),
    ("resume", &["state"]),
    ("resume", &["output", "output_dir"]),
    ("report", &["against"]),
    ("id", &["pairs", "clusters", "report"]),
    ("verify", &["stats"]),
    ("stats_every", &["stats"]),
    ("stats_every", &["redis"]),
    ("name", &["redis"]),
    ("redis", &["name"]),
    ("redis_ca", &["redis"]),
    ("redis_cert", &["redis"]),
    ("redis_cert", &["redis_key"]),
    ("redis_key", &["redis"]),
    ("redis_key", &["redis_cert"]),
    ("redis_wait", &["redis"]),
    ("no_mirror", &["redis"]),
    ("forget_after", &["redis"]),
    ("forget_after", &["expected_keys"]),
];

/// Refuses an option without an option that it needs.
pub fn check(command: &Command, matches: &ArgMatches) -> Result<(), Error> {
    if let Some((name, matches)) = matches.subcommand() {
        return command.find_subcommand(name).map_or(Ok(()), |command| check(command, matches));
    }
    let find = |id: &&str| command.get_arguments().find(|arg| arg.get_id() == *id);
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    for (option, needed) in NEEDS {
        let Some(option) = find(option).filter(is_given) else { continue };
        let needed: Vec<&Arg> = needed.iter().filter_map(find).collect();
        if needed.is_empty() || needed.iter().any(is_given) {
            continue;
        }
        let names = needed.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" or ");
        let conflicts = |one: &Arg, other: &Arg| command.get_arg_conflicts_with(one).contains(&other);
        let excluded = |given: &&Arg| needed.iter().all(|arg| conflicts(arg, given) || conflicts(given, arg));
        let message = match command.get_arguments().filter(is_given).find(excluded) {
            Some(other) => format!("the argument '{option}' cannot be used with '{other}': it needs {names}"),
            None => format!("the argument '{option}' cannot be used without {names}"),
        };
        return Err(Error::raw(ErrorKind::MissingRequiredArgument, message));
    }
    Ok(())
}
