//! A lane: an input, read chunk by chunk by one thread at a time.

use crate::engine::checkpoint::Checkpoint;
use crate::input::chunks::{Chunks, Cut};
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::{Hashing, Lines, What};
use crate::input::position::Position;
use crate::input::table::{Format, Table};
use crate::key::KeyRule;
use crate::locked::locked;
use crate::seen::Claimed;
use crate::seen::counts::Counts;
use crate::turns::At;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// An input, and its progress.
pub struct Lane {
    pub number: usize,
    /// The number of the lane that is read after it.
    pub next: usize,
    pub input: PathBuf,
    /// Size of the file in bytes, compressed if it is, for a regular file.
    pub size: Option<u64>,
    pub is_compressed: bool,
    pub is_table: bool,
    reader: Mutex<Reader>,
    /// The bytes of a chunk without long lines, with room for a last line end.
    chunk_size: usize,
    /// True if all of it is read. Relaxed: readers that act on it take the lock.
    read: AtomicBool,
    /// The weight of the chunks that are read and not gathered. Relaxed: it only bounds the memory, and locks guard the
    /// chunks.
    in_flight: AtomicUsize,
    /// The lines that are gathered: a prefix of the input.
    pub gathered: Mutex<Gathered>,
}

struct Reader {
    /// `None` once all is read.
    source: Option<Source>,
    next: u64,
    /// The key rule, if it depends on the header.
    rule: Option<Arc<KeyRule>>,
}

/// A source of lines.
enum Source {
    Chunks(Chunks),
    /// A table with the number of rows that are done. It is opened when its turn comes.
    Closed(&'static dyn Format, Input, u64),
    Table(Box<dyn Table>),
}

impl Reader {
    /// Reads the next lines into `lines`; `false` at the end of the input.
    fn fill(&mut self, lines: &mut Lines, Hashing { what, values, .. }: &Hashing) -> io::Result<bool> {
        if let Some(Source::Closed(format, input, done)) = &self.source {
            self.source = Some(Source::Table(format.open(input, *done, what, values)?));
        }
        let chunks = match &mut self.source {
            Some(Source::Chunks(chunks)) => chunks,
            Some(Source::Table(table)) => return Ok(lines.take_rows(table.next()?)),
            Some(Source::Closed(..)) | None => return Ok(false),
        };
        let more = lines.fill(chunks)?;
        if let (What::Key(rule, _), None, true) = (what, &self.rule, more)
            && chunks.has_header()
            && rule.needs_header()
        {
            let resolved = rule.resolved(chunks.header_text());
            let rule = resolved.map_err(|fault| io::Error::other(fault.to_string()))?;
            self.rule = Some(Arc::new(rule));
        }
        lines.set_rule(self.rule.clone());
        Ok(more)
    }
}

/// The gathered part of an input.
pub struct Gathered {
    pub position: Position,
    pub counts: Counts,
    /// True if that is all of it.
    pub ended: bool,
    /// The failure of the input, if the rest of it is skipped.
    pub broken: Option<String>,
}

/// A chunk of lines read from a lane.
pub struct Chunk {
    /// The position in the order, and the position of the chunk after it.
    pub at: At,
    pub then: At,
    /// The lines; empty at the end of the input.
    pub lines: Box<Lines>,
    /// The result of the claim.
    pub claimed: Claimed,
    /// Its memory as a number of chunks, more than 1 if it has a long line.
    pub weight: usize,
    /// True if a reader may be waiting for the output of these lines.
    pub live: bool,
    pub end: Option<End>,
}

/// The end of an input.
pub enum End {
    Whole,
    Failed(io::Error),
}

impl Lane {
    /// Resumes after the `gathered` part; `next` is the lane after it.
    pub fn new(number: usize, next: usize, input: Input, gathered: Gathered, cut: Cut) -> Self {
        let (path, size, is_compressed) = (input.path.clone(), input.size, input.is_compressed());
        let is_table = input.is_table();
        let offset = gathered.position.offset;
        let open = || match input.table {
            Some(format) => Source::Closed(format, input, offset),
            None => Source::Chunks(Chunks::new(input, offset, cut)),
        };
        let source = (!gathered.ended).then(open);
        Self {
            number,
            next,
            input: path,
            size,
            is_compressed,
            is_table,
            read: AtomicBool::new(source.is_none()),
            reader: Mutex::new(Reader { source, next: 0, rule: None }),
            chunk_size: cut.size + 2,
            in_flight: AtomicUsize::new(0),
            gathered: Mutex::new(gathered),
        }
    }

