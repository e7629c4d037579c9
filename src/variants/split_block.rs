//! `SplitBlockBloomFilter`: the filter of Apache Parquet, bit by bit.

use crate::batch::collect;
use crate::builder::geometry;
use crate::builder::options::{Builder, FromBuilder};
use crate::builder::spec::FilterSpec;
use crate::error::{BuildError, MergeError};
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::kernel::block::WORDS;
use crate::kernel::{KernelOps, prefetch};
use crate::layout::access::Exclusive;
use crate::layout::descriptor::{LayoutDescriptor, SPLIT_BLOCK};
use crate::layout::model::Layout;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::storage::Blocks;
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::set_bits;
use alloc::vec::Vec;
use core::fmt;
use twox_hash::XxHash64;

/// The split block Bloom filter of [Apache Parquet]: reads, queries and writes the bitset of a column's filter as any other
/// implementation does.
///
/// A key sets one bit in each of the eight 32-bit words of a block of 256 bits. Keys are byte strings, hashed by XXH64 with the
/// seed 0: text and byte arrays as they are, an integer or a float as its little-endian bytes in the width of its column
/// (Parquet's plain encoding, without the length before an array). A filter has 1 to 2^32 blocks; Parquet's writers use a power
/// of two, up to 128 MiB.
///
/// For other purposes, [`BloomFilter`](crate::BloomFilter) takes less memory at rates below 1 %. (Apple, "Split Block Bloom
/// Filters", 2021; the block of Impala's filters.)
///
/// # Examples
/// ```
/// use bloomline::variants::SplitBlockBloomFilter;
/// let mut column = SplitBlockBloomFilter::with_bitset_bytes(1024)?;
/// column.insert("text");
/// column.insert(&42i64.to_le_bytes());
///
/// let read = SplitBlockBloomFilter::from_bitset(&column.to_bitset())?;
/// assert!(read.contains("text") && read.contains(&42i64.to_le_bytes()));
/// assert!(!read.contains("other"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// [Apache Parquet]: https://github.com/apache/parquet-format/blob/master/BloomFilter.md
#[derive(Clone, PartialEq, Eq)]
pub struct SplitBlockBloomFilter(RawFilter<SplitBlock, Exclusive>);

impl SplitBlockBloomFilter {
    methods::constructors! { "bloomline::variants::SplitBlockBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model. Parquet's writers use the next power of two: [`with_bitset_bytes`](Self::with_bitset_bytes).
    }

    /// Creates a filter with a bitset of exactly `bytes` bytes: a multiple of 32, one block.
    ///
    /// # Errors
    /// [`BuildError`]: 0 or not a multiple of 32, more than 2^32 blocks, or a size that the system does not have.
    pub fn with_bitset_bytes(bytes: usize) -> Result<Self, BuildError> {
        if bytes == 0 || !bytes.is_multiple_of(SPLIT_BLOCK_BYTES) {
            return Err(BuildError::Bitset { bytes });
        }
        RawFilter::from_params(
            geometry::exact_params::<SplitBlock>((bytes / SPLIT_BLOCK_BYTES) as u64, 8)?,
            FilterSpec::default(),
        )
        .map(Self)
    }

    /// Reads a bitset in the form in which it follows the filter's header in a Parquet file. O(memory).
    ///
    /// # Errors
    /// The errors of [`with_bitset_bytes`](Self::with_bitset_bytes) for its length.
    pub fn from_bitset(bitset: &[u8]) -> Result<Self, BuildError> {
        let mut filter = Self::with_bitset_bytes(bitset.len())?;
        let words = filter.0.blocks.as_mut_slice().iter_mut().flat_map(|block| &mut block.0);
        // Two of Parquet's words, each little-endian, are one little-endian word of 64 bits.
        for (word, bytes) in words.zip(bitset.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(filter)
    }

    /// Returns the bitset as in a Parquet file: 32-bit words, little-endian. O(memory), and as much memory.
    pub fn to_bitset(&self) -> Vec<u8> {
        let mut bitset: Vec<u8> = self.0.words().flatten().flat_map(u64::to_le_bytes).collect();
        bitset.truncate(self.memory_bytes());
        bitset
    }

    /// Inserts a key's bytes. Returns true if the key was new. O(length of the key).
    #[inline]
    pub fn insert<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(Self::hash(key.as_ref()))
    }

