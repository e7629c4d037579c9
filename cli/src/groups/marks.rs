//! A set of places: a bit for each line, and the number of set bits before each eighth word.

/// The words that share one count.
const STRIDE: usize = 8;

/// A set of places.
#[derive(Default)]
pub struct Marks {
    words: Vec<u64>,
    /// The number of set bits before each [`STRIDE`] words.
    ranks: Vec<u64>,
    /// The size of the set, once counted.
    pub count: u64,
}

impl Marks {
    /// Adds a place.
    pub fn insert(&mut self, place: u64) {
        let word = (place / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (place % 64);
    }

    /// Counts the places. Call it after the last [`insert`](Self::insert).
    pub fn count(&mut self) {
        self.words.shrink_to_fit();
        (self.ranks, self.count) = (Vec::with_capacity(self.words.len().div_ceil(STRIDE)), 0);
        for words in self.words.chunks(STRIDE) {
            self.ranks.push(self.count);
            self.count += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
    }

    pub fn contains(&self, place: u64) -> bool {
        self.words.get((place / 64) as usize).is_some_and(|word| word >> (place % 64) & 1 > 0)
    }

    /// Returns the number of places in the set before this one, if it is in the set.
    pub fn index(&self, place: u64) -> Option<usize> {
        let word = (place / 64) as usize;
        let before = self.words.get(word / STRIDE * STRIDE..word)?.iter().map(|word| word.count_ones()).sum::<u32>();
        let below = (self.words.get(word)? & ((1 << (place % 64)) - 1)).count_ones();
        self.contains(place).then(|| self.ranks[word / STRIDE] as usize + (before + below) as usize)
    }

    /// Returns the first place in the set from this one on.
    pub fn next(&self, from: u64) -> Option<u64> {
        let first = (from / 64) as usize;
        let rest = self.words.get(first..)?.iter().enumerate();
        let mut rest =
            rest.map(|(i, word)| if i == 0 { word >> (from % 64) << (from % 64) } else { *word }).enumerate();
        rest.find(|(_, word)| *word > 0).map(|(i, word)| 64 * (first + i) as u64 + u64::from(word.trailing_zeros()))
    }

    /// Returns all places in the set, in order.
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
        fn they_are_a_sorted_set(places in prop::collection::btree_set(0..3000_u64, 0..200), asked in 0..4000_u64) {
            let mut marks = Marks::default();
            places.iter().rev().for_each(|place| marks.insert(*place));
            marks.count();
            prop_assert_eq!(marks.count, places.len() as u64);
            prop_assert_eq!(marks.iter().collect::<BTreeSet<_>>(), places.clone());
            prop_assert_eq!(marks.next(asked), places.range(asked..).next().copied());
            for place in places.iter().copied().chain([asked]) {
                let before = places.range(..place).count();
                prop_assert_eq!(marks.contains(place), places.contains(&place));
                prop_assert_eq!(marks.index(place), places.contains(&place).then_some(before));
            }
        }
    }
}
