//! What a run begins with: its set and its outputs, opened so that nothing is lost.

use crate::commands::groups::{Grouping, Reported, Targets};
use crate::commands::kinds;
use crate::commands::run::{Begun, Run};
use crate::engine::checkpoint::{Checkpoint, Checkpoints, Job, Mark};
use crate::engine::folder::{self, Folder, OutputPath};
use crate::engine::sink::{Print, Sink};
use crate::engine::work::Keep;
use crate::error::{Error, INCOMPLETE, SUCCESS};
use crate::files::{self, Identity, Origin, is_standard};
use crate::groups::decisions::Which;
use crate::input::estimate::Sampled;
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::{Before, What};
use crate::leftovers;
use crate::messages::tell;
use crate::options::RunOptions;
use crate::output::target::Target;
use crate::replace::Replaced;
use crate::seen::set::KeySet;
use crate::seen::shared::Address;
use crate::seen::sizing::{self, New};
use crate::seen::tally::{Limit, Tally};
use crate::seen::{Beside, Seen};
use crate::values::{LineEnd, OnError};
use std::collections::HashMap;
use std::fs::File;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What to do instead of losing the outputs of an interrupted run.
const CONTINUE: &str = "continue that run with --resume, ";

/// Why nothing is resumed.
const NOTHING_LEFT: &str = "no run with this state was cut off, so if one wrote it, nothing is left to do; else ";

/// Where lines go to.
enum Kept {
    Opened(Target),
    /// An input, whose place they take.
    Replaced(Replaced),
}

impl Kept {
    fn opened(&self) -> Option<&Target> {
        if let Self::Opened(target) = self { Some(target) } else { None }
    }
}

impl Run {
    /// Opens what is written, and the set. All that can fail comes before an output is emptied, and before the first line is claimed
    /// of a shared set.
    pub(super) fn begin(&self, inputs: &Inputs) -> Result<Begun, Error> {
        if self.options.resume && !self.can_resume(&inputs.found) {
            return Err(Error::ResumeStream);
        }
        match &self.options.output_dir {
            Some(path) => self.begin_folder(path, inputs),
            None if self.options.in_place => self.begin_in_place(&inputs.found),
            None => self.begin_files(inputs),
        }
    }

    /// Whether all inputs can be read and all outputs written from the middle.
    fn can_resume(&self, inputs: &[Input]) -> bool {
        let is_file = |path: &Path| !is_standard(path) && path.metadata().map_or(true, |metadata| metadata.is_file());
        let is_named = |input: &Input| input.size.is_some() && !is_standard(&input.path);
        inputs.iter().all(is_named)
            && !self.print.total
            && (self.options.output_dir.is_some() || self.options.output.file().is_some_and(is_file))
            && self.dupes.as_deref().into_iter().chain(self.reports()).all(is_file)
    }

