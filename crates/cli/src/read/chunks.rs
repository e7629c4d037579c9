//! Chunks: pieces of an input that end where a line ends.

use crate::key::byte_scan::for_each_position;
use crate::key::error::KeyError;
use crate::key::fields::{Csv, QUOTE};
use crate::read::foreign;
use crate::read::header::ExpectedHeader;
use crate::read::inputs::{Input, OpenedInput};
use crate::read::split::{LineFormat, RecordScanner};
use crate::system::error::{Error, MORE_MEMORY};
use std::collections::TryReserveError;
use std::io::{self, Read};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// A byte order mark: the first bytes of many text files in UTF-8, which are not part of the text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whole lines in a buffer that is reused.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// The number of bytes that were searched.
    searched: usize,
    /// True if the chunk starts at the start of its input.
    first: bool,
    /// The length of the input's header, if the chunk begins with it; else 0.
    header: usize,
    /// True if quotes may occur, so that CSV records may span several lines.
    pub quoted: bool,
    /// The ends of the CSV records.
    records: RecordScanner,
    /// True if a quoted field is open at the end of the input.
    pub open: bool,
    /// True if the last line had no end in the input.
    pub unended: bool,
    /// The byte that ends a line, and the end of each line after that byte, once they are split.
    pub end: u8,
    ends: Vec<usize>,
}

impl Chunk {
    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the lines, each with its end.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.header..self.len]
    }

    /// Calls `found` with the end of each line, after the byte that ends it.
    #[inline(always)]
    fn each_end(&self, end: u8, mut found: impl FnMut(usize)) {
        if self.quoted {
            let ends = self.records.ends.iter().skip(usize::from(self.header > 0));
            ends.for_each(|end| found(end - self.header));
        } else {
            for_each_position(self.bytes(), [end], |end| found(end + 1));
        }
    }

    /// Removes the lines and the header.
    pub fn clear(&mut self) {
        (self.len, self.header, self.quoted) = (0, 0, false);
    }

    /// Finds the ends of the lines, at each byte `end`.
    pub fn split(&mut self, end: u8) {
        let mut ends = mem::take(&mut self.ends);
        ends.clear();
        self.each_end(end, |end| ends.push(end));
        (self.end, self.ends) = (end, ends);
    }

    /// Returns the number of lines, once they are split.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the lines, once they are split: the range of each in the bytes, without its end.
    pub fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = self.start();
        self.ends.iter().map(move |&end| mem::replace(&mut start, end)..end - 1)
    }

    /// Returns the start of the line of this number, or the end of all lines.
    pub fn start_of(&self, line: usize) -> usize {
        line.checked_sub(1).map_or_else(|| self.start(), |before| self.ends[before])
    }

    /// Returns the header of the input with its end, or nothing if these are not the first lines of the input.
    pub fn header(&self) -> &[u8] {
        &self.buffer[..self.header]
    }

    /// Returns the start of the first line, after the input's byte order mark.
    pub fn start(&self) -> usize {
        if self.header == 0 { mark(self.first, self.bytes()) } else { 0 }
    }

    /// Returns the length of the whole lines in the first `filled` bytes. The bytes searched by earlier calls contain no whole
    /// line.
    fn whole(&mut self, filled: usize, format: &LineFormat) -> usize {
        let bytes = &self.buffer[..filled];
        let searched = mem::replace(&mut self.searched, filled);
        if let Some(csv) = format.csv
            && !self.quoted
            && memchr::memchr(QUOTE, &bytes[searched..]).is_some()
        {
            self.quoted = true;
            self.records.begin(format.end, csv, mark(self.first, bytes));
        }
        if self.quoted {
            self.records.search(bytes);
            self.records.ends.last().copied().unwrap_or(0)
        } else {
            memchr::memrchr(format.end, &bytes[searched..]).map_or(0, |end| searched + end + 1)
        }
    }

    /// Adds an end to the last line if the line has none.
    fn end_last(&mut self, filled: &mut usize, format: &LineFormat) {
        // A lone byte order mark is not a line.
        if mark(self.first, &self.buffer[..*filled]) == *filled {
            *filled = 0;
        }
        if *filled > 0 && self.buffer[*filled - 1] != format.end {
            self.buffer[*filled] = format.end;
            self.unended = true;
            *filled += 1;
            self.whole(*filled, format);
        }
        self.open = self.quoted && *filled > 0 && self.records.ends.last() != Some(filled);
        self.records.ends.extend(self.open.then_some(*filled));
    }

    /// Removes the last record, whose quotes are not closed. Most lines of the input may be in the record, so the input is treated
    /// as broken there.
    fn leave_out_open(&mut self, filled: &mut usize, end: u8, csv: Csv) -> io::Error {
        self.records.ends.pop();
        let start = self.records.ends.last().copied().unwrap_or(0);
        let lines = memchr::memchr_iter(end, &self.buffer[start..*filled]).count();
        (self.open, self.unended, *filled) = (false, false, start);
        let (s, key_error) = (if lines == 1 { "" } else { "s" }, KeyError::Quote { has_escape: csv.escape.is_some() });
        io::Error::other(format!("the rest, {lines} line{s}, is one record: {key_error}"))
    }

    /// Sets the chunk to the lines in the first `len` bytes, without the header.
    fn take(&mut self, len: usize, format: &LineFormat) {
        (self.len, self.header) = (len, 0);
        if self.first && format.header {
            let mut first = None;
            self.each_end(format.end, |end| first = first.or(Some(end)));
            self.header = first.unwrap_or(0);
        }
    }
}

