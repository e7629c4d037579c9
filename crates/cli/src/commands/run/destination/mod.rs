//! The destinations of lines: checked before anything is written, then opened so that no lines are lost.

mod file;
mod folder;
mod in_place;

use crate::commands::groups::{OpenReports, ReportTargets};
use crate::commands::input_kinds;
use crate::commands::run::destination::file::CheckedFile;
use crate::commands::run::destination::folder::CheckedFolder;
use crate::commands::run::plan::{Destination, DestinationKind, Plan};
use crate::read::inputs::{Input, Inputs};
use crate::run::checkpoint::Checkpoint;
use crate::run::folder::OutputFolder;
use crate::run::sink::Sink;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile, is_standard};
use crate::system::platform;
use crate::write::replace::ReplacedFile;
use crate::write::target::OutputTarget;
use std::path::{Path, PathBuf};

/// The destination of lines and the reports, checked and not yet opened.
pub struct CheckedDestination {
    kind: CheckedKind,
    reports: ReportTargets,
}

enum CheckedKind {
    File(Box<CheckedFile>),
    Folder(CheckedFolder),
    /// The sinks for the inputs, which are not opened before they get lines.
    InPlace(Vec<Sink>),
}

/// The destination of lines and the reports, opened.
pub struct OpenedDestination {
    pub sinks: Vec<Sink>,
    pub folder: Option<OutputFolder>,
    /// The replacement of an input, if the output is also an input.
    pub replaced: Option<ReplacedFile>,
    /// The reports on groups and on test sets.
    pub reports: OpenReports,
}

impl Plan {
    /// Checks the destination of the lines of these inputs.
    pub(super) fn check_destination(&self, inputs: &Inputs) -> Result<CheckedDestination, Error> {
        if self.state().is_some_and(|state| state.resume) && !self.can_resume(&inputs.found) {
            return Err(Error::new(
                "cannot resume: only a run from files to files can be resumed; name the input files, and name the \
                 outputs with -o and --dupes, or with --output-dir",
            ));
        }
        let kind = match &self.destination.kind {
            DestinationKind::Folder { path, .. } => CheckedKind::Folder(self.check_folder(path, inputs)?),
            DestinationKind::InPlace => CheckedKind::InPlace(self.check_in_place(&inputs.found)?),
            DestinationKind::File { dupes } => CheckedKind::File(Box::new(self.check_file(dupes.as_deref(), inputs)?)),
        };
        let written: Vec<&NamedFile> = match &kind {
            CheckedKind::File(file) => file.targets().map(|target| &target.origin).collect(),
            CheckedKind::Folder(_) | CheckedKind::InPlace(_) => Vec::new(),
        };
        let reports = self.check_reports(&inputs.found, &written)?;
        Ok(CheckedDestination { kind, reports })
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

    /// Returns the files besides inputs and outputs: the state's files, other files that are read, and the manifest.
    fn origins(&self) -> Vec<NamedFile> {
        self.own_files()
            .iter()
            .map(PathBuf::as_path)
            .chain(self.destination.manifest())
            .map(NamedFile::from_path)
            .collect()
    }

    /// Checks the report files, after the other outputs.
    fn check_reports(&self, inputs: &[Input], written: &[&NamedFile]) -> Result<ReportTargets, Error> {
        self.reports().try_for_each(input_kinds::check_name_of_lines)?;
        let own = self.origins();
        let written = written.iter().copied();
        let read = inputs.iter().map(|input| &input.origin).chain(&own);
        let report = self.tests().and_then(|tests| tests.report.as_deref());
        let targets = match (report, &self.group_request) {
            (Some(report), _) => OutputTarget::check(Some(report), None, read, written).map(ReportTargets::for_tests),
            (None, Some(group_request)) => group_request.targets(read, written),
            (None, None) => Ok(ReportTargets::default()),
        }?;
        let outputs: Vec<NamedFile> = self.outputs().map(NamedFile::from_path).collect();
        let state = self.state().into_iter().flat_map(|state| files::filter_files(&state.path));
        let mut saved = state.chain(self.destination.manifest().map(Path::to_owned));
        saved.try_for_each(|saved| files::check_target(&saved, &outputs))?;
        Ok(targets)
    }
}

impl CheckedDestination {
    /// Returns the name of an output with contents that a run from its start would erase.
    pub fn full(&self) -> Option<&str> {
        let file = if let CheckedKind::File(file) = &self.kind { Some(file) } else { None };
        let mut targets = file.into_iter().flat_map(|file| file.targets()).chain(self.reports.iter());
        targets.find(|target| target.has_contents()).map(|target| target.origin.name())
    }

    /// Refuses outputs that cannot be continued from the checkpoint `start`, or that would be erased. `advice` is about an earlier run.
    pub fn check_progress(&self, start: Option<&Checkpoint>, advice: &str, force: bool) -> Result<(), Error> {
        match &self.kind {
            CheckedKind::File(file) => file.check_progress(start),
            CheckedKind::Folder(folder) if !force => folder.check_progress(start, advice),
            CheckedKind::Folder(_) | CheckedKind::InPlace(_) => Ok(()),
        }
    }

    /// Opens the outputs for this number of inputs. Without a checkpoint to start from, their contents are erased.
    pub fn open(self, plan: &Plan, start: Option<&Checkpoint>, inputs: usize) -> Result<OpenedDestination, Error> {
        let mut folder = None;
        let mut replaced = None;
        let sinks = match self.kind {
            CheckedKind::InPlace(sinks) => sinks,
            CheckedKind::File(file) => {
                let sink;
                (sink, replaced) = file.open(start)?;
                vec![sink]
            }
            CheckedKind::Folder(checked) => {
                let (opened, sinks) = checked.open(plan.destination.manifest(), start)?;
                folder = Some(opened);
                sinks
            }
        };
        if plan.state().is_some() {
            // After a crash, the folder must not lack an output if the state has keys of its lines.
            for path in plan.outputs() {
                platform::sync_folder(files::folder(path)).map_err(files::failed(path))?;
            }
        }
        // If the run resumes at its end, the reports are complete.
        let is_done = start.is_some_and(|start| start.is_end(inputs));
        let reports = if is_done { OpenReports::default() } else { self.reports.open()? };
        Ok(OpenedDestination { sinks, folder, replaced, reports })
    }
}
