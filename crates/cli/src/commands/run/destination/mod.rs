//! The destinations of lines, opened so that no lines are lost.

mod file;
mod folder;
mod in_place;

use crate::commands::groups::{OpenReports, ReportTargets};
use crate::commands::input_kinds;
use crate::commands::run::plan::{Destination, DestinationKind, Plan};
use crate::read::inputs::{Input, Inputs};
use crate::run::checkpoint::{Checkpoint, Checkpoints};
use crate::run::sink::Sink;
use crate::run::work::Persistence;
use crate::seen::SeenKeys;
use crate::seen::run_stats::RunStats;
use crate::seen::set::KeySet;
use crate::steps::groups::records::RecordFile;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile, is_standard};
use crate::write::replace::ReplacedFile;
use crate::write::target::OutputTarget;
use std::path::{Path, PathBuf};

/// The remedy if the outputs of an interrupted run would be lost.
const CONTINUE: &str = "continue that run with --resume, ";

/// Returns the reason why nothing is resumed, before a remedy.
fn nothing_left(checkpoints: &Checkpoints) -> String {
    let why = match checkpoints.changed_input() {
        Some(changed) => format!("a run of this command is complete, but {changed}"),
        None => "no run with this state was interrupted".to_owned(),
    };
    format!("{why}, so leave out --resume, and ")
}

/// The parts of a run, opened.
pub struct OpenedRun {
    pub seen: SeenKeys,
    pub stats: RunStats,
    /// Empty records, if groups are to be found.
    pub records: Option<RecordFile>,
    pub sinks: Vec<Sink>,
    pub keep: Persistence,
    /// The checkpoint from which the run resumes.
    pub start: Option<Checkpoint>,
    /// The replacement of an input, if the output is also an input.
    pub replaced: Option<ReplacedFile>,
    /// The reports on groups and on test sets.
    pub reports: OpenReports,
}

impl Plan {
    /// Opens the outputs, and the set if none is given. Every step that can fail precedes the emptying of outputs and the first
    /// claim in a shared set.
    pub(super) fn open(&self, inputs: &Inputs, set: Option<KeySet>) -> Result<OpenedRun, Error> {
        if self.state().is_some_and(|state| state.resume) && !self.can_resume(&inputs.found) {
            return Err(Error::new(
                "cannot resume: only a run from files to files can be resumed; name the input files, and name the \
                 outputs with -o and --dupes, or with --output-dir",
            ));
        }
        match &self.destination.kind {
            DestinationKind::Folder { path, .. } => self.open_folder(path, inputs, set),
            DestinationKind::InPlace => self.open_in_place(&inputs.found, set),
            DestinationKind::File { dupes } => self.open_file(dupes.as_deref(), inputs, set),
        }
    }

    /// True if all inputs can be read from the middle, and all outputs be continued there.
    pub(super) fn can_resume(&self, inputs: &[Input]) -> bool {
        let is_file = |path: &Path| !is_standard(path) && path.metadata().map_or(true, |metadata| metadata.is_file());
        let is_named = |input: &Input| input.size.is_some() && !is_standard(&input.path);
        let Destination { output, .. } = &self.destination;
        inputs.iter().all(is_named)
            && !self.print.total
            && (self.destination.folder().is_some() || output.file().is_some_and(is_file))
            && self.destination.dupes().into_iter().chain(self.reports()).all(is_file)
    }

    /// The files besides inputs and outputs: the state's files, other files that are read, and the manifest.
    fn origins(&self) -> Vec<NamedFile> {
        self.own_files()
            .iter()
            .map(PathBuf::as_path)
            .chain(self.destination.manifest())
            .map(NamedFile::from_path)
            .collect()
    }

    /// Opens the report files, after the other outputs.
    fn report_targets(&self, inputs: &[Input], written: &[&NamedFile]) -> Result<ReportTargets, Error> {
        self.reports().try_for_each(input_kinds::check_name_of_lines)?;
        let (own, written) = (self.origins(), written.iter().copied());
        let read = inputs.iter().map(|input| &input.origin).chain(&own);
        let report = self.tests().and_then(|tests| tests.report.as_deref());
        let targets = match (report, &self.group_request) {
            (Some(report), _) => OutputTarget::open(Some(report), None, read, written).map(ReportTargets::for_tests),
            (None, Some(group_request)) => group_request.targets(read, written),
            (None, None) => Ok(ReportTargets::default()),
        }?;
        // A state that does not exist yet is distinguished from the outputs by its path.
        let outputs: Vec<NamedFile> = self.outputs().map(NamedFile::from_path).collect();
        let state = self.state().into_iter().flat_map(|state| files::filter_files(&state.path));
        let mut saved = state.chain(self.destination.manifest().map(Path::to_owned));
        saved.try_for_each(|saved| files::check_target(&saved, &outputs))?;
        Ok(targets)
    }
}

/// Returns the error for an output that would be emptied although a run with `known` would not print its lines again. `resume` is
/// advice about an earlier run.
fn emptying_error(output: &str, known: &str, resume: &str) -> Error {
    Error::new(format!(
        "refusing to overwrite {output}: it holds lines, and a run with {known} may not print them again; {resume}write to \
         another file, or append with >> (--force would erase these lines)"
    ))
}

/// Empties the reports, unless the run resumes at its end: then they are complete.
fn open_reports(reports: ReportTargets, start: Option<&Checkpoint>, inputs: usize) -> Result<OpenReports, Error> {
    let is_done = start.is_some_and(|start| start.is_end(inputs));
    if is_done { Ok(OpenReports::default()) } else { reports.open() }
}
