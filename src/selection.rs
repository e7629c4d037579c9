//! Batches of which only some rows are asked for, as query engines have them: selected by a bitmap or by indices.
//!
//! Each portion of the rows is gathered, asked for as a batch, and what was selected and not found is taken out.

use crate::batch::PORTION;
use crate::filter::Filter;
use crate::key::Key;
use crate::operations::{Access, Keyed, Operations};
#[cfg(feature = "std")]
use crate::scalable::AtomicScalableBloomFilter;
use crate::scalable::ScalableBloomFilter;
use alloc::vec::Vec;

/// Rows that a word of a bitmap selects.
const BITS: usize = u64::BITS as usize;
// A portion is a number of whole words.
const _: () = assert!(PORTION.is_multiple_of(BITS));

/// Queries of selected rows. A row that is not selected is not asked for: its key may be anything, such as what stands
/// in the place of a null.
impl<L: Operations<A>, A: Access> Filter<L, A> {
    /// [`prune_bitmap`](Self::prune_bitmap) of keys that were hashed elsewhere; see [`contains_hash`](Self::contains_hash).
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `hashes` need.
    #[track_caller]
    pub fn prune_bitmap_by_hashes(&self, hashes: &[u64], bitmap: &mut [u64]) -> usize {
        prune_bitmap(hashes.len(), bitmap, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`prune_indices`](Self::prune_indices) of keys that were hashed elsewhere; see
    /// [`contains_hash`](Self::contains_hash).
    ///
    /// # Panics
    /// If there is no hash at an index. `indices` stay as they are then.
    #[track_caller]
    pub fn prune_indices_by_hashes(&self, hashes: &[u64], indices: &mut Vec<u32>) {
        prune_indices(hashes.len(), indices, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found));
    }
}

/// Queries of selected rows, with keys in place of hashes.
impl<L: Operations<A> + Keyed, A: Access> Filter<L, A> {
    /// Keeps the bits of a bitmap whose keys may have been inserted, and unsets the others: bit i stays if it is set and
    /// [`contains`](Self::contains) is `true` of `keys[i]`. Returns how many are left.
    ///
    /// Bit i is bit `i % 64`, counted from the lowest, of the word `i / 64`: on little-endian machines the order of Arrow's
    /// bitmaps. Begin with all bits set, or with a copy of a validity bitmap, so that nulls are not found. Bits beyond the
    /// last key are unset. See [`contains_hashes`](Self::contains_hashes) for the cost, which is that of the rows that are
    /// selected and little more.
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `keys` need.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.0001)?;
    /// filter.extend([10u64, 30]);
    /// let keys = [10u64, 20, 30];
    /// let mut all = [!0];
    /// assert_eq!(filter.prune_bitmap(&keys, &mut all), 2);
    /// assert_eq!(all, [0b101]);
    ///
    /// let mut valid = [0b110]; // the first is null
    /// assert_eq!(filter.prune_bitmap(&keys, &mut valid), 1);
    /// assert_eq!(valid, [0b100]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn prune_bitmap<K: Key>(&self, keys: &[K], bitmap: &mut [u64]) -> usize {
        let hash = |row: usize| keys[row].hash_with(&self.hasher);
        prune_bitmap(keys.len(), bitmap, hash, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// Keeps the indices whose keys may have been inserted, in their order, and drops the others: `i` stays if
    /// [`contains`](Self::contains) is `true` of `keys[i]`. Query engines call such indices a selection vector. See
    /// [`contains_hashes`](Self::contains_hashes) for the cost, which is that of the rows that are selected.
    ///
    /// # Panics
    /// If there is no key at an index. `indices` stay as they are then.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.0001)?;
    /// filter.extend([10u64, 30]);
    /// let mut rows = vec![0, 1, 2];
    /// filter.prune_indices(&[10u64, 20, 30], &mut rows);
    /// assert_eq!(rows, [0, 2]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn prune_indices<K: Key>(&self, keys: &[K], indices: &mut Vec<u32>) {
        let hash = |row: usize| keys[row].hash_with(&self.hasher);
        prune_indices(keys.len(), indices, hash, |hashes, found| self.contains_hashes(hashes, found));
    }
}

