//! The opening of an output for each input, in a folder.

use crate::commands::input_kinds;
use crate::commands::run::destination::{CONTINUE, NOTHING_LEFT, OpenedRun, begin_reports, emptying_error};
use crate::commands::run::plan::{Destination, Plan};
use crate::engine::checkpoint::InputProgress;
use crate::engine::folder::{self, OutputFolder};
use crate::engine::sink::Sink;
use crate::engine::work::Persistence;
use crate::error::Error;
use crate::files::{self, NamedFile};
use crate::input::inputs::Inputs;
use crate::output::atomic_file::AtomicFile;
use crate::seen::set::KeySet;
use std::iter;
use std::path::Path;
use std::sync::Mutex;

impl Plan {
    /// Opens the folder and the reports. Outputs are checked before any of them is removed.
    pub(super) fn begin_folder(&self, path: &Path, inputs: &Inputs, set: Option<KeySet>) -> Result<OpenedRun, Error> {
        let (Destination { output, force, .. }, state) = (&self.destination, self.state());
        let manifest = self.destination.manifest();
        let mut own = self.own();
        if let Some(manifest) = manifest {
            let besides: Vec<NamedFile> = self.besides().map(NamedFile::from_path).collect();
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin).chain(&besides))?;
            if files::is_standard(manifest) {
                return Err(files::not_regular(&files::name(manifest)));
            }
            input_kinds::check_name_of_manifest(manifest)?;
            let real = files::resolve_existing(manifest);
            if let Some(same) = own.iter().find(|own| files::resolve_existing(own) == real) {
                return Err(files::overwrites(&files::name(manifest), &files::name(same)));
            }
            own.push(manifest.to_owned());
        }
        own.extend(self.reports().map(Path::to_owned));
        let mut folder = OutputFolder::open(path, inputs, output.compress, &own)?;
        let reports = self.report_targets(&inputs.found, &[])?;
        manifest.into_iter().for_each(|manifest| folder.lock.guard(manifest));
        let (seen, mut stats, records) = self.seen(&inputs.found, set)?;
        let (mut checkpoints, mut start, mut advice) = (None, None, "");
        if let Some(state) = state {
            let mut earlier = self.checkpoints(state, inputs)?;
            match (state.path.exists(), state.resume) {
                (true, true) => {
                    start = earlier.find(&seen.set)?;
                    advice = NOTHING_LEFT;
                }
                (true, false) if earlier.is_interrupted(&seen.set) => advice = CONTINUE,
                _ => {}
            }
            checkpoints = Some(earlier);
        }
        stats.resume(start.as_ref().and_then(|start| start.room));
        let reached = start
            .iter()
            .flat_map(|start| start.shards.iter().cloned())
            .chain(iter::repeat_with(InputProgress::default));
        let outputs: Vec<(AtomicFile, InputProgress)> = folder.outputs.iter().cloned().zip(reached).collect();
        if let Some(full) =
            reports.iter().find(|target| target.is_full() && state.is_some() && !*force && start.is_none())
        {
            let known = format!("the state {:?}", state.map_or(path, |state| &state.path));
            return Err(emptying_error(full.origin.name(), &known, advice));
        }
        if !*force {
            outputs.iter().try_for_each(|(output, reached)| folder::check(output, reached, start.is_some(), advice))?;
        }
        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.forget(&seen.set))?;
        outputs.iter().try_for_each(|(output, reached)| folder::clear(output, reached))?;
        let outputs = outputs.into_iter().enumerate();
        let sinks = outputs.map(|(shard, (output, reached))| Sink::for_shard(shard, output, &reached)).collect();
        let checkpoints = checkpoints.map(Mutex::new);
        let keep =
            Persistence { checkpoints, folder: Some(folder), manifest: manifest.map(Path::to_owned), ..self.keep() };
        let reports = begin_reports(reports, start.as_ref(), inputs.found.len())?;
        Ok(OpenedRun { seen, stats, records, sinks, keep, start, replaced: None, reports })
    }
}
