//! Sketches of sets: a lower bound of the number of grams that two sets do not share.
//!
//! A sketch stores, for each of many cells, the parity of the number of grams in it. If the parities of two sets differ, a gram in
//! the cell is in only one of them. So the number of cells that differ is at most the number of grams in only one set.

/// The maximum number of words of a sketch: the sketches of a bucket take at most 16 MiB.
const MOST: usize = 1 << 8;

/// Sketches of equal length, by number.
#[derive(Default)]
pub struct Sketches {
    words: Vec<u64>,
    /// The number of words of each, a power of two.
    each: usize,
}

impl Sketches {
    /// Starts again, for sets of up to `grams` grams, with enough cells that few differences collide.
    pub fn clear(&mut self, grams: u32) {
        self.words.clear();
        self.each = (grams as usize / 32).next_power_of_two().min(MOST);
    }

    /// Stores the sketch of a set under this number.
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

    /// Returns a lower bound of the number of grams in only one of two sets.
    pub fn differing_bits(&self, number: usize, other: usize) -> u64 {
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
        fn the_bound_of_a_sketch_is_at_most_the_difference(
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
            let reported = sketches.differing_bits(1, 3);
            prop_assert!(reported <= all && (all - reported).is_multiple_of(2));
            // At 200 grams a sketch has 512 cells, so each of the 300 possible grams has its own.
            prop_assert!(grams < 200 || reported == all);
        }
    }
}
