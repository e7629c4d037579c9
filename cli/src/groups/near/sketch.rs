//! Sketches of sets: at least how many grams two sets do not share.
//!
//! A sketch has the parity of the number of grams in each of many cells. Where the parities of two sets differ, one of them has a gram
//! that the other has not, so the cells that differ are at most the grams that are in one set alone.

/// The most words of a sketch: then all those of a bucket take 16 MiB.
const MOST: usize = 1 << 8;

/// Sketches of the same length, by number.
#[derive(Default)]
pub struct Sketches {
    words: Vec<u64>,
    /// The words of each, a power of two.
    each: usize,
}

impl Sketches {
    /// Begins anew, for sets of up to so many grams: few of those that one set has alone meet in a cell.
    pub fn clear(&mut self, grams: u32) {
        self.words.clear();
        self.each = (grams as usize / 32).next_power_of_two().min(MOST);
    }

    /// Makes the sketch with this number that of a set.
    pub fn put(&mut self, number: usize, grams: &[u64]) {
        let words = number * self.each..(number + 1) * self.each;
        self.words.resize(self.words.len().max(words.end), 0);
        let sketch = &mut self.words[words];
        sketch.fill(0);
        for gram in grams {
            let cell = *gram as usize % (64 * sketch.len());
            sketch[cell / 64] ^= 1 << (cell % 64);
        }
    }

    /// How many grams are in one alone of two sets, at the least.
    pub fn apart(&self, number: usize, other: usize) -> u64 {
        let [a, b] = [number, other].map(|number| &self.words[number * self.each..][..self.each]);
        a.iter().zip(b).map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_more_are_apart_than_there_are(
            sets in prop::array::uniform2(prop::collection::btree_set(0..300_u64, 0..100)),
            grams in prop::sample::select(vec![0, 64, 100, 200]),
        ) {
            let mut sketches = Sketches::default();
            for grams in [7, grams] {
                sketches.clear(grams);
                sets.iter().zip([3, 1]).for_each(|(set, number)| {
                    sketches.put(number, &set.iter().copied().collect::<Vec<_>>());
                });
            }
            let all = sets[0].symmetric_difference(&sets[1]).count() as u64;
            let told = sketches.apart(1, 3);
            prop_assert!(told <= all && (all - told).is_multiple_of(2));
            // With 512 cells, each gram has one of its own.
            prop_assert!(grams < 200 || told == all);
        }
    }
}
