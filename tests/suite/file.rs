//! Filters as files: a saved filter is loaded again, and each fault of a file is refused by its name.

use crate::bytes::{Failing, with_header};
use bloomline::{AtomicBloomFilter, BloomFilter, BorrowedBloomFilter, FileError, FileErrorKind, ScalableBloomFilter};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(target_endian = "little")]
mod borrowed;
#[cfg(all(feature = "mmap", target_endian = "little"))]
#[allow(unsafe_code)] // Mapping is unsafe to call, and this is where it is tested.
mod map;
#[cfg(all(feature = "serde", feature = "variants"))]
mod round_trip;
#[cfg(feature = "serde")]
mod serde;
#[cfg(unix)]
mod unix;
mod vectors;

const HEADER: usize = 64;
const TRAILER: usize = 16;
/// Blocks that are read and written at a time.
const CHUNK: usize = 16_384;

fn filter(blocks: usize, probes: u32, seed: u64, keys: u64) -> BloomFilter {
    let mut filter: BloomFilter = BloomFilter::builder().memory(64 * blocks).probes(probes).seed(seed).build().unwrap();
    (0..keys).for_each(|key| _ = filter.insert(&key));
    filter
}

fn read(bytes: &[u8]) -> Result<BloomFilter, FileError> {
    BloomFilter::read_from(bytes)
}

/// The purpose of a filter: keys, rate and the name of the keys.
fn spec(filter: &BloomFilter) -> (Option<u64>, Option<f64>, &str) {
    (filter.expected_keys(), filter.false_positive_rate(), filter.key_name())
}

/// Filters with all, some and no parts of a purpose.
fn specs() -> [BloomFilter; 4] {
    let builder = || BloomFilter::builder().memory(640).seed(7);
    let builders = [
        builder().expected_keys(100).false_positive_rate(0.01).key_name("url"),
        builder().expected_keys(100),
        builder().probes(8).key_name("n".repeat(1024)),
        builder().probes(8),
    ];
    builders.map(|builder| {
        let mut filter: BloomFilter = builder.build().unwrap();
        (0..20u64).for_each(|key| _ = filter.insert(&key));
        filter
    })
}

/// Returns the error for a file. It must be the same in each way to read the file.
fn refused(bytes: &[u8]) -> FileError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.bloom");
    fs::write(&path, bytes).unwrap();
    let error = BloomFilter::load(&path).unwrap_err();
    assert_eq!(error.path(), Some(&*path));
    let read = read(bytes).unwrap_err();
    assert_eq!(read.path(), None);
    assert_eq!(error.to_string(), format!("{}: {read}", path.display()));
    let atomic = AtomicBloomFilter::load(&path).unwrap_err();
    assert_eq!(atomic.to_string(), error.to_string());
    let aligned = Aligned::new(bytes, 0);
    let borrowed = BorrowedBloomFilter::new(aligned.as_ref());
    if cfg!(target_endian = "big") {
        refused_by_big_endian(borrowed);
    } else {
        assert_eq!(borrowed.and_then(|filter| filter.verify()).unwrap_err().to_string(), read.to_string());
    }
    // Boxing shows that it is a standard error.
    let error: Box<dyn std::error::Error + Send + Sync> = error.into();
    assert!(error.is::<FileError>());
    read
}

/// Big-endian machines borrow no bytes, valid or not.
#[track_caller]
fn refused_by_big_endian(borrowed: Result<BorrowedBloomFilter, FileError>) {
    let error = borrowed.unwrap_err();
    assert_eq!(io_kind(&error), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().ends_with("big-endian machines must load filters"), "{error}");
}

