//! An input of a run, which one thread at a time reads chunk by chunk.

use crate::read::batch::Batch;
use crate::read::chunks::{ChunkConfig, Chunks};
use crate::read::format_of;
use crate::read::inputs::{Input, Inputs};
use crate::read::position::Position;
use crate::read::projection::{HeaderRule, Projection};
use crate::read::table::Table;
use crate::run::checkpoint::Checkpoint;
use crate::run::lines::Lines;
use crate::seen::Claimed;
use crate::seen::counts::LineCounts;
use crate::system::unpoisoned::locked;
use crate::write::reorder_buffer::ItemPosition;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// An input of a run, with its progress.
pub struct RunInput {
    pub number: usize,
    /// The number of the input that is read after it.
    pub next: usize,
    pub path: PathBuf,
    /// Size of the file in bytes, compressed if it is, for a regular file.
    pub size: Option<u64>,
    pub is_compressed: bool,
    pub is_table: bool,
    reader: Mutex<InputReader>,
    config: ChunkConfig,
    /// True if all of it is read. Relaxed: readers that act on it take the lock.
    read: AtomicBool,
    /// The weight of the chunks that are read and not gathered. Relaxed: it only bounds the memory, and locks guard the
    /// chunks.
    in_flight: AtomicUsize,
    /// The lines that are gathered: a prefix of the input.
    pub gathered: Mutex<GatheredInput>,
}

struct InputReader {
    /// `None` once all is read.
    source: Option<LineSource>,
    next: u64,
    /// The rule that the header gives, if the keys or values depend on it.
    rule: Option<Arc<HeaderRule>>,
}

/// A source of lines.
enum LineSource {
    /// An input with the number of bytes or rows that are done. It is opened when its turn comes.
    Closed(Input, u64),
    Chunks(Box<Chunks>),
    Table(Box<dyn Table>),
}

impl InputReader {
    /// Reads the next lines into `batch`; `false` at the end of the input.
    fn fill(&mut self, batch: &mut Batch, config: ChunkConfig, projection: &Projection) -> io::Result<bool> {
        let source = match self.source.take() {
            Some(LineSource::Closed(input, done)) => match format_of(&input) {
                Some(format) => LineSource::Table(format.open(&input, done, projection)?),
                None => LineSource::Chunks(Chunks::new(input, done, config).into()),
            },
            Some(open) => open,
            None => return Ok(false),
        };
        let chunks = match self.source.insert(source) {
            LineSource::Chunks(chunks) => chunks,
            LineSource::Table(table) => return Ok(batch.set_rows(table.next()?)),
            LineSource::Closed(..) => return Ok(false),
        };
        let more = batch.fill(chunks)?;
        if more
            && self.rule.is_none()
            && chunks.has_header()
            && let Some(rule) = projection.rule()
        {
            let rule = HeaderRule::new(rule, &projection.values, chunks.header_text());
            self.rule = rule.map_err(|key_error| io::Error::other(key_error.to_string()))?.map(Arc::new);
        }
        batch.set_rule(self.rule.clone());
        Ok(more)
    }
}

/// The gathered part of an input.
pub struct GatheredInput {
    pub position: Position,
    pub counts: LineCounts,
    /// True if that is all of it.
    pub ended: bool,
    /// The failure of the input, if the rest of it is skipped.
    pub broken: Option<String>,
}

/// A chunk of lines that was read from an input.
pub struct InputChunk {
    /// The position of the chunk in the order, and the position of the chunk after it.
    pub position: ItemPosition,
    pub next: ItemPosition,
    /// The lines; empty at the end of the input.
    pub lines: Box<Lines>,
    /// The result of the claim.
    pub claimed: Claimed,
    /// Its memory as a number of chunks, more than 1 if it has a long line.
    pub weight: usize,
    /// True if a reader may be waiting for the output of these lines.
    pub live: bool,
    pub end: Option<InputEnd>,
}

/// The end of an input.
pub enum InputEnd {
    Whole,
    Failed(io::Error),
}

