//! An output for each input, in a folder.

use crate::commands::input_kinds;
use crate::commands::run::plan::Plan;
use crate::read::inputs::Inputs;
use crate::run::checkpoint::{Checkpoint, InputProgress};
use crate::run::folder::{self, OutputFolder};
use crate::run::sink::Sink;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile};
use crate::write::atomic_file::AtomicFile;
use std::iter;
use std::path::{Path, PathBuf};

/// A folder of outputs, checked and not yet opened.
pub struct CheckedFolder {
    path: PathBuf,
    /// The output of each input, in the order of the inputs.
    outputs: Vec<AtomicFile>,
}

impl CheckedFolder {
    /// Refuses outputs that cannot be continued from the checkpoint `start`, or that an earlier run wrote. `advice` is about that run.
    pub fn check_progress(&self, start: Option<&Checkpoint>, advice: &str) -> Result<(), Error> {
        let mut outputs = self.outputs.iter().zip(progress(start));
        outputs.try_for_each(|(output, progress)| folder::check(output, &progress, start.is_some(), advice))
    }

    /// Opens the folder, and removes contents that are not continued.
    pub fn open(self, manifest: Option<&Path>, start: Option<&Checkpoint>) -> Result<(OutputFolder, Vec<Sink>), Error> {
        let mut folder = OutputFolder::open(&self.path)?;
        if let Some(manifest) = manifest {
            folder.lock.guard(manifest);
        }
        let mut sinks = Vec::new();
        for (number, (output, progress)) in self.outputs.into_iter().zip(progress(start)).enumerate() {
            folder::clear(&output, &progress)?;
            sinks.push(Sink::for_input(number, output, &progress));
        }
        Ok((folder, sinks))
    }
}

/// Returns the progress of each input at a checkpoint.
fn progress(start: Option<&Checkpoint>) -> impl Iterator<Item = InputProgress> {
    let recorded = start.into_iter().flat_map(|start| start.inputs.iter().cloned());
    recorded.chain(iter::repeat_with(InputProgress::default))
}

impl Plan {
    /// Checks the folder, its outputs and the manifest.
    pub(super) fn check_folder(&self, path: &Path, inputs: &Inputs) -> Result<CheckedFolder, Error> {
        let mut own_files = self.own_files();
        if let Some(manifest) = self.destination.manifest() {
            let other_files: Vec<NamedFile> = self.other_files().map(NamedFile::from_path).collect();
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin).chain(&other_files))?;
            if files::is_standard(manifest) {
                return Err(files::not_regular(&files::name(manifest)));
            }
            input_kinds::check_name_of_manifest(manifest)?;
            let place = files::place(manifest);
            if let Some(duplicate) = own_files.iter().find(|own| files::place(own) == place) {
                return Err(files::overwrites(&files::name(manifest), &files::name(duplicate)));
            }
            own_files.push(manifest.to_owned());
        }
        own_files.extend(self.reports().map(Path::to_owned));
        let outputs = folder::check_outputs(path, inputs, self.destination.output.compress, &own_files)?;
        Ok(CheckedFolder { path: path.to_owned(), outputs })
    }
}
