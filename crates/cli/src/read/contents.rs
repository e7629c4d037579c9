//! The contents of files, decompressed.

use crate::read::coding::Coding;
use crate::read::lz4::Lz4Frame;
use crate::read::members::{MemberReader, XzStream, ZstdFrame};
use crate::system::error::{Error, temporary_remedy};
use crate::system::{pipe, platform};
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file that is being read.
pub struct FileSource {
    pub file: Arc<File>,
    /// The counter of bytes that are read.
    pub read: Arc<AtomicU64>,
    /// A copy that also receives these bytes.
    pub copy: Option<Arc<File>>,
    /// The byte that ends a line. If given, each member of a compressed file must start like a text file.
    pub line_end: Option<u8>,
    /// The coding that the name claims, used if the file ends inside its magic.
    pub named: Option<Coding>,
}

impl FileSource {
    fn record_read(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Relaxed: the counter is only displayed.
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        let Some(copy) = &mut self.copy else { return Ok(()) };
        copy.write_all(bytes).map_err(|source| {
            // An `Error`, because the input itself is not at fault.
            io::Error::other(Error::new(format!(
                "cannot copy a pipe, which is read twice, to a temporary file: {source}; {}, or name a file instead of the pipe",
                temporary_remedy(&source)
            )))
        })
    }
}

impl Read for FileSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = pipe::read_available(&self.file, buffer)?;
        self.record_read(&buffer[..n])?;
        Ok(n)
    }
}

/// Opens the contents of a file at the byte `start`, decompressed. A compressed file is read in pieces of `buffer` bytes. Its
/// contents before `start` are decompressed and discarded.
pub fn open(mut file: FileSource, start: u64, buffer: usize) -> io::Result<Box<dyn Read + Send>> {
    let (line_end, mut head) = (file.line_end, Vec::new());
    // Byte by byte, because the writer of a pipe may wait after any byte.
    while Coding::needs_more(&head) && platform::reader(&file.file).take(1).read_to_end(&mut head)? > 0 {}
    let cut = file.named.filter(|named| named.is_cut(&head));
    let coding = cut.unwrap_or_else(|| Coding::from_head(&head));
    if start > 0 && coding == Coding::Plain {
        check_start(file.file.metadata()?.len(), start)?;
        file.file.seek(SeekFrom::Start(start))?;
        // Skipped bytes count as read.
        file.read.fetch_add(start, Relaxed);
        return Ok(Box::new(file));
    }
    file.record_read(&head)?;
    let stream = Cursor::new(head).chain(file);
    let buffered = |stream| BufReader::with_capacity(buffer, stream);
    let mut contents: Box<dyn Read + Send> = match coding {
        Coding::Plain => Box::new(stream),
        Coding::Gzip => Box::new(MemberReader::new(GzDecoder::new(buffered(stream)), line_end)),
        Coding::Zstd => Box::new(MemberReader::new(ZstdFrame::new(buffered(stream))?, line_end)),
        Coding::Xz => Box::new(MemberReader::new(XzStream::new(buffered(stream))?, line_end)),
        Coding::Bzip2 => Box::new(MemberReader::new(BzDecoder::new(buffered(stream)), line_end)),
        Coding::Lz4 => Box::new(MemberReader::new(Lz4Frame::new(buffered(stream)), line_end)),
    };
    check_start(io::copy(&mut (&mut contents).take(start), &mut io::sink())?, start)?;
    Ok(contents)
}

