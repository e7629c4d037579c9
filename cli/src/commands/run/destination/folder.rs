//! The opening of an output for each input, in a folder.

use crate::commands::kinds;
use crate::commands::run::destination::{Begun, CONTINUE, Destination, NOTHING_LEFT, begin_reports, emptied};
use crate::commands::run::plan::Plan;
use crate::engine::checkpoint::Mark;
use crate::engine::folder::{self, Folder};
use crate::engine::sink::Sink;
use crate::engine::work::Keep;
use crate::error::Error;
use crate::files::{self, Origin};
use crate::input::inputs::Inputs;
use crate::output::atomic_file::AtomicFile;
use crate::seen::set::KeySet;
use std::iter;
use std::path::Path;
use std::sync::Mutex;

impl Plan {
    /// Opens the folder and the reports. Outputs are checked before any of them is removed.
    pub(super) fn begin_folder(&self, path: &Path, inputs: &Inputs, set: Option<KeySet>) -> Result<Begun, Error> {
        let (Destination { output, force, .. }, state) = (&self.destination, self.state());
        let manifest = self.destination.manifest();
        let mut own = self.own();
        if let Some(manifest) = manifest {
            let besides: Vec<Origin> = self.besides().map(Origin::of).collect();
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin).chain(&besides))?;
            if files::is_standard(manifest) {
                return Err(files::not_regular(&files::name(manifest)));
            }
            kinds::check_name_of_manifest(manifest)?;
            let real = files::real(manifest);
            if let Some(same) = own.iter().find(|own| files::real(own) == real) {
                return Err(files::overwrites(&files::name(manifest), &files::name(same)));
            }
            own.push(manifest.to_owned());
        }
        own.extend(self.reports().map(Path::to_owned));
        let mut folder = Folder::open(path, inputs, output.compress, &own)?;
        let reports = self.report_targets(&inputs.found, &[])?;
        manifest.into_iter().for_each(|manifest| folder.lock.guard(manifest));
        let (seen, mut tally, records) = self.seen(&inputs.found, set)?;
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
        tally.resume(start.as_ref().and_then(|start| start.room));
        let marks = start.iter().flat_map(|start| start.shards.iter().cloned()).chain(iter::repeat_with(Mark::default));
        let outputs: Vec<(AtomicFile, Mark)> = folder.outputs.iter().cloned().zip(marks).collect();
        if let Some(full) =
            reports.iter().find(|target| target.is_full() && state.is_some() && !*force && start.is_none())
        {
            let known = format!("the state {:?}", state.map_or(path, |state| &state.path));
            return Err(emptied(full.origin.name(), &known, advice));
        }
        if !*force {
            outputs.iter().try_for_each(|(output, mark)| folder::check(output, mark, start.is_some(), advice))?;
        }
        checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.forget(&seen.set))?;
        outputs.iter().try_for_each(|(output, mark)| folder::clear(output, mark))?;
        let outputs = outputs.into_iter().enumerate();
        let sinks = outputs.map(|(lane, (output, mark))| Sink::of_lane(lane, output, &mark)).collect();
        let checkpoints = checkpoints.map(Mutex::new);
        let keep = Keep { checkpoints, folder: Some(folder), manifest: manifest.map(Path::to_owned), ..self.keep() };
        let reports = begin_reports(reports, start.as_ref(), inputs.found.len())?;
        Ok(Begun { seen, tally, records, sinks, keep, start, replaced: None, reports })
    }
}
