//! How many lines inputs have, or keys of documents, from samples of them.

use crate::documents::Documents;
use crate::documents::rule::DocumentRule;
use crate::error::Error;
use crate::input::contents::{self, Source};
use crate::input::decode::Coding;
use crate::input::inputs::Input;
use crate::table;
use bloomline::KeyHasher;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Up to this size a file is read whole and its lines are counted. Of a compressed one this much is decompressed.
const WHOLE: usize = 1 << 20;

/// A larger file is sampled in as many windows of this size as make up `WHOLE`, spread evenly. A compressed one is read in pieces of
/// this size, so that it is known how many bytes of it the sample took.
const WINDOW: usize = 4096;

/// The windows for documents, which are longer than lines are.
const DOCUMENTS: usize = 1 << 16;

/// So many compressed files are sampled, spread evenly, and so many plain ones. The others are taken to be like them.
const COMPRESSED: usize = 64;
const PLAIN: usize = 256;

/// What is counted in samples.
pub enum Sampled {
    /// Lines.
    Lines,
    /// The keys of documents.
    Documents(DocumentRule),
}

/// At least the number of lines or keys of all inputs, almost surely, and seldom many more; or the name of an input that does not
/// tell. `end` ends a line. A compressed file is taken to go on as it begins. What cannot be read has none
/// if the run is to `go_on` without it.
pub fn of_inputs(inputs: &[Input], end: u8, sampled: &Sampled, go_on: bool) -> Result<Result<u64, String>, Error> {
    let compressed = inputs.iter().filter(|input| input.is_compressed()).count();
    let mut tables = 0;
    let plain = inputs.iter().filter(|input| !input.is_compressed() && !input.is_table).count();
    let mut plain = Samples::new(plain, PLAIN);
    let mut compressed = Samples::new(compressed, COMPRESSED);
    for input in inputs {
        let Some(size) = input.size else { return Ok(Err(input.origin.name().to_owned())) };
        let failed = |source| Error::Estimate { input: input.origin.name().to_owned(), source };
        if input.is_table {
            match input.with_file(|file| table::measure(file, sampled.column())) {
                Ok((rows, bytes)) => tables += sampled.of_rows(rows, bytes),
                Err(_) if go_on => {}
                Err(source) => return Err(failed(source)),
            }
        } else if input.is_compressed() {
            if compressed.wants(size) {
                match File::open(&input.path).and_then(|file| head(file, size, end, sampled)) {
                    Ok((bytes, keys)) => compressed.add(bytes, keys),
                    Err(_) if go_on => compressed.leave_out(size),
                    Err(source) => return Err(failed(source)),
                }
            }
        } else if plain.wants(size) {
            match input.with_file(|file| keys(file, end, sampled, go_on)) {
                Ok(Some(keys)) => plain.add(size, keys),
                // Compressed standard input, from its position on.
                Ok(None) => return Ok(Err(input.origin.name().to_owned())),
                Err(_) if go_on => plain.leave_out(size),
                Err(source) => return Err(failed(source)),
            }
        }
    }
    Ok(Ok((plain.keys() + compressed.keys() + tables).max(1)))
}

/// Samples of some of the files of a kind.
struct Samples {
    /// Each file with a number that this divides is sampled.
    stride: usize,
    number: usize,
    /// Bytes of all files, and those that the samples stand for, with their keys.
    all: u64,
    seen: u64,
    found: u64,
}

impl Samples {
    fn new(files: usize, sampled: usize) -> Self {
        Self { stride: files.div_ceil(sampled).max(1), number: 0, all: 0, seen: 0, found: 0 }
    }

    /// Whether the next file, of so many bytes, is to be sampled.
    fn wants(&mut self, size: u64) -> bool {
        self.all += size;
        self.number += 1;
        (self.number - 1).is_multiple_of(self.stride)
    }

    fn add(&mut self, bytes: u64, keys: u64) {
        self.seen += bytes;
        self.found += keys;
    }

    /// Counts no keys in a file of so many bytes.
    fn leave_out(&mut self, bytes: u64) {
        self.all -= bytes;
    }

    /// The keys of all files. Those that were not seen are like the others up to some tenth.
    fn keys(&self) -> u64 {
        let keys = extrapolated(self.found, self.seen, self.all);
        if self.seen < self.all { (1.1 * keys as f64) as u64 } else { keys }
    }
}

impl Sampled {
    /// The column of a table that tells how many keys there are, if it is not the number of rows.
    fn column(&self) -> Option<&[String]> {
        match self {
            Self::Lines => None,
            Self::Documents(rule) => Some(rule.pointer.tokens()),
        }
    }

