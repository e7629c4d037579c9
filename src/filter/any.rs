//! `Filter`: the trait of any filter, for generic code.

use crate::batch;
use crate::error::BuildError;
use crate::key::hash::KeyHasher;
use crate::key::keys::Keys;
use crate::key::single::Key;
use alloc::boxed::Box;

/// Limits implementations of [`Filter`] to this crate, so that methods can be added.
pub trait Sealed {}

/// Any filter, for code that works with all of them: `fn load(seen: &mut impl Filter)`.
///
/// All filter types implement it but two: Parquet's, which hashes in its own way, and `BorrowedBloomFilter`, which is
/// read-only. Inserts take `&mut self` and return an error, because some types need that; their names begin with `try_`, so
/// that they are not mistaken for the methods of the types. A reference to a filter with many writers is a filter as well, as a
/// `&File` is a `Write`r: each thread has a reference of its own. So are a `&mut F` and a `Box<F>` of any filter, also of a
/// `dyn Filter`, whose type is chosen at run time.
///
/// To build one in generic code, ask for `F: TryFrom<Builder<F>, Error = BuildError>` too: see [`Builder`](crate::Builder).
///
/// # Examples
/// ```
/// use bloomline::{AtomicBloomFilter, BuildError, Filter, ScalableBloomFilter};
///
/// /// Inserts lines, and counts those that were there already.
/// fn repeats(lines: &[&str], mut seen: impl Filter) -> Result<usize, BuildError> {
///     let mut new = vec![false; lines.len()];
///     Ok(lines.len() - seen.try_insert_batch(lines, &mut new)?)
/// }
///
/// assert_eq!(repeats(&["a", "b", "a"], ScalableBloomFilter::new(1000, 1e-6)?)?, 1);
///
/// let grows = true; // an option of the program
/// let mut seen: Box<dyn Filter> = match grows {
///     true => Box::new(ScalableBloomFilter::new(1000, 1e-6)?),
///     false => Box::new(AtomicBloomFilter::new(1000, 1e-6)?),
/// };
/// assert_eq!(repeats(&["a", "b", "a"], &mut seen)?, 1);
/// assert!(seen.contains("b"));
///
/// let shared = AtomicBloomFilter::new(1000, 1e-6)?;
/// let repeats = std::thread::scope(|threads| {
///     let both = [["a", "b"], ["b", "c"]].map(|lines| threads.spawn({
///         let seen = &shared;
///         move || repeats(&lines, seen)
///     }));
///     both.map(|thread| thread.join().expect("it does not panic").expect("it does not grow")).iter().sum::<usize>()
/// });
/// assert_eq!(repeats, 1); // one of the threads claimed "b"
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// With the trait in scope, each type's own methods are called as before, through any reference:
/// ```
/// use bloomline::{AtomicBloomFilter, Filter};
///
/// fn is_new(seen: &mut AtomicBloomFilter, key: &str) -> bool {
///     seen.insert(key)
/// }
/// # assert!(is_new(&mut AtomicBloomFilter::new(1000, 1e-6)?, "a"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub trait Filter: Sealed {
    /// Inserts a hash of [`hasher`](Self::hasher). Returns true if it was new.
    ///
    /// # Errors
    /// [`BuildError`] if a filter that grows cannot grow. Other filters return no error.
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, BuildError>;

    /// Inserts many hashes in order. `new[i]` is `true` if `hashes[i]` was new. Returns the number of new hashes.
    ///
    /// # Errors
    /// As for [`try_insert_hash`](Self::try_insert_hash). Hashes before the error are inserted and marked.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    fn try_insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError>;

    /// Returns true if a hash may have been inserted.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Requests the cache lines of a hash for a later call, in a loop of your own; see
    /// [`BloomFilter::prefetch_hash`](crate::BloomFilter::prefetch_hash).
    fn prefetch_hash(&self, hash: u64);

    /// Queries many hashes. `found[i]` is the answer of `contains_hash` for `hashes[i]`. Returns the number found.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// Returns the hasher of its keys.
    fn hasher(&self) -> &KeyHasher;

    /// Returns the size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Returns the number of distinct keys that the filter is made for, if it was made for a number.
    fn expected_keys(&self) -> Option<u64>;

    /// Returns the false-positive rate that the filter is made for, if it was made for a rate.
    fn false_positive_rate(&self) -> Option<f64>;

    /// Returns the false-positive rate of the present bits. O(memory).
    fn current_fpr(&self) -> f64;

    /// Returns the number of distinct keys in the filter, estimated from its bits. O(memory).
    fn estimated_keys(&self) -> f64;

    /// Returns the name for the kind of keys; empty if it has no name.
    fn key_name(&self) -> &str;

    /// Inserts a key. Returns true if it was new.
    ///
    /// # Errors
    /// As [`try_insert_hash`](Self::try_insert_hash).
    fn try_insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, BuildError>
    where
        Self: Sized,
    {
        let hash = key.hash_with(self.hasher());
        self.try_insert_hash(hash)
    }

    /// Inserts many keys in order. `new[i]` is `true` if the key i was new. Returns the number of new keys.
    ///
    /// # Errors
    /// As [`try_insert_hashes`](Self::try_insert_hashes).
    ///
    /// # Panics
    /// If `new` is not as long as there are keys.
    #[track_caller]
    fn try_insert_batch<K: Keys + ?Sized>(&mut self, keys: &K, new: &mut [bool]) -> Result<usize, BuildError>
    where
        Self: Sized,
    {
        let hasher = self.hasher().clone();
        batch::try_hash_in_chunks(&hasher, keys, new, |hashes, new| self.try_insert_hashes(hashes, new))
    }

    /// Returns true if a key may have been inserted.
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(key.hash_with(self.hasher()))
    }

    /// Queries many keys. `found[i]` is `true` if the key i may have been inserted. Returns the number found.
    ///
    /// # Panics
    /// If `found` is not as long as there are keys.
    #[track_caller]
    fn contains_batch<K: Keys + ?Sized>(&self, keys: &K, found: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        batch::hash_in_chunks(self.hasher(), keys, found, |hashes, found| self.contains_hashes(hashes, found))
    }
}

macro_rules! delegate_filter {
    ($($Pointer:ty),* $(,)?) => {$(
        impl<F: Filter + ?Sized> Sealed for $Pointer {}

        impl<F: Filter + ?Sized> Filter for $Pointer {
            #[inline]
            fn try_insert_hash(&mut self, hash: u64) -> Result<bool, BuildError> {
                (**self).try_insert_hash(hash)
            }

            #[track_caller]
            fn try_insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
                (**self).try_insert_hashes(hashes, new)
            }

            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                (**self).contains_hash(hash)
            }

            #[inline]
            fn prefetch_hash(&self, hash: u64) {
                (**self).prefetch_hash(hash);
            }

            #[track_caller]
            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
                (**self).contains_hashes(hashes, found)
            }

            fn hasher(&self) -> &KeyHasher {
                (**self).hasher()
            }

            fn memory_bytes(&self) -> usize {
                (**self).memory_bytes()
            }

            fn expected_keys(&self) -> Option<u64> {
                (**self).expected_keys()
            }

            fn false_positive_rate(&self) -> Option<f64> {
                (**self).false_positive_rate()
            }

            fn current_fpr(&self) -> f64 {
                (**self).current_fpr()
            }

            fn estimated_keys(&self) -> f64 {
                (**self).estimated_keys()
            }

            fn key_name(&self) -> &str {
                (**self).key_name()
            }
        }
    )*};
}

delegate_filter!(&mut F, Box<F>);