/// Queries of selected rows.
impl ScalableBloomFilter {
    /// Keeps the bits of a bitmap whose keys may have been inserted; see
    /// [`BloomFilter::prune_bitmap`](crate::BloomFilter::prune_bitmap). Returns how many are left.
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `keys` need.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::ScalableBloomFilter = [10u64, 30].into_iter().collect();
    /// let mut rows = [!0];
    /// assert_eq!(filter.prune_bitmap(&[10u64, 20, 30], &mut rows), 2);
    /// assert_eq!(rows, [0b101]);
    /// ```
    #[track_caller]
    pub fn prune_bitmap<K: Key>(&self, keys: &[K], bitmap: &mut [u64]) -> usize {
        let hash = |row: usize| keys[row].hash_with(self.hasher());
        prune_bitmap(keys.len(), bitmap, hash, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// Keeps the indices whose keys may have been inserted; see
    /// [`BloomFilter::prune_indices`](crate::BloomFilter::prune_indices).
    ///
    /// # Panics
    /// If there is no key at an index. `indices` stay as they are then.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::ScalableBloomFilter = [10u64, 30].into_iter().collect();
    /// let mut rows = vec![0, 1, 2];
    /// filter.prune_indices(&[10u64, 20, 30], &mut rows);
    /// assert_eq!(rows, [0, 2]);
    /// ```
    #[track_caller]
    pub fn prune_indices<K: Key>(&self, keys: &[K], indices: &mut Vec<u32>) {
        let hash = |row: usize| keys[row].hash_with(self.hasher());
        prune_indices(keys.len(), indices, hash, |hashes, found| self.contains_hashes(hashes, found));
    }

    /// [`prune_bitmap`](Self::prune_bitmap) of keys that were hashed elsewhere.
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `hashes` need.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::ScalableBloomFilter = ["a"].into_iter().collect();
    /// let hashes = [b"a", b"b"].map(|key| filter.hasher().bytes(key));
    /// assert_eq!(filter.prune_bitmap_by_hashes(&hashes, &mut [!0]), 1);
    /// ```
    #[track_caller]
    pub fn prune_bitmap_by_hashes(&self, hashes: &[u64], bitmap: &mut [u64]) -> usize {
        prune_bitmap(hashes.len(), bitmap, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`prune_indices`](Self::prune_indices) of keys that were hashed elsewhere.
    ///
    /// # Panics
    /// If there is no hash at an index. `indices` stay as they are then.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::ScalableBloomFilter = ["a"].into_iter().collect();
    /// let hashes = [b"a", b"b"].map(|key| filter.hasher().bytes(key));
    /// let mut rows = vec![0, 1];
    /// filter.prune_indices_by_hashes(&hashes, &mut rows);
    /// assert_eq!(rows, [0]);
    /// ```
    #[track_caller]
    pub fn prune_indices_by_hashes(&self, hashes: &[u64], indices: &mut Vec<u32>) {
        prune_indices(hashes.len(), indices, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found));
    }
}

/// Queries of selected rows, while other threads insert.
#[cfg(feature = "std")]
impl AtomicScalableBloomFilter {
    /// Keeps the bits of a bitmap whose keys may have been inserted; see
    /// [`BloomFilter::prune_bitmap`](crate::BloomFilter::prune_bitmap). Returns how many are left.
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `keys` need.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::AtomicScalableBloomFilter = [10u64, 30].into_iter().collect();
    /// let mut rows = [!0];
    /// assert_eq!(filter.prune_bitmap(&[10u64, 20, 30], &mut rows), 2);
    /// assert_eq!(rows, [0b101]);
    /// ```
    #[track_caller]
    pub fn prune_bitmap<K: Key>(&self, keys: &[K], bitmap: &mut [u64]) -> usize {
        let hash = |row: usize| keys[row].hash_with(self.hasher());
        prune_bitmap(keys.len(), bitmap, hash, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// Keeps the indices whose keys may have been inserted; see
    /// [`BloomFilter::prune_indices`](crate::BloomFilter::prune_indices).
    ///
    /// # Panics
    /// If there is no key at an index. `indices` stay as they are then.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::AtomicScalableBloomFilter = [10u64, 30].into_iter().collect();
    /// let mut rows = vec![0, 1, 2];
    /// filter.prune_indices(&[10u64, 20, 30], &mut rows);
    /// assert_eq!(rows, [0, 2]);
    /// ```
    #[track_caller]
    pub fn prune_indices<K: Key>(&self, keys: &[K], indices: &mut Vec<u32>) {
        let hash = |row: usize| keys[row].hash_with(self.hasher());
        prune_indices(keys.len(), indices, hash, |hashes, found| self.contains_hashes(hashes, found));
    }

    /// [`prune_bitmap`](Self::prune_bitmap) of keys that were hashed elsewhere, as
    /// [`ScalableBloomFilter::prune_bitmap_by_hashes`].
    ///
    /// # Panics
    /// If `bitmap` has not as many words as `hashes` need.
    #[track_caller]
    pub fn prune_bitmap_by_hashes(&self, hashes: &[u64], bitmap: &mut [u64]) -> usize {
        prune_bitmap(hashes.len(), bitmap, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`prune_indices`](Self::prune_indices) of keys that were hashed elsewhere, as
    /// [`ScalableBloomFilter::prune_indices_by_hashes`].
    ///
    /// # Panics
    /// If there is no hash at an index. `indices` stay as they are then.
    #[track_caller]
    pub fn prune_indices_by_hashes(&self, hashes: &[u64], indices: &mut Vec<u32>) {
        prune_indices(hashes.len(), indices, |row| hashes[row], |hashes, found| self.contains_hashes(hashes, found));
    }
}

#[track_caller]
fn prune_bitmap(
    rows: usize,
    bitmap: &mut [u64],
    hash: impl Fn(usize) -> u64,
    contains: impl Fn(&[u64], &mut [bool]) -> usize,
) -> usize {
    let needed = rows.div_ceil(BITS);
    assert!(bitmap.len() == needed, "a batch of {rows} keys needs a bitmap of {needed} words, not {}", bitmap.len());
    if let Some(last) = bitmap.last_mut() {
        // 1 to 64 of them.
        *last &= u64::MAX >> (BITS * needed - rows);
    }
    let (mut hashes, mut found) = ([0; PORTION], [false; PORTION]);
    let mut count = 0;
    for (portion, words) in bitmap.chunks_mut(PORTION / BITS).enumerate() {
        let mut len = 0;
        for (i, &word) in words.iter().enumerate() {
            let first = PORTION * portion + BITS * i;
            let selected = word.count_ones() as usize;
            let places = hashes[len..len + selected].iter_mut();
            match word {
                u64::MAX => places.zip(first..).for_each(|(place, row)| *place = hash(row)),
                _ => places.zip(ones(word)).for_each(|(place, bit)| *place = hash(first + bit)),
            }
            len += selected;
        }
        count += contains(&hashes[..len], &mut found[..len]);
        let mut answers = &found[..len];
        for word in words {
            let (ours, others) = answers.split_at(word.count_ones() as usize);
            *word = match <&[bool; BITS]>::try_from(ours) {
                Ok(all) => packed(all),
                Err(_) => ours.iter().zip(ones(*word)).fold(0, |word, (&found, bit)| word | u64::from(found) << bit),
            };
            answers = others;
        }
    }
    count
}

/// The bits that are set, from the lowest.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.checked_sub(1)?;
        Some(bit)
    })
}

/// Answers as bits, eight by a multiplication that moves the lowest bit of each byte into the highest byte.
fn packed(answers: &[bool; BITS]) -> u64 {
    let byte = |answers: &[bool; 8]| {
        (u64::from_le_bytes(answers.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    u64::from_le_bytes(core::array::from_fn(|i| byte(&core::array::from_fn(|bit| answers[8 * i + bit]))))
}

#[track_caller]
fn prune_indices(
    rows: usize,
    indices: &mut Vec<u32>,
    hash: impl Fn(usize) -> u64,
    contains: impl Fn(&[u64], &mut [bool]) -> usize,
) {
    // Beforehand, so that nothing is half done.
    if let Some(&last) = indices.iter().max() {
        assert!(
            (last as usize) < rows,
            "no key at index {last}: the batch has {rows} keys, so give indices below {rows}"
        );
    }
    let (mut hashes, mut found) = ([0; PORTION], [false; PORTION]);
    let mut kept = 0;
    for start in (0..indices.len()).step_by(PORTION) {
        let end = indices.len().min(start + PORTION);
        let (hashes, found) = (&mut hashes[..end - start], &mut found[..end - start]);
        // An index of 32 bits is a usize wherever there are 64-bit atomics.
        hashes.iter_mut().zip(&indices[start..end]).for_each(|(slot, &row)| *slot = hash(row as usize));
        contains(hashes, found);
        for (i, &found) in (start..end).zip(&*found) {
            // Without a branch, which would be mispredicted often.
            indices[kept] = indices[i];
            kept += usize::from(found);
        }
    }
    indices.truncate(kept);
}
