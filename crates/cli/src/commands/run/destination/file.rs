//! One output for all lines, with an optional file for dropped lines.

use crate::commands::groups::GroupRequest;
use crate::commands::input_kinds;
use crate::commands::run::plan::Plan;
use crate::read::inputs::{Input, Inputs};
use crate::run::checkpoint::Checkpoint;
use crate::run::print::Prefix;
use crate::run::sink::{PrintOptions, Sink};
use crate::steps::groups::decisions::Occurrences;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile, is_standard};
use crate::write::replace::ReplacedFile;
use crate::write::target::OutputTarget;
use std::path::{Path, PathBuf};

/// The outputs for all lines, checked and not yet opened.
pub struct CheckedFile {
    kept: KeptOutput,
    dropped: Option<OutputTarget>,
}

/// The output of lines that are kept.
enum KeptOutput {
    Target(OutputTarget),
    /// An input that is replaced.
    Replaced(ReplacedFile),
}

impl CheckedFile {
    /// Returns the files that are written.
    pub fn targets(&self) -> impl Iterator<Item = &OutputTarget> {
        let kept = if let KeptOutput::Target(target) = &self.kept { Some(target) } else { None };
        kept.into_iter().chain(&self.dropped)
    }

    /// Refuses outputs that are shorter than they were at the checkpoint.
    pub fn check_progress(&self, start: Option<&Checkpoint>) -> Result<(), Error> {
        let Some(start) = start else { return Ok(()) };
        if let KeptOutput::Target(target) = &self.kept {
            target.check_length(start.output)?;
        }
        self.dropped.iter().try_for_each(|target| target.check_length(start.dupes))
    }

    /// Opens the outputs at the checkpoint. Returns the sink, and the replacement of an input if the output is also an input.
    pub fn open(self, start: Option<&Checkpoint>) -> Result<(Sink, Option<ReplacedFile>), Error> {
        let beginning = Checkpoint::default();
        let at = start.unwrap_or(&beginning);
        let (output_begun, dupes_begun) = at.begun();
        let mut replaced = None;
        let kept = match self.kept {
            KeptOutput::Target(target) => {
                Some(target.start(at.output, at.output_table.as_ref())?.continues(output_begun))
            }
            KeptOutput::Replaced(mut replacement) => {
                let output = replacement.begin()?;
                replaced = Some(replacement);
                output
            }
        };
        let dropped = self.dropped.map(|target| target.start(at.dupes, at.dupes_table.as_ref())).transpose()?;
        let dropped = dropped.map(|dropped| dropped.continues(dupes_begun));
        Ok((Sink::new(at.input, kept, dropped), replaced))
    }
}

impl Plan {
    /// Checks the outputs. None of them may be the state, another output, or an input that it does not replace.
    pub(super) fn check_file(&self, dupes: Option<&Path>, all: &Inputs) -> Result<CheckedFile, Error> {
        let output = &self.destination.output;
        let inputs = &all.found[..];
        let compress = output.line_compression(all);
        let own = self.origins();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&own);
        let replaced = self.replaced(inputs, &own)?;
        // An output that replaces an input keeps its format, even if its name claims another.
        let named = output.file().filter(|_| replaced.is_none()).into_iter().chain(dupes);
        named.into_iter().try_for_each(|named| input_kinds::check_name(named, all, self.print.total))?;
        let kept = match replaced {
            Some(replaced) => KeptOutput::Replaced(replaced),
            None => KeptOutput::Target(OutputTarget::check(output.file(), compress, taken(), [])?),
        };
        let written = if let KeptOutput::Target(target) = &kept { Some(&target.origin) } else { None };
        let dropped = dupes.map(|path| OutputTarget::check(Some(path), compress, taken(), written));
        let dropped = dropped.transpose()?;
        Ok(CheckedFile { kept, dropped })
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
        let named =
            self.reading.files.iter().filter(|_| output.is_regular() && output.identity().is_some()).find(is_output);
        // Only if the output keeps a copy of each line, unchanged.
        let PrintOptions { selected_mark: wanted, prefix, total, .. } = self.print;
        let all = wanted && prefix == Prefix::Nothing && !total;
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
}
