//! The parser of a server's answers (RESP2).
//!
//! The client crate's parser covers all protocols and input of any fragmentation. This one covers the answers to the
//! commands of this crate, and parses an incomplete answer again when more of it has arrived. crates/redis/DESIGN.md has the
//! gain.

use redis::{ErrorKind, RedisError, RedisResult, Value, parse_redis_value};
use std::io;

/// The maximum depth of nested arrays. The deepest answer is to `CLUSTER SLOTS`.
const MAX_DEPTH: usize = 8;

/// The maximum number of values in an answer: more than `CLUSTER SLOTS` returns if each slot is a range of its own.
const MAX_VALUES: usize = 1 << 20;

/// The maximum length of a line in bytes. The longest lines are errors.
const MAX_LINE: usize = 1 << 16;

/// The minimum size of a read in bytes.
const MIN_READ: usize = 1 << 16;

/// The maximum length of an answer in bytes. The longest requested answer is a mebibyte of blocks.
const MAX_ANSWER: usize = 1 << 26;

/// A buffer of received bytes that were not parsed yet.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Removes and returns the next answer, if it is complete.
    pub(crate) fn next(&mut self) -> RedisResult<Option<Value>> {
        let found = parse_answer(&self.buffer[self.start..self.end])?;
        Ok(found.map(|(answer, length)| {
            self.start += length;
            answer
        }))
    }

    /// Returns the space to read into.
    pub(crate) fn space(&mut self) -> io::Result<&mut [u8]> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end > MAX_ANSWER {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer is longer than any that was asked for"));
        }
        // A long answer is read in increasing pieces.
        let requested = (2 * self.end).max(MIN_READ);
        if self.buffer.len() < requested {
            self.buffer.resize(requested, 0);
        }
        Ok(&mut self.buffer[self.end..])
    }

    /// Marks `count` bytes of the space as received.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end += count;
    }
}

/// Parses the first answer in the bytes. Returns it with its length, or `None` if it is incomplete.
fn parse_answer(bytes: &[u8]) -> RedisResult<Option<(Value, usize)>> {
    let mut parser = AnswerParser { bytes, position: 0, values: 0 };
    Ok(parser.value(0)?.map(|value| (value, parser.position)))
}

struct AnswerParser<'a> {
    bytes: &'a [u8],
    position: usize,
    values: usize,
}

impl<'a> AnswerParser<'a> {
    fn value(&mut self, depth: usize) -> RedisResult<Option<Value>> {
        let start = self.position;
        // A value takes more memory than its bytes.
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(invalid_answer());
        }
        let Some(line) = self.line()? else { return Ok(None) };
        let (kind, text) = line.split_first().ok_or_else(invalid_answer)?;
        Ok(Some(match kind {
            b':' => Value::Int(integer(text)?),
            b'$' => match length(text)? {
                None => Value::Nil,
                Some(length) => match self.take(length)? {
                    Some(text) => Value::BulkString(text.to_vec()),
                    None => return Ok(None),
                },
            },
            b'*' if depth < MAX_DEPTH => match length(text)? {
                None => Value::Nil,
                Some(length) => {
                    // The received bytes limit the capacity, because the server may declare any length.
                    let mut values =
                        Vec::with_capacity(length.min((self.bytes.len() - self.position) / 3).min(MAX_VALUES));
                    for _ in 0..length {
                        let Some(value) = self.value(depth + 1)? else { return Ok(None) };
                        values.push(value);
                    }
                    Value::Array(values)
                }
            },
            // Status lines and errors are rare; the client crate parses them.
            b'+' | b'-' => parse_redis_value(&self.bytes[start..self.position])?,
            _ => return Err(invalid_answer()),
        }))
    }

    /// Returns the next line without its end.
    fn line(&mut self) -> RedisResult<Option<&'a [u8]>> {
        let rest = &self.bytes[self.position..];
        if rest.first().is_some_and(|kind| !b":$*+-".contains(kind)) {
            return Err(invalid_answer());
        }
        let Some(end) = rest.iter().take(MAX_LINE).position(|&byte| byte == b'\n') else {
            // A line without an end would fill the memory.
            return if rest.len() < MAX_LINE { Ok(None) } else { Err(invalid_answer()) };
        };
        self.position += end + 1;
        Ok(Some(rest[..end].strip_suffix(b"\r").unwrap_or(&[])))
    }

    /// Returns the next `length` bytes, which a line end must follow.
    fn take(&mut self, length: usize) -> RedisResult<Option<&'a [u8]>> {
        let Some((text, rest)) = self.bytes[self.position..].split_at_checked(length) else { return Ok(None) };
        let Some(end) = rest.first_chunk() else { return Ok(None) };
        self.position += length + end.len();
        if end == b"\r\n" { Ok(Some(text)) } else { Err(invalid_answer()) }
    }
}

