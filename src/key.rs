//! What can be put into a filter.

use crate::hash::KeyHasher;
use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};

/// A key: something with a stable byte representation.
///
/// Byte strings, text, integers (as their little-endian bytes; `usize` and `isize` as 64 bits) and pairs and triples
/// of keys. A string and its UTF-8 bytes are the same key, and so are an integer and its bytes.
/// Unlike [`core::hash::Hash`], the hash of a key is the same on every platform and in every version.
///
/// Implement it for a type of your own by hashing its bytes in one call, or its parts by [`KeyHasher::combine`]:
///
/// ```
/// use bloomline::{BloomFilter, Key, KeyHasher};
///
/// struct Page { host: String, path: String }
///
/// impl Key for Page {
///     fn hash_with(&self, hasher: &KeyHasher) -> u64 {
///         (&self.host, &self.path).hash_with(hasher)
///     }
/// }
///
/// let mut seen = BloomFilter::new(1000, 0.001)?;
/// let page = Page { host: "example.org".into(), path: "/".into() };
/// assert!(seen.insert(&page));
/// assert!(!seen.insert(&page));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub trait Key {
    /// The key's 64-bit hash under `hasher`. Equal keys must have equal hashes.
    fn hash_with(&self, hasher: &KeyHasher) -> u64;
}

macro_rules! bytes_key {
    ($($type:ty => $as_bytes:expr),* $(,)?) => {$(
        impl Key for $type {
            #[inline]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                let as_bytes: fn(&Self) -> &[u8] = $as_bytes;
                hasher.bytes(as_bytes(self))
            }
        }
    )*};
}

bytes_key! {
    [u8] => |key| key,
    Vec<u8> => |key| key,
    str => |key| key.as_bytes(),
    String => |key| key.as_bytes(),
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        hasher.bytes(self)
    }
}

macro_rules! integer_key {
    ($($type:ty as $same:ident),* $(,)?) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                hasher.$same(*self as $same)
            }
        }
    )*};
}

integer_key! {
    u8 as u8, u16 as u16, u32 as u32, u64 as u64, u128 as u128, usize as u64,
    i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128, isize as u64,
}

macro_rules! pointer_key {
    ($($type:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $type {
            #[inline(always)]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                (**self).hash_with(hasher)
            }
        }
    )*};
}

pointer_key!(&K, &mut K, Box<K>);

impl<K: Key + alloc::borrow::ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        (**self).hash_with(hasher)
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        hasher.combine(self.0.hash_with(hasher), self.1.hash_with(hasher))
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        let (a, b, c) = self;
        hasher.combine((a, b).hash_with(hasher), c.hash_with(hasher))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{borrow::ToOwned, string::ToString};
    use std::collections::HashSet;

    #[test]
    fn one_key_in_many_types() {
        let hasher = KeyHasher::new(1);
        let expected = hasher.bytes(b"bloom");
        assert_eq!("bloom".hash_with(&hasher), expected);
        assert_eq!("bloom".to_string().hash_with(&hasher), expected);
        assert_eq!(b"bloom".hash_with(&hasher), expected);
        assert_eq!(b"bloom".to_vec().hash_with(&hasher), expected);
        assert_eq!(Cow::Borrowed("bloom").hash_with(&hasher), expected);
        assert_eq!("bloom".to_owned().into_boxed_str().hash_with(&hasher), expected);
        assert_eq!(1u64.hash_with(&hasher), 1i64.hash_with(&hasher));
        assert_eq!(1usize.hash_with(&hasher), 1u64.hash_with(&hasher));
    }

    /// What the hash crate's `Hasher` merges: every short string, and tuples with the same last field.
    #[test]
    fn short_strings_and_tuples_are_told_apart() {
        let hasher = KeyHasher::new(0);
        let mut hashes = HashSet::new();
        let mut keys = 0;
        for a in 0..=255u8 {
            assert!(hashes.insert([a].hash_with(&hasher)));
            keys += 1;
            for b in 0..=255u8 {
                assert!(hashes.insert([a, b].hash_with(&hasher)));
                assert!(hashes.insert((a, b).hash_with(&hasher)));
                assert!(hashes.insert(([a], [b], [0u8]).hash_with(&hasher)));
                keys += 3;
            }
        }
        assert!(hashes.insert("".hash_with(&hasher)));
        assert_eq!(hashes.len(), keys + 1);
    }

    /// Under wyhash's default secret all of these hash to 0: 8 bytes, 16 before the end, equal the public word.
    #[test]
    fn keys_that_carry_the_public_secret_are_told_apart() {
        let public = wyhash_default_secret1().to_le_bytes();
        for seed in [0, 1, u64::MAX] {
            let hasher = KeyHasher::new(seed);
            let mut hashes = HashSet::new();
            for i in 0..10_000u64 {
                let mut key = i.to_le_bytes().to_vec();
                key.extend(public);
                key.extend((i % 100).to_le_bytes());
                assert_ne!(key.hash_with(&hasher), 0);
                assert!(hashes.insert(key.hash_with(&hasher)));
            }
        }
    }

    /// The trap is real: the word below does make the crate's hash 0 under the default secret.
    fn wyhash_default_secret1() -> u64 {
        const DEFAULT: [u64; 4] = [0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3];
        let mut key = b"any prefix".to_vec();
        key.extend(DEFAULT[1].to_le_bytes());
        key.extend(b"any tail");
        assert_eq!(wyhash::final3::wyhash(&key, 42, DEFAULT), 0);
        DEFAULT[1]
    }
}
