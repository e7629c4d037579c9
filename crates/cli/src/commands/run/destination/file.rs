//! The opening of one output for all lines, with an optional file for dropped lines.

use crate::commands::groups::{GroupRequest, ReportTargets};
use crate::commands::input_kinds;
use crate::commands::run::destination::{CONTINUE, OpenedRun, emptying_error, nothing_left, open_reports};
use crate::commands::run::plan::{Destination, Plan};
use crate::read::inputs::{Input, Inputs};
use crate::read::lines::Prefix;
use crate::run::checkpoint::Checkpoint;
use crate::run::sink::{PrintOptions, Sink};
use crate::seen::set::KeySet;
use crate::steps::groups::decisions::Occurrences;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile, is_standard};
use crate::write::replace::ReplacedFile;
use crate::write::target::OutputTarget;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The output of lines that are kept.
enum KeptOutput {
    Opened(OutputTarget),
    /// An input that is replaced.
    Replaced(ReplacedFile),
}

impl KeptOutput {
    fn opened(&self) -> Option<&OutputTarget> {
        if let Self::Opened(target) = self { Some(target) } else { None }
    }
}

impl Plan {
    pub(super) fn open_file(
        &self,
        dupes: Option<&Path>,
        all: &Inputs,
        set: Option<KeySet>,
    ) -> Result<OpenedRun, Error> {
        let inputs = &all.found[..];
        let (kept, dropped, reports) = self.targets(dupes, all)?;
        let targets: Vec<&OutputTarget> = kept.opened().into_iter().chain(&dropped).chain(reports.iter()).collect();
        let full = targets.into_iter().find(|target| target.has_contents());
        let full = full.map(|target| target.origin.name().to_owned()).filter(|_| !self.destination.force);
        // Lines that this run would not print again, because their keys are known.
        let lost = |known: &str, resume: &str| match &full {
            Some(output) => Err(emptying_error(output, known, resume)),
            None => Ok(()),
        };
        if self.is_shared() {
            lost("the shared filter", "")?;
        }
        let (seen, mut stats, records) = self.seen(inputs, set)?;
        let mut keep = self.keep();
        let mut start = None;
        if let Some(state) = self.state() {
            let mut checkpoints = self.checkpoints(state, all)?;
            let known = format!("the state {:?}", state.path);
            match (state.path.exists(), state.resume) {
                (true, true) => {
                    start = checkpoints.find(&seen.set)?;
                    if start.is_none() {
                        lost(&known, &nothing_left(&checkpoints))?;
                    }
                }
                (true, false) => lost(&known, if checkpoints.is_interrupted(&seen.set) { CONTINUE } else { "" })?,
                // Without a state, no checkpoint was reached and nothing was printed.
                (false, true) => {
                    if let Some(output) = full {
                        return Err(Error::new(format!(
                            "cannot resume: there is no state {:?}, and {output} holds lines that a run from the beginning would \
                             erase; check the name of the state, or write to another file (--force would erase these lines)",
                            state.path
                        )));
                    }
                }
                (false, false) => lost(&known, "")?,
            }
            checkpoints.forget(&seen.set)?;
            keep.checkpoints = Some(Mutex::new(checkpoints));
        }
        let (input, output, dupes) = start.as_ref().map_or((0, 0, 0), |at| (at.input, at.output, at.dupes));
        let (output_begun, dupes_begun) = start.as_ref().map_or((false, false), Checkpoint::begun);
        let tables = start.as_ref().map_or((None, None), |at| (at.output_table.as_ref(), at.dupes_table.as_ref()));
        stats.resume(start.as_ref().and_then(|start| start.room));
        // Checked before the first output is truncated.
        dropped.iter().try_for_each(|target| target.check_length(dupes))?;
        let (kept, replaced) = match kept {
            KeptOutput::Opened(target) => (Some(target.start(output, tables.0)?.continues(output_begun)), None),
            KeptOutput::Replaced(mut replaced) => (replaced.begin()?, Some(replaced)),
        };
        let dropped = dropped.map(|target| target.start(dupes, tables.1)).transpose()?;
        let dropped = dropped.map(|dropped| dropped.continues(dupes_begun));
        let sinks = vec![Sink::new(input, kept, dropped)];
        let reports = open_reports(reports, start.as_ref(), inputs.len())?;
        Ok(OpenedRun { seen, stats, records, sinks, keep, start, replaced, reports })
    }