    /// The keys of so many rows, of whose column there are so many bytes.
    fn of_rows(&self, rows: u64, bytes: u64) -> u64 {
        match self {
            Self::Lines => rows,
            Self::Documents(rule) => rule.keys_of(rows, bytes),
        }
    }

    /// How much of a file is looked at in one place.
    fn window(&self) -> usize {
        match self {
            Self::Lines => WINDOW,
            Self::Documents(_) => DOCUMENTS,
        }
    }

    /// The keys in a piece of a file, `first` if the file begins with it, and `last` if it ends with it.
    fn count(&self, piece: &[u8], end: u8, first: bool, last: bool) -> f64 {
        let rule = match self {
            Self::Lines => {
                let open = last && piece.last().is_some_and(|&byte| byte != end);
                return memchr::memchr_iter(end, piece).count() as f64 + f64::from(open);
            }
            Self::Documents(rule) => rule,
        };
        let start = if first { 0 } else { memchr::memchr(end, piece).map_or(piece.len(), |end| end + 1) };
        let stop = if last { piece.len() } else { memchr::memrchr(end, piece).map_or(start, |end| end + 1) };
        let lines = piece.get(start..stop).filter(|lines| !lines.is_empty());
        let Some(lines) = lines else {
            // A document is longer.
            return rule.keys_in(piece);
        };
        let (mut documents, hasher) = (Documents::default(), KeyHasher::new(0));
        for line in lines.split(|&byte| byte == end) {
            // A line without a document is told of when it is read.
            let _ = documents.push(line, 0, rule, &hasher);
        }
        documents.keys() as f64 * piece.len() as f64 / lines.len() as f64
    }
}

/// The number of keys from the file's position on; `None` of a file that is compressed. Moves nothing. Of a large file, what cannot
/// be read is left out if the run is to `go_on` without it.
fn keys(mut file: &File, end: u8, sampled: &Sampled, go_on: bool) -> io::Result<Option<u64>> {
    let start = file.stream_position()?;
    let size = file.metadata()?.len().saturating_sub(start);
    if Coding::of_file(file)? != Coding::Plain {
        return Ok(None);
    }
    // The bytes count, not the size, which is 0 for files of the kernel.
    let mut buffer = vec![0; WHOLE.min(size.max(WINDOW as u64) as usize)];
    if size <= WHOLE as u64 {
        let length = read_at(file, &mut buffer, start)?;
        return Ok(Some(sampled.count(&buffer[..length], end, true, true) as u64));
    }
    let window = sampled.window();
    let windows = buffer.chunks_exact_mut(window);
    let stride = (size - window as u64) as f64 / (windows.len() - 1) as f64;
    let (mut seen, mut found, mut left) = (0, 0.0, windows.len());
    for (i, window) in windows.enumerate() {
        left -= 1;
        let length = match read_at(file, window, start + (i as f64 * stride) as u64) {
            Err(_) if go_on && (seen > 0 || left > 0) => continue,
            read => read?,
        };
        seen += length;
        found += sampled.count(&window[..length], end, i == 0, false);
    }
    Ok(Some(extrapolated(found as u64, seen as u64, size)))
}

/// How many bytes at the head of a compressed file the sample took, and the keys in it. What is broken is told when it is read.
fn head(file: File, size: u64, end: u8, sampled: &Sampled) -> io::Result<(u64, u64)> {
    let read = Arc::default();
    let source = Source { file: file.into(), read: Arc::clone(&read), copy: None, lines_end: None };
    let contents = contents::open(source, 0, WINDOW)?;
    let mut buffer = Vec::new();
    let whole = contents.take(WHOLE as u64).read_to_end(&mut buffer).is_ok();
    let ended = whole && buffer.len() < WHOLE;
    let keys = sampled.count(&buffer, end, true, ended) as u64;
    // Some of the last piece may wait in the decoder.
    let bytes = if ended { size } else { read.load(Relaxed).saturating_sub(WINDOW as u64 / 2).max(1) };
    Ok((bytes, keys))
}

/// So many keys that were found in the `seen` bytes of a sample make how many in all bytes?
fn extrapolated(found: u64, seen: u64, all: u64) -> u64 {
    if seen >= all {
        return found;
    }
    // Three standard deviations of a count, for chance; it matters where lines are long and few are seen. One percent
    // more for lines that come in stretches of different lengths.
    let found = found as f64;
    (1.01 * (found + 3.0 * found.sqrt() + 3.0) * all as f64 / seen.max(1) as f64) as u64
}

/// Fills the buffer, unless the file ends before.
fn read_at(file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