/// Fails if `start` is beyond contents of `len` bytes. One byte more is allowed, because the last line gets an end.
fn check_start(len: u64, start: u64) -> io::Result<()> {
    if start > len.saturating_add(1) {
        let why = format!("its contents have {len} bytes, but the checkpoint is at byte {start}");
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bzip2::write::BzEncoder;
    use liblzma::stream::{Check, Stream};
    use liblzma::write::XzEncoder;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use proptest::prelude::*;
    use std::iter;

    #[test]
    fn compressed_bytes_are_counted() {
        let lines: Vec<u8> = (0..100_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        let gzip = {
            let mut encoder = flate2::read::GzEncoder::new(&lines[..], flate2::Compression::fast());
            let mut bytes = Vec::new();
            encoder.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let like_bzip2 = [b"BZh9\n", &lines[..]].concat();
        for (bytes, length) in [(&lines, lines.len()), (&gzip, lines.len()), (&like_bzip2, lines.len() + 5)] {
            for start in [0, 3, length as u64 / 2] {
                let mut file = Arc::new(tempfile::tempfile().unwrap());
                file.write_all(bytes).unwrap();
                file.rewind().unwrap();
                let read = Arc::default();
                let mut rest = Vec::new();
                let source =
                    FileSource { file, read: Arc::clone(&read), copy: None, line_end: Some(b'\n'), named: None };
                open(source, start, 1 << 12).unwrap().read_to_end(&mut rest).unwrap();
                assert_eq!(rest.len() as u64, length as u64 - start);
                assert_eq!(read.load(Relaxed), bytes.len() as u64);
            }
        }
    }

    /// Compresses contents as one member. The bits of `kind` select the optional parts of the format, and its last bit
    /// selects two blocks.
    fn member(coding: Coding, contents: &[u8], kind: u8) -> Vec<u8> {
        let has = |bit: u8| kind >> bit & 1 == 1;
        let (first, rest) = contents.split_at(contents.len() / 2);
        // The encoders differ only in the call that finishes the stream.
        macro_rules! write {
            ($writer:expr) => {{
                let mut writer = $writer;
                writer.write_all(first).unwrap();
                if has(7) {
                    writer.flush().unwrap();
                }
                writer.write_all(rest).unwrap();
                writer.finish().unwrap()
            }};
        }
        match coding {
            Coding::Plain => contents.to_vec(),
            Coding::Gzip => {
                let mut builder = flate2::GzBuilder::new();
                if has(0) {
                    builder = builder.filename("name").comment("a comment").extra(*b"more");
                }
                write!(builder.write(Vec::new(), flate2::Compression::new(if has(1) { 0 } else { 6 })))
            }
            Coding::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(has(0)).unwrap();
                encoder.set_pledged_src_size(has(1).then_some(contents.len() as u64)).unwrap();
                let frame = write!(encoder);
                if has(2) { [b"\x51\x2A\x4D\x18\x03\0\0\0a\nx", &frame[..]].concat() } else { frame }
            }
            Coding::Xz => {
                let check = [Check::None, Check::Crc32, Check::Crc64, Check::Sha256][usize::from(kind & 3)];
                write!(XzEncoder::new_stream(Vec::new(), Stream::new_easy_encoder(0, check).unwrap()))
            }
            Coding::Bzip2 => write!(BzEncoder::new(Vec::new(), bzip2::Compression::new(1))),
            Coding::Lz4 => {
                let info = FrameInfo::new()
                    .block_mode(if has(0) { BlockMode::Linked } else { BlockMode::Independent })
                    .block_size(BlockSize::Max64KB)
                    .content_checksum(has(1))
                    .block_checksums(has(2))
                    .content_size(has(3).then_some(contents.len() as u64));
                write!(FrameEncoder::with_frame_info(info, Vec::new()))
            }
        }
    }

    /// Returns the contents of the first `cut` bytes of a file.
    fn read_cut(file: &Arc<File>, cut: usize, named: Coding, buffer: usize) -> io::Result<Vec<u8>> {
        file.set_len(cut as u64).unwrap();
        (&**file).rewind().unwrap();
        let source =
            FileSource { file: file.clone(), read: Arc::default(), copy: None, line_end: None, named: Some(named) };
        let mut contents = Vec::new();
        open(source, 0, buffer)?.read_to_end(&mut contents)?;
        Ok(contents)
    }

    fn file_of(bytes: &[u8]) -> Arc<File> {
        let mut file = Arc::new(tempfile::tempfile().unwrap());
        file.write_all(bytes).unwrap();
        file
    }

    const CODINGS: [Coding; 5] = [Coding::Gzip, Coding::Zstd, Coding::Xz, Coding::Bzip2, Coding::Lz4];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// A truncated file is valid only if it ends after a complete member.
        #[test]
        fn truncated_files_are_errors(
            coding in prop::sample::select(&CODINGS[..]),
            members in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<u8>()), 1..4),
            buffer in 1..100usize,
        ) {
            let (mut bytes, mut contents) = (Vec::new(), Vec::<u8>::new());
            let mut whole = vec![(0, Vec::new())];
            for (lines, kind) in &members {
                let member = member(coding, lines, *kind);
                if member.starts_with(b"\x51\x2A\x4D\x18") {
                    // A skippable frame counts as a member.
                    whole.push((bytes.len() + 11, contents.clone()));
                }
                bytes.extend(member);
                contents.extend(lines);
                whole.push((bytes.len(), contents.clone()));
            }
            let file = file_of(&bytes);
            for cut in (0..=bytes.len()).rev() {
                let read = read_cut(&file, cut, coding, buffer);
                match whole.iter().find(|(end, _)| *end == cut) {
                    Some((_, expected)) => prop_assert_eq!(read.unwrap(), &expected[..], "{:?} {}", coding, cut),
                    None => prop_assert!(read.is_err(), "{:?} {}: {:?}", coding, cut, read),
                }
            }
        }
    }

    /// Files with several blocks of full size, truncated at several positions and at each end of a block.
    #[test]
    fn large_truncated_files_are_errors() {
        // Random bytes, whose blocks are stored, and text, whose blocks are compressed.
        let noise = iter::successors(Some(1u64), |state| Some(state.wrapping_mul(6_364_136_223_846_793_005) + 1));
        let mut contents: Vec<u8> = noise.take(150_000).map(|state| (state >> 56) as u8).collect();
        contents.extend((0..10_000).flat_map(|i| format!("line {i}\n").into_bytes()));
        for coding in CODINGS {
            for kind in 0..if coding == Coding::Lz4 { 16 } else { 2 } {
                let bytes = member(coding, &contents, kind);
                let mut cuts: Vec<usize> = (1..6).map(|i| bytes.len() * i / 6).chain([bytes.len() - 1]).collect();
                if coding == Coding::Lz4 {
                    let mut block = 7 + usize::from(kind & 8);
                    while let size @ 1.. = u32::from_le_bytes(bytes[block..block + 4].try_into().unwrap()) {
                        block += 4 + (size << 1 >> 1) as usize + usize::from(kind & 4);
                        cuts.extend([block - 1, block, block + 1, block + 3, block + 4]);
                    }
                    assert!(cuts.len() > 20);
                }
                cuts.sort_unstable();
                let file = file_of(&bytes);
                assert!(read_cut(&file, bytes.len(), coding, 1 << 17).unwrap() == contents, "{coding:?} {kind}");
                for cut in cuts.into_iter().rev().filter(|&cut| cut < bytes.len()) {
                    assert!(read_cut(&file, cut, coding, 1 << 17).is_err(), "{coding:?} {kind} {cut}");
                }
            }
        }
    }

    /// Frames may contain empty blocks, which some encoders write to flush. Only another frame may follow a frame.
    #[test]
    fn lz4_frames_end_at_their_end_marks() {
        let read = |bytes: &[u8]| read_cut(&file_of(bytes), bytes.len(), Coding::Lz4, 9);
        // A frame with two empty blocks, a compressed one and an uncompressed one.
        let frame = member(Coding::Lz4, b"a\n", 0);
        let (blocks, end) = frame[7..].split_at(frame.len() - 11);
        let empty = [&frame[..7], &[1, 0, 0, 0, 0], blocks, &[0, 0, 0, 0x80], blocks, end].concat();
        assert_eq!(read(&empty).unwrap(), b"a\na\n");
        assert_eq!(read(&[&empty[..], &frame].concat()).unwrap(), b"a\na\na\n");
        for cut in 1..empty.len() {
            assert!(read(&empty[..cut]).is_err(), "{cut}");
        }
        for after in [&b"\0"[..], b"\0\0\0\0", b"\0\0\0\0\0\0\0\0", b"more", b"\x04\x22\x4D\x18"] {
            assert!(read(&[&frame[..], after].concat()).is_err(), "{after:?}");
        }
        let legacy = [&frame[..], b"\x02\x21\x4C\x18\x03\0\0\0\x20a\n"].concat();
        assert!(read(&legacy).unwrap_err().to_string().contains("legacy lz4"));
    }

    /// Zeros after a gzip member are padding of any length, and after an xz stream a multiple of four bytes.
    #[test]
    fn truncated_padding_is_accepted() {
        for (coding, step) in [(Coding::Gzip, 1), (Coding::Xz, 4)] {
            let stream = member(coding, b"a\n", 0);
            let file = file_of(&[&stream[..], &[0; 12]].concat());
            for zeros in (0..=12).rev() {
                let read = read_cut(&file, stream.len() + zeros, coding, 64);
                assert_eq!(read.is_ok(), zeros % step == 0, "{coding:?} {zeros}");
            }
        }
    }
}