#[test]
fn a_loaded_filter_equals_the_saved_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    for (blocks, probes) in [(1, 4), (2, 8), (1000, 12), (CHUNK - 1, 16), (CHUNK, 8), (CHUNK + 1, 8), (100_003, 12)] {
        let filter = filter(blocks, probes, blocks as u64, 10_000);
        filter.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, HEADER + 64 * blocks + TRAILER);

        let loaded = BloomFilter::load(&path).unwrap();
        assert!(loaded == filter);
        assert_eq!((loaded.block_count(), loaded.probes(), loaded.seed()), (blocks, probes, blocks as u64));
        assert!((0..10_000u64).all(|key| loaded.contains(&key)));

        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, bytes_of!(&filter));
        assert!(read(&bytes).unwrap() == filter);

        // The other type writes the same bytes.
        let atomic = AtomicBloomFilter::read_from(&bytes[..]).unwrap();
        let other = folder.path().join("atomic.bloom");
        atomic.save(&other).unwrap();
        assert_eq!(fs::read(&other).unwrap(), bytes);
        assert!(BloomFilter::from(AtomicBloomFilter::load(&other).unwrap()) == filter);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "temporary files remain");
}

#[test]
fn files_keep_the_purpose_of_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    // A field has 4 bytes before its value, and the checksum has 8.
    for (filter, fields) in specs().iter().zip([64, 64, 1088, 0]) {
        filter.save(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), HEADER + fields + filter.memory_bytes() + TRAILER);
        assert_eq!(bytes, bytes_of!(filter));
        for again in [
            BloomFilter::load(&path).unwrap(),
            read(&bytes).unwrap(),
            BloomFilter::read_from(Trickle { rest: &bytes, reads: 0 }).unwrap(),
            AtomicBloomFilter::load(&path).unwrap().into(),
            filter.clone(),
        ] {
            assert!(again == *filter);
            assert_eq!(spec(&again), spec(filter));
            assert_eq!(bytes_of!(&again), bytes);
        }
    }
}

/// Yields data in small and uneven parts, and is interrupted between them, as sockets are.
struct Trickle<'a> {
    rest: &'a [u8],
    reads: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = buffer.len().min(self.reads * 7 % 5000 + 1);
        self.rest.read(&mut buffer[..part])
    }
}

#[test]
fn filters_are_read_one_after_another_from_a_slow_stream() {
    let (first, second) = (filter(40_000, 8, 1, 1000), filter(3, 4, 2, 10));
    let bytes = [bytes_of!(&first), bytes_of!(&second), b"rest".to_vec()].concat();
    let mut reader = Trickle { rest: &bytes, reads: 0 };
    assert!(BloomFilter::read_from(&mut reader).unwrap() == first);
    assert!(BloomFilter::read_from(&mut reader).unwrap() == second);
    assert_eq!(reader.rest, b"rest");
}

/// Records the longest read or write.
struct Longest<T>(T, usize);

impl<R: Read> Read for Longest<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1.max(buffer.len());
        self.0.read(buffer)
    }
}

impl<W: Write> Write for Longest<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 = self.1.max(bytes.len());
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// As documented: without a buffer around the stream.
#[test]
fn reads_and_writes_are_of_at_most_a_mebibyte() {
    let filter = filter(40_000, 8, 1, 1000);
    let mut writer = Longest(Vec::new(), 0);
    filter.write_to(&mut writer).unwrap();
    assert_eq!(writer.1, 1 << 20);
    let mut reader = Longest(&writer.0[..], 0);
    assert!(BloomFilter::read_from(&mut reader).unwrap() == filter);
    assert_eq!(reader.1, 1 << 20);
}

