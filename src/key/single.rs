//! `Key`: the types that can be inserted into a filter, and their hash.

use crate::key::hash::KeyHasher;
use alloc::{borrow::Cow, borrow::ToOwned, boxed::Box, rc::Rc, string::String, sync::Arc, vec::Vec};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::NonZero;
use core::time::Duration;

/// A key: a value with a stable hash.
///
/// Unlike [`core::hash::Hash`], the hash of a key is the same on every platform and in every version.
///
/// | key | it is hashed as |
/// |---|---|
/// | a byte string: a slice, array or [`Vec`] of `u8` | its bytes |
/// | text | its UTF-8 |
/// | an integer, [`NonZero`] or not | its bytes, little-endian; `usize` and `isize` have 8 |
/// | `bool`, `char` | the `u8` 0 or 1; the code point as a `u32` |
/// | an IP address | its 4 or 16 bytes, in the order in which they are written |
/// | a socket address | the pair of its IP address and its port, a `u16` |
/// | a [`Duration`] | the pair of its whole seconds, a `u64`, and its nanoseconds, a `u32` |
/// | a path, an `OsStr` (feature `std`) | its bytes, not normalized |
/// | a tuple of 1 to 12 keys | its members, from the left, by [`KeyHasher::combine`] |
/// | a slice, array or [`Vec`] of other keys than `u8` | the tuple of its length as a `u64` and all members |
/// | an [`Option`] | `None` as the `u8` 0, `Some(key)` as the pair `(1u8, key)` |
/// | a reference, [`Box`], [`Rc`], [`Arc`], [`Cow`] | the key that it points to |
///
/// So keys of different types can be equal: a string and its UTF-8, an integer and its bytes, `(a, b, c)` and `((a, b), c)`. A
/// sequence of `i8`, `bool` or `&u8` is not a byte string. Floating-point numbers do not implement `Key`; use `to_bits()`.
/// docs/FORMAT.md has the rules for other implementations.
///
/// # Examples
/// [`impl_key!`](crate::impl_key) makes a key of a struct. To implement the trait by hand, hash the bytes in one call,
/// or a tuple of the parts:
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
///
/// **The width of an integer counts.** If the two sides of a join have different types, the filter finds nothing. Widen
/// both to one type first:
///
/// ```
/// use bloomline::BloomFilter;
///
/// let (build, probe): ([i32; 3], [i64; 3]) = ([7, 8, 9], [7, 8, 9]);
/// let mut filter = BloomFilter::new(1000, 1e-6)?;
/// filter.insert(&7i32);
/// assert!(filter.contains(&7i32) && !filter.contains(&7i64)); // 4 bytes and 8 bytes: two keys
///
/// let mut filter = BloomFilter::new(1000, 1e-6)?;
/// filter.extend(build.map(i64::from));
/// assert!(probe.iter().all(|key| filter.contains(key)));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    note = "a floating-point number is a key by its `to_bits()`",
    note = "`bloomline::impl_key!` makes a key of a struct of your own, and `WithinBuild::new` of any value with a standard `Hash`"
)]
pub trait Key {
    /// Returns the key's 64-bit hash under `hasher`. Equal keys must have equal hashes.
    ///
    /// It is not called `hash`, so that `key.hash(…)` remains the standard library's if both traits are in scope.
    fn hash_with(&self, hasher: &KeyHasher) -> u64;

    /// Returns the hash of a slice of such keys: the tuple of its length and all members. Only `u8` overrides it,
    /// because a slice of `u8` is a byte string. A trait cannot have one implementation for `[u8]` and one for all
    /// other slices, but a method of the element type can differ. [`Internal`] keeps other crates from calling and
    /// overriding it.
    #[doc(hidden)]
    #[inline]
    fn hash_slice_with(keys: &[Self], hasher: &KeyHasher, _: Internal) -> u64
    where
        Self: Sized,
    {
        // The length makes ([1], [2, 3]) and ([1, 2], [3]) two keys.
        let length = hasher.u64(keys.len() as u64);
        keys.iter().fold(length, |hash, key| hasher.combine(hash, key.hash_with(hasher)))
    }
}

/// An argument of methods that other crates can neither call nor override, because they cannot name its type.
pub struct Internal;

impl Key for u8 {
    #[inline(always)]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        hasher.u8(*self)
    }

    #[inline(always)]
    fn hash_slice_with(bytes: &[u8], hasher: &KeyHasher, _: Internal) -> u64 {
        hasher.bytes(bytes)
    }
}

macro_rules! integer_key {
    ($($type:ident),*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                hasher.$type(*self)
            }
        }
    )*};
}

integer_key!(u16, u32, u64, u128);

/// Implements [`Key`] for types that are hashed as another key.
macro_rules! delegate_key {
    ($($(#[$attribute:meta])* $type:ty $(where [$($generics:tt)*])? => |$key:ident| $delegate:expr),* $(,)?) => {$(
        $(#[$attribute])*
        impl$(<$($generics)*>)? Key for $type {
            #[inline(always)]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                let $key = self;
                $delegate.hash_with(hasher)
            }
        }
    )*};
}

delegate_key! {
    i8 => |key| (*key as u8),
    i16 => |key| (*key as u16),
    i32 => |key| (*key as u32),
    i64 => |key| (*key as u64),
    i128 => |key| (*key as u128),
    usize => |key| (*key as u64),
    isize => |key| (*key as u64),
    bool => |key| u8::from(*key),
    char => |key| u32::from(*key),
    str => |key| key.as_bytes(),
    String => |key| key.as_bytes(),
    Ipv4Addr => |key| key.octets(),
    Ipv6Addr => |key| key.octets(),
    &K where [K: Key + ?Sized] => |key| (**key),
    &mut K where [K: Key + ?Sized] => |key| (**key),
    Box<K> where [K: Key + ?Sized] => |key| (**key),
    Rc<K> where [K: Key + ?Sized] => |key| (**key),
    Arc<K> where [K: Key + ?Sized] => |key| (**key),
    Cow<'_, K> where [K: Key + ToOwned + ?Sized] => |key| (**key),
    Vec<K> where [K: Key] => |key| key[..],
    [K; N] where [K: Key, const N: usize] => |key| key[..],
}

macro_rules! nonzero_key {
    ($($type:ident),*) => { delegate_key! { $(NonZero<$type> => |key| key.get()),* } };
}

nonzero_key!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

/// An IPv4 address and the IPv6 address that it maps to are two keys.
impl Key for IpAddr {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        match self {
            Self::V4(address) => address.hash_with(hasher),
            Self::V6(address) => address.hash_with(hasher),
        }
    }
}

