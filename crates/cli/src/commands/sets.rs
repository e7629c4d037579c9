//! `bloomline in` and `bloomline not-in`: prints the lines of some files that are, or are not, in others.
//!
//! A first pass inserts the lines of OLD into a set in memory, as `build` does. A second one looks up the lines of NEW, as `check`
//! does.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::job::Checked;
use crate::commands::prelude::Prelude;
use crate::commands::report;
use crate::commands::scan::{self, ScanOptions};
use crate::commands::sizing::NewSet;
use crate::options::SetOptions;
use crate::options::values::Eol;
use crate::read::estimate::LineUnit;
use crate::read::find::NamedPaths;
use crate::read::inputs::Inputs;
use crate::read::keys::Hashing;
use crate::read::projection::Projection;
use crate::read::skip::OnError;
use crate::run::events::{self, Event};
use crate::run::sink::PrintOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::RunStats;
use crate::seen::{SeenKeys, exact};
use crate::system::error::{Error, Stop};
use crate::system::files::NamedFile;
use crate::system::unpoisoned::locked;
use crate::terminal::messages::{self, print_message, warn};
use crate::write::target::OutputTarget;
use bloomline_keys::KeyKinds;
use crossbeam_channel::Receiver;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Instant;

/// The comparison of the lines of NEW with those of OLD.
pub struct SetJob {
    pub options: SetOptions,
    /// True if lines of NEW are printed that are in OLD; otherwise the others are.
    pub wanted: bool,
    /// True if each line is printed once.
    pub distinct: bool,
}