#[test]
fn errors_of_streams_are_returned() {
    let filter = filter(2, 8, 0, 10);
    let bytes = bytes_of!(&filter);
    // With a limit of the file's length, the flush fails.
    for limit in 0..=bytes.len() {
        let error = filter.write_to(Failing(limit)).unwrap_err();
        assert_eq!(error.to_string(), "the line is dead", "{limit}");
    }
    filter.write_to(Failing(bytes.len() + 1)).unwrap();
    for limit in 0..bytes.len() {
        let error = BloomFilter::read_from((&bytes[..limit]).chain(Failing(0))).unwrap_err();
        assert!(matches!(error.kind(), FileErrorKind::Io(_)), "{limit}");
        assert_eq!(error.to_string(), "the line is dead");
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let good = bytes_of!(&filter(3, 8, 7, 20));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // Only one bit of each byte is tested in all ways to read, because files take longer than all other ways.
        let error = if bit % 8 == 0 { refused(&bytes) } else { read(&bytes).unwrap_err() };
        let expected = match bit / 8 {
            0..8 => matches!(*error.kind(), FileErrorKind::NotBloomline),
            8..HEADER => matches!(*error.kind(), FileErrorKind::DamagedHeader),
            _ => matches!(*error.kind(), FileErrorKind::DamagedBody),
        };
        assert!(expected, "bit {bit}: {error:?}");
    }
}

#[test]
fn every_truncation_is_detected() {
    let good = bytes_of!(&filter(3, 8, 7, 20));
    for length in 0..good.len() {
        let total = if length < HEADER { HEADER } else { good.len() };
        let error = refused(&good[..length]);
        assert!(
            matches!(*error.kind(), FileErrorKind::Truncated { have, want } if (have, want) == (length as u64, total as u64)),
            "{length}: {error:?}"
        );
    }
    // Beyond the first chunk, where memory grows.
    let good = bytes_of!(&filter(2 * CHUNK + 5, 8, 7, 20));
    for length in [HEADER + 64 * CHUNK, HEADER + 64 * CHUNK + 1, good.len() - TRAILER, good.len() - 1] {
        let error = refused(&good[..length]);
        assert!(
            matches!(*error.kind(), FileErrorKind::Truncated { have, .. } if have == length as u64),
            "{length}: {error:?}"
        );
    }
}

#[test]
fn damaged_fields_are_detected() {
    let good = bytes_of!(&specs()[0]);
    for bit in 8 * HEADER..8 * (HEADER + 64) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = refused(&bytes);
        assert!(matches!(*error.kind(), FileErrorKind::DamagedHeader), "bit {bit}: {error:?}");
    }
    for length in HEADER..HEADER + 64 {
        let error = refused(&good[..length]);
        let (there, total) = (length as u64, good.len() as u64);
        assert!(
            matches!(*error.kind(), FileErrorKind::Truncated { have, want } if (have, want) == (there, total)),
            "{error:?}"
        );
    }
}

#[test]
fn a_file_with_bytes_after_the_filter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.bloom");
    let mut bytes = bytes_of!(&filter(3, 8, 7, 20));
    let good = bytes.len() as u64;
    bytes.push(0);
    fs::write(&path, &bytes).unwrap();
    let error = BloomFilter::load(&path).unwrap_err();
    assert!(matches!(error.kind(), &FileErrorKind::TooLong { have, want } if (have, want) == (good + 1, good)));
}

#[test]
fn files_of_other_formats_are_refused() {
    for other in [&b"#!/bin/sh\n"[..], b"x", &[0; 1000], b"\x89PNG\r\n\x1a\n"] {
        assert!(matches!(refused(other).kind(), FileErrorKind::NotBloomline));
    }
}

