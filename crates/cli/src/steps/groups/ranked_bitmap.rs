//! A set of ordinals: a bit for each line, and the number of set bits before each eighth word.

/// The words that share one count.
const STRIDE: usize = 8;

/// A set of ordinals.
#[derive(Default)]
pub struct RankedBitmap {
    words: Vec<u64>,
    /// The number of set bits before each [`STRIDE`] words.
    ranks: Vec<u64>,
    /// The size of the set, once counted.
    pub count: u64,
}

impl RankedBitmap {
    /// Adds an ordinal.
    pub fn insert(&mut self, ordinal: u64) {
        let word = (ordinal / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (ordinal % 64);
    }

    /// Counts the ordinals. Call it after the last [`insert`](Self::insert).
    pub fn count(&mut self) {
        self.words.shrink_to_fit();
        (self.ranks, self.count) = (Vec::with_capacity(self.words.len().div_ceil(STRIDE)), 0);
        for words in self.words.chunks(STRIDE) {
            self.ranks.push(self.count);
            self.count += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
    }

    pub fn contains(&self, ordinal: u64) -> bool {
        self.words.get((ordinal / 64) as usize).is_some_and(|word| word >> (ordinal % 64) & 1 > 0)
    }

    /// Returns the number of ordinals in the set before this one, if it is in the set.
    pub fn index(&self, ordinal: u64) -> Option<usize> {
        let word = (ordinal / 64) as usize;
        let before = self.words.get(word / STRIDE * STRIDE..word)?.iter().map(|word| word.count_ones()).sum::<u32>();
        let below = (self.words.get(word)? & ((1 << (ordinal % 64)) - 1)).count_ones();
        self.contains(ordinal).then(|| self.ranks[word / STRIDE] as usize + (before + below) as usize)
    }

    /// Returns the first ordinal in the set from this one on.
    pub fn next(&self, from: u64) -> Option<u64> {
        let first = (from / 64) as usize;
        let rest = self.words.get(first..)?.iter().enumerate();
        let mut rest =
            rest.map(|(i, word)| if i == 0 { word >> (from % 64) << (from % 64) } else { *word }).enumerate();
        rest.find(|(_, word)| *word > 0).map(|(i, word)| 64 * (first + i) as u64 + u64::from(word.trailing_zeros()))
    }

    /// Returns all ordinals in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let next = self.next(from?);
            from = next.map(|next| next + 1);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bitmaps_match_a_sorted_set(ordinals in prop::collection::btree_set(0..3000_u64, 0..200), asked in 0..4000_u64) {
            let mut marks = RankedBitmap::default();
            ordinals.iter().rev().for_each(|ordinal| marks.insert(*ordinal));
            marks.count();
            prop_assert_eq!(marks.count, ordinals.len() as u64);
            prop_assert_eq!(marks.iter().collect::<BTreeSet<_>>(), ordinals.clone());
            prop_assert_eq!(marks.next(asked), ordinals.range(asked..).next().copied());
            for ordinal in ordinals.iter().copied().chain([asked]) {
                let before = ordinals.range(..ordinal).count();
                prop_assert_eq!(marks.contains(ordinal), ordinals.contains(&ordinal));
                prop_assert_eq!(marks.index(ordinal), ordinals.contains(&ordinal).then_some(before));
            }
        }
    }
}
