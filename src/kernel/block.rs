//! The 512-bit block and the bits that a key sets in it: the layout `words4`, and its executable specification.
//!
//! A block is one cache line, eight words of 64 bits. Four *lanes* work side by side; lane `g` owns the words `g`
//! and `g + 4`, so that the lower half and the upper half of the block hold one word of every lane. A key uses one
//! word of each lane and sets up to `b` bits in it: `k = 4 b` probes, b = 1 to 4. (Lang et al., "Performance-Optimal
//! Filtering", VLDB 2019, calls this cache-sectorized blocking with z = 4.)
//!
//! ```text
//! hash × blocks ──► high 64 bits: the block
//! hash ──► pattern words `first` and `second`
//!
//! a pattern word:  | lane 3 | lane 2 | lane 1 | lane 0 |      16 bits a lane
//! a lane:          | w ··· pppppp qqqqqq |                    w: which word (bit 15), p (bits 6-11), q (bits 0-5)
//! ```
//!
//! Probe 1 is q of `first`, probe 2 is p of `first`, probes 3 and 4 are q and p of `second`; w comes from `first`.

use crate::key::hash::KeyHasher;

/// Words of 64 bits in a block.
pub(crate) const WORDS: usize = 8;
/// Words that a key touches, one in each lane.
pub(crate) const LANES: usize = 4;
/// Bytes in a block: a cache line.
pub(crate) const BLOCK_BYTES: usize = 64;
/// The numbers of probes that the layout offers.
pub(crate) const PROBES: [u32; 4] = [4, 8, 12, 16];

/// Eight words in one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(crate) [u64; WORDS]);

/// The words that the bits of a key are cut from: the first one, from which the second follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    pub(crate) first: u64,
}

// Odd, dense and without visible structure: the first 64 fractional bits of the square roots of 2 and 3, made odd.
const MIX_FIRST: u64 = 0x6A09_E667_F3BC_C909;
const MIX_SECOND: u64 = 0xBB67_AE85_84CA_A73B;

/// Returns the block of a hash, below `blocks`: the high half of `hash × blocks`, which is uniform for any count of blocks
/// (Lemire, "Fast Random Integer Generation in an Interval", 2019).
///
/// With half as many blocks it is half of this index, rounded down. So two neighbouring blocks fold into one.
#[inline(always)]
pub(crate) fn locate(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

impl Pattern {
    /// Computes the pattern from the hash alone, so that it is the same in a filter of any size. For the keys in a
    /// block the high bits of the hash are known, and the multiplication spreads the low ones.
    #[inline(always)]
    pub(crate) fn new(hash: u64) -> Self {
        Self { first: KeyHasher::mix(hash, MIX_FIRST) }
    }

    /// Returns the second word, for more than 8 probes.
    #[inline(always)]
    pub(crate) fn second(self) -> u64 {
        KeyHasher::mix(self.first, MIX_SECOND)
    }

    /// Returns the word of each lane and the bits in it, for `b` probes a lane, 1 to 4. Plain arithmetic: the specification of
    /// every kernel, and the code of the atomic filter.
    #[inline(always)]
    pub(crate) fn words_and_masks(self, b: usize) -> [(usize, u64); LANES] {
        let bits = |word: u64, start| -> [u64; LANES] {
            core::array::from_fn(|lane| 1u64 << (word >> (16 * lane + start) & 63))
        };
        let both = |some: [u64; LANES], others: [u64; LANES]| core::array::from_fn(|lane| some[lane] | others[lane]);
        // Branches around all lanes, because `b` is the same for all keys of a loop.
        let mut masks = bits(self.first, 0);
        if b >= 2 {
            masks = both(masks, bits(self.first, 6));
        }
        if b >= 3 {
            masks = both(masks, bits(self.second(), 0));
        }
        if b >= 4 {
            masks = both(masks, bits(self.second(), 6));
        }
        core::array::from_fn(|lane| (lane + (self.first >> (16 * lane) >> 13 & 4) as usize, masks[lane]))
    }

    /// Returns the bits in each word of the block, for 4, 8, 12 or 16 `probes`.
    pub(crate) fn mask(self, probes: u32) -> [u64; WORDS] {
        let mut block = [0; WORDS];
        for (word, mask) in self.words_and_masks(probes as usize / LANES) {
            block[word] = mask;
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_in_range_and_covers_every_block() {
        for blocks in [1, 2, 3, 7, 64, 1000, 1 << 20] {
            assert_eq!(locate(0, blocks), 0);
            assert_eq!(locate(u64::MAX, blocks), blocks - 1);
        }
    }

    #[test]
    fn half_as_many_blocks_halve_the_index() {
        for blocks in [2, 6, 64, 1000, 1 << 20, 12_346] {
            for hash in (0..10_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).chain([0, u64::MAX]) {
                assert_eq!(locate(hash, blocks) / 2, locate(hash, blocks / 2), "{hash} {blocks}");
            }
        }
    }

    /// The layout as the picture above draws it, written a second time with bit strings.
    #[test]
    #[allow(clippy::unusual_byte_groupings)] // grouped as in the picture
    fn masks_follow_the_picture() {
        let lane0 = 0b1_000_000101_000011; // w = 1, p = 5, q = 3
        let lane3 = 0b0_111_111111_000000u64; // w = 0, p = 63, q = 0, the unused bits set
        let pattern = Pattern { first: lane3 << 48 | lane0 };
        let (third, fourth) = (1 << (pattern.second() & 63), 1 << (pattern.second() >> 6 & 63));
        assert_eq!(pattern.words_and_masks(1)[0], (4, 1 << 3));
        assert_eq!(pattern.words_and_masks(2)[0], (4, 1 << 3 | 1 << 5));
        assert_eq!(pattern.words_and_masks(3)[0], (4, 1 << 3 | 1 << 5 | third));
        assert_eq!(pattern.words_and_masks(4)[0], (4, 1 << 3 | 1 << 5 | third | fourth));
        assert_eq!(pattern.words_and_masks(2)[1], (1, 1));
        assert_eq!(pattern.words_and_masks(2)[3], (3, 1 | 1 << 63));
    }
}
