//! `Keys`: many keys at once, for batches.

use crate::key::hash::KeyHasher;
use crate::key::single::Key;
use alloc::borrow::{Cow, ToOwned};
use alloc::{boxed::Box, collections::VecDeque, rc::Rc, sync::Arc, vec::Vec};

/// Many keys in order: the argument of the batch calls of all filters.
///
/// | implementation | the keys |
/// |---|---|
/// | a slice, an array, a [`Vec`], a [`VecDeque`] of [`Key`]s | its members |
/// | [`Slices`] | byte strings that lie one after the other in one buffer, as in an Arrow array |
/// | [`Hashes`] | keys whose hashes are known |
/// | a tuple of 2 to 12 [`Keys`] | columns of one length, whose rows are composite keys: row i is hashed as the tuple of its members |
/// | [`Selected`] | some rows of other keys |
/// | a reference, [`Box`], [`Rc`], [`Arc`], [`Cow`] | the keys that it points to |
///
/// Implement it for columns of your own: [`len`](Self::len) and [`hash_at`](Self::hash_at) are enough.
///
/// # Examples
/// Composite keys of two columns:
/// ```
/// use bloomline::BloomFilter;
///
/// let (hosts, ports) = (["a", "b", "a"], [80u16, 80, 443]);
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// assert_eq!(seen.insert_batch(&(hosts, ports), &mut [false; 3]), 3);
/// assert!(seen.contains(&("a", 443u16)) && !seen.contains(&("b", 443u16)));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// Columns of your own:
/// ```
/// use bloomline::{BloomFilter, Key, KeyHasher, Keys};
///
/// /// Rows of 16 bytes.
/// struct Rows<'a>(&'a [u8]);
///
/// impl Keys for Rows<'_> {
///     fn len(&self) -> usize {
///         self.0.len() / 16
///     }
///
///     fn hash_at(&self, row: usize, hasher: &KeyHasher) -> u64 {
///         hasher.bytes(&self.0[16 * row..][..16])
///     }
/// }
///
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// let mut new = [false; 2];
/// assert_eq!(seen.insert_batch(&Rows(&[7; 32]), &mut new), 1);
/// assert_eq!(new, [true, false]);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch of keys",
    note = "batches are slices, arrays and vectors of keys, `Slices`, `Hashes`, `Selected`, and tuples of these as columns",
    note = "keys from an iterator are inserted by `extend`"
)]
pub trait Keys {
    /// Returns the number of keys.
    fn len(&self) -> usize;

    /// Returns the hash of a key under `hasher`, as by [`Key::hash_with`]. Equal keys must have equal hashes.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    ///
    /// # Examples
    /// Slices and arrays have this method beside the standard library's `hash`:
    /// ```
    /// use bloomline::{KeyHasher, Keys};
    /// use std::hash::{DefaultHasher, Hash};
    ///
    /// let hasher = KeyHasher::new(0);
    /// assert_eq!(["a", "b"].hash_at(1, &hasher), hasher.bytes(b"b"));
    /// ["a", "b"].hash(&mut DefaultHasher::new());
    /// vec!["a", "b"].hash(&mut DefaultHasher::new());
    /// ```
    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64;

    /// True if there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hashes keys from `first` on, one for each element of `hashes`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    fn hash_from(&self, first: usize, hasher: &KeyHasher, hashes: &mut [u64]) {
        hashes.iter_mut().zip(first..).for_each(|(slot, index)| *slot = self.hash_at(index, hasher));
    }

    /// Returns the hashes, if they are in memory already: then nothing is hashed or copied.
    #[inline]
    fn as_hashes(&self) -> Option<&[u64]> {
        None
    }
}

impl<K: Key> Keys for [K] {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
        self[index].hash_with(hasher)
    }

    #[inline]
    fn hash_from(&self, first: usize, hasher: &KeyHasher, hashes: &mut [u64]) {
        let keys = &self[first..][..hashes.len()];
        hashes.iter_mut().zip(keys).for_each(|(slot, key)| *slot = key.hash_with(hasher));
    }
}

macro_rules! delegate_keys {
    ($([$($generics:tt)*] $Type:ty => |$keys:ident| $same:expr),* $(,)?) => {$(
        impl<$($generics)*> Keys for $Type {
            #[inline]
            fn len(&self) -> usize {
                let $keys = self;
                $same.len()
            }

            #[inline]
            fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
                let $keys = self;
                $same.hash_at(index, hasher)
            }

            #[inline]
            fn hash_from(&self, first: usize, hasher: &KeyHasher, hashes: &mut [u64]) {
                let $keys = self;
                $same.hash_from(first, hasher, hashes);
            }

            #[inline]
            fn as_hashes(&self) -> Option<&[u64]> {
                let $keys = self;
                $same.as_hashes()
            }
        }
    )*};
}

delegate_keys! {
    [K: Key, const N: usize] [K; N] => |keys| &keys[..],
    [K: Key] Vec<K> => |keys| &keys[..],
    [K: Keys + ?Sized] &K => |keys| *keys,
    [K: Keys + ?Sized] Box<K> => |keys| &**keys,
    [K: Keys + ?Sized] Rc<K> => |keys| &**keys,
    [K: Keys + ?Sized] Arc<K> => |keys| &**keys,
    [K: Keys + ToOwned + ?Sized] Cow<'_, K> => |keys| &**keys,
}

impl<K: Key> Keys for VecDeque<K> {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
        self[index].hash_with(hasher)
    }
}