/// Hashes an IPv6 address without its flow label and scope, which describe the route.
impl Key for SocketAddr {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        (self.ip(), self.port()).hash_with(hasher)
    }
}

delegate_key! {
    SocketAddrV4 => |key| (*key.ip(), key.port()),
    /// Without its flow label and scope, which describe the route.
    SocketAddrV6 => |key| (*key.ip(), key.port()),
    Duration => |key| (key.as_secs(), key.subsec_nanos()),
}

/// The system's bytes: any on Unix, UTF-8 elsewhere. A Windows name that is not valid Unicode is hashed as its 16-bit units,
/// little-endian.
#[cfg(feature = "std")]
impl Key for std::ffi::OsStr {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        #[cfg(windows)]
        if self.to_str().is_none() {
            // The encoding of such a name in memory is stable only within one version of Rust.
            use std::os::windows::ffi::OsStrExt;
            let units: Vec<u8> = self.encode_wide().flat_map(u16::to_le_bytes).collect();
            return hasher.bytes(&units);
        }
        hasher.bytes(self.as_encoded_bytes())
    }
}

#[cfg(feature = "std")]
delegate_key! {
    std::ffi::OsString => |key| key.as_os_str(),
    /// Hashes the bytes of the path: `a/b` and `a//b` are equal as `Path`s, but two keys. `path.components().collect()`
    /// makes both `a/b`. `canonicalize` follows links too.
    std::path::Path => |key| key.as_os_str(),
    /// As [`Path`](std::path::Path).
    std::path::PathBuf => |key| key.as_os_str(),
}

impl<K: Key> Key for [K] {
    #[inline(always)]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        K::hash_slice_with(self, hasher, Internal)
    }
}

impl<K: Key> Key for Option<K> {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        match self {
            None => hasher.u8(0),
            Some(key) => (1u8, key).hash_with(hasher),
        }
    }
}

macro_rules! tuple_key {
    ($First:ident $($Next:ident)*) => {
        impl<$First: Key, $($Next: Key),*> Key for ($First, $($Next,)*) {
            #[inline]
            #[allow(non_snake_case)]
            fn hash_with(&self, hasher: &KeyHasher) -> u64 {
                let ($First, $($Next,)*) = self;
                let hash = $First.hash_with(hasher);
                $(let hash = hasher.combine(hash, $Next.hash_with(hasher));)*
                hash
            }
        }
        tuple_key!($($Next)*);
    };
    () => {};
}

tuple_key!(A B C D E F G H I J K L);

/// Makes a struct a [`Key`]: it is hashed as the tuple of the named fields, up to twelve. Other fields are not part of
/// the key. The fields of a tuple struct are named by number.
///
/// Equal keys must have equal hashes, and saved files depend on the hashes. So name the fields that decide whether two values
/// are the same, and keep their order.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, impl_key};
///
/// struct Page { host: String, path: String, fetched: u64 }
/// impl_key!(Page { host, path });
///
/// struct Cell(i32, i32);
/// impl_key!(Cell { 0, 1 });
///
/// /// With parameters in brackets first.
/// struct Edge<T> { from: T, to: T }
/// impl_key!([T: bloomline::Key] Edge<T> { from, to });
///
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// seen.insert(&Page { host: "example.org".into(), path: "/".into(), fetched: 1 });
/// assert!(seen.contains(&Page { host: "example.org".into(), path: "/".into(), fetched: 2 }));
/// assert!(seen.contains(&("example.org", "/")));
/// assert!(seen.insert(&Cell(-1, 2)));
/// assert!(seen.insert(&Edge { from: "a", to: "b" }));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[macro_export]
macro_rules! impl_key {
    ([$($parameters:tt)*] $type:ty { $($field:tt),+ $(,)? }) => {
        impl<$($parameters)*> $crate::Key for $type {
            #[inline]
            fn hash_with(&self, hasher: &$crate::KeyHasher) -> u64 {
                $crate::Key::hash_with(&($(&self.$field,)+), hasher)
            }
        }
    };
    ($type:ty { $($fields:tt)+ }) => {
        $crate::impl_key!([] $type { $($fields)+ });
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Keys that collide in the `Hasher` of the crate `wyhash`: every short string, and tuples with the same last
    /// field.
    #[test]
    fn short_strings_and_tuples_have_different_hashes() {
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
    fn keys_with_the_public_secret_have_different_hashes() {
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

    /// Returns a word of the default secret, with which the hash of the crate `wyhash` is 0.
    fn wyhash_default_secret1() -> u64 {
        const DEFAULT: [u64; 4] = [0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3];
        let mut key = b"any prefix".to_vec();
        key.extend(DEFAULT[1].to_le_bytes());
        key.extend(b"any tail");
        assert_eq!(wyhash::final3::wyhash(&key, 42, DEFAULT), 0);
        DEFAULT[1]
    }
}
