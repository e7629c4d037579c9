//! `bloomline in` and `bloomline not-in`: prints the lines of some files that are, or are not, in others.
//!
//! A first pass inserts the lines of OLD into a set in memory, as `build` does. A second one looks up the lines of NEW, as `check`
//! does.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::report;
use crate::commands::scan::{self, ScanOptions};
use crate::commands::sizing::NewSet;
use crate::options::SetOptions;
use crate::options::values::{Eol, OnError};
use crate::read::estimate::SampleUnit;
use crate::read::find::NamedPaths;
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::lines::ends::LineEnds;
use crate::read::lines::keys::{HashOptions, KeySource};
use crate::run::events;
use crate::run::sink::PrintOptions;
use crate::seen::run_stats::RunStats;
use crate::seen::{SeenKeys, exact};
use crate::steps::groups::values::ValueProjection as Values;
use crate::system::error::Error;
use crate::system::files::NamedFile;
use crate::system::unpoisoned::locked;
use crate::terminal::messages::{print, print_message, warn};
use crate::write::target::OutputTarget;
use bloomline_keys::KeyKinds;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Runs the command, which prints the lines of NEW that are in OLD if `wanted`, otherwise the others: each time, or once if
/// `distinct`.
pub fn run(options: &SetOptions, wanted: bool, distinct: bool) -> Result<u8, Error> {
    let started = Instant::now();
    let SetOptions { reading, select, key, size, growth, .. } = options;
    let format = key.format(reading.end());
    if let Some(option) = options.option_behind() {
        return Err(Error::new(format!(
            "there is no file {option:?}: arguments after \"--\" are the files of NEW, so give options before it"
        )));
    }
    let mut own: Vec<PathBuf> = reading.list().map(Path::to_owned).into_iter().collect();
    let mut new = Inputs::check(&NamedPaths { paths: &options.new, list: None, ..reading.named() }, &own, true)?;
    // A comparison of a new file with its own directory does not include the file itself.
    own.extend(new.found.iter().map(|input| input.path.clone()));
    let mut old = Inputs::check(&reading.named(), &own, reading.on_error != OnError::Fail)?;
    let rule = input_kinds::rule(&[&old, &new], key.rule())?;
    input_kinds::check_directories(&[&old, &new], None, reading)?;
    input_kinds::check_format(&[&old, &new], format, Some(&rule), key.eol.is_some())?;
    hints::warn_of_format(&[&old, &new], reading.end(), &rule, select.quiet);
    let reads_terminal = options.may_lack_dashes() && io::stdin().is_terminal();
    if reads_terminal && !select.quiet {
        print_message(&options.dashes("waiting for lines of NEW from the terminal"));
    }
    let prints = !select.any && !select.total;
    if prints {
        input_kinds::check_one(&new)?;
    }
    let (cut, go_on) = (reading.cut(format), reading.on_error != OnError::Fail);
    if rule.depends_on_order() {
        headers::check_all(&mut [&mut old, &mut new], cut, headers::NAME_FIELDS, go_on)?;
    } else if prints {
        headers::check_all(&mut [&mut new], cut, headers::ONE_OUTPUT, go_on)?;
    }
    let second = options.exact.then(|| exact::second_hasher(size.seed()));
    let (key_name, what) = (&rule.name(), KeySource::Key(rule, second));
    let of_old =
        input_kinds::check_tables(&old, &what, &Values::default(), TableRequirements::default(), reading.on_error)?;
    let demand = TableRequirements { write_options: options.output.row_options(), added: None, together: prints };
    let of_new = input_kinds::check_tables(&new, &what, &Values::default(), demand, reading.on_error)?;
    input_kinds::check_kinds(&of_old, &of_new)?;
    let list = reading.list().map(NamedFile::from_path);
    let origins = || old.found.iter().chain(&new.found).map(|input| &input.origin).chain(&list);
    let open = || {
        let output = options.output.file();
        output.map_or(Ok(()), |output| input_kinds::check_name(output, &new, select.total))?;
        OutputTarget::open(output, options.output.line_compression(&new), origins(), [])
    };
    let target = if select.any { None } else { Some(open()?) };

    // The inputs whose lines are inserted decide the size.
    let inserted = old.found.iter().chain(new.found.iter().filter(|_| distinct)).cloned();
    let (set, limit) = NewSet { size, growth, keep: false, key_name, keys: "lines", quiet: select.quiet }.for_inputs(
        &inserted.collect::<Vec<_>>(),
        reading,
        &SampleUnit::Lines,
    )?;
    let stats = RunStats::new(&set, limit, "lines", "key", select.quiet);
    let mut seen = SeenKeys::new(set);
    seen.expect_kinds(&of_old);
    let seen = if options.exact { seen.with_exact()? } else { seen };
    let ends = LineEnds::new(select.quiet).into();
    let hashing = HashOptions::for_keys(seen.set.hasher(), format, what, key.nulls.policy(), ends);
    let scan = ScanOptions { reading, hashing, quiet: select.quiet, events: events::receive(None, None)? };
    let (built, stop) = scan.insert(old, seen, stats)?;
    if let Some(stop) = stop {
        return stop.end();
    }
    let (seen, of_old) = (built.seen.clone(), locked(&built.stats).counts.clone());
    // Kinds of OLD that depend on values are known here.
    input_kinds::check_kinds(seen.read().set.kinds(), &of_new)?;
    seen.write().expect_kinds(&KeyKinds::default());
    // One line that is not in OLD is enough for --any, so duplicates do not matter.
    let inserting = distinct && !select.any;
    let inserting = inserting.then(|| locked(&built.stats).for_search_after(&built.seen.read().set));
    drop(built);

    // The output is not emptied before this point.
    let output = target.map(|target| target.start(0, None)).transpose()?;
    let (write_options, eol) = (demand.write_options, key.eol.and_then(Eol::written));
    let printed = PrintOptions { write_options, eol, ..PrintOptions::default() };
    let (work, stop) = scan.select(new, seen, (wanted, inserting), select, output, printed)?;
    if options.may_lack_dashes() && !reads_terminal && !select.quiet && locked(&work.stats).counts.lines == 0 {
        warn(&options.dashes("standard input, which is NEW, has no lines"));
    }
    if let Some(format) = options.stats {
        let (seen, stats) = (work.seen.read(), locked(&work.stats));
        let mut figures = report::set_figures(&seen, &of_old, &stats, wanted, distinct);
        report::add_state_and_speed(&mut figures, &seen.set, &stats, None, started.elapsed());
        print(&figures.format(format));
    }
    scan::exit_code(&work, stop, of_old.left_out, select.any)
}
