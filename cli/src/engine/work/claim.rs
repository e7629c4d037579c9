//! Which lines are new, or else wanted.

use crate::documents::rule::DocumentRule;
use crate::encode::Encoder;
use crate::engine::lane::{Chunk, End};
use crate::engine::sink::Print;
use crate::engine::work::{Act, Task, Work};
use crate::error::{Error, Stop};
use crate::input::lines::What;
use crate::locked::locked;
use crate::seen::{Beside, Deciding};
use crate::turns::{Turn, Turns};
use crate::values::OnError;
use std::time::{Duration, Instant};

/// How often the lines of a shared set are made safe from a crash of the machine.
const SETTLING: Duration = Duration::from_secs(1);

impl Work {
    /// Claims the lines of a chunk, and prints them.
    pub(super) fn claim_in_turn(
        &self,
        claims: &Turns<Chunk>,
        turn: Turn<'_, Chunk>,
        mut chunk: Chunk,
        encoder: &mut Encoder,
    ) -> Result<(), Stop> {
        self.claim(&mut chunk).inspect_err(|_| claims.close())?;
        let is_last = match &chunk.end {
            Some(End::Failed(_)) => self.task.on_error == OnError::Fail,
            Some(End::Whole) => false,
            None => chunk.claimed.halt.is_some() || chunk.lines.passed() < chunk.lines.count(),
        };
        if is_last {
            claims.close();
        }
        if !self.shared {
            drop(turn);
            return self.gather(chunk, encoder);
        }
        // No other process prints these lines. So they leave before others are claimed, and while this thread has the turn.
        let lines = if chunk.end.is_none() { chunk.lines.marked(true) } else { 0 };
        let unprinted = |source| Stop::Failed(Error::Unprinted { lines, source: Box::new(source) });
        let sink = self.sink(chunk.at.0);
        // What is compressed leaves as well: a run that is killed loses the lines of one chunk.
        let gathered = self.gather(chunk, encoder).and_then(|()| Ok(sink.write_out(encoder)?));
        let mut settled = locked(&self.settled);
        let settled = match settled.elapsed() < SETTLING {
            true => Ok(()),
            false => {
                *settled = Instant::now();
                self.sinks.iter().try_for_each(|sink| sink.settle(encoder))
            }
        };
        match gathered {
            Err(Stop::Failed(source)) => Err(unprinted(source)),
            gathered => settled.map_err(unprinted).and(gathered),
        }
    }

    /// Finds out which lines are new.
    pub(super) fn claim(&self, chunk: &mut Chunk) -> Result<(), Error> {
        let Chunk { at: (lane, _), lines, claimed, end: None, .. } = chunk else { return Ok(()) };
        let Task { on_error, print: Print { wanted, kept, .. }, act, hashing, .. } = &self.task;
        match (&hashing.what, act) {
            (_, Act::Decided) => {
                let emptied = match &hashing.what {
                    What::Document(rule, _) if rule.keep_empty => Some(&rule.pointer),
                    _ => None,
                };
                if let Beside::Decided { decided, .. } = &mut self.seen.write().beside {
                    claimed.unique = lines.recall(*lane, *kept, emptied, decided).map_err(Error::groups)?;
                }
            }
            (_, Act::Collect) => {
                if let Beside::Collecting(collecting) = &mut self.seen.write().beside {
                    lines.want(*lane, collecting);
                }
            }
            (What::Document(rule, _), _) if rule.second.is_none() => {
                let mut set = Deciding { seen: &self.seen, inserted: 0 };
                let mut exact = self.exact_units.as_ref().map(locked);
                let fpr = |set: &Deciding<'_>| {
                    // What is found of tests is certain.
                    let certain = self.searches == Some(true);
                    let rate = |keys| if certain { 0.0 } else { self.seen.look().set.expected_fpr(keys) };
                    locked(&self.offered).add(set.inserted, rate)
                };
                claimed.units = lines.decide(rule, *on_error, &mut set, exact.as_deref_mut(), fpr)?;
                claimed.inserted = set.inserted;
                claimed.unique = (lines.marked(true) - lines.count_asides(*on_error).kept) as u64;
            }
            (_, Act::Find | Act::FindOne) => {
                let find = |hashes: &[u64], fingerprints: &[u128], found: &mut [bool]| {
                    self.seen.find(hashes, fingerprints, found).map(|()| hashes.len())
                };
                lines.mark(*on_error, *kept, find)?;
                claimed.unique = lines.marked(*wanted) as u64;
            }
            (what, Act::Insert | Act::InsertInOrder | Act::FindNew) => {
                let mut seen = self.seen.write();
                if let What::Document(DocumentRule { near: Some(near), .. }, _) = what {
                    // What is new of a document, its bands tell.
                    lines.mark(*on_error, *kept, |hashes, _, new| {
                        new.fill(true);
                        Ok(hashes.len())
                    })?;
                    let insert = |bands: &[u64], new: &mut [bool]| seen.set.insert_hashes(bands, new);
                    claimed.inserted = lines.insert_bands(near, insert)? as u64;
                } else {
                    lines.mark(*on_error, *kept, |hashes, fingerprints, new| {
                        let (done, came) = seen.insert(hashes, fingerprints, new)?;
                        *claimed = came;
                        Ok(done)
                    })?;
                    if *act == Act::FindNew {
                        // As of a search.
                        claimed.unique = lines.marked(*wanted) as u64;
                    }
                }
                if let Beside::Records(records) = &mut seen.beside {
                    lines.record(*lane, *on_error, records).map_err(Error::groups)?;
                }
            }
        }
        Ok(())
    }
}