impl RunInput {
    /// Resumes after the `gathered` part; `next` is the number of the input that is read after it.
    pub fn new(number: usize, next: usize, input: Input, gathered: GatheredInput, config: ChunkConfig) -> Self {
        let path = input.path.clone();
        let size = input.size;
        let is_compressed = input.is_compressed();
        let is_table = input.is_table;
        let source = (!gathered.ended).then(|| LineSource::Closed(input, gathered.position.offset));
        Self {
            number,
            next,
            path,
            size,
            is_compressed,
            is_table,
            read: AtomicBool::new(source.is_none()),
            reader: Mutex::new(InputReader { source, next: 0, rule: None }),
            config,
            in_flight: AtomicUsize::new(0),
            gathered: Mutex::new(gathered),
        }
    }

    /// Reads the next lines. Returns the buffer if all is read.
    pub fn read(&self, mut lines: Box<Lines>, projection: &Projection) -> Result<InputChunk, Box<Lines>> {
        let mut reader = locked(&self.reader);
        if reader.source.is_none() {
            return Err(lines);
        }
        let filled = reader.fill(&mut lines.batch, self.config, projection);
        let live = matches!(&reader.source, Some(LineSource::Chunks(chunks)) if chunks.is_live());
        let position = (self.number, reader.next);
        reader.next += 1;
        // A chunk without long lines has room for a last line end.
        let weight = lines.batch.memory().div_ceil(self.config.size + 2).max(1);
        self.in_flight.fetch_add(weight, Relaxed);
        let end = match filled {
            Ok(true) => None,
            Ok(false) => Some(InputEnd::Whole),
            Err(error) => Some(InputEnd::Failed(error)),
        };
        let next = if end.is_none() { (position.0, position.1 + 1) } else { (self.next, 0) };
        if end.is_some() {
            reader.source = None;
            self.read.store(true, Relaxed);
        }
        Ok(InputChunk { position, next, lines, claimed: Claimed::default(), weight, live, end })
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

    /// Returns the weight of the chunks that are read and not gathered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }
}

/// Returns the inputs of a run, with the progress of the checkpoint `start` if there is one.
pub fn run_inputs(inputs: Inputs, config: ChunkConfig, start: Option<&Checkpoint>) -> Vec<RunInput> {
    let none = Checkpoint::default();
    let Checkpoint { input: current, offset, lines, inputs: progress, .. } = start.unwrap_or(&none);
    let Inputs { found, read, .. } = inputs;
    let gathered = |number: usize, input: &Input| {
        let reached = progress.get(number).cloned().unwrap_or_default();
        let ended = reached.whole || progress.is_empty() && number < *current;
        if ended {
            // For the progress bar.
            read.fetch_add(input.size.unwrap_or(0), Relaxed);
        }
        let (offset, lines) = if number == *current { (*offset, *lines) } else { (0, 0) };
        let (offset, lines) = (offset.max(reached.offset), lines.max(reached.lines).max(reached.counts.lines));
        let name = input.origin.name().into();
        let position =
            if input.is_table { Position::for_table(name, offset) } else { Position::new(name, offset, lines) };
        GatheredInput { position, counts: reached.counts, ended, broken: reached.broken }
    };
    let mut next = found.len();
    let mut inputs: Vec<RunInput> = Vec::with_capacity(found.len());
    for (number, input) in found.into_iter().enumerate().rev() {
        let gathered = gathered(number, &input);
        let ended = gathered.ended;
        inputs.push(RunInput::new(number, next, input, gathered, config));
        next = if ended { next } else { number };
    }
    inputs.reverse();
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::inputs::Inputs;
    use crate::read::split::LineFormat;
    use std::fs;

    /// The weight keeps reading ahead within the given memory.
    #[test]
    fn a_chunk_with_a_long_line_weighs_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [&b"a\nb\n"[..], &[b'c'; 70], b"\nd\n"].concat()).unwrap();
        let input = Inputs::from_paths(&[path]).found.remove(0);
        let position = Position::new("a".into(), 0, 0);
        let gathered = GatheredInput { position, counts: LineCounts::default(), ended: false, broken: None };
        let format = LineFormat::plain(b'\n');
        let input = RunInput::new(0, 1, input, gathered, ChunkConfig { size: 10, format, keep: false });
        let mut weights = Vec::new();
        while !input.is_read() {
            let chunk = input.read(Box::new(Lines::new(Box::new(()))), &Projection::whole()).ok().unwrap();
            weights.push(chunk.weight);
            assert_eq!(input.in_flight(), chunk.weight);
            input.arrived(chunk.weight);
        }
        assert!(weights[0] == 1 && weights.iter().any(|&weight| weight >= 7), "{weights:?}");
    }
}
