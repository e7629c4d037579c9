//! The members of compressed files: gzip members, zstd and lz4 frames, xz and bzip2 streams. Files joined by `cat` have several.

use crate::read::foreign;
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream;
use std::io::{self, BufRead, Read};
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// The decoder of a member, which reads no bytes after its end.
pub trait MemberDecoder: Read + Sized {
    type File: BufRead;

    /// Returns the file. Once the member has ended, the position is after it.
    fn file(&mut self) -> &mut Self::File;

    /// True if no member follows this one, which has ended.
    fn is_last(&mut self) -> io::Result<bool> {
        Ok(self.file().fill_buf()?.is_empty())
    }

    /// Returns the decoder of the next member.
    fn next(self) -> io::Result<Self>;
}

/// The concatenated contents of members. A member whose contents are not lines is refused, like a file with such contents.
pub struct MemberReader<M> {
    /// `None` at the end.
    member: Option<M>,
    /// The first contents of a later member, as far as they are read.
    head: Vec<u8>,
    /// The end of lines; `None` during the first member, and if members are not checked.
    checked: Option<u8>,
    line_end: Option<u8>,
}

impl<M: MemberDecoder> MemberReader<M> {
    /// Starts with the first member. Its contents start the file's, which the reader of lines checks.
    pub fn new(first: M, line_end: Option<u8>) -> Self {
        Self { member: Some(first), head: Vec::new(), checked: None, line_end }
    }

    /// Refuses a member by its first contents, continued by `contents`.
    fn check(&mut self, contents: &[u8]) -> io::Result<()> {
        let Some(end) = self.checked.filter(|_| self.head.len() < foreign::HEAD) else { return Ok(()) };
        self.head.extend(contents.iter().take(foreign::HEAD - self.head.len()));
        match foreign::detect(&self.head, end) {
            Some(format) => Err(foreign::refused(format)),
            None => Ok(()),
        }
    }
}

impl<M: MemberDecoder> Read for MemberReader<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                self.check(&buffer[..n])?;
                return Ok(n);
            }
            let is_last = member.is_last()?;
            self.member = self.member.take().filter(|_| !is_last).map(MemberDecoder::next).transpose()?;
            self.head.clear();
            self.checked = self.line_end;
        }
        Ok(0)
    }
}

/// Returns the error for a file that ends before the end of its last frame.
pub fn incomplete() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame")
}

/// Skips zeros, and returns their number.
fn skip_zeros(file: &mut impl BufRead) -> io::Result<usize> {
    let mut skipped = 0;
    while let zeros @ 1.. = file.fill_buf()?.iter().take_while(|&&byte| byte == 0).count() {
        file.consume(zeros);
        skipped += zeros;
    }
    Ok(skipped)
}

impl<R: BufRead> MemberDecoder for GzDecoder<R> {
    type File = R;

    fn file(&mut self) -> &mut R {
        self.get_mut()
    }

    /// As in gzip, zeros may follow the last member: they fill the last block of a tape.
    fn is_last(&mut self) -> io::Result<bool> {
        let zeros = skip_zeros(self.file())?;
        let is_last = self.file().fill_buf()?.is_empty();
        if zeros > 0 && !is_last {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the zeros at the end of a gzip file are followed by other data",
            ));
        }
        Ok(is_last)
    }

    fn next(self) -> io::Result<Self> {
        Ok(Self::new(self.into_inner()))
    }
}

impl<R: BufRead> MemberDecoder for BzDecoder<R> {
    type File = R;

    fn file(&mut self) -> &mut R {
        self.get_mut()
    }

    fn next(self) -> io::Result<Self> {
        Ok(Self::new(self.into_inner()))
    }
}

/// A frame of a zstd file.
pub struct ZstdFrame<R> {
    file: R,
    /// The decoder, whose memory is kept between frames.
    decoder: Decoder<'static>,
    has_ended: bool,
}

impl<R: BufRead> ZstdFrame<R> {
    pub fn new(file: R) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        // The maximum window. A frame takes only the memory for its own window.
        decoder.set_parameter(DParameter::WindowLogMax(31))?;
        Ok(Self { file, decoder, has_ended: false })
    }
}

impl<R: BufRead> Read for ZstdFrame<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The decoder may hold contents that did not fit.
        let mut is_waiting = true;
        while !self.has_ended && !buffer.is_empty() {
            let input = if is_waiting { &[] } else { self.file.fill_buf()? };
            if !is_waiting && input.is_empty() {
                return Err(incomplete());
            }
            is_waiting = false;
            let status = self.decoder.run_on_buffers(input, buffer)?;
            self.file.consume(status.bytes_read);
            self.has_ended = status.remaining == 0;
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
        }
        Ok(0)
    }
}

impl<R: BufRead> MemberDecoder for ZstdFrame<R> {
    type File = R;

    fn file(&mut self) -> &mut R {
        &mut self.file
    }

    fn next(mut self) -> io::Result<Self> {
        self.decoder.reinit()?;
        Ok(Self { has_ended: false, ..self })
    }
}

/// A stream of an xz file. The decoder's own `read` loses the contents before an error.
pub struct XzStream<R> {
    decoder: XzDecoder<R>,
    failure: Option<io::Error>,
    /// The number of zeros after the stream.
    padding: usize,
}

impl<R: BufRead> XzStream<R> {
    pub fn new(file: R) -> io::Result<Self> {
        let decoder = XzDecoder::new_stream(file, stream::Stream::new_stream_decoder(u64::MAX, 0)?);
        Ok(Self { decoder, failure: None, padding: 0 })
    }
}

impl<R: BufRead> Read for XzStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let before = self.decoder.total_out();
        self.decoder.read(buffer).or_else(|error| match (self.decoder.total_out() - before) as usize {
            0 => Err(error),
            n => {
                self.failure = Some(error);
                Ok(n)
            }
        })
    }
}

impl<R: BufRead> MemberDecoder for XzStream<R> {
    type File = R;

    fn file(&mut self) -> &mut R {
        self.decoder.get_mut()
    }

    /// Zeros may follow each stream, in multiples of four.
    fn is_last(&mut self) -> io::Result<bool> {
        self.padding += skip_zeros(self.decoder.get_mut())?;
        if !self.padding.is_multiple_of(4) {
            return Err(stream::Error::Data.into());
        }
        Ok(self.file().fill_buf()?.is_empty())
    }

    fn next(self) -> io::Result<Self> {
        Self::new(self.decoder.into_inner())
    }
}
