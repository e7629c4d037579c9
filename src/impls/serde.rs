//! `Serialize` and `Deserialize`: a filter is a byte string, that of its file, and is checked like one.

use crate::file::{FileError, FileErrorKind};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use crate::scalable::{AtomicScalableBloomFilter, ScalableBloomFilter};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::fmt;

macro_rules! as_file {
    ($(#[$docs:meta])* [$($generics:tt)*] $Filter:ty) => {
        $(#[$docs])*
        impl<$($generics)*> Serialize for $Filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut bytes = Vec::new();
                self.write_to(&mut bytes).map_err(S::Error::custom)?;
                serializer.serialize_bytes(&bytes)
            }
        }

        /// With all the checks of [`load`](Self::load).
        impl<'de, $($generics)*> Deserialize<'de> for $Filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_byte_buf(FileVisitor { read: |bytes| Self::read_from(bytes) })
            }
        }
    };
}

as_file! {
    /// A byte string with the contents of the filter's file, which takes as much memory again. Formats that know no byte
    /// strings make it a sequence of numbers. Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
    [L: Operations<A>, A: Access] Filter<L, A>
}

as_file! {
    /// As of a [`BloomFilter`](crate::BloomFilter).
    [] ScalableBloomFilter
}

as_file! {
    /// As of a [`BloomFilter`](crate::BloomFilter). Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
    [] AtomicScalableBloomFilter
}

struct FileVisitor<F> {
    read: fn(&mut &[u8]) -> Result<F, FileError>,
}

impl<'de, F> Visitor<'de> for FileVisitor<F> {
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