/// Parses the length of a string or an array; `None` for a null.
fn length(text: &[u8]) -> RedisResult<Option<usize>> {
    match integer(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| invalid_answer()),
    }
}

fn integer(text: &[u8]) -> RedisResult<i64> {
    match text {
        [digit @ b'0'..=b'9'] => Ok(i64::from(digit - b'0')),
        _ => str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(invalid_answer),
    }
}

fn invalid_answer() -> RedisError {
    (ErrorKind::Parse, "the answer is not one of a Redis server").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Answers as servers send them.
    fn answers() -> impl Strategy<Value = Vec<u8>> {
        let line = |kind: char, text: String| format!("{kind}{text}\r\n").into_bytes();
        let leaf = prop_oneof![
            any::<i64>().prop_map(move |number| line(':', number.to_string())),
            (0..2i64).prop_map(move |number| line(':', number.to_string())),
            "[A-Z]{1,9} ?[a-z ]{0,20}".prop_map(move |text| line('-', text)),
            "[A-Za-z]{1,20}".prop_map(move |text| line('+', text)),
            prop_oneof![Just("$-1\r\n"), Just("*-1\r\n")].prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..100).prop_map(move |text| [
                line('$', text.len().to_string()),
                text,
                b"\r\n".to_vec()
            ]
            .concat()),
        ];
        leaf.prop_recursive(3, 40, 12, move |inner| {
            prop::collection::vec(inner, 0..12)
                .prop_map(move |values| [line('*', values.len().to_string()), values.concat()].concat())
        })
    }

    proptest! {
        /// The client crate's parser is the specification.
        #[test]
        fn answers_match_those_of_the_client_crate(answers in prop::collection::vec(answers(), 1..6)) {
            let all = answers.concat();
            let mut rest = &all[..];
            for answer in &answers {
                for end in 0..answer.len() {
                    prop_assert_eq!(parse_answer(&rest[..end]).unwrap(), None);
                }
                let expected = parse_redis_value(answer).unwrap();
                prop_assert_eq!(parse_answer(rest).unwrap(), Some((expected, answer.len())));
                rest = &rest[answer.len()..];
            }
        }

        /// Invalid answers are errors, and incomplete ones wait for more.
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(prop::sample::select(b"*$:+-0123489\r\nx".to_vec()), 0..60)) {
            if let Ok(Some((value, length))) = parse_answer(&bytes) {
                prop_assert_eq!(value, parse_redis_value(&bytes[..length]).unwrap());
            }
        }
    }

    #[test]
    fn an_answer_without_an_end_does_not_fill_the_memory() {
        let mut came = ReadBuffer::default();
        let error = loop {
            match came.space() {
                Ok(space) => {
                    space.fill(b'*');
                    let read = space.len();
                    assert!(read > 0);
                    came.filled(read);
                    assert!(came.buffer.len() <= 4 * MAX_ANSWER, "{}", came.buffer.len());
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn invalid_answers_are_errors() {
        let nested = b"*1\r\n".repeat(100_000);
        let endless = b"-".repeat(MAX_LINE);
        assert_eq!(parse_answer(&endless[1..]).unwrap(), None);
        let lines: [&[u8]; 6] = [b"\r\n", b"H", b":x\r\n", b":\r\n", b"$-2\r\n", b"*99999999999999999999\r\n"];
        for bytes in lines.into_iter().chain([&nested[..], &endless]) {
            assert!(parse_answer(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
        }
        let many = [b"*99999999\r\n".to_vec(), b":1\r\n".repeat(MAX_VALUES)].concat();
        assert_eq!(parse_answer(&many[..many.len() / 2]).unwrap(), None);
        assert!(parse_answer(&many).is_err());
        let huge = format!("*{}\r\n:1\r\n", i64::MAX);
        assert_eq!(parse_answer(huge.as_bytes()).unwrap(), None);
    }
}