#[test]
fn impossible_headers_are_refused_with_the_field() {
    let good = bytes_of!(&filter(3, 8, 7, 20));
    assert_eq!(with_header(&good, 0, 0, &[]), good, "the header's checksum is not where the test puts it");
    let newer = refused(&with_header(&good, 0, 8, &3u32.to_le_bytes()));
    assert!(matches!(*newer.kind(), FileErrorKind::NewerVersion { found: 3, newest: 2 }), "{newer:?}");
    for version in [0, 1] {
        let older = refused(&with_header(&good, 0, 8, &[version]));
        let named =
            matches!(*older.kind(), FileErrorKind::OlderVersion { found, oldest: 2 } if found == u32::from(version));
        assert!(named, "{older:?}");
    }
    let hash = refused(&with_header(&good, 0, 32, &[0; 8]));
    assert!(matches!(*hash.kind(), FileErrorKind::OtherHash), "{hash:?}");
    // The hash under another seed.
    let seed = refused(&with_header(&good, 0, 24, &8u64.to_le_bytes()));
    assert!(matches!(*seed.kind(), FileErrorKind::OtherHash), "{seed:?}");
    let fields: [(&str, usize, &[u8], u64); 13] = [
        ("layout", 12, &[0, 0], 0),
        ("layout", 12, &[7, 0], 7),
        ("layout", 12, &[1, 1], 257),
        ("probes", 14, &[0, 0], 0),
        ("probes", 14, &[9, 0], 9),
        ("blocks", 16, &[0; 8], 0),
        ("blocks", 16, &[0, 0, 0, 0, 0, 0, 0, 2], 1 << 57),
        ("units", 40, &[1], 1),
        ("units", 47, &[1], 1 << 56),
        ("fields", 48, &[1], 1),
        ("fields", 48, &[64, 0, 1], 65536 + 64),
        ("reserved", 52, &[1], 1),
        ("reserved", 55, &[1], 1 << 24),
    ];
    for (name, offset, bytes, expected) in fields {
        let error = refused(&with_header(&good, 0, offset, bytes));
        assert!(
            matches!(*error.kind(), FileErrorKind::Field { field, value, .. } if (field, value) == (name, expected)),
            "{name}: {error:?}"
        );
    }
}

/// No system has 2^62 bytes: `OutOfMemory` would show that they were requested.
#[test]
fn a_header_with_too_many_blocks_takes_no_memory() {
    // On 32 bits the larger ones exceed the address space.
    for &blocks in if usize::BITS == 32 { &[4u64, 1 << 24][..] } else { &[4, 1 << 30, 1 << 40, 1 << 56] } {
        let claim = with_header(&bytes_of!(&filter(3, 8, 7, 20)), 0, 16, &blocks.to_le_bytes());
        let error = refused(&claim);
        let length = claim.len() as u64;
        assert!(
            matches!(*error.kind(), FileErrorKind::Truncated { have, want } if have == length && want == 80 + 64 * blocks)
        );
    }
    // The largest number that the format allows exceeds the address space.
    let claim = with_header(&bytes_of!(&filter(3, 8, 7, 20)), 0, 16, &((1u64 << 57) - 1).to_le_bytes());
    let error = read(&claim).unwrap_err();
    assert!(matches!(error.kind(), &FileErrorKind::OutOfMemory { bytes } if bytes == (1 << 63) - 64), "{error:?}");
}

#[test]
fn a_file_written_during_inserts_has_the_earlier_keys() {
    const KEYS: u64 = 1_000_000;
    let filter = AtomicBloomFilter::new(KEYS, 0.01).unwrap();
    let (inserted, writing) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in 0..KEYS {
                // Half of the keys are inserted after the first write has begun.
                while key == KEYS / 2 && !writing.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                filter.insert(&key);
                // Release: a thread that reads the count sees the inserts.
                inserted.store(key + 1, Ordering::Release);
            }
        });
        loop {
            let before = inserted.load(Ordering::Acquire);
            writing.store(true, Ordering::Relaxed);
            let bytes = bytes_of!(filter);
            let read = read(&bytes).unwrap();
            assert!((0..before).all(|key| read.contains(&key)));
            if before == KEYS {
                break;
            }
        }
    });
}

/// The system's error for a folder that is read as a file.
const IS_A_FOLDER: ErrorKind = if cfg!(windows) { ErrorKind::PermissionDenied } else { ErrorKind::IsADirectory };

/// Returns the kind of the system's error.
#[track_caller]
fn io_kind(error: &FileError) -> ErrorKind {
    match error.kind() {
        FileErrorKind::Io(error) => error.kind(),
        _ => panic!("{error:?}"),
    }
}

