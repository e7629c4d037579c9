//! Options that people may look for under another name.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// An error that names the option to give, where the one that was given has another name.
pub fn explained(mut error: Error) -> Error {
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => given,
        _ => return error,
    };
    if let Some((_, advice)) = RENAMED.iter().find(|(old, _)| old == given) {
        let advice = ContextValue::StyledStrs(vec![(*advice).into()]);
        error.insert(ContextKind::Suggested, advice);
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::TrailingArg);
    }
    error
}
