//! `bloomline check`: prints the lines that are in a filter, like grep.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::scan::{self, ScanOptions};
use crate::options::CheckOptions;
use crate::options::values::OnError;
use crate::read::ends::LineEnds;
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::keys::Hashing;
use crate::read::projection::Projection;
use crate::read::table::TableOptions;
use crate::seen::remote_set::{Address, RemoteSet};
use crate::seen::set::KeySet;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::system::error::Error;
use crate::system::files::{self, NamedFile};
use crate::terminal::messages::warn;
use crate::write::output::Output;
use bloomline_keys::KeyKinds;
use crossbeam_channel::never;
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<u8, Error> {
    let CheckOptions { reading, key, select, .. } = options;
    let format = key.format(reading.end());
    let other_files =
        || options.state.as_deref().into_iter().chain(reading.list()).chain(options.shared.server.files());
    let state_files = options.state.iter().flat_map(|state| files::filter_files(state));
    let own_files: Vec<PathBuf> = state_files.chain(other_files().map(Path::to_owned)).collect();
    let mut inputs = Inputs::check(&reading.named(), &own_files, true)?;
    let rule = input_kinds::rule(&[&inputs], key.rule())?;
    input_kinds::check_format(&[&inputs], format, Some(&rule), key.crlf)?;
    hints::warn_of_format(&[&inputs], reading.end(), &rule, select.quiet);
    let prints = !select.any && !select.total;
    if prints {
        input_kinds::check_one(&inputs)?;
    }
    if prints || rule.depends_on_order() {
        let remedy = if prints { headers::ONE_OUTPUT } else { headers::NAME_FIELDS };
        headers::check_all(&mut [&mut inputs], reading.cut(format), remedy, reading.on_error != OnError::Fail)?;
    }
    let key_name = rule.name();
    let projection = Projection::from_rule(rule.clone());
    let kinds = input_kinds::check_tables(&inputs, &projection, TableRequirements::default(), reading.on_error)?;
    let other_files: Vec<NamedFile> = other_files().map(NamedFile::from_path).collect();
    let origins = inputs.found.iter().map(|input| &input.origin).chain(&other_files);
    let output = if select.any { None } else { Some(Output::standard(origins)?) };
    let filter = filter(options, &key_name, &kinds)?;
    let overfull_warning =
        filter.made_for().filter(|_| !select.quiet).and_then(|(keys, _)| filter.overfull_warning(keys));
    if let Some(overfull_warning) = overfull_warning {
        warn(&format!("{overfull_warning}; build a larger one with -n"));
    }
    let hashing = Hashing {
        format,
        rule,
        hasher: filter.hasher().clone(),
        second: None,
        nulls: key.nulls.policy(),
        ends: LineEnds::new(select.quiet).into(),
    };
    let scan = ScanOptions { reading, format, projection, quiet: select.quiet, events: never() };
    let seen = SharedSeenKeys::new(SeenKeys::new(filter));
    let (work, stop) =
        scan.select(hashing, inputs, seen, (!options.invert, None), select, output, TableOptions::default())?;
    scan::exit_code(&work, stop, 0, select.any)
}

fn filter(options: &CheckOptions, key_name: &str, kinds: &KeyKinds) -> Result<KeySet, Error> {
    if let Some(address) = Address::from_options(&options.shared)? {
        let mut shared = RemoteSet::open(&address)?;
        shared.check_kinds(address.name, kinds)?;
        return Ok(KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.state.as_deref().expect("it is required"), key_name, kinds)
}
