//! The opening of an output for each input, in a folder.

use crate::commands::input_kinds;
use crate::commands::run::destination::{CONTINUE, OpenedRun, emptying_error, nothing_left, open_reports};
use crate::commands::run::plan::{Destination, Plan};
use crate::read::inputs::Inputs;
use crate::run::checkpoint::InputProgress;
use crate::run::folder::{self, OutputFolder};
use crate::run::sink::Sink;
use crate::run::work::Persistence;
use crate::seen::set::KeySet;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile};
use crate::write::atomic_file::AtomicFile;
use std::iter;
use std::path::Path;
use std::sync::Mutex;

impl Plan {
    /// Opens the folder and the reports. Outputs are checked before any of them is removed.
    pub(super) fn open_folder(&self, path: &Path, inputs: &Inputs, set: Option<KeySet>) -> Result<OpenedRun, Error> {
        let (Destination { output, force, .. }, state) = (&self.destination, self.state());
        let manifest = self.destination.manifest();
        let mut own_files = self.own_files();
        if let Some(manifest) = manifest {
            let other_files: Vec<NamedFile> = self.other_files().map(NamedFile::from_path).collect();
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin).chain(&other_files))?;
            if files::is_standard(manifest) {
                return Err(files::not_regular(&files::name(manifest)));
            }
            input_kinds::check_name_of_manifest(manifest)?;
            let resolved = files::resolved(manifest);
            if let Some(duplicate) = own_files.iter().find(|own| files::resolved(own) == resolved) {
                return Err(files::overwrites(&files::name(manifest), &files::name(duplicate)));
            }
            own_files.push(manifest.to_owned());
        }
        own_files.extend(self.reports().map(Path::to_owned));
        let mut folder = OutputFolder::open(path, inputs, output.compress, &own_files)?;
        let reports = self.report_targets(&inputs.found, &[])?;
        manifest.into_iter().for_each(|manifest| folder.lock.guard(manifest));
        let (seen, mut stats, records) = self.seen(&inputs.found, set)?;
        let (mut checkpoints, mut start, mut advice) = (None, None, String::new());
        if let Some(state) = state {
            let mut earlier = self.checkpoints(state, inputs)?;
            match (state.path.exists(), state.resume) {
                (true, true) => {
                    start = earlier.find(&seen.set)?;
                    if start.is_none() {
                        advice = nothing_left(&earlier);
                    }
                }
                (true, false) if earlier.is_interrupted(&seen.set) => CONTINUE.clone_into(&mut advice),
                _ => {}
            }
            checkpoints = Some(earlier);
        }
        stats.resume(start.as_ref().and_then(|start| start.room));
        let progress = start
            .iter()
            .flat_map(|start| start.shards.iter().cloned())
            .chain(iter::repeat_with(InputProgress::default));
        let outputs: Vec<(AtomicFile, InputProgress)> = folder.outputs.iter().cloned().zip(progress).collect();
        if let Some(full) =
            reports.iter().find(|target| target.has_contents() && state.is_some() && !*force && start.is_none())
        {
            let memory_name = format!("the state {:?}", state.map_or(path, |state| &state.path));
            return Err(emptying_error(full.origin.name(), &memory_name, &advice));
        }
        if !*force {
            outputs
                .iter()
                .try_for_each(|(output, progress)| folder::check(output, progress, start.is_some(), &advice))?;
        }
        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.forget(&seen.set))?;
        outputs.iter().try_for_each(|(output, progress)| folder::clear(output, progress))?;
        let outputs = outputs.into_iter().enumerate();
        let sinks = outputs.map(|(shard, (output, progress))| Sink::for_shard(shard, output, &progress)).collect();
        let checkpoints = checkpoints.map(Mutex::new);
        let keep =
            Persistence { checkpoints, folder: Some(folder), manifest: manifest.map(Path::to_owned), ..self.keep() };
        let reports = open_reports(reports, start.as_ref(), inputs.found.len())?;
        Ok(OpenedRun { seen, stats, records, sinks, keep, start, replaced: None, reports })
    }
}
