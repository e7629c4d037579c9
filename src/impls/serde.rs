//! `Serialize` and `Deserialize`: a filter is a byte string, that of its file, and is checked like one.

use crate::file::{FileError, FileErrorKind};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use crate::words4::{BloomFilter, Words4};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::fmt;

/// A byte string with the contents of the filter's file, which takes as much memory again. Formats that know no byte
/// strings make it a sequence of numbers. Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
impl<A: Access> Serialize for Filter<Words4, A>
where
    Words4: Operations<A>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_bytes(&bytes)
    }
}

/// With all the checks of [`load`](Self::load).
impl<'de, A: Access> Deserialize<'de> for Filter<Words4, A>
where
    Words4: Operations<A>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let BloomFilter { params, hasher, purpose, blocks, .. } = deserializer.deserialize_byte_buf(FileVisitor)?;
        Ok(Self::of(params, hasher, purpose, blocks.into()))
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = BloomFilter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a bloomline file")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<BloomFilter, E> {
        let mut rest = bytes;
        let filter = BloomFilter::read_from(&mut rest).map_err(E::custom)?;
        if !rest.is_empty() {
            let (have, want) = (bytes.len() as u64, (bytes.len() - rest.len()) as u64);
            return Err(E::custom(FileError::from(FileErrorKind::TooLong { have, want })));
        }
        Ok(filter)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<BloomFilter, A::Error> {
        // Not sized by what the data claim of their length: it grows as they come.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
