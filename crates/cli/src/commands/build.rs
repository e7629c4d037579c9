//! `bloomline build`: builds a filter of lines in a file.

use crate::commands::input_kinds::TableRequirements;
use crate::commands::job::Checked;
use crate::commands::prelude::Prelude;
use crate::commands::report;
use crate::commands::scan::ScanOptions;
use crate::commands::sizing;
use crate::key::KeyRule;
use crate::options::BuildOptions;
use crate::read::ends::LineEnds;
use crate::read::inputs::{Input, Inputs};
use crate::read::keys::Hashing;
use crate::read::projection::Projection;
use crate::read::skip::OnError;
use crate::run::work::Work;
use crate::seen::SeenKeys;
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::{FullLimit, RunStats};
use crate::seen::set::KeySet;
use crate::system::error::{Error, Stop};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::system::unpoisoned::locked;
use crate::terminal::messages::print;
use bloomline_keys::KeyKinds;
use crossbeam_channel::never;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Checks the options, the inputs and the filter's file.
pub fn check(options: BuildOptions) -> Result<Checked, Stop> {
    let started = Instant::now();
    let BuildOptions { reading, key, output, .. } = &options;
    // An existing filter that is to be replaced is refused as an input.
    let own_files = files::filter_files(output).into_iter().skip(usize::from(!options.append));
    let own_files: Vec<PathBuf> = own_files.chain(reading.files_from.clone()).collect();
    let mut inputs = Inputs::check(&reading.named_paths(), &own_files, reading.on_error != OnError::Fail)?;
    let list = reading.files_from.as_deref().map(NamedFile::from_path);
    files::check_target(output, inputs.found.iter().map(|input| &input.origin).chain(&list))?;
    let prelude = Prelude {
        reading,
        format: key.line_format(reading.line_end()),
        crlf: key.eol.is_some(),
        one_output: None,
        quiet: options.quiet,
    };
    let rule = prelude.check_keys(&mut [&mut inputs], key.rule())?;
    let projection = Projection::from_rule(rule.clone());
    let kinds = prelude.check_projection(&inputs, &projection, TableRequirements::default())?;
    let set = sizing::set_for_build(&options, &rule.name(), &kinds, &inputs.found)?;
    // A file is read again once it is locked.
    let set = (!options.append).then_some(set);
    Ok(Box::new(move || {
        let lock = FileLock::beside(&options.output, options.wait)?;
        Ok(Box::new(move || {
            let _lock = lock;
            build(&options, started, inputs, &rule, &kinds, set)
        }))
    }))
}

/// Builds the filter and saves it. `set` is a set that is not in the file yet, its limit, and whether the number of keys is unknown.
fn build(
    options: &BuildOptions,
    started: Instant,
    inputs: Inputs,
    rule: &KeyRule,
    kinds: &KeyKinds,
    set: Option<(KeySet, Option<FullLimit>, bool)>,
) -> Result<u8, Error> {
    // If the number of lines is too low, they are read again, so that the file has one filter of the right size.
    let second_inputs: io::Result<Vec<Input>> = inputs.found.iter().map(Input::reopen).collect();
    let second_inputs = second_inputs.map(|found| Inputs { found, read: inputs.read.clone(), ..Inputs::default() });
    let ends = Arc::new(LineEnds::new(options.quiet));
    let key_name = rule.name();
    let (set, limit, is_size_unknown) = match set {
        Some(set) => set,
        None => sizing::set_for_build(options, &key_name, kinds, &inputs.found)?,
    };
    let mut stats = RunStats::new(&set, limit, "lines", "key", options.quiet);
    stats.remedy = Some("build a larger one with -n".to_owned());
    stats.warn_if_overfull(&set);
    let mut work = work(options, rule, &ends, inputs, set, stats)?;
    if is_size_unknown || work.seen.read().set.local().is_some_and(LocalSet::is_outgrown) {
        let counts = locked(&work.stats).counts.clone();
        let mut set = sizing::set_for_count(options, &key_name, counts.inserted.max(1))?;
        let spool = work.seen.write().set.local_mut().and_then(|set| set.spool.take());
        if let Some(spool) = spool {
            set.insert_spool(spool)?;
            set.add_kinds(work.seen.read().set.kinds())?;
            work.seen.write().set = set;
        } else {
            let stats = RunStats::new(&set, None, "lines", "key", true);
            work = self::work(options, rule, &ends, second_inputs.map_err(not_readable_again)?, set, stats)?;
            locked(&work.stats).counts.left_out = counts.left_out;
        }
    }
    save(options, &work)?;
    let stats = locked(&work.stats);
    if let Some(format) = options.stats {
        let set = &work.seen.read().set;
        print(&report::build_figures(set, &stats, &options.output, started.elapsed()).format(format));
    }
    Ok(stats.exit_code())
}

fn not_readable_again(source: io::Error) -> Error {
    Error::new(format!(
        "the inputs have more lines than estimated, and cannot be read again: {source}; give the number of distinct lines with -n"
    ))
}

/// Inserts the lines of the inputs.
fn work(
    options: &BuildOptions,
    rule: &KeyRule,
    ends: &Arc<LineEnds>,
    inputs: Inputs,
    set: KeySet,
    stats: RunStats,
) -> Result<Arc<Work>, Error> {
    let BuildOptions { reading, key, quiet, .. } = options;
    let hashing = key.hashing(reading.line_end(), rule.clone(), set.hasher(), *quiet);
    let hashing = Hashing { ends: Arc::clone(ends), ..hashing };
    let scan = ScanOptions::for_keys(reading, &hashing, *quiet, never());
    match scan.insert(hashing, inputs, SeenKeys::new(set), stats)? {
        (_, Some(Stop::After(error))) => Err(error),
        (work, _) => Ok(work),
    }
}

/// Saves the filter, shrunk to the smallest size unless the options keep it.
fn save(options: &BuildOptions, work: &Work) -> Result<(), Error> {
    let set = &mut work.seen.write().set;
    set.local_mut().map(LocalSet::fix);
    let plan = &mut locked(&work.stats).plan;
    *plan = plan.or(set.plan());
    if !options.append
        && !options.no_shrink
        && let Some(set) = set.local_mut()
    {
        set.shrink()?;
    }
    set.save(&options.output)
}
