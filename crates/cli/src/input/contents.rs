//! The contents of files, decompressed.

use crate::coding::Coding;
use crate::error::{Error, TMPDIR, remedy};
use crate::input::members::{MemberReader, XzStream, ZstdFrame};
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
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
}

impl FileSource {
    fn record_read(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Relaxed: the counter is only displayed.
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        let copied = self.copy.as_mut().map_or(Ok(()), |copy| copy.write_all(bytes));
        copied.map_err(|source| {
            // An `Error`, because the input itself is not at fault.
            io::Error::other(Error::new(format!(
                "cannot copy a pipe, which is read twice, to a temporary file: {source}; {}, or name a file instead of the pipe",
                remedy(&source, TMPDIR)
            )))
        })
    }
}

impl Read for FileSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.record_read(&buffer[..n])?;
        Ok(n)
    }
}

/// Opens the contents of a file at the byte `start`, decompressed. A compressed file is read in pieces of `buffer` bytes. Its
/// contents before `start` are decompressed and discarded.
pub fn open(mut file: FileSource, start: u64, buffer: usize) -> io::Result<Box<dyn Read + Send>> {
    let (line_end, mut head) = (file.line_end, Vec::new());
    // Byte by byte, because the writer of a pipe may wait after any byte.
    while Coding::needs_more(&head) && (&*file.file).take(1).read_to_end(&mut head)? > 0 {}
    let coding = Coding::from_head(&head);
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
        Coding::Lz4 => Box::new(MemberReader::new(FrameDecoder::new(buffered(stream)), line_end)),
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

    #[test]
    fn the_bytes_of_the_file_are_counted() {
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
                let source = FileSource { file, read: Arc::clone(&read), copy: None, line_end: Some(b'\n') };
                open(source, start, 1 << 12).unwrap().read_to_end(&mut rest).unwrap();
                assert_eq!(rest.len() as u64, length as u64 - start);
                assert_eq!(read.load(Relaxed), bytes.len() as u64);
            }
        }
    }
}
