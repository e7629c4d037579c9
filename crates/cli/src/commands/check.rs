//! `bloomline check`: prints the lines that are in a filter, like grep.

use crate::commands::headers;
use crate::commands::input_kinds::TableRequirements;
use crate::commands::job::Checked;
use crate::commands::prelude::Prelude;
use crate::commands::scan::{self, ScanOptions};
use crate::commands::server;
use crate::options::CheckOptions;
use crate::options::values::Eol;
use crate::read::inputs::Inputs;
use crate::read::projection::Projection;
use crate::run::sink::PrintOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::set::KeySet;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::system::error::{Error, SUCCESS, Stop};
use crate::system::files::{self, NamedFile};
use crate::terminal::figures::{Figures, readable};
use crate::terminal::messages::warn;
use crate::write::output::Output;
use crate::write::target::OutputTarget;
use bloomline_keys::KeyKinds;
use crossbeam_channel::never;
use std::path::{Path, PathBuf};

/// Checks the options, the inputs and the filter.
pub fn check(options: CheckOptions) -> Result<Checked, Stop> {
    if let Some(sample) = options.verify {
        return Err(Stop::Done(verify(&options, sample)?));
    }
    let CheckOptions { reading, key, select, .. } = &options;
    let server_files = options.shared.server.files();
    let other_files: Vec<&Path> =
        options.state.as_deref().into_iter().chain(reading.files_from.as_deref()).chain(server_files).collect();
    let state_files = options.state.iter().flat_map(|state| files::filter_files(state));
    let own_files: Vec<PathBuf> = state_files.chain(other_files.iter().map(|path| (*path).to_owned())).collect();
    let mut inputs = Inputs::check(&reading.named_paths(), &own_files, true)?;
    let prints = !select.any && !select.total;
    let prelude = Prelude {
        reading,
        format: key.line_format(reading.line_end()),
        crlf: key.eol.is_some(),
        one_output: prints.then_some(headers::ONE_OUTPUT),
        quiet: select.quiet,
    };
    let rule = prelude.check_keys(&mut [&mut inputs], key.rule())?;
    let projection = Projection::from_rule(rule.clone());
    let kinds = prelude.check_projection(&inputs, &projection, TableRequirements::default())?;
    let mut target = None;
    if !select.any {
        let other_files: Vec<NamedFile> = other_files.into_iter().map(NamedFile::from_path).collect();
        let origins = inputs.found.iter().map(|input| &input.origin).chain(&other_files);
        target = Some(OutputTarget::check(None, None, origins, [])?);
    }
    let filter = filter(&options, &rule.name(), &kinds)?;
    let made_for = filter.made_for().filter(|_| !select.quiet);
    if let Some(overfull_warning) = made_for.and_then(|(keys, _)| filter.overfull_warning(keys)) {
        warn(&format!("{overfull_warning}; build a larger one with -n"));
    }
    Ok(Box::new(move || {
        let output = target.map(|target| target.start(0, None)).transpose()?;
        Ok(Box::new(move || {
            let CheckOptions { reading, key, select, .. } = &options;
            let hashing = key.hashing(reading.line_end(), rule, filter.hasher(), select.quiet);
            let eol = key.eol.and_then(Eol::written);
            let print = PrintOptions { eol, ..PrintOptions::for_mark(!options.invert) };
            let scan = ScanOptions { print, ..ScanOptions::for_keys(reading, &hashing, select.quiet, never()) };
            let seen = SharedSeenKeys::new(SeenKeys::new(filter));
            let (work, stop) = scan.select(hashing, inputs, seen, None, select, output)?;
            scan::exit_code(&work, stop, 0, select.any)
        }))
    }))
}

/// Measures the false-positive rate of the filter with `sample` keys, and prints it below the expected rate.
fn verify(options: &CheckOptions, sample: u64) -> Result<u8, Error> {
    let state = options.state.as_deref();
    let output = Output::standard(&state.map(NamedFile::from_path))?;
    let mut set = match server::open(&options.shared)? {
        Some(shared) => KeySet::Shared(shared.into()),
        None => KeySet::Local(LocalSet::load(state.expect("clap requires --state without --redis"))?),
    };
    set.refresh()?;
    let found = false_positives(&set, sample)?;
    let rate = found as f64 / sample as f64;
    let sigma = (found.max(1) as f64).sqrt() / sample as f64;
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
    if let Some(mut shared) = server::open(&options.shared)? {
        shared.check_kinds(options.shared.name.as_deref().expect("clap requires --name"), kinds)?;
        return Ok(KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.state.as_deref().expect("clap requires --state without --redis"), key_name, kinds)
}
