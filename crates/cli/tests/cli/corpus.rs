//! Inputs, models of the expected outputs, and compression.

use crate::common::Bench;
use crate::common::random::Random;
use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use liblzma::read::XzDecoder;
use liblzma::write::XzEncoder;
use lz4_flex::frame::FrameDecoder;
use std::collections::HashSet;
use std::io::{self, Read, Write};

/// Real URLs with many repeats.
pub const HOMEPAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/homepages.txt");

/// Returns, for each file, the lines that are not in earlier lines of any file.
pub fn distinct_lines_by_file<'a>(files: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    let mut first = |file: &'a [u8]| {
        let mut output: Vec<u8> = Vec::new();
        for line in file.split_inclusive(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if seen.insert(line) {
                output.extend(line);
                output.push(b'\n');
            }
        }
        output
    };
    files.into_iter().map(&mut first).collect()
}

/// Returns the distinct lines of the files, in order, as `awk '!seen[$0]++'` prints them.
pub fn distinct_lines(files: &[&[u8]]) -> Vec<u8> {
    distinct_lines_by_file(files.iter().copied()).concat()
}

/// Returns many chunks of the default size, with near and distant repeats.
pub fn large() -> Vec<u8> {
    let mut random = Random(1);
    let mut bytes = Vec::new();
    for i in 0..300_000u64 {
        let number = if random.below(4) == 0 { i } else { random.below(i + 1) };
        writeln!(bytes, "https://example.org/{number}/{}", "path/".repeat((number % 7) as usize)).unwrap();
    }
    bytes
}

pub fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

pub fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(contents: &[u8]) -> Vec<u8> {
    zstd::encode_all(contents, 0).unwrap()
}

pub fn xz(contents: &[u8]) -> Vec<u8> {
    let mut encoder = XzEncoder::new(Vec::new(), 0);
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

pub fn bzip2(contents: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Compresses as gzip without compression, so that contents of equal length make files of equal length.
pub fn gzip_stored(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Compresses bytes in the format that a name indicates.
pub fn encode(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name.rsplit_once('.') {
        Some((_, "gz")) => gzip(bytes),
        Some((_, "zst")) => zstd(bytes),
        Some((_, "xz")) => xz(bytes),
        Some((_, "bz2")) => bzip2(bytes),
        _ => bytes.to_vec(),
    }
}

/// Decompresses one or more gzip members.
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    assert!(!bytes.is_empty(), "not even a member");
    let mut contents = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut contents).unwrap();
    contents
}

pub fn unzstd(bytes: &[u8]) -> Vec<u8> {
    assert!(!bytes.is_empty(), "not even a frame");
    zstd::decode_all(bytes).unwrap()
}

/// Decompresses any number of members, up to the first error. The name indicates the compression.
pub fn decode(name: &str, bytes: &[u8]) -> (Vec<u8>, io::Result<usize>) {
    let mut contents = Vec::new();
    let end = match name.rsplit_once('.') {
        Some((_, "gz")) => MultiGzDecoder::new(bytes).read_to_end(&mut contents),
        Some((_, "zst")) => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut contents),
        Some((_, "xz")) => XzDecoder::new_multi_decoder(bytes).read_to_end(&mut contents),
        Some((_, "bz2")) => MultiBzDecoder::new(bytes).read_to_end(&mut contents),
        Some((_, "lz4")) => {
            let mut frames = FrameDecoder::new(bytes);
            // The decoder reads one frame at a time.
            let mut end = frames.read_to_end(&mut contents);
            while end.is_ok() && !frames.get_ref().is_empty() {
                end = frames.read_to_end(&mut contents);
            }
            end
        }
        _ => (&mut &*bytes).read_to_end(&mut contents),
    };
    (contents, end)
}

/// Reads a file and decompresses it as its name indicates.
#[track_caller]
pub fn read_decoded(bench: &Bench, name: &str) -> Vec<u8> {
    let (contents, end) = decode(name, &bench.read(name));
    end.unwrap();
    contents
}