impl SetJob {
    fn scan(&self, hashing: &Hashing, events: Receiver<Event>) -> ScanOptions<'_> {
        ScanOptions::for_keys(&self.options.reading, hashing, self.options.select.quiet, events)
    }

    /// True if the terminal is NEW by default, and files may have been meant.
    fn may_read_terminal(&self) -> bool {
        self.options.may_lack_dashes() && io::stdin().is_terminal()
    }

    /// Checks the options, the inputs and the output.
    pub fn check(mut self) -> Result<Checked, Stop> {
        let started = Instant::now();
        if self.options.exact {
            self.options.size.verify();
        }
        let options = &self.options;
        let SetOptions { reading, select, key, size, growth, .. } = options;
        if let Some(option) = options.misplaced_option() {
            return Err(Stop::Failed(Error::new(format!(
                "there is no file {option:?}: arguments after \"--\" are the files of NEW, so give options before it"
            ))));
        }
        let mut own: Vec<PathBuf> = reading.files_from.iter().cloned().collect();
        let mut new =
            Inputs::check(&NamedPaths { paths: &options.new, list: None, ..reading.named_paths() }, &own, true)?;
        if new.found.is_empty()
            && let Some(reason) = new.left_out.first()
        {
            return Err(Stop::Failed(Error::new(reason.clone())));
        }
        // A comparison of a new file with its own directory does not include the file itself.
        own.extend(new.found.iter().map(|input| input.path.clone()));
        let mut old = Inputs::check(&reading.named_paths(), &own, reading.on_error != OnError::Fail)?;
        let prints = !select.any && !select.total;
        let one_output = prints.then_some(headers::ONE_OUTPUT);
        let prelude = Prelude {
            reading,
            format: key.line_format(reading.line_end()),
            crlf: key.eol.is_some(),
            one_output,
            quiet: select.quiet,
        };
        let rule = prelude.check_keys(&mut [&mut old, &mut new], key.rule())?;
        if self.may_read_terminal() && !select.quiet {
            print_message(&options.with_hint_of_dashes("waiting for lines of NEW from the terminal"));
        }
        let projection = Projection::from_rule(rule.clone());
        let kinds_of_old = prelude.check_projection(&old, &projection, TableRequirements::default())?;
        let demand = TableRequirements { write_options: options.output.row_options(), added: None, together: prints };
        let kinds_of_new = prelude.check_projection(&new, &projection, demand)?;
        input_kinds::check_kinds(&kinds_of_old, &kinds_of_new)?;
        let list = reading.files_from.as_deref().map(NamedFile::from_path);
        let origins = || old.found.iter().chain(&new.found).map(|input| &input.origin).chain(&list);
        let mut target = None;
        if !select.any {
            let output = options.output.file();
            if let Some(output) = output {
                input_kinds::check_name(output, &new, select.total)?;
            }
            target = Some(OutputTarget::check(output, options.output.line_compression(&new), origins(), [])?);
        }
        // The inputs whose lines are inserted decide the size.
        let inserted = old.found.iter().chain(new.found.iter().filter(|_| self.distinct)).cloned();
        let key_name = &rule.name();
        let new_set =
            NewSet { size, growth, keep: false, exact: options.exact, key_name, keys: "lines", quiet: select.quiet };
        let (set, limit) = new_set.for_inputs(&inserted.collect::<Vec<_>>(), reading, &LineUnit)?;
        let stats = RunStats::new(&set, limit, "lines", "key", select.quiet);
        let mut seen = SeenKeys::new(set);
        seen.expect_kinds(&kinds_of_old);
        Ok(Box::new(move || {
            // OLD is read before the output is opened: a failure in OLD empties nothing.
            let seen = if self.options.exact { seen.with_exact()? } else { seen };
            let events = events::receive(None, None)?;
            let SetOptions { reading, key, size, select, exact, .. } = &self.options;
            let hashing = Hashing {
                second_hasher: exact.then(|| exact::second_hasher(size.seed())),
                ..key.hashing(reading.line_end(), rule, seen.set.hasher(), select.quiet)
            };
            let (built, stop) = self.scan(&hashing, events.clone()).insert(hashing.clone(), old, seen, stats)?;
            if let Some(stop) = stop {
                return Err(stop);
            }
            let seen = built.seen.clone();
            let counts_of_old = locked(&built.stats).counts.clone();
            // Kinds of OLD that depend on values are known here.
            input_kinds::check_kinds(seen.read().set.kinds(), &kinds_of_new)?;
            seen.write().expect_kinds(&KeyKinds::default());
            // One line that is not in OLD is enough for --any, so duplicates do not matter.
            let inserting = self.distinct && !self.options.select.any;
            let inserting = inserting.then(|| locked(&built.stats).for_search_after(&seen.read().set));
            let output = target.map(|target| target.start(0, None)).transpose()?;
            Ok(Box::new(move || {
                let options = &self.options;
                let select = &options.select;
                let eol = options.key.eol.and_then(Eol::written);
                // An inserted line has the mark of a wanted one.
                let mark = self.wanted || inserting.is_some();
                let write_options = options.output.row_options();
                let print_options = PrintOptions { write_options, eol, ..PrintOptions::for_mark(mark) };
                let scan = ScanOptions { print: print_options, ..self.scan(&hashing, events) };
                let (work, stop) = scan.select(hashing, new, seen, inserting, select, output)?;
                let is_silent = select.quiet || self.may_read_terminal();
                if options.may_lack_dashes() && !is_silent && locked(&work.stats).counts.lines == 0 {
                    warn(&options.with_hint_of_dashes("standard input, which is NEW, has no lines"));
                }
                if let Some(format) = options.stats {
                    let mut seen = work.seen.write();
                    let stats = locked(&work.stats);
                    let mut figures = report::set_figures(&seen, &counts_of_old, &stats, self.wanted, self.distinct);
                    seen.set.local_mut().map_or(Ok(()), LocalSet::fit)?;
                    report::add_state(&mut figures, &seen.set, &stats, None);
                    report::add_speed(&mut figures, &stats, started.elapsed());
                    messages::print(&figures.format(format));
                }
                scan::exit_code(&work, stop, counts_of_old.left_out, select.any)
            }))
        }))
    }
}
