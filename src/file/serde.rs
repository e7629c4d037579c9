//! A filter for serde: the bytes of its file, which are checked like one.

use super::{FileError, FileErrorKind, Persist};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Error as _, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Serializes as a byte string, or as base64 in a human-readable format.
pub(crate) fn serialize<S: Serializer>(filter: &impl Persist, serializer: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).map_err(S::Error::custom)?;
    match serializer.is_human_readable() {
        true => serializer.serialize_str(&STANDARD.encode(bytes)),
        false => serializer.serialize_bytes(&bytes),
    }
}

pub(crate) fn deserialize<'de, T: Persist, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let visitor = FileVisitor(PhantomData);
    match deserializer.is_human_readable() {
        true => deserializer.deserialize_any(visitor),
        false => deserializer.deserialize_byte_buf(visitor),
    }
}

struct FileVisitor<T>(PhantomData<T>);

impl<'de, T: Persist> Visitor<'de> for FileVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a bloomline file, or their base64")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        let mut rest = bytes;
        let filter = T::read(&mut rest, None).map_err(|kind| E::custom(FileError::from(kind)))?;
        if !rest.is_empty() {
            let (have, want) = (bytes.len() as u64, (bytes.len() - rest.len()) as u64);
            return Err(E::custom(FileError::from(FileErrorKind::TooLong { have, want })));
        }
        Ok(filter)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.visit_bytes(&STANDARD.decode(text).map_err(E::custom)?)
    }

    /// For formats without byte strings.
    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<T, A::Error> {
        // Not sized by the length that the data declare: the memory grows as the data arrive.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
