//! The claim of chunks, in order if the step has one.

use crate::read::skip::OnError;
use crate::run::input::{InputChunk, InputEnd};
use crate::run::work::Work;
use crate::system::error::{Error, Stop};
use crate::system::unpoisoned::locked;
use crate::write::encode::Encoder;
use crate::write::reorder_buffer::{DrainGuard, ReorderBuffer};
use std::time::{Duration, Instant};

/// The interval at which the lines of a shared set are synced.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

impl Work {
    /// Claims the lines of a chunk, and prints them.
    pub(super) fn claim_in_turn(
        &self,
        claims: &ReorderBuffer<InputChunk>,
        guard: DrainGuard<'_, InputChunk>,
        mut chunk: InputChunk,
        encoder: &mut Encoder,
    ) -> Result<(), Stop> {
        self.claim(&mut chunk).inspect_err(|_| claims.close())?;
        let is_last = match &chunk.end {
            Some(InputEnd::Failed(_)) => self.config.on_error == OnError::Fail,
            Some(InputEnd::Whole) => false,
            None => chunk.claimed.halt.is_some() || chunk.lines.marks.passed() < chunk.lines.batch.count(),
        };
        if is_last {
            claims.close();
        }
        if !self.shared {
            drop(guard);
            return self.gather(chunk, encoder);
        }
        // No other process prints these lines. So they are written before others are claimed, while this thread drains the buffer.
        let lines = if chunk.end.is_none() { chunk.lines.marks.count(true) } else { 0 };
        let unprinted = |source: Error| {
            let why = format!("{source}; up to {lines} new lines were added to the shared filter but not printed");
            Stop::Failed(Error::new(why))
        };
        let sink = self.sink(chunk.position.0);
        // Compressed bytes are written too: a run that is killed loses the lines of one chunk.
        let gathered = self.gather(chunk, encoder).and_then(|()| Ok(sink.write_out(encoder, false)?));
        let mut last_sync = locked(&self.last_sync);
        let mut synced = Ok(());
        if last_sync.elapsed() >= SYNC_INTERVAL {
            *last_sync = Instant::now();
            synced = self.sinks.iter().try_for_each(|sink| sink.write_out(encoder, true));
        }
        match gathered {
            Err(Stop::Failed(source)) => Err(unprinted(source)),
            gathered => synced.map_err(unprinted).and(gathered),
        }
    }

    /// Lets the step mark the lines of a chunk.
    pub(super) fn claim(&self, chunk: &mut InputChunk) -> Result<(), Error> {
        if chunk.end.is_none() {
            chunk.claimed = self.step.claim(&self.config, chunk.position.0, &mut chunk.lines)?;
        }
        Ok(())
    }
}
