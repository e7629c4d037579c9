//! `WithinBuild`: any value with a standard hash as a key.

use crate::key::hash::KeyHasher;
use crate::key::single::Key;
use core::hash::{Hash, Hasher};

/// Makes a key of any value that implements [`std::hash::Hash`](Hash), with that hash. **The hash is valid within one
/// build of one program.**
///
/// The input of the standard hash differs between platforms, and may differ with each version of the compiler and of the
/// value's crate. So such a filter must not be saved, sent to another program or kept on a server: its keys would silently not
/// be found. Use a [`Key`] if possible; see [`impl_key!`](crate::impl_key).
///
/// `WithinBuild::new("a")` and `"a"` are two keys: query with the same wrapper as you inserted. Values that are equal by
/// the standard hash, such as a `String` and its `&str`, are one key.
///
/// Each part of the value costs a hash and a [`KeyHasher::combine`].
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, WithinBuild};
///
/// #[derive(Hash)]
/// enum Shape { Point, Circle { radius: u32 } }
///
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// assert!(seen.insert(&WithinBuild::new(Shape::Circle { radius: 1 })));
/// assert!(seen.insert(&WithinBuild::new(Shape::Point)));
/// assert!(seen.contains(&WithinBuild::new(&Shape::Point))); // by reference, without a copy
/// assert!(!seen.contains(&WithinBuild::new(&Shape::Circle { radius: 2 })));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WithinBuild<T>(T);

impl<T: Hash> WithinBuild<T> {
    /// Wraps a value, or a reference to one. O(1).
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T: Hash> Key for WithinBuild<T> {
    #[inline]
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        let mut combined = CombiningHasher { hasher, hash: 0 };
        self.0.hash(&mut combined);
        combined.hash
    }
}

/// Combines the hashes of all that is written. The length of each part counts, so no two sequences of parts have the same
/// input.
struct CombiningHasher<'a> {
    hasher: &'a KeyHasher,
    hash: u64,
}

impl Hasher for CombiningHasher<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.hash = self.hasher.combine(self.hash, self.hasher.bytes(bytes));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
