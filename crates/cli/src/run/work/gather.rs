//! The printing of lines, in order.

use crate::key::error::KeyError;
use crate::read::skip::OnError;
use crate::run::input::{InputChunk, InputEnd, RunInput};
use crate::run::lines::{Lines, SkipCounts};
use crate::run::sink::Sink;
use crate::run::work::Work;
use crate::seen::counts::LineCounts;
use crate::seen::run_stats::{FullLimit, RunStats};
use crate::seen::{Claimed, Halt};
use crate::system::error::{Error, Stop, remedy};
use crate::system::unpoisoned::locked;
use crate::write::encode::Encoder;
use crate::write::output::{Output, Piece};
use std::sync::atomic::Ordering::Relaxed;

/// Pieces that are complete, each with its output.
type Due<'a> = Vec<(&'a Output, Piece)>;

impl Work {
    /// Puts a chunk into the queue of its sink, and prints the chunks that are next in order.
    pub(super) fn gather(&self, mut chunk: InputChunk, encoder: &mut Encoder) -> Result<(), Stop> {
        if chunk.end.is_none() {
            // No other thread waits for this chunk yet.
            self.step.prepare(&mut chunk.lines);
        }
        let sink = self.sink(chunk.position.0);
        sink.reorder.put(chunk.position, chunk.next, chunk);
        while let Some((guard, chunk)) = sink.reorder.take() {
            let input = &self.inputs[chunk.position.0];
            input.arrived(chunk.weight);
            self.ungathered.fetch_sub(chunk.weight, Relaxed);
            let printed = match chunk.end {
                None => self.print(input, sink, chunk),
                Some(end) => {
                    self.recycle(chunk.lines, chunk.weight);
                    self.end(input, sink, end)
                }
            };
            let (pieces, stop) = printed.inspect_err(|_| sink.reorder.close())?;
            if stop.is_some() {
                sink.reorder.close();
            }
            drop(guard);
            for (output, piece) in pieces {
                if output.put(piece, encoder, self.persistence.state.is_some())? {
                    sink.complete(self.persistence.state.is_none())?;
                }
            }
            if let Some(stop) = stop {
                return Err(stop);
            }
        }
        Ok(())
    }

    /// Prints and counts lines. Returns the complete pieces, and the reason if these lines are the last.
    fn print<'a>(&self, input: &RunInput, sink: &'a Sink, chunk: InputChunk) -> Result<(Due<'a>, Option<Stop>), Error> {
        let InputChunk { mut lines, claimed: Claimed { inserted, unique, units, halt }, weight, live, .. } = chunk;
        // After a failure of the server, the lines that are not marked as new are unknown.
        let unknown = if let Some(Halt::Failed(_)) = halt { lines.marks.remove(false) } else { 0 };
        self.persistence.begin(sink)?;
        let pieces = sink.print(&mut lines, self.config.print, live || self.shared)?;
        let passed = lines.marks.passed();
        let SkipCounts { faults, kept, blank } = lines.count_skipped(self.config.on_error);
        let counts = LineCounts {
            lines: (passed - unknown) as u64,
            faults: faults as u64,
            kept: kept as u64,
            blank: blank as u64,
            inserted,
            unique,
            bytes: lines.batch.length(passed) as u64,
            left_out: 0,
            units,
        };
        let mut gathered = locked(&input.gathered);
        let line = |lines: &Lines, count| gathered.position.line(&lines.batch, count);
        let key_error = lines.first_fault().map(|(i, key_error)| format!("{}: {key_error}", line(&lines, i)));
        let mut stats = locked(&self.stats);
        let stop = match halt {
            // Faults in later lines do not matter.
            Some(Halt::Enough) => Some(Stop::Enough),
            Some(Halt::Failed(error)) => Some(Stop::After(error)),
            Some(Halt::Full) => {
                stats.limit.as_ref().map(|limit| Stop::After(full(limit, &stats, &line(&lines, passed))))
            }
            None => lines
                .take_undecided_fault()
                .map(|key_error| Stop::After(no_key(stats.wanted, &line(&lines, passed), &key_error))),
        };
        self.step.emitted(input.number, gathered.position.lines, &lines)?;
        gathered.position.advance(&lines.batch, passed);
        gathered.counts.add(&counts);
        stats.count(&counts, key_error, || self.seen.read().set.current_fpr());
        self.recycle(lines, weight);
        Ok((pieces, stop))
    }

    /// Ends an input. Returns the remaining pieces of its output, and the reason if the run ends with it.
    fn end<'a>(&self, input: &RunInput, sink: &'a Sink, end: InputEnd) -> Result<(Due<'a>, Option<Stop>), Error> {
        let mut gathered = locked(&input.gathered);
        if let InputEnd::Failed(source) = end {
            // The input itself is not at fault.
            let source = match source.downcast::<Error>() {
                Ok(error) => return Ok((Vec::new(), Some(Stop::After(error)))),
                Err(source) => source,
            };
            let why = format!("cannot read {}: {source}", gathered.position);
            if self.config.on_error == OnError::Fail {
                let remedy = remedy(&source, "use --on-error to choose how to go on");
                return Ok((Vec::new(), Some(Stop::After(Error::new(format!("{why}; {remedy}"))))));
            }
            let why = format!("{why}; the rest of it is skipped");
            locked(&self.stats).leave_out(&why);
            gathered.broken = Some(why);
        }
        gathered.ended = true;
        self.whole.fetch_add(1, Relaxed);
        // If no row of a table can be read, even its columns may be unknown.
        if input.is_table && gathered.broken.is_some() && sink.leave_out() {
            return Ok((Vec::new(), None));
        }
        sink.skip_replace(gathered.broken.is_some(), &gathered.counts);
        self.persistence.begin(sink)?;
        if self.inputs.get(input.next).is_some_and(|next| next.size.is_none()) {
            // A user who waits for a pipe sees all lines before it.
            sink.flush()?;
        }
        Ok((sink.end()?, None))
    }
}

/// Returns the error for a new line that a full filter has no room for.
fn full(limit: &FullLimit, stats: &RunStats, line: &str) -> Error {
    let FullLimit { planned, fpr, .. } = limit;
    Error::new(format!(
        "stopped at {line}: the filter is full with {planned} distinct lines, at a false-positive rate of {fpr}; {}, or {}",
        stats.remedy("-n or --memory"),
        if stats.remedy.is_some() {
            "accept a higher rate with --when-full warn"
        } else {
            "let it grow with --when-full grow"
        }
    ))
}

/// Returns the error for a line without the key, or the text, that is `wanted`.
fn no_key(wanted: &str, line: &str, key_error: &KeyError) -> Error {
    Error::new(match key_error {
        KeyError::Null => format!("the key has a null in {line}; use --nulls to choose how to go on"),
        key_error => format!("no {wanted} in {line}: {key_error}; use --on-error to choose how to go on"),
    })
}
