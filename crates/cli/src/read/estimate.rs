//! Estimates of the number of lines or document keys in inputs, from samples.

use crate::read::coding::Coding;
use crate::read::contents::{self, FileSource};
use crate::read::format_of;
use crate::read::inputs::Input;
use crate::read::line_sample::LineSample;
use crate::system::error::{Error, remedy};
use crate::system::positioned::read_at;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Files up to this size are read whole and their lines counted. Of a compressed file this many bytes are decompressed. A unit may
/// have another size.
const WHOLE: usize = 1 << 20;

/// Larger files are sampled in windows of this size, evenly spread, `WHOLE` bytes in all. Compressed files are read in pieces of
/// this size, so that the number of compressed bytes in the sample is known.
const WINDOW: usize = 4096;

/// The maximum numbers of compressed and of plain files that are sampled, evenly spread. Others are assumed to be similar.
const COMPRESSED: usize = 64;
const PLAIN: usize = 256;

/// A unit that is counted in samples.
pub trait SampleUnit {
    /// Returns the number of bytes that are sampled of a large file.
    fn sampled_bytes(&self) -> usize {
        WHOLE
    }

    /// Returns the size of a window of a large file.
    fn window(&self) -> usize;

    /// Returns the column of a table that determines the number of keys, if that is not the number of rows.
    fn column(&self) -> Option<&[String]>;

    /// Estimates the keys of so many rows with so many bytes in the column.
    fn estimate_keys(&self, rows: u64, bytes: u64) -> u64;

    /// Counts the keys in a piece of a file whose lines end with `end`. `first` and `last` are set at the start and the end of the file.
    fn count(&self, piece: &[u8], end: u8, first: bool, last: bool) -> f64;

    /// Adds the whole lines of a window to a sample, if the keys are lines.
    fn add_lines(&self, _window: &[u8], _end: u8, _lines: &mut LineSample) {}
}

/// Lines and rows, each with a key.
pub struct LineUnit;

/// An estimate of the number of lines or keys of inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// An upper bound, almost surely; seldom much too high.
    pub lines: u64,
    /// The number of distinct ones, if the samples show it; rather too low than too high.
    pub distinct: Option<u64>,
}