    /// Prepares to replace an input if the output is the same file: all its lines are read before its new contents
    /// replace it. Only an input that is named can be replaced, not one that is found in a directory.
    fn replaced(&self, inputs: &[Input], own: &[NamedFile]) -> Result<Option<ReplacedFile>, Error> {
        let file = self.destination.output.file();
        let Some((path, output)) = file.map(|path| (path, NamedFile::from_path(path))) else {
            return Ok(None);
        };
        let is_output =
            |path: &&PathBuf| !is_standard(path) && NamedFile::from_path(path).identity() == output.identity();
        let named = self.reading.files.iter().filter(|_| output.is_regular()).find(is_output);
        // Only if the output keeps a copy of each line, unchanged.
        let PrintOptions { selected_mark: wanted, before, total, .. } = self.print;
        let all = wanted && before == Prefix::Nothing && !total;
        let occurrences = self.group_request.as_ref().map(GroupRequest::occurrences);
        let all = all && occurrences.is_none_or(|occurrences| matches!(occurrences, Occurrences::All));
        let Some(named) = named.filter(|_| all) else { return Ok(None) };
        if self.state().is_some() || self.is_shared() {
            return Err(Error::new(format!(
                "cannot write to {path:?}: it is also an input, and with --state or --redis the next run would find that all of \
                 its lines are repeats and erase them; write to another file"
            )));
        }
        output.check_apart(own, [])?;
        // An input that is skipped because it cannot be read would be lost.
        let input = inputs.iter().find(|input| input.origin.identity() == output.identity());
        let lost = || files::overwrites(&files::name(path), &files::name(named));
        let input = input.ok_or_else(lost)?;
        ReplacedFile::new(path, input, self.destination.output.compress.filter(|_| !input.is_table)).map(Some)
    }

    /// Opens the outputs. None of them may be the state, another output, or an input that it does not replace.
    fn targets(
        &self,
        dupes: Option<&Path>,
        all: &Inputs,
    ) -> Result<(KeptOutput, Option<OutputTarget>, ReportTargets), Error> {
        let Destination { output, .. } = &self.destination;
        let (inputs, compress) = (&all.found[..], output.line_compression(all));
        let own = self.origins();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&own);
        let replaced = self.replaced(inputs, &own)?;
        // An output that replaces an input keeps its format, even if its name claims another.
        let named = output.file().filter(|_| replaced.is_none()).into_iter().chain(dupes);
        named.into_iter().try_for_each(|named| input_kinds::check_name(named, all, self.print.total))?;
        let kept = match replaced {
            Some(replaced) => KeptOutput::Replaced(replaced),
            None => KeptOutput::Opened(OutputTarget::open(output.file(), compress, taken(), [])?),
        };
        let written = || kept.opened().map(|target| &target.origin);
        let dropped = dupes.map(|path| OutputTarget::open(Some(path), compress, taken(), written()));
        let dropped = dropped.transpose()?;
        let written: Vec<_> = written().into_iter().chain(dropped.as_ref().map(|target| &target.origin)).collect();
        let reports = self.report_targets(inputs, &written)?;
        if self.state().is_some() {
            // After a crash, the folder must not lack an output if the state has keys of its lines.
            for path in self.outputs() {
                files::sync_folder(files::folder(path)).map_err(files::failed(path))?;
            }
        }
        Ok((kept, dropped, reports))
    }
}
