//! `Serialize` and `Deserialize`: a filter is a byte string, that of its file, and is checked like one.

use crate::file::{FileError, FileErrorKind};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use crate::scalable::{AtomicScalableBloomFilter, ScalableBloomFilter};
use core::marker::PhantomData;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::fmt;
use std::io;

/// A byte string with the contents of the filter's file, which takes as much memory again. Formats that know no byte
/// strings make it a sequence of numbers. Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
impl<L: Operations<A>, A: Access> Serialize for Filter<L, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(serializer, |bytes| self.write_to(bytes))
    }
}

/// With all the checks of [`load`](Self::load).
impl<'de, L: Operations<A>, A: Access> Deserialize<'de> for Filter<L, A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, |bytes| Self::read_from(bytes))
    }
}

/// As of a [`BloomFilter`](crate::BloomFilter).
impl Serialize for ScalableBloomFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(serializer, |bytes| self.write_to(bytes))
    }
}

/// With all the checks of [`load`](Self::load).
impl<'de> Deserialize<'de> for ScalableBloomFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, |bytes| Self::read_from(bytes))
    }
}

/// As of a [`BloomFilter`](crate::BloomFilter). Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
impl Serialize for AtomicScalableBloomFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(serializer, |bytes| self.write_to(bytes))
    }
}

/// With all the checks of [`load`](Self::load).
impl<'de> Deserialize<'de> for AtomicScalableBloomFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, |bytes| Self::read_from(bytes))
    }
}

fn serialize<S: Serializer>(
    serializer: S,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(S::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

fn deserialize<'de, D: Deserializer<'de>, F>(
    deserializer: D,
    read: impl FnOnce(&mut &[u8]) -> Result<F, FileError>,
) -> Result<F, D::Error> {
    deserializer.deserialize_byte_buf(FileVisitor { read, filter: PhantomData })
}

struct FileVisitor<R, F> {
    read: R,
    filter: PhantomData<F>,
}

impl<'de, F, R: FnOnce(&mut &[u8]) -> Result<F, FileError>> Visitor<'de> for FileVisitor<R, F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a bloomline file")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<F, E> {
        let mut rest = bytes;
        let filter = (self.read)(&mut rest).map_err(E::custom)?;
        if !rest.is_empty() {
            let (have, want) = (bytes.len() as u64, (bytes.len() - rest.len()) as u64);
            return Err(E::custom(FileError::from(FileErrorKind::TooLong { have, want })));
        }
        Ok(filter)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<F, A::Error> {
        // Not sized by what the data claim of their length: it grows as they come.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