#[test]
fn a_save_to_an_unusable_path_fails() {
    let folder = tempfile::tempdir().unwrap();
    let filter = filter(1, 8, 0, 1);
    for (path, kind) in [
        (folder.path(), ErrorKind::InvalidInput),
        (&folder.path().join("no/such/folder"), ErrorKind::NotFound),
        (Path::new(""), ErrorKind::NotFound),
    ] {
        let error = filter.save(path).unwrap_err();
        assert_eq!(error.path(), Some(path));
        assert_eq!(io_kind(&error), kind, "{error:?}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    for (path, kind) in [(folder.path(), IS_A_FOLDER), (&folder.path().join("none.bloom"), ErrorKind::NotFound)] {
        let error = BloomFilter::load(path).unwrap_err();
        assert_eq!(error.path(), Some(path));
        assert_eq!(io_kind(&error), kind, "{error:?}");
    }
}

/// Bytes in memory that begin a given number of bytes past a multiple of 64.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(bytes: &[u8], past: usize) -> Self {
        let mut memory = vec![0; bytes.len() + 128];
        let start = memory.as_ptr().align_offset(64) + past;
        memory.truncate(start);
        memory.extend(bytes);
        Self { bytes: memory, start }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(target_endian = "big")]
#[test]
fn big_endian_machines_load_but_neither_borrow_nor_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    for filter in [&[filter(3, 8, 7, 20)][..], &specs()].concat() {
        let bytes = Aligned::new(&bytes_of!(&filter), 0);
        refused_by_big_endian(BorrowedBloomFilter::new(bytes.as_ref()));
        assert!(read(bytes.as_ref()).unwrap() == filter);
        filter.save(&path).unwrap();
        #[cfg(feature = "mmap")]
        #[allow(unsafe_code)]
        // SAFETY: no other process has the file, and it does not change while it is mapped.
        refused_by_big_endian(unsafe { BloomFilter::map(&path) });
        assert!(BloomFilter::load(&path).unwrap() == filter);
    }
}

#[test]
fn write_to_slice_writes_exactly_file_bytes() {
    let written = |bytes: &[u8], size: usize, write: &dyn Fn(&mut [u8]) -> Result<usize, FileError>| {
        assert_eq!(size, bytes.len());
        for more in [0, 1, 1000] {
            let mut slice = vec![0xA5; size + more];
            assert_eq!(write(&mut slice).unwrap(), size);
            assert_eq!(&slice[..size], bytes);
            assert!(slice[size..].iter().all(|&byte| byte == 0xA5), "it wrote beyond its end");
        }
        for short in [0, 1, 64, size - 1] {
            let mut slice = vec![0xA5; short];
            let error = write(&mut slice).unwrap_err();
            let named =
                matches!(error.kind(), &FileErrorKind::SliceTooShort { have, want } if (have, want) == (short, size));
            assert!(named, "{error:?}");
            let message = format!(
                "a slice of {short} bytes for a filter whose file takes {size}: give as many as file_bytes() says"
            );
            assert_eq!(error.to_string(), message);
            assert!(slice.iter().all(|&byte| byte == 0xA5), "it wrote to a slice that is too short");
        }
    };
    for filter in [filter(1, 4, 0, 10), filter(CHUNK + 1, 12, 5, 3000)].into_iter().chain(specs()) {
        let bytes = bytes_of!(&filter);
        written(&bytes, filter.file_bytes(), &|slice| filter.write_to_slice(slice));
        let atomic = AtomicBloomFilter::from(filter);
        written(&bytes, atomic.file_bytes(), &|slice| atomic.write_to_slice(slice));
    }
    for keys in [0, 10, 1000u64] {
        let mut filter = ScalableBloomFilter::new(10, 0.01).unwrap();
        (0..keys).for_each(|key| _ = filter.insert(&key).unwrap());
        let bytes = bytes_of!(filter);
        written(&bytes, filter.file_bytes(), &|slice| filter.write_to_slice(slice));
    }
}