    /// What has to be the same when the run goes on.
    fn job(&self, inputs: &[Input]) -> Job {
        let flags = [
            (self.format.end == 0, ", NUL-terminated"),
            (self.format.header, ", after a header"),
            (self.format.skip_blank, ", not blank"),
            (!self.print.wanted, ", inverted"),
            (self.print.before == Before::Mark, ", annotated"),
            (self.options.is_side_by_side(), ", side by side"),
            (self.print.eol == Some(LineEnd::Lf), ", ended by LF"),
            (self.print.eol == Some(LineEnd::Crlf), ", ended by CR LF"),
            (self.nulls == OnError::Keep, ", nulls kept"),
            (self.nulls == OnError::Skip, ", nulls left out"),
            (self.print.wish.filter, ", with filters"),
        ];
        let flags = flags.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned());
        let flags =
            flags.chain(self.options.output.compress.map(|compression| format!(", compressed as {compression}")));
        let grouping = self.grouping.as_ref().map(Grouping::description);
        let flags = flags.chain(grouping);
        let options = flags.fold(self.description.clone(), |options, flag| options + &flag);
        let outputs = self.outputs().chain(self.options.output_dir.as_deref());
        Job::new(inputs, outputs, options, self.reading.on_error)
    }

    /// The checkpoints beside the state of a run with these inputs.
    fn checkpoints(&self, state: &Path, inputs: &Inputs) -> Result<Checkpoints, Error> {
        let RunOptions { output_dir, manifest, output, .. } = &self.options;
        let own =
            output_dir.as_ref().map(|folder| folder::outputs(folder, &inputs.found, &inputs.folders, output.compress));
        let own = own.transpose()?.into_iter().flatten().map(|output| output.whole);
        let written = self.outputs().map(Path::to_owned).chain(own).collect();
        let (has_folder, resumable) = (output_dir.is_some(), self.can_resume(&inputs.found));
        Checkpoints::new(state, self.job(&inputs.found), written, has_folder, manifest.as_deref(), resumable)
    }

    /// The exit code of this run if it came to its end before, and nothing is left to resume.
    pub(super) fn ended(&self, inputs: &Inputs) -> Result<Option<u8>, Error> {
        let RunOptions { state, resume, force, quiet, .. } = &self.options;
        let Some(state) = state.as_deref().filter(|state| *resume && state.exists()) else { return Ok(None) };
        let checkpoints = self.checkpoints(state, inputs)?;
        let Some((left_out, gone)) = checkpoints.ended(*force)? else { return Ok(None) };
        if !quiet || gone.is_some() {
            let gone = gone.map_or_else(String::new, |output| {
                format!("; {} is not there any more, and is not written again", files::name(&output))
            });
            tell(&format!("nothing is left to do: this run with the state {state:?} is whole already{gone}"));
        }
        Ok(Some(if left_out > 0 { INCOMPLETE } else { SUCCESS }))
    }

    /// What outlives the run: the state.
    fn keep(&self) -> Keep {
        let RunOptions { state, shrink, checkpoint, .. } = &self.options;
        let at_end = self.grouping.is_some();
        // Who asks for an interval gets it, as long as lines get half of the time.
        let rest = if checkpoint.is_some() { 1 } else { 50 };
        Keep { state: state.clone(), shrink: *shrink, at_end, rest, ..Keep::default() }
    }

    /// With one output, and perhaps a file for what is dropped.
    fn begin_files(&self, all: &Inputs) -> Result<Begun, Error> {
        let inputs = &all.found[..];
        let (kept, dropped, reports) = self.targets(all)?;
        let targets: Vec<&Target> = kept.opened().into_iter().chain(&dropped).chain(reports.iter()).collect();
        let full = targets.into_iter().find(|target| target.is_full());
        let full = full.map(|target| target.origin.name().to_owned()).filter(|_| !self.options.force);
        // Lines that this run would not print again, since they are known.
        let lost = |known: &str, resume| match &full {
            Some(output) => Err(Error::Emptied { output: output.clone(), known: known.to_owned(), resume }),
            None => Ok(()),
        };
        if self.server.is_some() {
            lost("the shared filter", "")?;
        }
        let (seen, mut tally) = self.seen(inputs)?;
        let mut keep = self.keep();
        let mut start = None;
        if let Some(state) = &self.options.state {
            let mut checkpoints = self.checkpoints(state, all)?;
            let known = format!("the state {state:?}");
            match (state.exists(), self.options.resume) {
                (true, true) => {
                    start = checkpoints.find(&seen.set)?;
                    start.as_ref().map_or_else(|| lost(&known, NOTHING_LEFT), |_| Ok(()))?;
                }
                (true, false) => lost(&known, if checkpoints.is_interrupted(&seen.set) { CONTINUE } else { "" })?,
                // Without a state no checkpoint was reached, and nothing was printed.
                (false, true) => {
                    if let Some(output) = full {
                        return Err(Error::NoState { state: state.into(), output });
                    }
                }
                (false, false) => lost(&known, "")?,
            }
            checkpoints.forget(&seen.set)?;
            keep.checkpoints = Some(Mutex::new(checkpoints));
        }
        let (input, output, dupes) = start.as_ref().map_or((0, 0, 0), |at| (at.input, at.output, at.dupes));
        let tables = start.as_ref().map_or((None, None), |at| (at.output_table.as_ref(), at.dupes_table.as_ref()));
        tally.resume(start.as_ref().and_then(|start| start.room));
        // Before anything is cut off the first.
        dropped.iter().try_for_each(|target| target.check_length(dupes))?;
        let (kept, replacement) = match kept {
            Kept::Opened(target) => (target.begin(output, tables.0)?, None),
            Kept::Replaced(replaced) => replaced.begin().map(|(replacement, output)| (output, Some(replacement)))?,
        };
        let dropped = dropped.map(|target| target.begin(dupes, tables.1)).transpose()?;
        let sinks = vec![Sink::new(input, Some(kept), dropped)];
        let reports = begin_reports(reports, start.as_ref(), inputs.len())?;
        Ok(Begun { seen, tally, sinks, keep, start, replacement, reports })
    }

    /// The output, if it is also an input: all its lines are to be read, and what stays of them takes their place. Files that are found
    /// in directories are no outputs.
    fn replaced(&self, inputs: &[Input], own: &[Origin]) -> Result<Option<Replaced>, Error> {
        let Some((path, output)) = self.options.output.file().map(|path| (path, Origin::of(path))) else {
            return Ok(None);
        };
        let is_output = |path: &&PathBuf| !is_standard(path) && Origin::of(path).identity() == output.identity();
        let named = self.reading.files.iter().filter(|_| output.is_regular()).find(is_output);
        // Of each line a copy stays, as it is.
        let Print { wanted, before, total, .. } = self.print;
        let all = wanted && before == Before::Nothing && !total;
        let which = self.grouping.as_ref().map(Grouping::which);
        let all = all && which.is_none_or(|which| matches!(which, Which::All));
        let Some(named) = named.filter(|_| all) else { return Ok(None) };
        if self.options.state.is_some() || self.server.is_some() {
            return Err(Error::KnownAgain { output: files::name(path) });
        }
        output.check_apart(own, [])?;
        // One that is left out, since it cannot be read, would be lost.
        let input = inputs.iter().find(|input| input.origin.identity() == output.identity());
        let lost = || Error::Overwrite { input: files::name(named), output: files::name(path) };
        let input = input.ok_or_else(lost)?;
        Replaced::of(path, input, self.options.output.compress.filter(|_| !input.is_table)).map(Some)
    }

    /// Opens the outputs. None of them may be the state or the other one, or an input that it does not replace.
    fn targets(&self, all: &Inputs) -> Result<(Kept, Option<Target>, Targets), Error> {
        let (inputs, compress) = (&all.found[..], self.options.output.of_lines(all));
        let own = self.origins();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&own);
        let replaced = self.replaced(inputs, &own)?;
        // One that takes the place of an input is what that is, whatever its name claims.
        let named = self.options.output.file().filter(|_| replaced.is_none()).into_iter().chain(self.dupes.as_deref());
        named.into_iter().try_for_each(|output| kinds::check_name(output, all, self.print.total))?;
        let kept = match replaced {
            Some(replaced) => Kept::Replaced(replaced),
            None => Kept::Opened(Target::open(self.options.output.file(), compress, taken(), [])?),
        };
        let written = || kept.opened().map(|target| &target.origin);
        let dropped = self.dupes.as_ref().map(|path| Target::open(Some(path), compress, taken(), written()));
        let dropped = dropped.transpose()?;
        let written: Vec<_> = written().into_iter().chain(dropped.as_ref().map(|target| &target.origin)).collect();
        let reports = self.report_targets(inputs, &written)?;
        if self.options.state.is_some() {
            // A crash must not leave a state that knows of an output which the folder does not.
            for path in self.outputs() {
                let synced = File::open(files::folder(path)).and_then(|folder| folder.sync_all());
                synced.map_err(|source| Error::Create { output: files::name(path), source })?;
            }
        }
        Ok((kept, dropped, reports))
    }

    /// The files besides inputs and outputs, as they are: those of the state, those that are read besides, the manifest.
    fn origins(&self) -> Vec<Origin> {
        let manifest = self.options.manifest.as_deref();
        self.own().iter().map(PathBuf::as_path).chain(manifest).map(Origin::of).collect()
    }

    /// Opens the files that tell of groups. The other outputs are open.
    fn report_targets(&self, inputs: &[Input], written: &[&Origin]) -> Result<Targets, Error> {
        self.reports().try_for_each(kinds::check_name_of_lines)?;
        let (own, written) = (self.origins(), written.iter().copied());
        let read = inputs.iter().map(|input| &input.origin).chain(&own);
        let report = self.against.as_ref().and_then(|tests| tests.report.as_deref());
        let targets = match (report, &self.grouping) {
            (Some(report), _) => Target::open(Some(report), None, read, written).map(Targets::of_tests),
            (None, Some(grouping)) => grouping.targets(read, written),
            (None, None) => Ok(Targets::default()),
        }?;
        // A state that is not there yet is told from the outputs by where they are.
        let outputs: Vec<Origin> = self.outputs().map(Origin::of).collect();
        let RunOptions { state, manifest, .. } = &self.options;
        let saved = state.iter().flat_map(|state| files::of_filter(state)).chain(manifest.clone());
        saved.into_iter().try_for_each(|saved| files::check_target(&saved, &outputs))?;
        Ok(targets)
    }

    /// With what stays of each input in its place.
    fn begin_in_place(&self, inputs: &[Input]) -> Result<Begun, Error> {
        let besides: Vec<Origin> = self.besides().map(Origin::of).collect();
        let mut known: HashMap<Identity, &Input> = HashMap::new();
        let mut sinks = Vec::new();
        let compress = self.options.output.compress;
        let annotates = matches!(&self.what, What::Document(rule, _) if rule.annotate);
        for (lane, input) in inputs.iter().enumerate() {
            let replaced = Replaced::of(&input.path, input, compress.filter(|_| !input.is_table))?;
            input.origin.check_apart(&besides, [])?;
            // The second time all its lines would be repeats.
            if let Some(first) = input.origin.identity().and_then(|identity| known.insert(identity, input)) {
                let (first, second) = (first.origin.name().to_owned(), input.origin.name().to_owned());
                return Err(Error::Same { first, second });
            }
            let anew = annotates
                || compress.is_some()
                || self.print.eol.is_some()
                || input.is_table && self.options.output.column_filter;
            sinks.push(Sink::in_place(lane, replaced, anew));
        }
        let reports = self.report_targets(inputs, &[])?;
        let (seen, tally) = self.seen(inputs)?;
        let (keep, reports) = (Keep::default(), reports.begin()?);
        Ok(Begun { seen, tally, sinks, keep, start: None, replacement: None, reports })
    }

    /// With an output for each input, in a folder. Nothing is lost but an output that is shorter than it was.
    fn begin_folder(&self, path: &Path, inputs: &Inputs) -> Result<Begun, Error> {
        let RunOptions { state, manifest, force, resume, output, .. } = &self.options;
        let mut own = self.own();
        if let Some(manifest) = manifest {
            let besides: Vec<Origin> = self.besides().map(Origin::of).collect();
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin).chain(&besides))?;
            if files::is_standard(manifest) {
                return Err(Error::NotRegular { output: files::name(manifest) });
            }
            kinds::check_name_of_manifest(manifest)?;
            let real = files::real(manifest);
            if let Some(same) = own.iter().find(|own| files::real(own) == real) {
                return Err(Error::Overwrite { input: files::name(same), output: files::name(manifest) });
            }
            own.push(manifest.clone());
        }
        own.extend(self.reports().map(Path::to_owned));
        let folder = Folder::open(path, inputs, output.compress, &own)?;
        let reports = self.report_targets(&inputs.found, &[])?;
        // What a killed run left of it.
        manifest.iter().for_each(|manifest| leftovers::own(manifest));
        let (seen, mut tally) = self.seen(&inputs.found)?;
        let (mut checkpoints, mut start, mut advice) = (None, None, "");
        if let Some(state) = state {
            let mut earlier = self.checkpoints(state, inputs)?;
            match (state.exists(), *resume) {
                (true, true) => {
                    start = earlier.find(&seen.set)?;
                    advice = NOTHING_LEFT;
                }
                (true, false) if earlier.is_interrupted(&seen.set) => advice = CONTINUE,
                _ => {}
            }
            checkpoints = Some(earlier);
        }
        tally.resume(start.as_ref().and_then(|start| start.room));
        let marks = start.iter().flat_map(|start| start.shards.iter().cloned()).chain(iter::repeat_with(Mark::default));
        let outputs: Vec<(OutputPath, Mark)> = folder.outputs.iter().cloned().zip(marks).collect();
        if let Some(full) =
            reports.iter().find(|target| target.is_full() && state.is_some() && !*force && start.is_none())
        {
            let (output, known) =
                (full.origin.name().to_owned(), format!("the state {:?}", state.as_deref().unwrap_or(path)));
            return Err(Error::Emptied { output, known, resume: advice });
        }
        if !*force {
            outputs.iter().try_for_each(|(output, mark)| output.check(mark, start.is_some(), advice))?;
        }
        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.forget(&seen.set))?;
        outputs.iter().try_for_each(|(output, mark)| output.clear(mark))?;
        let outputs = outputs.into_iter().enumerate();
        let sinks = outputs.map(|(lane, (output, mark))| Sink::of_lane(lane, output, &mark)).collect();
        let checkpoints = checkpoints.map(Mutex::new);
        let keep = Keep { checkpoints, folder: Some(folder), manifest: manifest.clone(), ..self.keep() };
        let reports = begin_reports(reports, start.as_ref(), inputs.found.len())?;
        Ok(Begun { seen, tally, sinks, keep, start, replacement: None, reports })
    }

    /// What was seen before the first line, and the tally.
    fn seen(&self, inputs: &[Input]) -> Result<(Seen, Tally), Error> {
        let (set, limit) = self.set(inputs)?;
        let tally = Tally::new(&set, limit, self.keys, self.wanted, self.options.quiet);
        tally.warn(set.shared().and_then(|set| set.danger()));
        let mut seen = Seen::new(set);
        if let Some(grouping) = &self.grouping {
            let had = tally.keys_before > 0.0;
            seen.beside = Beside::Records(grouping.records(inputs, had)?);
        }
        Ok((if self.exact { seen.with_exact()? } else { seen }, tally))
    }

    /// The set: the one on a server, that of the state, or a new one. And when it is full.
    fn set(&self, inputs: &[Input]) -> Result<(KeySet, Option<Limit>), Error> {
        let RunOptions { growth, quiet, state, resume, .. } = &self.options;
        if let Some((shared, writing)) = &self.server
            && let Some(address) = Address::of(shared)?
        {
            return Ok((sizing::of_server(&self.size, writing, self.options.stats.is_some(), &address)?, None));
        }
        if let Some(set) = self.against.as_ref().and_then(|tests| tests.set.take()) {
            return Ok((set, None));
        }
        if let Some(filter) = &self.frozen {
            return Ok((KeySet::load_for(filter, &self.key_name)?, None));
        }
        if let Some(state) = state.as_deref().filter(|state| state.exists()) {
            let set = KeySet::load_for(state, &self.key_name)?;
            let limit = sizing::limit_of_state(&self.size, growth, *resume, state, &set)?;
            return Ok((set, limit));
        }
        let sampled = match &self.what {
            What::Key(..) => Sampled::Lines,
            What::Document(rule, _) => Sampled::Documents(rule.clone()),
        };
        let (size, key_name, keys, keep, quiet) = (&self.size, &*self.key_name, self.keys, state.is_some(), *quiet);
        New { size, growth, keep, key_name, keys, quiet }.of_inputs(inputs, &self.reading, &sampled)
    }
}

/// Begins what tells of groups, unless a run did that is to go on and was cut off when all of it was done.
fn begin_reports(reports: Targets, start: Option<&Checkpoint>, inputs: usize) -> Result<Reported, Error> {
    let is_done = start.is_some_and(|start| start.is_end(inputs));
    if is_done { Ok(Reported::default()) } else { reports.begin() }
}
