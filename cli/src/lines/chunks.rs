//! Chunks: pieces of the inputs that end where a line ends.

use crate::error::Error;
use crate::lines::ahead::{Ahead, Turns};
use crate::lines::input::{Input, Opened};
use crate::values::OnError;
use std::io::{self, Read};
use std::sync::Arc;

/// A byte order mark: the first bytes of many text files in UTF-8, and no part of the text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whole lines in a buffer that is filled again and again.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// What happens between the lines, in order, each at an offset in the bytes where a line starts.
    pub events: Vec<(usize, InputEvent)>,
    /// Where lines start with the byte order mark of their input, in order.
    pub marked: Vec<usize>,
}

/// What happens between two lines.
pub enum InputEvent {
    /// An input of this name begins.
    Start(Arc<str>),
    /// An input fails, and the inputs go on without the rest of it.
    Broken(io::Error),
}

impl Chunk {
    /// The lines, each with its end.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// How to cut.
#[derive(Clone, Copy)]
pub struct Cut {
    /// Bytes of a chunk, at most, except for longer lines.
    pub size: usize,
    /// What ends a line.
    pub end: u8,
    /// What to do when an input fails.
    pub on_error: OnError,
    /// A chunk has lines of one input alone.
    pub apart: bool,
    /// How far to read ahead.
    pub ahead: Ahead,
}

/// Cuts the inputs, one after another, into chunks. A last line without an end gets one.
pub struct Chunks {
    inputs: Turns,
    current: Option<Opened>,
    /// The start of the line that the chunk before was too short for.
    tail: Vec<u8>,
    /// Where in the buffer inputs start, as far as their first lines are not handed on.
    starts: Vec<usize>,
    cut: Cut,
    /// Where in the buffer the lines before a broken input end, until that is taken note of.
    broken_at: Option<usize>,
    /// The failure that ends it all, once the lines before it have gone.
    failure: Option<io::Error>,
}

impl Chunks {
    /// Begins at the byte `start` of the contents of the first input.
    pub fn new(inputs: Vec<Input>, start: u64, cut: Cut) -> Self {
        let (tail, starts) = (Vec::new(), Vec::new());
        let inputs = Turns::new(inputs, start, cut.ahead);
        Self { inputs, current: None, tail, starts, cut, broken_at: None, failure: None }
    }

    /// Puts the next lines into `chunk`; `false` at the end of the last input. After an error there are no more.
    pub fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        chunk.events.clear();
        chunk.marked.clear();
        let buffer = &mut chunk.buffer;
        // One byte stays free for the end of a last line.
        let room = self.cut.size.max(self.tail.len() + 1) + 1;
        if buffer.len() != room {
            // A buffer that grew for a long line is given back to the system.
            *buffer = Vec::new();
            grow(buffer, room, self.tail.len())?;
        }
        buffer[..self.tail.len()].copy_from_slice(&self.tail);
        let mut searched = 0;
        let mut filled = self.tail.len();
        chunk.len = loop {
            let ended = self.read(buffer, &mut filled, &mut chunk.events);
            // A broken input may have taken its last piece with it.
            searched = searched.min(self.broken_at.take().unwrap_or(searched));
            if ended {
                break filled;
            }
            if let Some(end) = memchr::memrchr(self.cut.end, &buffer[searched..filled]) {
                break searched + end + 1;
            }
            searched = filled;
            if filled + 1 == buffer.len()
                && let Err(error) = grow(buffer, self.cut.size, filled)
            {
                self.broken(error, buffer, &mut filled, &mut chunk.events);
                // What comes next needs memory too.
                buffer.truncate(room.max(filled + 1));
                buffer.shrink_to_fit();
            }
        };
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[chunk.len..filled]);
        self.starts.retain_mut(|start| {
            let waits = *start == chunk.len;
            if waits {
                *start = 0;
            } else if buffer[*start..].starts_with(BYTE_ORDER_MARK) {
                chunk.marked.push(*start);
            }
            waits
        });
        // Inputs without a line start where the next one does.
        chunk.marked.dedup();
        match self.failure.take_if(|_| chunk.len == 0 && chunk.events.is_empty()) {
            Some(error) => Err(error),
            None => Ok(chunk.len > 0 || !chunk.events.is_empty()),
        }
    }

    /// Reads until the buffer is full or there is nothing to read at once, or `true` until the inputs end.
    fn read(&mut self, buffer: &mut [u8], filled: &mut usize, events: &mut Vec<(usize, InputEvent)>) -> bool {
        while *filled + 1 < buffer.len() {
            if self.failure.is_some() {
                return true;
            }
            let Some(open) = &mut self.current else {
                // The lines of one input are no part of another's chunk, where each has an output of its own.
                if self.cut.apart && *filled > 0 {
                    return true;
                }
                let Some((name, start, opened)) = self.inputs.open() else { return true };
                events.push((*filled, InputEvent::Start(name)));
                if start == 0 {
                    self.starts.push(*filled);
                }
                match opened {
                    Ok(open) => self.current = Some(open),
                    Err(source) => self.broken(source, buffer, filled, events),
                }
                continue;
            };
            let room = buffer.len() - 1;
            match open.contents.read(&mut buffer[*filled..room]) {
                Ok(0) => self.next(buffer, filled),
                Ok(n) => {
                    *filled += n;
                    // The writer of a pipe may wait long before the next line.
                    if !open.regular {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => self.broken(source, buffer, filled, events),
            }
        }
        false
    }

    /// Ends the current input, and its last line.
    fn next(&mut self, buffer: &mut [u8], filled: &mut usize) {
        self.current = None;
        if *filled > 0 && buffer[*filled - 1] != self.cut.end {
            buffer[*filled] = self.cut.end;
            *filled += 1;
        }
    }

    /// The current input fails. The piece of a line that was read before the failure is kept with [`OnError::Keep`] alone.
    fn broken(
        &mut self,
        source: io::Error,
        buffer: &mut [u8],
        filled: &mut usize,
        events: &mut Vec<(usize, InputEvent)>,
    ) {
        if !matches!(self.cut.on_error, OnError::Keep) {
            let whole = memchr::memrchr(self.cut.end, &buffer[..*filled]).map_or(0, |end| end + 1);
            *filled = whole;
            self.broken_at = Some(whole);
        }
        if let OnError::Fail = self.cut.on_error {
            self.failure = Some(source);
            return;
        }
        self.next(buffer, filled);
        events.push((*filled, InputEvent::Broken(source)));
    }
}

/// Memory that no line may take.
const LEFT: usize = 1 << 20;

/// Makes a buffer larger by so many bytes, for a line that has `had` bytes and goes on.
fn grow(buffer: &mut Vec<u8>, by: usize, had: usize) -> io::Result<()> {
    // At twice the size it seldom moves, but less may be all there is. The rest of the work needs some too.
    let reserved = buffer.try_reserve(by).or_else(|_| buffer.try_reserve_exact(by));
    if reserved.and_then(|()| Vec::<u8>::new().try_reserve_exact(LEFT)).is_err() {
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, Error::LongLine { bytes: had }));
    }
    buffer.resize(buffer.len() + by, 0);
    Ok(())
}