    /// Reads and hashes the next lines. Returns the buffer if all is read.
    pub fn read(&self, mut lines: Box<Lines>, hashing: &Hashing) -> Result<Chunk, Box<Lines>> {
        let mut reader = locked(&self.reader);
        if reader.source.is_none() {
            return Err(lines);
        }
        let filled = reader.fill(&mut lines, hashing);
        let live = matches!(&reader.source, Some(Source::Chunks(chunks)) if chunks.is_live());
        let at = (self.number, reader.next);
        reader.next += 1;
        let weight = lines.memory().div_ceil(self.chunk_size).max(1);
        self.in_flight.fetch_add(weight, Relaxed);
        let end = match filled {
            Ok(true) => None,
            Ok(false) => Some(End::Whole),
            Err(error) => Some(End::Failed(error)),
        };
        let then = if end.is_none() { (at.0, at.1 + 1) } else { (self.next, 0) };
        if end.is_some() {
            reader.source = None;
            self.read.store(true, Relaxed);
        }
        Ok(Chunk { at, then, lines, claimed: Claimed::default(), weight, live, end })
    }

    /// True if all of it is read.
    pub fn is_read(&self) -> bool {
        self.read.load(Relaxed)
    }

    /// True if no thread is reading it at the moment.
    pub fn is_free(&self) -> bool {
        self.reader.try_lock().is_ok()
    }

    /// Records that a chunk of this weight is gathered.
    pub fn arrived(&self, weight: usize) {
        self.in_flight.fetch_sub(weight, Relaxed);
    }

    /// The weight of the chunks that are read and not gathered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }
}

/// Returns a lane for each input, from the checkpoint on if there is one.
pub fn lanes(inputs: Inputs, cut: Cut, start: Option<&Checkpoint>) -> Vec<Lane> {
    let nothing = Checkpoint::default();
    let Checkpoint { input: at, offset, lines, shards, .. } = start.unwrap_or(&nothing);
    let gathered = |(number, input): (usize, &Input)| {
        let mark = shards.get(number).cloned().unwrap_or_default();
        let ended = mark.whole || shards.is_empty() && number < *at;
        if ended {
            // For the progress bar.
            inputs.read.fetch_add(input.size.unwrap_or(0), Relaxed);
        }
        let (offset, lines) = if number == *at { (*offset, *lines) } else { (0, 0) };
        let (offset, lines) = (offset.max(mark.offset), lines.max(mark.lines).max(mark.counts.lines));
        let name = input.origin.name().into();
        let position =
            if input.is_table() { Position::of_table(name, offset) } else { Position::new(name, offset, lines) };
        Gathered { position, counts: mark.counts, ended, broken: mark.broken }
    };
    let gathered: Vec<Gathered> = inputs.found.iter().enumerate().map(gathered).collect();
    let count = gathered.len();
    let mut next = count;
    let mut lanes: Vec<Lane> = Vec::new();
    for (number, (input, gathered)) in inputs.found.into_iter().zip(gathered).enumerate().rev() {
        let ended = gathered.ended;
        lanes.push(Lane::new(number, next, input, gathered, cut));
        next = if ended { next } else { number };
    }
    lanes.reverse();
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::values::Wanted as Values;
    use crate::input::inputs::Inputs;
    use crate::input::split::LineFormat;
    use crate::key::{Part, Parts};
    use crate::values::OnError;
    use bloomline::KeyHasher;
    use std::fs;

    /// So reading ahead stays within the given memory.
    #[test]
    fn a_chunk_with_a_long_line_weighs_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [&b"a\nb\n"[..], &[b'c'; 70], b"\nd\n"].concat()).unwrap();
        let input = Inputs::of(&[path]).found.remove(0);
        let position = Position::new("a".into(), 0, 0);
        let gathered = Gathered { position, counts: Counts::default(), ended: false, broken: None };
        let format = LineFormat::plain(b'\n');
        let lane = Lane::new(0, 1, input, gathered, Cut { size: 10, format, keep: false });
        let rule = KeyRule {
            part: Part::Line,
            crlf: false,
            trim: Parts::None,
            url: Parts::None,
            ignore_case: Parts::None,
            nulls: true,
        };
        let what = What::Key(rule, None);
        let hashing = Hashing {
            format,
            hasher: KeyHasher::new(0),
            what,
            nulls: OnError::Fail,
            values: Values::default(),
            ends: Arc::default(),
        };
        let mut weights = Vec::new();
        while !lane.is_read() {
            let chunk = lane.read(Box::default(), &hashing).ok().unwrap();
            weights.push(chunk.weight);
            assert_eq!(lane.in_flight(), chunk.weight);
            lane.arrived(chunk.weight);
        }
        assert!(weights[0] == 1 && weights.iter().any(|&weight| weight >= 7), "{weights:?}");
    }
}
