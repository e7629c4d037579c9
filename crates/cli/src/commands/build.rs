//! `bloomline build`: builds a filter of lines in a file.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::report;
use crate::commands::scan::ScanOptions;
use crate::commands::sizing;
use crate::key::KeyRule;
use crate::options::BuildOptions;
use crate::options::values::OnError;
use crate::read::hints;
use crate::read::inputs::{Input, Inputs};
use crate::read::lines::ends::LineEnds;
use crate::read::lines::keys::{HashOptions, KeySource};
use crate::run::work::Work;
use crate::seen::SeenKeys;
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::RunStats;
use crate::seen::set::KeySet;
use crate::steps::groups::values::ValueProjection as Values;
use crate::system::error::{Error, Stop};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::system::unpoisoned::locked;
use crate::terminal::messages::print;
use crossbeam_channel::never;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &BuildOptions) -> Result<u8, Error> {
    let started = Instant::now();
    let reading = &options.reading;
    // An existing filter that is to be replaced is refused as an input.
    let own_files = files::filter_files(&options.output).into_iter().skip(usize::from(!options.append));
    let own_files: Vec<PathBuf> = own_files.chain(reading.list().map(Path::to_owned)).collect();
    let mut inputs = Inputs::check(&reading.named(), &own_files, reading.on_error != OnError::Fail)?;
    let list = reading.list().map(NamedFile::from_path);
    files::check_target(&options.output, inputs.found.iter().map(|input| &input.origin).chain(&list))?;
    let _lock = FileLock::beside(&options.output, options.wait)?;
    let rule = input_kinds::rule(&[&inputs], options.key.rule())?;
    let format = options.key.format(reading.end());
    input_kinds::check_directories(&[&inputs], None, reading)?;
    input_kinds::check_format(&[&inputs], format, Some(&rule), options.key.eol.is_some())?;
    hints::warn_of_format(&[&inputs], reading.end(), &rule, options.quiet);
    if rule.depends_on_order() {
        let go_on = reading.on_error != OnError::Fail;
        headers::check_all(&mut [&mut inputs], reading.cut(format), headers::NAME_FIELDS, go_on)?;
    }
    // If the number of lines is too low, they are read again, so that the file has one filter of the right size.
    let second_inputs: io::Result<Vec<Input>> = inputs.found.iter().map(Input::reopen).collect();
    let second_inputs = second_inputs.map(|found| Inputs {
        found,
        left_out: Vec::new(),
        folders: Vec::new(),
        read: inputs.read.clone(),
        ..inputs
    });
    let ends = Arc::new(LineEnds::new(options.quiet));
    let key_name = rule.name();
    let key_source = KeySource::Key(rule.clone(), None);
    let demand = TableRequirements::default();
    let kinds = input_kinds::check_tables(&inputs, &key_source, &Values::default(), demand, reading.on_error)?;
    let (set, limit, is_size_unknown) = sizing::set_for_build(options, &key_name, &kinds, &inputs.found)?;
    let mut stats = RunStats::new(&set, limit, "lines", "key", options.quiet);
    stats.warn_if_overfull(&set);
    let mut work = work(options, &rule, &ends, inputs, set, stats)?;
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
            work = self::work(options, &rule, &ends, second_inputs.map_err(not_readable_again)?, set, stats)?;
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
    let (format, key_source) = (key.format(reading.end()), KeySource::Key(rule.clone(), None));
    let hashing = HashOptions::for_keys(set.hasher(), format, key_source, key.nulls.policy(), Arc::clone(ends));
    let scan = ScanOptions { reading, hashing, quiet: *quiet, events: never() };
    match scan.insert(inputs, SeenKeys::new(set), stats)? {
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
    if !options.append && !options.no_shrink {
        set.local_mut().map_or(Ok(()), LocalSet::shrink)?;
    }
    set.save(&options.output)
}
