//! The printing of lines, in order.

use crate::encode::Encoder;
use crate::engine::lane::{Chunk, End, Lane};
use crate::engine::sink::Sink;
use crate::engine::work::Work;
use crate::error::{Error, Stop, remedy};
use crate::input::lines::{AsideCounts, Lines};
use crate::key::fault::Fault;
use crate::locked::locked;
use crate::output::{Output, Piece};
use crate::seen::counts::Counts;
use crate::seen::tally::Limit;
use crate::seen::{Claimed, Halt};
use crate::values::OnError;
use std::sync::atomic::Ordering::Relaxed;

/// Pieces that are complete, each with its output.
type Due<'a> = Vec<(&'a Output, Piece)>;

impl Work {
    /// Puts a chunk into the queue of its sink, and prints the chunks whose turn it is.
    pub(super) fn gather(&self, mut chunk: Chunk, encoder: &mut Encoder) -> Result<(), Stop> {
        if chunk.end.is_none() {
            // No other thread waits for this chunk yet.
            self.pass.prepare(&mut chunk.lines, &self.task.hashing);
        }
        let sink = self.sink(chunk.at.0);
        sink.turns.put(chunk.at, chunk.then, chunk);
        while let Some((turn, chunk)) = sink.turns.take() {
            let lane = &self.lanes[chunk.at.0];
            lane.arrived(chunk.weight);
            let printed = match chunk.end {
                None => self.print(lane, sink, chunk),
                Some(end) => {
                    self.recycle(chunk.lines, chunk.weight);
                    self.end(lane, sink, end)
                }
            };
            let (pieces, stop) = printed.inspect_err(|_| sink.turns.close())?;
            if stop.is_some() {
                sink.turns.close();
            }
            drop(turn);
            for (output, piece) in pieces {
                if output.put(piece, encoder, self.keep.state.is_some())? {
                    sink.complete(self.keep.state.is_none())?;
                }
            }
            stop.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Prints and counts lines. Returns the complete pieces, and the reason if these lines are the last.
    fn print<'a>(&self, lane: &Lane, sink: &'a Sink, chunk: Chunk) -> Result<(Due<'a>, Option<Stop>), Error> {
        let Chunk { mut lines, claimed: Claimed { inserted, unique, units, halt }, weight, live, .. } = chunk;
        // After a failure of the server, the lines that are not marked as new are unknown.
        let unknown = if let Some(Halt::Failed(_)) = halt { lines.unmark(false) } else { 0 };
        self.keep.begin(sink)?;
        let pieces = sink.print(&lines, self.task.print, live || self.shared)?;
        let passed = lines.passed();
        let AsideCounts { faults, kept, blank } = lines.count_asides(self.task.on_error);
        let counts = Counts {
            lines: (passed - unknown) as u64,
            faults: faults as u64,
            kept: kept as u64,
            blank: blank as u64,
            inserted,
            unique,
            bytes: lines.bytes(passed) as u64,
            left_out: 0,
            units,
        };
        let mut gathered = locked(&lane.gathered);
        let fault = gathered.position.first_fault(&lines);
        let mut tally = locked(&self.tally);
        let line = |lines: &Lines| gathered.position.line(lines, passed);
        let stop = match halt {
            // Faults in later lines do not matter.
            Some(Halt::Enough) => Some(Stop::Enough),
            Some(Halt::Failed(error)) => Some(Stop::After(error)),
            Some(Halt::Full) => tally.limit.as_ref().map(|limit| Stop::After(full(limit, &line(&lines)))),
            None => lines.take_fault().map(|fault| Stop::After(no_key(tally.wanted, &line(&lines), &fault))),
        };
        self.pass.emitted(lane.number, gathered.position.lines, &lines)?;
        gathered.position.advance(&lines, passed);
        gathered.counts.add(&counts);
        tally.count(&counts, fault, || self.seen.look().set.current_fpr());
        self.recycle(lines, weight);
        Ok((pieces, stop))
    }

    /// Ends an input. Returns the remaining pieces of its output, and the reason if the run ends with it.
    fn end<'a>(&self, lane: &Lane, sink: &'a Sink, end: End) -> Result<(Due<'a>, Option<Stop>), Error> {
        let mut gathered = locked(&lane.gathered);
        if let End::Failed(source) = end {
            // The input itself is not at fault.
            let source = match source.downcast::<Error>() {
                Ok(error) => return Ok((Vec::new(), Some(Stop::After(error)))),
                Err(source) => source,
            };
            let why = format!("cannot read {}: {source}", gathered.position);
            if self.task.on_error == OnError::Fail {
                let remedy = remedy(&source, "choose with --on-error how to go on");
                return Ok((Vec::new(), Some(Stop::After(Error::new(format!("{why}; {remedy}"))))));
            }
            let why = format!("{why}; continued without the rest of it");
            locked(&self.tally).leave_out(&why);
            gathered.broken = Some(why);
        }
        gathered.ended = true;
        self.whole.fetch_add(1, Relaxed);
        // If no row of a table can be read, even its columns may be unknown.
        if lane.is_table && gathered.broken.is_some() && sink.leave_out() {
            return Ok((Vec::new(), None));
        }
        sink.spare(gathered.broken.is_some(), &gathered.counts);
        self.keep.begin(sink)?;
        if self.lanes.get(lane.next).is_some_and(|next| next.size.is_none()) {
            // A user who waits for a pipe sees all lines before it.
            sink.flush()?;
        }
        Ok((sink.end()?, None))
    }
}

/// Returns the error for a new line that a full filter has no room for.
fn full(limit: &Limit, line: &str) -> Error {
    let Limit { planned, fpr, .. } = limit;
    Error::new(format!(
        "stopped at {line}: the filter is full with {planned} distinct lines, at a false-positive rate of {fpr}; make it larger with \
         -n or --memory, or let it grow with --when-full grow; a state keeps its size, so begin another"
    ))
}

/// Returns the error for a line without the key, or the text, that is `wanted`.
fn no_key(wanted: &str, line: &str, fault: &Fault) -> Error {
    Error::new(match fault {
        Fault::Null => format!("the key has a null in {line}; choose with --nulls how to go on"),
        fault => format!("no {wanted} in {line}: {fault}; choose with --on-error how to go on"),
    })
}
