//! The destinations of lines, opened so that nothing is lost.

mod file;
mod folder;
mod in_place;

use crate::commands::groups::{Reported, Targets};
use crate::commands::kinds;
use crate::commands::run::plan::Plan;
use crate::engine::checkpoint::Checkpoint;
use crate::engine::sink::Sink;
use crate::engine::work::Keep;
use crate::error::Error;
use crate::files::{self, Origin, is_standard};
use crate::groups::records::Records;
use crate::input::inputs::{Input, Inputs};
use crate::options::{GrowthOptions, OutputOptions, RunOptions};
use crate::output::target::Target;
use crate::replace::Replaced;
use crate::seen::Seen;
use crate::seen::set::KeySet;
use crate::seen::tally::Tally;
use std::path::{Path, PathBuf};

/// The remedy where the outputs of an interrupted run would be lost.
const CONTINUE: &str = "continue that run with --resume, ";

/// The reason why nothing is resumed.
const NOTHING_LEFT: &str = "no run with this state was cut off, so if one wrote it, nothing is left to do; else ";

/// The destination of lines, and the options of outputs.
pub struct Destination {
    pub kind: DestinationKind,
    pub output: OutputOptions,
    /// True if outputs may be emptied whose lines would be lost.
    pub force: bool,
}

pub enum DestinationKind {
    /// A file or standard output. `dupes` is the file for lines that are dropped, if they go anywhere; "-" is standard output.
    File { dupes: Option<PathBuf> },
    /// A file of its own for each input in a folder, and perhaps a manifest of them.
    Folder { path: PathBuf, manifest: Option<PathBuf>, in_order: bool },
    /// The place of each input.
    InPlace,
}

/// The parts of a run, opened.
pub struct Begun {
    pub seen: Seen,
    pub tally: Tally,
    /// Records of no lines, if groups are found.
    pub records: Option<Records>,
    pub sinks: Vec<Sink>,
    pub keep: Keep,
    /// The checkpoint to go on at.
    pub start: Option<Checkpoint>,
    /// The new contents of the output, if that is also an input.
    pub replaced: Option<Replaced>,
    /// The reports of groups and of tests.
    pub reports: Reported,
}

impl Destination {
    /// Returns the destination that these options ask for, and how a set grows.
    pub fn of(run: RunOptions, dupes: Option<PathBuf>) -> (GrowthOptions, Self) {
        let RunOptions { growth, output, output_dir, in_place, in_order, manifest, force, .. } = run;
        let kind = match output_dir {
            Some(path) => DestinationKind::Folder { path, manifest, in_order },
            None if in_place => DestinationKind::InPlace,
            None => DestinationKind::File { dupes },
        };
        (growth, Self { kind, output, force })
    }

    /// The file for lines that are dropped.
    pub fn dupes(&self) -> Option<&Path> {
        if let DestinationKind::File { dupes } = &self.kind { dupes.as_deref() } else { None }
    }

    /// The folder of outputs.
    pub fn folder(&self) -> Option<&Path> {
        if let DestinationKind::Folder { path, .. } = &self.kind { Some(path) } else { None }
    }

    /// The manifest of the folder.
    pub fn manifest(&self) -> Option<&Path> {
        if let DestinationKind::Folder { manifest, .. } = &self.kind { manifest.as_deref() } else { None }
    }

    /// True if lines of an input are to take its place.
    pub fn replaces(&self, input: &Input) -> bool {
        let output = self.output.file().map(Origin::of);
        matches!(self.kind, DestinationKind::InPlace)
            || output.is_some_and(|output| output.is_regular() && output.identity() == input.origin.identity())
    }

    /// True if inputs are read side by side.
    pub fn is_side_by_side(&self) -> bool {
        matches!(self.kind, DestinationKind::Folder { in_order: false, .. })
    }

    /// True if lines go to standard output.
    pub fn is_standard_output(&self) -> bool {
        matches!(self.kind, DestinationKind::File { .. }) && self.output.file().is_none()
    }
}

impl Plan {
    /// Opens what is written, and the set, unless it is there. All that can fail comes before an output is emptied, and before the first
    /// line is claimed of a shared set.
    pub(super) fn begin(&self, inputs: &Inputs, set: Option<KeySet>) -> Result<Begun, Error> {
        if self.state().is_some_and(|state| state.resume) && !self.can_resume(&inputs.found) {
            return Err(Error::ResumeStream);
        }
        match &self.destination.kind {
            DestinationKind::Folder { path, .. } => self.begin_folder(path, inputs, set),
            DestinationKind::InPlace => self.begin_in_place(&inputs.found, set),
            DestinationKind::File { dupes } => self.begin_file(dupes.as_deref(), inputs, set),
        }
    }

    /// True if all inputs can be read and all outputs written from the middle.
    pub(super) fn can_resume(&self, inputs: &[Input]) -> bool {
        let is_file = |path: &Path| !is_standard(path) && path.metadata().map_or(true, |metadata| metadata.is_file());
        let is_named = |input: &Input| input.size.is_some() && !is_standard(&input.path);
        let Destination { output, .. } = &self.destination;
        inputs.iter().all(is_named)
            && !self.print.total
            && (self.destination.folder().is_some() || output.file().is_some_and(is_file))
            && self.destination.dupes().into_iter().chain(self.reports()).all(is_file)
    }

    /// The files besides inputs and outputs, as they are: those of the state, those that are read besides, the manifest.
    fn origins(&self) -> Vec<Origin> {
        self.own().iter().map(PathBuf::as_path).chain(self.destination.manifest()).map(Origin::of).collect()
    }

    /// Opens the files that tell of groups. The other outputs are open.
    fn report_targets(&self, inputs: &[Input], written: &[&Origin]) -> Result<Targets, Error> {
        self.reports().try_for_each(kinds::check_name_of_lines)?;
        let (own, written) = (self.origins(), written.iter().copied());
        let read = inputs.iter().map(|input| &input.origin).chain(&own);
        let report = self.tests().and_then(|tests| tests.report.as_deref());
        let targets = match (report, &self.grouping) {
            (Some(report), _) => Target::open(Some(report), None, read, written).map(Targets::of_tests),
            (None, Some(grouping)) => grouping.targets(read, written),
            (None, None) => Ok(Targets::default()),
        }?;
        // A state that is not there yet is told from the outputs by where they are.
        let outputs: Vec<Origin> = self.outputs().map(Origin::of).collect();
        let state = self.state().into_iter().flat_map(|state| files::of_filter(&state.path));
        let mut saved = state.chain(self.destination.manifest().map(Path::to_owned));
        saved.try_for_each(|saved| files::check_target(&saved, &outputs))?;
        Ok(targets)
    }
}

/// Begins what tells of groups, unless a run did that is to go on and was cut off when all of it was done.
fn begin_reports(reports: Targets, start: Option<&Checkpoint>, inputs: usize) -> Result<Reported, Error> {
    let is_done = start.is_some_and(|start| start.is_end(inputs));
    if is_done { Ok(Reported::default()) } else { reports.begin() }
}
