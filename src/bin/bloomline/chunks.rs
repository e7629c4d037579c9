//! Chunks: pieces of the inputs that end where a line ends.

use crate::error::Error;
use crate::input::Input;
use std::fs::File;
use std::io::{self, Read};
use std::vec;

/// Whole lines in a buffer that is filled again and again.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
}

impl Chunk {
    /// The lines, each with its newline.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Cuts the inputs, one after another, into chunks. A last line without a newline gets one.
pub struct Chunks {
    inputs: vec::IntoIter<Input>,
    current: Option<Reading>,
    /// The start of the line that the chunk before was too short for.
    tail: Vec<u8>,
    size: usize,
}

struct Reading {
    file: File,
    name: String,
    at: u64,
}

impl Chunks {
    /// Chunks of `size` bytes at most, except for longer lines.
    pub fn new(inputs: Vec<Input>, size: usize) -> Self {
        Self { inputs: inputs.into_iter(), current: None, tail: Vec::new(), size }
    }

    /// Puts the next lines into `chunk`; `false` at the end of the last input. After an error there are no more.
    pub fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        let buffer = &mut chunk.buffer;
        let room = self.size.max(self.tail.len() + 1);
        if buffer.len() != room {
            // A buffer that grew for a long line is given back to the system.
            *buffer = vec![0; room];
        }
        buffer[..self.tail.len()].copy_from_slice(&self.tail);
        let mut searched = 0;
        let mut filled = self.tail.len();
        chunk.len = loop {
            let ended = self.read(buffer, &mut filled)?;
            if ended {
                break filled;
            }
            if let Some(newline) = memchr::memrchr(b'\n', &buffer[searched..filled]) {
                break searched + newline + 1;
            }
            searched = filled;
            buffer.resize(filled + self.size, 0);
        };
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[chunk.len..filled]);
        Ok(chunk.len > 0)
    }

    /// Reads until the buffer is full, or `true` until the inputs end.
    fn read(&mut self, buffer: &mut [u8], filled: &mut usize) -> Result<bool, Error> {
        while *filled < buffer.len() {
            let Some(reading) = &mut self.current else {
                let Some(input) = self.inputs.next() else { return Ok(true) };
                let (file, name) = input.open()?;
                self.current = Some(Reading { file, name, at: 0 });
                continue;
            };
            match reading.file.read(&mut buffer[*filled..]) {
                Ok(0) => {
                    self.current = None;
                    if *filled > 0 && buffer[*filled - 1] != b'\n' {
                        buffer[*filled] = b'\n';
                        *filled += 1;
                    }
                }
                Ok(n) => {
                    *filled += n;
                    reading.at += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Read { input: reading.name.clone(), at: reading.at, source }),
            }
        }
        Ok(false)
    }
}
