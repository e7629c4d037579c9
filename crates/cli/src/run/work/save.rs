//! The saving of the results that outlive the work: the set, the checkpoint, the manifest.

use crate::run::checkpoint::{Checkpoint, InputProgress};
use crate::run::folder::OutputFolder;
use crate::run::input::RunInput;
use crate::run::manifest::{self, InputSummary};
use crate::run::sink::{InputOutput, Sink};
use crate::run::work::{Persistence, Work};
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use crate::write::encode::Encoder;
use std::path::Path;
use std::sync::RwLockWriteGuard;

impl Work {
    /// Saves the outputs, the set and the positions, if there is a state. Writes the manifest. Does nothing after a failure.
    pub fn checkpoint(&self, finished: bool) -> Result<(), Error> {
        let quiescent = self.quiesce();
        if locked(&self.failure).is_some() {
            return Ok(());
        }
        self.save(&quiescent, finished)
    }

    /// Writes the rest of the outputs, when the inputs or the work ends, and saves the results.
    pub(super) fn finish(&self, quiescent: &RwLockWriteGuard<'_, ()>, finished: bool) -> Result<(), Error> {
        if self.config.print.total {
            let (printed, _) = self.config.print.numbers(&locked(&self.stats).counts);
            self.sinks.iter().try_for_each(|sink| sink.write_number(printed))?;
        }
        let encoder = &mut Encoder::default();
        self.sinks.iter().try_for_each(|sink| sink.finish(encoder))?;
        self.save(quiescent, finished)
    }

    /// Saves the results. Whole outputs are renamed after the state is saved, because no later run rewrites them.
    fn save(&self, _still: &RwLockWriteGuard<'_, ()>, finished: bool) -> Result<(), Error> {
        let Persistence { state, checkpoints, folder, manifest, shrink, at_end, .. } = &self.persistence;
        if (finished || !at_end)
            && let Some(state) = state
        {
            let encoder = &mut Encoder::default();
            self.sinks.iter().try_for_each(|sink| sink.write_out(encoder, true))?;
            folder.iter().try_for_each(OutputFolder::sync)?;
            if finished {
                // A run that continues or is resumed needs the planned size.
                if let Some(set) = self.seen.write().set.local_mut() {
                    set.sync()?;
                    if *shrink {
                        set.shrink()?;
                    }
                }
            }
            let seen = self.seen.read();
            let (ones, memory) = (seen.set.ones(), seen.set.memory_bytes());
            let checkpoint = Checkpoint { ones, memory, ..self.position()? };
            checkpoints.iter().try_for_each(|checkpoints| locked(checkpoints).add(checkpoint.clone(), finished))?;
            seen.set.save(state)?;
            if let Some(folder) = folder {
                let own = self.sinks.iter().filter_map(Sink::own);
                folder.publish(own.filter(|own| own.take_newly_complete()).map(|own| &own.path))?;
            }
        }
        self.write_manifest(manifest.as_deref())?;
        // Nothing of a complete run is left to resume.
        if finished && let Some(checkpoints) = checkpoints {
            locked(checkpoints).end(locked(&self.stats).counts.left_out)?;
        }
        Ok(())
    }

    fn write_manifest(&self, manifest: Option<&Path>) -> Result<(), Error> {
        let Some(manifest) = manifest else { return Ok(()) };
        let documents = self.config.projection.rule().is_none();
        let whole =
            self.inputs.iter().zip(&self.sinks).filter(|(_, sink)| sink.own().is_some_and(InputOutput::is_whole));
        let reached = whole.map(|(input, sink)| Ok((input, sink, reached(input, sink)?)));
        let reached: Vec<(&RunInput, &Sink, InputProgress)> = reached.collect::<Result<_, Error>>()?;
        manifest::write(
            manifest,
            reached.iter().filter_map(|(input, sink, reached)| {
                let (_, dropped) = self.config.print.numbers(&reached.counts);
                Some(InputSummary::new(input, &sink.own()?.path, reached, dropped, documents))
            }),
        )
    }

    /// Returns the positions of the inputs and outputs.
    fn position(&self) -> Result<Checkpoint, Error> {
        let ended = |input: &&RunInput| locked(&input.gathered).ended;
        let input = self.inputs.iter().take_while(ended).count();
        let (offset, lines) = self.inputs.get(input).map_or((0, 0), |input| {
            let position = &locked(&input.gathered).position;
            (position.offset, position.lines)
        });
        let mut at = Checkpoint { input, offset, lines, ..Checkpoint::default() };
        if self.persistence.folder.is_some() {
            let reached = self.inputs.iter().zip(&self.sinks).map(|(input, sink)| reached(input, sink));
            at.inputs = reached.collect::<Result<_, Error>>()?;
        } else {
            let sink = &self.sinks[0];
            (at.output, at.dupes) = sink.lengths();
            (at.output_table, at.dupes_table) = sink.tables()?;
            let (output_begun, dupes_begun) = sink.begun();
            (at.output_begun, at.dupes_begun) = (Some(output_begun), Some(dupes_begun));
        }
        let stats = locked(&self.stats);
        Ok(Checkpoint { room: stats.remaining_keys(), left_out: stats.counts.left_out, ..at })
    }
}

/// Returns the progress of an input that has an output of its own.
fn reached(input: &RunInput, sink: &Sink) -> Result<InputProgress, Error> {
    let gathered = locked(&input.gathered);
    Ok(InputProgress {
        offset: gathered.position.offset,
        lines: gathered.position.lines,
        output: sink.lengths().0,
        begun: Some(sink.begun().0),
        table: sink.tables()?.0,
        whole: sink.own().is_some_and(InputOutput::is_whole),
        counts: gathered.counts.clone(),
        broken: gathered.broken.clone(),
    })
}
