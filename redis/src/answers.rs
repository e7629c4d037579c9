//! Answers as they come from a server.
//!
//! The client crate's parser is for all protocols and for bytes that come bit by bit. This one reads what servers answer to the
//! commands here, and begins an answer anew when more of it came. docs/DESIGN.md has what that gains.

use redis::{ErrorKind, RedisError, RedisResult, Value, parse_redis_value};

/// Arrays within arrays, at most. The deepest answer here is that to `CLUSTER SLOTS`.
const DEPTH: usize = 8;

/// Bytes of a line, at most. Those that are long are errors.
const LINE: usize = 1 << 16;

/// The first answer in the bytes, and its length. `None` if it is not there as a whole.
pub(crate) fn first(bytes: &[u8]) -> RedisResult<Option<(Value, usize)>> {
    let mut rest = Rest { bytes, position: 0 };
    Ok(rest.value(0)?.map(|value| (value, rest.position)))
}

struct Rest<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Rest<'a> {
    fn value(&mut self, depth: usize) -> RedisResult<Option<Value>> {
        let start = self.position;
        let Some(line) = self.line()? else { return Ok(None) };
        let (kind, text) = line.split_first().ok_or_else(nonsense)?;
        Ok(Some(match kind {
            b':' => Value::Int(integer(text)?),
            b'$' => match length(text)? {
                None => Value::Nil,
                Some(length) => match self.take(length)? {
                    Some(text) => Value::BulkString(text.to_vec()),
                    None => return Ok(None),
                },
            },
            b'*' if depth < DEPTH => match length(text)? {
                None => Value::Nil,
                Some(length) => {
                    // No more than there can be in the bytes, whatever the server says.
                    let mut values = Vec::with_capacity(length.min((self.bytes.len() - self.position) / 3));
                    for _ in 0..length {
                        let Some(value) = self.value(depth + 1)? else { return Ok(None) };
                        values.push(value);
                    }
                    Value::Array(values)
                }
            },
            // Words and errors are few, and the client crate knows them.
            b'+' | b'-' => parse_redis_value(&self.bytes[start..self.position])?,
            _ => return Err(nonsense()),
        }))
    }

    /// The bytes up to the end of the line, and without it.
    fn line(&mut self) -> RedisResult<Option<&'a [u8]>> {
        let rest = &self.bytes[self.position..];
        if rest.first().is_some_and(|kind| !b":$*+-".contains(kind)) {
            return Err(nonsense());
        }
        let Some(end) = rest.iter().take(LINE).position(|&byte| byte == b'\n') else {
            // Whoever sends a line without an end would fill the memory.
            return if rest.len() < LINE { Ok(None) } else { Err(nonsense()) };
        };
        self.position += end + 1;
        Ok(Some(rest[..end].strip_suffix(b"\r").unwrap_or(&[])))
    }

    /// So many bytes, and the end of the line.
    fn take(&mut self, length: usize) -> RedisResult<Option<&'a [u8]>> {
        let Some((text, rest)) = self.bytes[self.position..].split_at_checked(length) else { return Ok(None) };
        let Some(end) = rest.first_chunk() else { return Ok(None) };
        self.position += length + end.len();
        if end == b"\r\n" { Ok(Some(text)) } else { Err(nonsense()) }
    }
}

/// The length of a text or of an array; `None` where there is none.
fn length(text: &[u8]) -> RedisResult<Option<usize>> {
    match integer(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| nonsense()),
    }
}

fn integer(text: &[u8]) -> RedisResult<i64> {
    match text {
        [digit @ b'0'..=b'9'] => Ok(i64::from(digit - b'0')),
        _ => str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(nonsense),
    }
}

fn nonsense() -> RedisError {
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
        fn answers_are_those_of_the_client_crate(answers in prop::collection::vec(answers(), 1..6)) {
            let all = answers.concat();
            let mut rest = &all[..];
            for answer in &answers {
                for end in 0..answer.len() {
                    prop_assert_eq!(first(&rest[..end]).unwrap(), None);
                }
                let expected = parse_redis_value(answer).unwrap();
                prop_assert_eq!(first(rest).unwrap(), Some((expected, answer.len())));
                rest = &rest[answer.len()..];
            }
        }

        /// What is no answer is an error or waits for more, and takes no memory.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(prop::sample::select(b"*$:+-0123489\r\nx".to_vec()), 0..60)) {
            if let Ok(Some((value, length))) = first(&bytes) {
                prop_assert_eq!(value, parse_redis_value(&bytes[..length]).unwrap());
            }
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        let nested = b"*1\r\n".repeat(100_000);
        let endless = b"-".repeat(LINE);
        assert_eq!(first(&endless[1..]).unwrap(), None);
        let lines: [&[u8]; 6] = [b"\r\n", b"H", b":x\r\n", b":\r\n", b"$-2\r\n", b"*99999999999999999999\r\n"];
        for bytes in lines.into_iter().chain([&nested[..], &endless]) {
            assert!(first(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
        }
        let huge = format!("*{}\r\n:1\r\n", i64::MAX);
        assert_eq!(first(huge.as_bytes()).unwrap(), None);
    }
}
