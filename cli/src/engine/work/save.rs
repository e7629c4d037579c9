//! The saving of the results that outlive the work: the set, the checkpoint, the manifest.

use crate::encode::Encoder;
use crate::engine::checkpoint::{Checkpoint, Mark};
use crate::engine::folder::Folder;
use crate::engine::lane::Lane;
use crate::engine::manifest::{self, Summary};
use crate::engine::sink::{Own, Sink};
use crate::engine::work::{Keep, Work};
use crate::error::Error;
use crate::input::lines::What;
use crate::locked::locked;
use std::path::Path;
use std::sync::RwLockWriteGuard;

impl Work {
    /// Saves the outputs, the set and the positions, if there is a state. Writes the manifest. Does nothing after a failure.
    pub fn checkpoint(&self, finished: bool) -> Result<(), Error> {
        let still = self.still();
        if locked(&self.failure).is_some() {
            return Ok(());
        }
        self.save(&still, finished)
    }

    /// Writes the rest of the outputs, when the inputs or the work ends, and saves the results.
    pub(super) fn finish(&self, still: &RwLockWriteGuard<'_, ()>, finished: bool) -> Result<(), Error> {
        if self.task.print.total {
            let (printed, _) = self.task.print.numbers(&locked(&self.tally).counts);
            self.sinks.iter().try_for_each(|sink| sink.write_number(printed))?;
        }
        let encoder = &mut Encoder::default();
        self.sinks.iter().try_for_each(|sink| sink.finish(encoder))?;
        self.save(still, finished)
    }

    /// Saves the results. Whole outputs are renamed after the state is saved, because no later run rewrites them.
    fn save(&self, _still: &RwLockWriteGuard<'_, ()>, finished: bool) -> Result<(), Error> {
        let Keep { state, checkpoints, folder, manifest, shrink, at_end, .. } = &self.keep;
        if let Some(state) = state.as_ref().filter(|_| finished || !at_end) {
            let encoder = &mut Encoder::default();
            self.sinks.iter().try_for_each(|sink| sink.settle(encoder))?;
            folder.iter().try_for_each(Folder::sync)?;
            if finished {
                // A run that continues or is resumed needs the planned size.
                let set = &mut self.seen.write().set;
                set.settle()?;
                if *shrink {
                    set.shrink()?;
                }
            }
            let seen = self.seen.look();
            let (ones, memory) = (seen.set.ones(), seen.set.memory_bytes());
            let checkpoint = Checkpoint { ones, memory, ..self.position()? };
            checkpoints.iter().try_for_each(|checkpoints| locked(checkpoints).add(checkpoint.clone(), finished))?;
            seen.set.save(state)?;
            if let Some(folder) = folder {
                let own = self.sinks.iter().filter_map(Sink::own);
                folder.publish(own.filter(|own| own.is_unnamed()).map(|own| &own.path))?;
            }
        }
        self.write_manifest(manifest.as_deref())?;
        // Nothing of a complete run is left to resume.
        let whole = checkpoints.as_ref().filter(|_| finished);
        whole.map_or(Ok(()), |checkpoints| locked(checkpoints).end(locked(&self.tally).counts.left_out))
    }

    fn write_manifest(&self, manifest: Option<&Path>) -> Result<(), Error> {
        let Some(manifest) = manifest else { return Ok(()) };
        let documents = matches!(self.task.hashing.what, What::Document(..));
        let whole = self.lanes.iter().zip(&self.sinks).filter(|(_, sink)| sink.own().is_some_and(Own::is_whole));
        let marks = whole.map(|(lane, sink)| Ok((lane, sink, mark(lane, sink)?)));
        let marks: Vec<(&Lane, &Sink, Mark)> = marks.collect::<Result<_, Error>>()?;
        manifest::write(
            manifest,
            marks.iter().filter_map(|(lane, sink, mark)| {
                let (_, dropped) = self.task.print.numbers(&mark.counts);
                Some(Summary::new(lane, &sink.own()?.path, mark, dropped, documents))
            }),
        )
    }

    /// Returns the positions of the inputs and outputs.
    fn position(&self) -> Result<Checkpoint, Error> {
        let ended = |lane: &&Lane| locked(&lane.gathered).ended;
        let input = self.lanes.iter().take_while(ended).count();
        let (offset, lines) = self.lanes.get(input).map_or((0, 0), |lane| {
            let position = &locked(&lane.gathered).position;
            (position.offset, position.lines)
        });
        let ((output, dupes), (output_table, dupes_table), shards) = match &self.keep.folder {
            Some(_) => {
                let marks = self.lanes.iter().zip(&self.sinks).map(|(lane, sink)| mark(lane, sink));
                ((0, 0), (None, None), marks.collect::<Result<_, Error>>()?)
            }
            None => (self.sinks[0].lengths(), self.sinks[0].tables()?, Vec::new()),
        };
        let tally = locked(&self.tally);
        let (room, left_out) = (tally.room(), tally.counts.left_out);
        let at = Checkpoint { input, offset, lines, output, dupes, output_table, dupes_table, ..Checkpoint::default() };
        Ok(Checkpoint { room, left_out, shards, ..at })
    }
}

/// Returns the progress of an input that has an output of its own.
fn mark(lane: &Lane, sink: &Sink) -> Result<Mark, Error> {
    let gathered = locked(&lane.gathered);
    Ok(Mark {
        offset: gathered.position.offset,
        lines: gathered.position.lines,
        output: sink.lengths().0,
        table: sink.tables()?.0,
        whole: sink.own().is_some_and(Own::is_whole),
        counts: gathered.counts.clone(),
        broken: gathered.broken.clone(),
    })
}
