//! `bloomline check`: prints the lines that are in a filter, like grep.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::scan::{self, ScanOptions};
use crate::options::CheckOptions;
use crate::options::values::{Eol, OnError};
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::lines::ends::LineEnds;
use crate::read::lines::keys::{HashOptions, KeySource};
use crate::run::sink::PrintOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::remote_set::{Address, RemoteSet};
use crate::seen::set::KeySet;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::groups::values::ValueProjection as Values;
use crate::system::error::{Error, SUCCESS};
use crate::system::files::{self, NamedFile};
use crate::terminal::figures::{Figures, readable};
use crate::terminal::messages::warn;
use crate::write::output::Output;
use bloomline_keys::KeyKinds;
use crossbeam_channel::never;
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<u8, Error> {
    if let Some(sample) = options.verify {
        return verify(options, sample);
    }
    let CheckOptions { reading, key, select, .. } = options;
    let format = key.format(reading.end());
    let other_files =
        || options.state.as_deref().into_iter().chain(reading.list()).chain(options.shared.server.files());
    let state_files = options.state.iter().flat_map(|state| files::filter_files(state));
    let own_files: Vec<PathBuf> = state_files.chain(other_files().map(Path::to_owned)).collect();
    let mut inputs = Inputs::check(&reading.named(), &own_files, true)?;
    let rule = input_kinds::rule(&[&inputs], key.rule())?;
    input_kinds::check_directories(&[&inputs], None, reading)?;
    input_kinds::check_format(&[&inputs], format, Some(&rule), key.eol.is_some())?;
    hints::warn_of_format(&[&inputs], reading.end(), &rule, select.quiet);
    let prints = !select.any && !select.total;
    if prints {
        input_kinds::check_one(&inputs)?;
    }
    if prints || rule.depends_on_order() {
        let remedy = if prints { headers::ONE_OUTPUT } else { headers::NAME_FIELDS };
        headers::check_all(&mut [&mut inputs], reading.cut(format), remedy, reading.on_error != OnError::Fail)?;
    }
    let (key_name, what) = (rule.name(), KeySource::Key(rule, None));
    let kinds =
        input_kinds::check_tables(&inputs, &what, &Values::default(), TableRequirements::default(), reading.on_error)?;
    let other_files: Vec<NamedFile> = other_files().map(NamedFile::from_path).collect();
    let origins = inputs.found.iter().map(|input| &input.origin).chain(&other_files);
    let output = if select.any { None } else { Some(Output::standard(origins)?) };
    let filter = filter(options, &key_name, &kinds)?;
    let overfull_warning =
        filter.made_for().filter(|_| !select.quiet).and_then(|(keys, _)| filter.overfull_warning(keys));
    if let Some(overfull_warning) = overfull_warning {
        warn(&format!("{overfull_warning}; build a larger one with -n"));
    }
    let ends = LineEnds::new(select.quiet).into();
    let hashing = HashOptions::for_keys(filter.hasher(), format, what, key.nulls.policy(), ends);
    let scan = ScanOptions { reading, hashing, quiet: select.quiet, events: never() };
    let seen = SharedSeenKeys::new(SeenKeys::new(filter));
    let print = PrintOptions { eol: key.eol.and_then(Eol::written), ..PrintOptions::default() };
    let (work, stop) = scan.select(inputs, seen, (!options.invert, None), select, output, print)?;
    scan::exit_code(&work, stop, 0, select.any)
}

/// Measures the false-positive rate of the filter with `sample` keys, and prints it below the expected rate.
fn verify(options: &CheckOptions, sample: u64) -> Result<u8, Error> {
    let state = options.state.as_deref();
    let output = Output::standard(&state.map(NamedFile::from_path))?;
    let mut set = match Address::from_options(&options.shared)? {
        Some(address) => KeySet::Shared(RemoteSet::open(&address)?.into()),
        None => KeySet::Local(LocalSet::load(state.expect("it is required"))?),
    };
    set.refresh()?;
    let found = false_positives(&set, sample)?;
    let (rate, sigma) = (found as f64 / sample as f64, (found.max(1) as f64).sqrt() / sample as f64);
    let mut figures = Figures::default();
    figures.row("rate expected", readable(set.current_fpr()));
    figures.row("rate measured", format!("{} ± {}: {found} of {sample} keys", readable(rate), readable(sigma)));
    output.write_line(figures.text())?;
    Ok(SUCCESS)
}

/// Returns the number of false positives among `sample` keys that were never inserted.
fn false_positives(set: &KeySet, sample: u64) -> Result<u64, Error> {
    const BATCH: u64 = 1 << 16;
    let mut found = vec![false; BATCH as usize];
    let mut positives = 0;
    for start in (0..sample).step_by(BATCH as usize) {
        // No line contains two line ends.
        let key = |i: u64| [&b"\n\0never a line"[..], &i.to_le_bytes()].concat();
        let hashes = (start..sample.min(start + BATCH)).map(|i| set.hasher().bytes(&key(i)));
        let hashes: Vec<u64> = hashes.collect();
        positives += set.contains_hashes(&hashes, &mut found[..hashes.len()])? as u64;
    }
    Ok(positives)
}

fn filter(options: &CheckOptions, key_name: &str, kinds: &KeyKinds) -> Result<KeySet, Error> {
    if let Some(address) = Address::from_options(&options.shared)? {
        let mut shared = RemoteSet::open(&address)?;
        shared.check_kinds(address.name, kinds)?;
        return Ok(KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.state.as_deref().expect("it is required"), key_name, kinds)
}