/// Byte strings that lie one after the other in one buffer: string `i` is `bytes[offsets[i]..offsets[i + 1]]`. These are the
/// offsets and the values of Arrow's arrays of text and bytes, which need no `Vec` of slices.
///
/// Offsets are `i32`, `i64` or another integer, and there is one more than there are strings. For null rows see `prune_bitmap`.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, Slices};
///
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// let (offsets, bytes) = ([0i32, 1, 4, 5], b"abcda");
/// let mut new = [false; 3];
/// seen.insert_batch(&Slices::new(&offsets, bytes), &mut new); // "a", "bcd", "a"
/// assert_eq!(new, [true, true, false]);
/// assert!(seen.contains("bcd"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// # Panics
/// A call that asks for a string panics if its offsets do not ascend, or pass the end of `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a, O> {
    offsets: &'a [O],
    bytes: &'a [u8],
}

impl<'a, O: Copy + TryInto<usize>> Slices<'a, O> {
    /// Wraps the strings of these offsets; no strings if there is no offset. O(1).
    pub fn new(offsets: &'a [O], bytes: &'a [u8]) -> Self {
        Self { offsets, bytes }
    }

    /// Returns a string.
    ///
    /// # Panics
    /// If there is no string of this index, if its offsets do not ascend, or if they pass the end of the bytes.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let to_index = |offset: O| offset.try_into().unwrap_or(usize::MAX);
        let (start, end) = (to_index(self.offsets[index]), to_index(self.offsets[index + 1]));
        &self.bytes[start..end]
    }
}

impl<O: Copy + TryInto<usize>> Keys for Slices<'_, O> {
    #[inline]
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    #[inline]
    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
        hasher.bytes(self.get(index))
    }
}

/// Keys whose hashes are known, by a filter's `hasher()` or by a hash function of your own. All 64 bits of a hash must be well
/// mixed, because the high ones choose the block.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, Hashes, Key};
/// let seen: BloomFilter = ["a", "b"].into_iter().collect();
/// let hashes = ["a", "c"].map(|key| key.hash_with(seen.hasher()));
/// let mut rows = [0b11];
/// assert_eq!(seen.prune_bitmap(&Hashes::new(&hashes), &mut rows), 1);
/// assert_eq!(rows, [0b01]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hashes<'a>(&'a [u64]);

impl<'a> Hashes<'a> {
    /// Wraps hashes. O(1).
    pub fn new(hashes: &'a [u64]) -> Self {
        Self(hashes)
    }
}

impl Keys for Hashes<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn hash_at(&self, index: usize, _: &KeyHasher) -> u64 {
        self.0[index]
    }

    #[inline]
    fn hash_from(&self, first: usize, _: &KeyHasher, hashes: &mut [u64]) {
        hashes.copy_from_slice(&self.0[first..][..hashes.len()]);
    }

    #[inline]
    fn as_hashes(&self) -> Option<&[u64]> {
        Some(self.0)
    }
}

macro_rules! tuple_keys {
    ($First:ident $($Next:ident)+) => {
        impl<$First: Keys, $($Next: Keys),+> Keys for ($First, $($Next),+) {
            /// # Panics
            /// If the columns differ in length.
            #[inline]
            #[track_caller]
            #[allow(non_snake_case)]
            fn len(&self) -> usize {
                let ($First, $($Next),+) = self;
                let len = $First.len();
                $(check_column(len, $Next.len());)+
                len
            }

            #[inline]
            #[allow(non_snake_case)]
            fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
                let ($First, $($Next),+) = self;
                let hash = $First.hash_at(index, hasher);
                $(let hash = hasher.combine(hash, $Next.hash_at(index, hasher));)+
                hash
            }

            #[inline]
            #[allow(non_snake_case)]
            fn hash_from(&self, first: usize, hasher: &KeyHasher, hashes: &mut [u64]) {
                let ($First, $($Next),+) = self;
                $First.hash_from(first, hasher, hashes);
                $(
                    let slots = hashes.iter_mut().zip(first..);
                    slots.for_each(|(slot, index)| *slot = hasher.combine(*slot, $Next.hash_at(index, hasher)));
                )+
            }
        }
        tuple_keys!($($Next)+);
    };
    ($Last:ident) => {};
}

tuple_keys!(A B C D E F G H I J K L);

#[track_caller]
fn check_column(first: usize, next: usize) {
    assert!(first == next, "the columns of composite keys need one length, not {first} and {next}");
}

/// Rows of other [`Keys`], selected by their indices, in the order of these. With it, inserts and queries
/// leave out rows such as nulls. Indices are `u32`, `usize` or another integer.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, Selected};
///
/// let column = [10u64, 0, 30]; // row 1 is null
/// let rows = [0u32, 2];
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// let mut new = [false; 2];
/// assert_eq!(seen.insert_batch(&Selected::new(&column, &rows), &mut new), 2);
/// assert!(seen.contains(&30u64) && !seen.contains(&0u64));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// # Panics
/// A call panics when it reaches an index at which there is no key.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a, K, I>(K, &'a [I]);

impl<'a, K: Keys, I: Copy + TryInto<usize>> Selected<'a, K, I> {
    /// Selects the rows of these indices. O(1).
    pub fn new(keys: K, rows: &'a [I]) -> Self {
        Self(keys, rows)
    }
}

impl<K: Keys, I: Copy + TryInto<usize>> Keys for Selected<'_, K, I> {
    #[inline]
    fn len(&self) -> usize {
        self.1.len()
    }

    #[inline]
    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
        self.0.hash_at(self.1[index].try_into().unwrap_or(usize::MAX), hasher)
    }
}