/// Returns the length of the byte order mark at the start of `bytes`, if they are the `first` of an input.
fn mark(first: bool, bytes: &[u8]) -> usize {
    if first && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

/// The options of [`Chunks`].
#[derive(Clone, Copy)]
pub struct ChunkConfig {
    /// The maximum size of a chunk in bytes, except for longer lines.
    pub size: usize,
    pub format: LineFormat,
    /// True if an incomplete last line before a read error is kept, and so is a last record whose quotes are not closed.
    pub keep: bool,
}

/// Cuts an input into chunks. A last line without an end gets one.
pub struct Chunks {
    contents: InputContents,
    /// The start of a line that did not fit into the previous chunk.
    tail: Vec<u8>,
    /// True if the next chunk starts at the start of the input.
    first: bool,
    config: ChunkConfig,
    /// The end of lines, until enough of the input is read to refuse formats without lines.
    checked: Option<u8>,
    /// The first bytes of the input, as far as they are read. A chunk of a pipe may have fewer bytes.
    head: Vec<u8>,
    /// The header of the input with its end, once the first chunk is read.
    header: Vec<u8>,
    /// The name of the input, and the header that the input must have.
    name: String,
    expected: Option<Arc<ExpectedHeader>>,
    /// The failure, until the lines before it are returned.
    failure: Option<io::Error>,
}

enum InputContents {
    /// An input that is not yet opened, and the byte at which reading starts.
    Waiting(Input, u64),
    Open(OpenedInput),
    Over,
}

impl Chunks {
    /// Starts at the byte `start` of the input's contents.
    pub fn new(input: Input, start: u64, config: ChunkConfig) -> Self {
        let first = start == 0;
        let checked = if first { input.line_end } else { None };
        Self {
            name: input.origin.name().to_owned(),
            expected: input.header.clone(),
            contents: InputContents::Waiting(input, start),
            tail: Vec::new(),
            first,
            config,
            checked,
            head: Vec::new(),
            header: Vec::new(),
            failure: None,
        }
    }

    /// True if the input is an open pipe, whose writer may wait until its lines are processed.
    pub fn is_live(&self) -> bool {
        matches!(&self.contents, InputContents::Open(open) if !open.regular)
    }

    /// True if the first line of the input is a header.
    pub fn has_header(&self) -> bool {
        self.config.format.header
    }

    /// Returns the header of the input without its end and byte order mark, once the first chunk is read.
    pub fn header_text(&self) -> &[u8] {
        let header = self.header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.header);
        header.strip_suffix(&[self.config.format.end]).unwrap_or(header)
    }

    /// Puts the next lines into `chunk`. Returns `false` at the end of the input and after an error.
    pub fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        if matches!(self.contents, InputContents::Over) && self.tail.is_empty() {
            // No buffer is needed, and there may be no memory for one beside a long last line.
            chunk.clear();
            return self.failure.take().map_or(Ok(false), Err);
        }
        // One byte is reserved for the missing end of a last line.
        let room = self.config.size.max(self.tail.len() + 1) + 1;
        if chunk.buffer.len() != room {
            // A buffer that grew for a long line is returned to the system.
            chunk.buffer = Vec::new();
            let reserved = Vec::<u8>::new().try_reserve_exact(room + LEFT);
            if reserved.is_err() && self.tail.len() < self.config.size {
                // An `Error`, because the input itself is not at fault.
                return Err(io::Error::other(Error::new(format!(
                    "there is no memory to read {}; {MORE_MEMORY}",
                    self.name
                ))));
            }
            check_memory(reserved, self.tail.len())?;
            // The system's memory is zero, and of a small input most of the buffer is never touched.
            chunk.buffer = vec![0; room];
        }
        chunk.buffer[..self.tail.len()].copy_from_slice(&self.tail);
        (chunk.first, chunk.searched, chunk.quoted) = (self.first, 0, false);
        (chunk.open, chunk.unended) = (false, false);
        let mut filled = self.tail.len();
        let format = self.config.format;
        let len = loop {
            let before = filled;
            let ended = self.read(&mut chunk.buffer, &mut filled);
            if let Some(format) = self.foreign_format(&chunk.buffer[before..filled]) {
                (self.contents, self.failure) = (InputContents::Over, Some(foreign::refused(format)));
                filled = 0;
                break 0;
            }
            let whole = chunk.whole(filled, &format);
            if ended {
                if self.failure.is_some() && !self.config.keep {
                    filled = whole;
                }
                chunk.end_last(&mut filled, &format);
                if chunk.open
                    && !self.config.keep
                    && let Some(csv) = format.csv
                {
                    self.failure = Some(chunk.leave_out_open(&mut filled, format.end, csv));
                }
                if self.failure.is_some() {
                    // The caller may need memory.
                    chunk.buffer.truncate(room.max(filled + 1));
                    chunk.buffer.shrink_to_fit();
                }
                break filled;
            }
            if whole > 0 {
                break whole;
            }
            if filled + 1 == chunk.buffer.len()
                && let Err(error) = grow(&mut chunk.buffer, self.config.size, filled)
            {
                self.fail(error);
            }
        };
        self.tail.clear();
        self.tail.extend_from_slice(&chunk.buffer[len..filled]);
        chunk.take(len, &format);
        if self.first {
            self.header = chunk.header().to_vec();
            if !self.header.is_empty()
                && let Some(expected) = &self.expected
            {
                let checked = expected.check(self.header_text(), &self.name, &format);
                checked.inspect_err(|_| self.contents = InputContents::Over)?;
            }
        }
        self.first &= chunk.len == 0;
        match self.failure.take_if(|_| chunk.len == 0) {
            Some(error) => Err(error),
            None => Ok(chunk.len > 0),
        }
    }

    /// Returns the format of the input by its first bytes, continued by `bytes`, if the format has no lines. The format
    /// of pipes and compressed files is recognized only here.
    fn foreign_format(&mut self, bytes: &[u8]) -> Option<&'static str> {
        let end = self.checked?;
        self.head.extend(bytes.iter().take(foreign::HEAD - self.head.len()));
        self.checked = self.checked.filter(|_| self.head.len() < foreign::HEAD);
        foreign::detect(&self.head, end)
    }

    /// Reads until the buffer is full or a pipe has returned some bytes. Returns `true` at the end of the input.
    fn read(&mut self, buffer: &mut [u8], filled: &mut usize) -> bool {
        while *filled + 1 < buffer.len() {
            let open = match &mut self.contents {
                InputContents::Open(open) => open,
                InputContents::Over => return true,
                waiting => {
                    if let InputContents::Waiting(input, start) = mem::replace(waiting, InputContents::Over) {
                        match self.open(input, start) {
                            Ok(open) => self.contents = InputContents::Open(open),
                            Err(source) => self.fail(source),
                        }
                    }
                    continue;
                }
            };
            let room = buffer.len() - 1;
            match open.contents.read(&mut buffer[*filled..room]) {
                Ok(0) => self.contents = InputContents::Over,
                Ok(n) => {
                    *filled += n;
                    // The writer of a pipe may pause for long before the next line.
                    if !open.regular {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => self.fail(source),
            }
        }
        matches!(self.contents, InputContents::Over)
    }

    /// Opens the input. If reading does not start at the start of the input, the header is read first.
    fn open(&mut self, input: Input, start: u64) -> io::Result<OpenedInput> {
        if self.config.format.header && start > 0 {
            let mut head = Self::new(input.reopen()?, 0, self.config);
            head.fill(&mut Chunk::default())?;
            self.header = head.header;
        }
        input.open(start)
    }

    /// Ends the input with an error.
    fn fail(&mut self, source: io::Error) {
        (self.contents, self.failure) = (InputContents::Over, Some(source));
    }
}

/// Memory that is left free when a line is too long.
const LEFT: usize = 1 << 20;

/// Grows a buffer by `by` bytes, for a line of more than `had` bytes.
fn grow(buffer: &mut Vec<u8>, by: usize, had: usize) -> io::Result<()> {
    // Doubling seldom has to move the buffer, but may exceed the memory. The rest of the program needs some memory, too.
    let reserved = buffer.try_reserve(by).or_else(|_| buffer.try_reserve_exact(by));
    check_memory(reserved.and_then(|()| Vec::<u8>::new().try_reserve_exact(LEFT)), had)?;
    buffer.resize(buffer.len() + by, 0);
    Ok(())
}

/// Returns an error if memory for a line of more than `had` bytes was not `reserved`.
fn check_memory(reserved: Result<(), TryReserveError>, had: usize) -> io::Result<()> {
    reserved.map_err(|_| {
        let why = format!("the next line has more than {had} bytes, and there is no memory for more");
        io::Error::new(io::ErrorKind::OutOfMemory, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::inputs::Inputs;
    use std::fs;

    /// The last line may have taken the memory.
    #[test]
    fn the_end_of_an_input_is_found_without_a_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"a\nb").unwrap();
        let config = ChunkConfig { size: 10, format: LineFormat::plain(b'\n'), keep: false };
        let mut chunks = Chunks::new(Inputs::from_paths(&[path]).found.remove(0), 0, config);
        let (mut lines, mut end) = (Chunk::default(), Chunk::default());
        assert!(chunks.fill(&mut lines).unwrap());
        assert_eq!(lines.bytes(), b"a\nb\n");
        assert!(!chunks.fill(&mut end).unwrap());
        assert_eq!(end.buffer.capacity(), 0);
        assert_eq!(end.bytes(), b"");
    }
}
