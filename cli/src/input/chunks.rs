//! Chunks: pieces of an input that end where a line ends.

use crate::error::Error;
use crate::input::foreign;
use crate::input::inputs::{Input, Opened};
use std::io::{self, Read};

/// A byte order mark: the first bytes of many text files in UTF-8, and no part of the text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whole lines in a buffer that is filled again and again.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// Whether the first line begins with the byte order mark of its input.
    pub marked: bool,
}

impl Chunk {
    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.buffer.len()
    }

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
    /// Whether the piece of a line is kept that was read before an input failed.
    pub keep: bool,
}

/// Cuts an input into chunks. A last line without an end gets one.
pub struct Chunks {
    contents: Contents,
    /// The start of the line that the chunk before was too short for.
    tail: Vec<u8>,
    /// Whether the next chunk is at the start of the input.
    first: bool,
    cut: Cut,
    /// The end of lines, if what is no lines is to be refused.
    lines_end: Option<u8>,
    /// What failed, until the lines before it have gone.
    failure: Option<io::Error>,
}

enum Contents {
    /// Not opened so far; to be read from this byte on.
    Waiting(Input, u64),
    Open(Opened),
    Over,
}

impl Chunks {
    /// Begins at the byte `start` of the input's contents.
    pub fn new(input: Input, start: u64, cut: Cut) -> Self {
        let lines_end = input.lines_end;
        let contents = Contents::Waiting(input, start);
        Self { contents, tail: Vec::new(), first: start == 0, cut, lines_end, failure: None }
    }

    /// Whether the writer of a pipe may wait for what becomes of its lines.
    pub fn is_live(&self) -> bool {
        matches!(&self.contents, Contents::Open(open) if !open.regular)
    }

    /// Puts the next lines into `chunk`; `false` at the end of the input. After an error there are no more.
    pub fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
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
            let ended = self.read(buffer, &mut filled);
            // What a pipe has, or is compressed, is known here.
            let lines_end = self.lines_end.filter(|_| self.first);
            if let Some(format) = lines_end.and_then(|end| foreign::of_head(&buffer[..filled], end)) {
                (self.contents, self.failure) = (Contents::Over, Some(foreign::refused(format)));
                filled = 0;
                break 0;
            }
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
                self.fail(error, buffer, &mut filled);
                // What comes next needs memory too.
                buffer.truncate(room.max(filled + 1));
                buffer.shrink_to_fit();
            }
        };
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[chunk.len..filled]);
        chunk.marked = self.first && chunk.bytes().starts_with(BYTE_ORDER_MARK);
        self.first &= chunk.len == 0;
        match self.failure.take_if(|_| chunk.len == 0) {
            Some(error) => Err(error),
            None => Ok(chunk.len > 0),
        }
    }

    /// Reads until the buffer is full or there is nothing to read at once, or `true` until the input ends.
    fn read(&mut self, buffer: &mut [u8], filled: &mut usize) -> bool {
        while *filled + 1 < buffer.len() {
            let open = match &mut self.contents {
                Contents::Open(open) => open,
                Contents::Over => return true,
                waiting => {
                    if let Contents::Waiting(input, start) = std::mem::replace(waiting, Contents::Over) {
                        match input.open(start) {
                            Ok(open) => self.contents = Contents::Open(open),
                            Err(source) => self.fail(source, buffer, filled),
                        }
                    }
                    continue;
                }
            };
            let room = buffer.len() - 1;
            match open.contents.read(&mut buffer[*filled..room]) {
                Ok(0) => self.end(buffer, filled),
                Ok(n) => {
                    *filled += n;
                    // The writer of a pipe may wait long before the next line.
                    if !open.regular {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => self.fail(source, buffer, filled),
            }
        }
        matches!(self.contents, Contents::Over)
    }

    /// Ends the input, and its last line.
    fn end(&mut self, buffer: &mut [u8], filled: &mut usize) {
        self.contents = Contents::Over;
        if *filled > 0 && buffer[*filled - 1] != self.cut.end {
            buffer[*filled] = self.cut.end;
            *filled += 1;
        }
    }

    /// The input fails.
    fn fail(&mut self, source: io::Error, buffer: &mut [u8], filled: &mut usize) {
        if !self.cut.keep {
            *filled = memchr::memrchr(self.cut.end, &buffer[..*filled]).map_or(0, |end| end + 1);
        }
        self.end(buffer, filled);
        self.failure = Some(source);
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