/// Returns an estimate of the lines or keys in all inputs, or the name of an input that cannot be sampled. `end` ends a line. The rest
/// of a compressed file is assumed to be like its start. With `go_on`, unreadable files count 0.
pub fn estimate_inputs(
    inputs: &[Input],
    end: u8,
    sampled: &dyn SampleUnit,
    go_on: bool,
) -> Result<Result<Estimate, String>, Error> {
    let mut sample = LineSample::new();
    let compressed = inputs.iter().filter(|input| input.is_compressed()).count();
    let mut tables = 0;
    let plain = inputs.iter().filter(|input| !input.is_compressed() && !input.is_table).count();
    let mut plain = Samples::new(plain, PLAIN);
    let mut compressed = Samples::new(compressed, COMPRESSED);
    for input in inputs {
        let Some(size) = input.size else { return Ok(Err(input.origin.name().to_owned())) };
        let failed = |source| {
            let remedy =
                remedy(&source, "use --on-error to choose how to go on, or give the number of distinct lines with -n");
            Error::new(format!("cannot estimate how many lines {} has: {source}; {remedy}", input.origin.name()))
        };
        if let Some(table) = format_of(input) {
            match input.with_file(|file| table.measure(file, sampled.column())) {
                Ok((rows, bytes)) => tables += sampled.estimate_keys(rows, bytes),
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
            match input.with_file(|file| keys(file, end, sampled, go_on, &mut sample)) {
                Ok(Some(keys)) => plain.add(size, keys),
                // Compressed standard input.
                Ok(None) => return Ok(Err(input.origin.name().to_owned())),
                Err(_) if go_on => plain.leave_out(size),
                Err(source) => return Err(failed(source)),
            }
        }
    }
    let lines = (plain.keys() + compressed.keys() + tables).max(1);
    // Of compressed files only the starts are seen, and of tables nothing.
    let share = if compressed.all + tables > 0 { None } else { sample.distinct_share(plain.all) };
    Ok(Ok(Estimate { lines, distinct: share.map(|share| (lines as f64 * share) as u64 + 1) }))
}

/// Samples of some of the plain or of the compressed files.
struct Samples {
    /// Files whose number is a multiple of this are sampled.
    stride: usize,
    number: usize,
    /// The bytes of all files, the bytes that the samples represent, and the keys in these.
    all: u64,
    seen: u64,
    found: u64,
}

impl Samples {
    fn new(files: usize, sampled: usize) -> Self {
        Self { stride: files.div_ceil(sampled).max(1), number: 0, all: 0, seen: 0, found: 0 }
    }

    /// True if the next file, of `size` bytes, is to be sampled.
    fn wants(&mut self, size: u64) -> bool {
        self.all += size;
        self.number += 1;
        (self.number - 1).is_multiple_of(self.stride)
    }

    fn add(&mut self, bytes: u64, keys: u64) {
        self.seen += bytes;
        self.found += keys;
    }

    /// Removes the bytes of an unreadable file from the total.
    fn leave_out(&mut self, bytes: u64) {
        self.all -= bytes;
    }

    /// Returns the number of keys in all files, with 10 % added if some files were not sampled.
    fn keys(&self) -> u64 {
        let keys = extrapolated(self.found, self.seen, self.all);
        if self.seen < self.all { (1.1 * keys as f64) as u64 } else { keys }
    }
}

impl SampleUnit for LineUnit {
    fn window(&self) -> usize {
        WINDOW
    }

    fn column(&self) -> Option<&[String]> {
        None
    }

    fn estimate_keys(&self, rows: u64, _bytes: u64) -> u64 {
        rows
    }

    fn count(&self, piece: &[u8], end: u8, _first: bool, last: bool) -> f64 {
        let open = last && piece.last().is_some_and(|&byte| byte != end);
        memchr::memchr_iter(end, piece).count() as f64 + f64::from(open)
    }

    fn add_lines(&self, window: &[u8], end: u8, lines: &mut LineSample) {
        let mut ends = memchr::memchr_iter(end, window);
        let Some(mut start) = ends.next() else { return };
        lines.add(ends.map(|end| &window[mem::replace(&mut start, end) + 1..end]));
    }
}

/// Estimates the number of keys from the file's position on; `None` for a compressed file. The position is not changed. With
/// `go_on`, unreadable parts of a large file are skipped.
fn keys(
    mut file: &File,
    end: u8,
    sampled: &dyn SampleUnit,
    go_on: bool,
    lines: &mut LineSample,
) -> io::Result<Option<u64>> {
    let start = file.stream_position()?;
    let size = file.metadata()?.len().saturating_sub(start);
    if Coding::from_file(file)? != Coding::Plain {
        return Ok(None);
    }
    // The bytes are counted, because the size of a kernel file is 0.
    let whole = sampled.sampled_bytes();
    let mut buffer = vec![0; whole.min(size.max(WINDOW as u64) as usize)];
    if size <= whole as u64 {
        let length = read_at(file, &mut buffer, start)?;
        lines.bytes += length as u64;
        buffer[..length].chunks(WINDOW).for_each(|window| sampled.add_lines(window, end, lines));
        return Ok(Some(sampled.count(&buffer[..length], end, true, true) as u64));
    }
    let window = sampled.window();
    let windows = buffer.chunks_exact_mut(window);
    let stride = (size - window as u64) as f64 / (windows.len() - 1) as f64;
    let mut seen = 0;
    let mut found = 0.0;
    let mut left = windows.len();
    for (i, window) in windows.enumerate() {
        left -= 1;
        let length = match read_at(file, window, start + (i as f64 * stride) as u64) {
            Err(_) if go_on && (seen > 0 || left > 0) => continue,
            read => read?,
        };
        seen += length;
        found += sampled.count(&window[..length], end, i == 0, false);
        lines.bytes += length as u64;
        sampled.add_lines(&window[..length], end, lines);
    }
    Ok(Some(extrapolated(found as u64, seen as u64, size)))
}

/// Returns the number of bytes sampled at the start of a compressed file, and the keys in them. Damage is reported when the file is
/// read.
fn head(file: File, size: u64, end: u8, sampled: &dyn SampleUnit) -> io::Result<(u64, u64)> {
    let read = Arc::default();
    let source = FileSource { file: file.into(), read: Arc::clone(&read), copy: None, line_end: None, named: None };
    let contents = contents::open(source, 0, WINDOW)?;
    let mut buffer = Vec::new();
    let sampled_bytes = sampled.sampled_bytes();
    let whole = contents.take(sampled_bytes as u64).read_to_end(&mut buffer).is_ok();
    let ended = whole && buffer.len() < sampled_bytes;
    let keys = sampled.count(&buffer, end, true, ended) as u64;
    // Part of the last piece may still be in the decoder.
    let bytes = if ended { size } else { read.load(Relaxed).saturating_sub(WINDOW as u64 / 2).max(1) };
    Ok((bytes, keys))
}

/// Extrapolates the keys found in `seen` bytes of samples to all bytes.
fn extrapolated(found: u64, seen: u64, all: u64) -> u64 {
    if seen >= all {
        return found;
    }
    // Three standard deviations of a count allow for chance, which matters if lines are long and few are seen. One percent more
    // allows for clusters of lines of different lengths.
    let found = found as f64;
    (1.01 * (found + 3.0 * found.sqrt() + 3.0) * all as f64 / seen.max(1) as f64) as u64
}