    /// Returns true if a key may have been inserted: always if it was, and at the false-positive rate if it was not. O(length
    /// of the key).
    #[inline]
    pub fn contains<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(Self::hash(key.as_ref()))
    }

    /// Returns the hash of a key's bytes: XXH64 with the seed 0.
    ///
    /// # Examples
    /// A batch of integers:
    /// ```
    /// use bloomline::variants::SplitBlockBloomFilter;
    /// let mut column = SplitBlockBloomFilter::new(1000, 1e-6)?;
    /// column.insert(&42i64.to_le_bytes());
    /// let hashes = [41i64, 42].map(|key| SplitBlockBloomFilter::hash(&key.to_le_bytes()));
    /// let mut found = [false; 2];
    /// column.contains_hashes(&hashes, &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn hash(key: &[u8]) -> u64 {
        XxHash64::oneshot(0, key)
    }

    /// [`insert`](Self::insert) for a key with this [`hash`](Self::hash).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash)
    }

    /// Inserts many hashes in order. `new[i]` is `true` if `hashes[i]` was new. Returns the number of new hashes.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        self.0.insert_hashes(hashes, new)
    }

    /// [`contains`](Self::contains) for a key with this [`hash`](Self::hash).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    methods::prefetch_method!(
        "bloomline::variants::SplitBlockBloomFilter",
        "bloomline::variants::SplitBlockBloomFilter::hash(&key.to_le_bytes())"
    );

    /// Queries many hashes. `found[i]` is `true` if `hashes[i]` may have been inserted. Returns the number found.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        self.0.contains_hashes(hashes, found)
    }

    methods::info_methods!(any_hash);
    methods::capacity_methods!();

    /// Adds the keys of another filter. The result is exactly the filter that both sets of keys would have made. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size. Nothing is changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.union(&other.0)
    }
}

methods::file_methods!(SplitBlockBloomFilter, "bloomline::variants::SplitBlockBloomFilter");

/// Inserts the bytes of the keys of an iterator, in batches.
impl<K: AsRef<[u8]>> Extend<K> for SplitBlockBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let hashes = keys.into_iter().map(|key| Self::hash(key.as_ref()));
        collect::in_batches(hashes, |hashes| self.0.set_hashes(hashes));
    }
}

impl TryFrom<Builder<Self>> for SplitBlockBloomFilter {
    type Error = BuildError;

    fn try_from(builder: Builder<Self>) -> Result<Self, BuildError> {
        RawFilter::from_builder(builder).map(Self)
    }
}

impl fmt::Debug for SplitBlockBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The layout of [`SplitBlockBloomFilter`].
pub(crate) struct SplitBlock(());

/// Bytes of a block.
const SPLIT_BLOCK_BYTES: usize = 32;

const SPLIT_BLOCK_LANES: Lanes = Lanes { lanes: 8, choices: 1, bits: 32, throws: 1 };

/// The constants of the Parquet specification.
const SALTS: [u32; 8] =
    [0x47B6_137B, 0x4497_4D91, 0x8824_AD5B, 0xA2B7_289D, 0x7054_95C7, 0x2DF1_424B, 0x9EFC_4947, 0x5C6B_FB31];

/// Returns the index of the line of a hash's block, and the half of the line.
#[inline(always)]
fn locate(geometry: Geometry, hash: u64) -> (usize, usize) {
    // Below the number of blocks, twice the number of lines, which fits a usize.
    let block = (((hash >> 32) * geometry.units) >> 32) as usize;
    (block / 2, block % 2)
}

/// Returns a mask with one bit in each 32-bit word of the block.
#[inline(always)]
fn mask(hash: u64) -> [u64; 4] {
    let bits = SALTS.map(|salt| 1u32 << ((hash as u32).wrapping_mul(salt) >> 27));
    core::array::from_fn(|i| u64::from(bits[2 * i]) | u64::from(bits[2 * i + 1]) << 32)
}

impl Layout for SplitBlock {
    const DESCRIPTOR: &'static LayoutDescriptor = &SPLIT_BLOCK;

    fn rate(geometry: Geometry, keys: u64) -> f64 {
        BlockRates::new(SPLIT_BLOCK_LANES).mixture(geometry.units, keys)
    }

    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let halves = words.flat_map(|[a, b, c, d, e, f, g, h]| [[a, b, c, d], [e, f, g, h]]);
        let fraction = |half: u64| f64::from((half as u32).count_ones()) / 32.0;
        let rate = |words: [u64; 4]| words.map(|word| fraction(word) * fraction(word >> 32)).into_iter().product();
        set_bits::mean(halves.take(geometry.units as usize).map(rate))
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        SPLIT_BLOCK_LANES.bit_probability() / geometry.units as f64
    }
}

impl LayoutOps<Exclusive> for SplitBlock {
    const NAME: &'static str = "SplitBlockBloomFilter";
    type Store = Blocks;

    #[inline(always)]
    fn prefetch(geometry: Geometry, store: &Blocks, hash: u64) {
        let blocks = store.as_slice();
        prefetch(&blocks[locate(geometry, hash).0], blocks.len());
    }

    #[inline(always)]
    fn contains<I: KernelOps>(geometry: Geometry, _: I, store: &Blocks, hash: u64, _: usize) -> bool {
        let (line, half) = locate(geometry, hash);
        let words = store.as_slice()[line].0.as_chunks::<4>().0[half];
        let mask = mask(hash);
        (0..4).fold(0, |missing, i| missing | mask[i] & !words[i]) == 0
    }

    #[inline(always)]
    fn insert<I: KernelOps>(geometry: Geometry, _: I, store: &mut &mut Blocks, hash: u64, _: usize) -> bool {
        let (line, half) = locate(geometry, hash);
        let words = &mut store.as_mut_slice()[line].0.as_chunks_mut::<4>().0[half];
        let mask = mask(hash);
        let missing = (0..4).fold(0, |missing, i| missing | mask[i] & !words[i]) != 0;
        if missing {
            *words = core::array::from_fn(|i| words[i] | mask[i]);
        }
        missing
    }
}
